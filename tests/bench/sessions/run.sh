#!/bin/sh
# run.sh: processes and memory of sessions with MCP servers, direct and shared (sessions.mjs); with
# the argument `uncalled`, servers that no client calls (uncalled.mjs). Run by `make bench-sessions`
# and `make bench-uncalled`, which set STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Installs
# the packages of package-lock.json in the build directory.

for program in node npm; do
    if ! command -v $program >/dev/null; then
        echo "$program is not installed" >&2
        exit 1
    fi
done

here=$SOURCE_DIR/tests/bench/sessions
work=$BUILD_DIR/tests/bench/sessions
mkdir -p "$work" && cd "$work" || exit 1
cp "$here/package.json" "$here/package-lock.json" "$here"/*.mjs . || exit 1
npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 </dev/null ||
    { tail -n 20 npm.log; exit 1; }
if [ "$1" = uncalled ]; then
    shift
    exec node uncalled.mjs "$@"
fi
exec node sessions.mjs "$@"
