#!/bin/sh
# run.sh: a server and clients of the official Go library around the daemon. Run by `make check-go`,
# which sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Fetches the modules of go.sum, or
# with INTEROP_LATEST=yes the latest version of each. Exits with status 77 without Go, or where the
# modules cannot be had.

[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
GOTOOLCHAIN=local GOFLAGS=-mod=readonly
export TMPDIR GOTOOLCHAIN GOFLAGS
work=$BUILD_DIR/tests/interop/work${INTEROP_LATEST:+-latest}/go
if ! command -v go >/dev/null; then
    echo 'skipped: Go is not installed'
    exit 77
fi
mkdir -p "$work" && cp "$SOURCE_DIR"/tests/interop/go/*.go "$SOURCE_DIR"/tests/interop/go/go.* \
    "$work" && cd "$work" || exit 99

# Each command fails with an older Go, too. The latest library may do with a Go for which the latest
# modules that it needs are too new.
fetch()
{
    if [ -n "$INTEROP_LATEST" ]; then
        go get -u -t ./... || go get -t ./... github.com/modelcontextprotocol/go-sdk@latest
    else
        go mod download
    fi
}

if ! fetch >download.log 2>&1 </dev/null; then
    tail -n 5 download.log
    echo 'skipped: the Go modules cannot be had'
    exit 77
fi
[ -z "$INTEROP_LATEST" ] || grep ' v[0-9]' go.mod
go vet . && go build -o server . || exit 1
GO_SERVER=$work/server go test -count=1 -v . >test.log 2>&1 </dev/null
status=$?
[ "$status" -eq 0 ] || cat test.log
# The counts are as node's test runner has them.
awk '$1 == "---" { print; passed += $2 == "PASS:"; failed += $2 == "FAIL:" }
    END { printf "# pass %d\n# fail %d\n", passed, failed }' test.log
exit "$status"
