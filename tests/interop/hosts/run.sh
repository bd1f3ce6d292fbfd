#!/bin/sh
# run.sh: hosts of MCP servers check the health of what they start. Run by `make check-hosts`, which
# sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Installs the packages of package-lock.json
# in the build directory (700 MB). Exits with status 77 without node or npm, or where the packages
# cannot be had.

[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
for program in node npm; do
    if ! command -v $program >/dev/null; then
        echo "skipped: $program is not installed"
        exit 77
    fi
done

here=$SOURCE_DIR/tests/interop
work=$BUILD_DIR/tests/interop/work/hosts
mkdir -p "$work" && cd "$work" || exit 99
cp "$here/hosts/package.json" "$here/hosts/hosts.test.mjs" \
    "$here/bus.mjs" "$here/processes.mjs" . || exit 99

# The lock file is copied after the installation: the copy names the installed packages.
if ! cmp -s "$here/hosts/package-lock.json" installed-lock.json; then
    cp "$here/hosts/package-lock.json" package-lock.json || exit 99
    echo 'Installing the npm packages of package-lock.json'
    if ! npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 </dev/null; then
        tail -n 20 npm.log
        echo 'skipped: the npm packages cannot be had'
        exit 77
    fi
    cp package-lock.json installed-lock.json || exit 99
fi
exec node --test --test-reporter=spec hosts.test.mjs </dev/null
