#!/bin/sh
# run.sh: a server and clients of the official Rust library around the daemon. Run by
# `make check-rust`, which sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR. Fetches the crates
# of Cargo.lock, or with INTEROP_LATEST=yes the latest version of each, and compiles them: a minute
# or two. Exits with status 77 without cargo, or where the crates cannot be had.

if ! command -v cargo >/dev/null; then
    echo 'skipped: cargo is not installed'
    exit 77
fi
work=$BUILD_DIR/tests/interop/work${INTEROP_LATEST:+-latest}/rust
mkdir -p "$work/src" && cp "$SOURCE_DIR"/tests/interop/rust/Cargo.* "$work" &&
    cp "$SOURCE_DIR/tests/interop/rust/src/main.rs" "$work/src" && cd "$work" || exit 99

# Without rust-version, cargo takes the latest crates that the installed compiler can compile. rmcp
# may have a new major version. The other crates keep theirs: functions of rmcp have types of them.
take_latest()
{
    sed '/^rust-version = /d; s/^\(rmcp = { version = "\)/\1>=/' \
        "$SOURCE_DIR/tests/interop/rust/Cargo.toml" >Cargo.toml || exit 99
    cargo update
}

if ! { [ -z "$INTEROP_LATEST" ] || take_latest; } >fetch.log 2>&1 </dev/null ||
    ! cargo fetch --locked >>fetch.log 2>&1 </dev/null; then
    tail -n 5 fetch.log
    echo 'skipped: the crates cannot be had'
    exit 77
fi
[ -z "$INTEROP_LATEST" ] || cargo tree --locked --offline --depth 1 --prefix none
cargo build --quiet --locked --offline </dev/null || exit 1
folder=$(mktemp -d /tmp/stdio_bus_rust.XXXXXX) || exit 99 # the path of a socket is short
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR="$folder" XDG_CACHE_HOME="$folder"
./target/debug/interop check "$STDIO_BUS" "$folder" </dev/null
