#!/bin/sh
# run.sh [HOST...]: programs with libstdio_bus inside: `glib`, in the main loop of GLib; `cxx`, in
# C++17; `rust`; `node`, by the npm package koffi, with INTEROP_LATEST=yes by its latest version;
# `python`, in the loop of asyncio. Run by `make check-embed`, which sets SOURCE_DIR, BUILD_DIR,
# TEST_WORKER, COMPILE and LINK_FLAGS. A host is skipped if its language is not installed. The exit
# status is 77 if all are, or if the library was not built.

here=$SOURCE_DIR/tests/interop/embed
work=$BUILD_DIR/tests/interop/work${INTEROP_LATEST:+-latest}/embed
archive=$BUILD_DIR/libstdio_bus.a
REQUESTS=10000
ROUND_TRIPS=100000
LIMIT=240

[ -e "$archive" ] || { echo 'skipped: this build has no libstdio_bus.a'; exit 77; }
case " $COMPILE" in
*' -fsanitize='*) echo 'skipped: the objects have sanitizers'; exit 77 ;;
esac
mkdir -p "$work/include" && cd "$work" || exit 99
cp "$SOURCE_DIR/src/embed/stdio_bus_embed.h" "$SOURCE_DIR/src/event/stdio_bus_event_loop.h" \
    include || exit 99
ran=0

# has PROGRAM: whether it is installed.
has()
{
    command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; return 1; }
}

# run NAME COMMAND...
run()
{
    name=$1
    shift
    timeout "$LIMIT" "$@" >"$name.out" 2>"$name.err" </dev/null || {
        echo "FAILED: $name (status $?)"
        cat "$name.out" "$name.err"
        exit 1
    }
    echo "$name: $(cat "$name.out")"
    ran=$((ran + 1))
}

host_glib()
{
    pkg-config --exists glib-2.0 2>/dev/null || { echo 'skipped: glib is not installed'; return; }
    # The flags are to be split.
    # shellcheck disable=SC2046,SC2086
    $COMPILE -Iinclude $(pkg-config --cflags glib-2.0) -o glib_host "$here/glib_host.c" "$archive" \
        $(pkg-config --libs glib-2.0) $LINK_FLAGS || exit 1
    run glib ./glib_host "$TEST_WORKER" $ROUND_TRIPS
}

host_cxx()
{
    has c++ || return
    c++ -std=c++17 -O1 -Iinclude -o cxx_host "$SOURCE_DIR/tests/embedded_host.cc" "$archive" ||
        exit 1
    run cxx ./cxx_host "$TEST_WORKER" $REQUESTS
}

host_rust()
{
    has rustc || return
    rustc --edition 2024 -O -D warnings -C link-arg="$archive" -o rust_host "$here/host.rs" ||
        exit 1
    run rust ./rust_host "$TEST_WORKER" $REQUESTS
}

# Installs koffi in the working directory, in the version of package-lock.json or the latest one.
install_koffi()
{
    if [ -n "$INTEROP_LATEST" ]; then
        npm install --ignore-scripts --no-audit --no-fund koffi@latest >npm.log 2>&1 </dev/null &&
            npm ls --depth 0
        return
    fi
    ! cmp -s "$here/package-lock.json" installed-lock.json || return 0
    cp "$here/package-lock.json" . || exit 99
    npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 </dev/null || return
    cp "$here/package-lock.json" installed-lock.json || exit 99
}

host_node()
{
    [ -e "$BUILD_DIR/libstdio_bus.so" ] || return
    has node && has npm || return
    cp "$here/package.json" "$here/host.mjs" . || exit 99
    install_koffi || {
        tail -n 5 npm.log
        echo 'skipped: koffi cannot be had'
        return
    }
    run node node host.mjs "$BUILD_DIR/libstdio_bus.so" "$TEST_WORKER" $REQUESTS
}

host_python()
{
    [ -e "$BUILD_DIR/libstdio_bus.so" ] || return
    has python3 || return
    run python env STDIO_BUS_LIBRARY="$BUILD_DIR/libstdio_bus.so" python3 -B \
        "$SOURCE_DIR/tests/embedded_host.py" $REQUESTS "$TEST_WORKER"
}

[ $# -gt 0 ] || set -- glib cxx rust node python
for host; do
    "host_$host"
done
[ $ran -gt 0 ] || exit 77
