#!/bin/sh
# run.sh: hosts of MCP servers check the health of what they start. Run by `make check-hosts`, which
# sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Installs the packages of package-lock.json
# in the build directory (1.1 GB). Exits with status 77 without node or npm, or where the packages
# cannot be had.

. "$SOURCE_DIR/tests/interop/npm.sh"

here=$SOURCE_DIR/tests/interop
work=$BUILD_DIR/tests/interop/work/hosts
mkdir -p "$work" && cd "$work" || exit 99
cp "$here/hosts/package.json" "$here/hosts/hosts.test.mjs" \
    "$here/bus.mjs" "$here/processes.mjs" . || exit 99

install_locked "$here/hosts" || {
    echo 'skipped: the npm packages cannot be had'
    exit 77
}
exec node --test --test-reporter=spec hosts.test.mjs </dev/null
