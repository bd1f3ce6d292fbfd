#!/bin/sh
# run.sh: an editor as client of the daemon, a language server as worker. Run by
# `make check-editors`, which sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Installs the
# packages of package-lock.json in the build directory. Exits with status 77 without node or npm.

. "$SOURCE_DIR/tests/interop/npm.sh"

INTEROP_DIR=$SOURCE_DIR/tests/interop/editors
export INTEROP_DIR
work=$BUILD_DIR/tests/interop/work/editors
mkdir -p "$work" && cd "$work" || exit 99
cp "$INTEROP_DIR/package.json" "$INTEROP_DIR/editors.test.mjs" . || exit 99

install_locked "$INTEROP_DIR" || exit 1
exec node --test --test-reporter=spec editors.test.mjs </dev/null
