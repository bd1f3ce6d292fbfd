#!/bin/sh
# run.sh: real MCP and ACP programs around the daemon. Run by `make check-interop`, which sets
# STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Installs the packages of package-lock.json in
# the build directory, or with INTEROP_LATEST=yes the latest version of each; with the argument
# `packages` that is all. INTEROP_JOBS: how many files of tests run at once, 1 without it. With
# INTEROP_QUICK=yes fewer clients run at once, and no browser but one that CHROMIUM names; otherwise
# that is a chromium in PATH. Exits with status 77 without node or npm.

. "$SOURCE_DIR/tests/interop/npm.sh"

here=$SOURCE_DIR/tests/interop
work=$BUILD_DIR/tests/interop/work${INTEROP_LATEST:+-latest}
mkdir -p "$work" && cd "$work" || exit 99
cp "$here/package.json" "$here"/*.mjs "$here"/browser_page.html "$here"/ws_person.py . || exit 99

if [ -n "$INTEROP_LATEST" ]; then
    # Of one of which ours is a pre-release, the tag "latest" may be older: not that.
    # shellcheck disable=SC2046 # the names are words
    npm install --ignore-scripts --no-audit --no-fund \
        $(sed -n 's/^    "\(.*\)": "\([0-9][^"]*\)".*/\1@>=\2/p' package.json) \
        >npm.log 2>&1 </dev/null ||
        { tail -n 20 npm.log; exit 1; }
    npm ls --depth 0
else
    install_locked "$here" || exit 1
fi
[ "$1" != packages ] || exit 0
[ -n "$INTEROP_QUICK" ] || : "${CHROMIUM=$(command -v chromium || command -v chromium-browser)}"
export CHROMIUM
exec node --test --test-concurrency="${INTEROP_JOBS:-1}" --test-reporter=spec \
    interop.test.mjs mcp.test.mjs \
    mcp_servers.test.mjs eras.test.mjs tasks.test.mjs questions.test.mjs acp.test.mjs \
    acp_versions.test.mjs care.test.mjs share.test.mjs watch.test.mjs rmp.test.mjs \
    connect_http.test.mjs nats.test.mjs nats_links.test.mjs \
    remote.test.mjs \
    conformance.test.mjs http.test.mjs websocket.test.mjs proxies.test.mjs browser.test.mjs \
    page.test.mjs </dev/null
