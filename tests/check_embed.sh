#!/bin/sh
# check_embed.sh: programs outside compile and run with libstdio_bus: the examples of the
# documentation with the archive and with the shared library, and a host in C++17. The headers are
# alone in a folder, as they are where they are installed.

if [ ! -e "$BUILD_DIR/libstdio_bus.a" ]; then
    echo 'skipped: this build has no libstdio_bus.a'
    exit 77
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/embed.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
include=$dir/include
mkdir "$include"
cp "$SOURCE_DIR/src/embed/stdio_bus_embed.h" "$SOURCE_DIR/src/event/stdio_bus_event_loop.h" \
    "$include"

fail()
{
    echo "FAILED: $*"
    exit 1
}

# Each line comes back: cat is a worker that asks the host what it was told.
printf '{"pools":[{"id":"cat","command":"cat","instances":1}]}\n' >"$dir/config.json"
try()
{
    printf '{"method":"a"}\n{"method":"b","params":{"n":1}}\n' >"$dir/in"
    { cat "$dir/in"; sleep 1; } | "$@" "$dir/config.json" >"$dir/out" 2>"$dir/err" ||
        { cat "$dir/err"; fail "$1 has failed"; }
    cmp "$dir/in" "$dir/out" || { cat "$dir/err"; fail "$1 has lost a message"; }
}

# The flags are to be split.
# shellcheck disable=SC2086
for example in embedded_host event_loop_host; do
    source=$SOURCE_DIR/doc/examples/$example.c
    $COMPILE -I"$include" -o "$dir/$example" "$source" "$BUILD_DIR/libstdio_bus.a" $LINK_FLAGS ||
        fail "$example does not link with the archive"
    try "$dir/$example"
    [ -e "$BUILD_DIR/libstdio_bus.so" ] || continue
    $COMPILE -I"$include" -o "$dir/shared" "$source" -L"$BUILD_DIR" -lstdio_bus $LINK_FLAGS ||
        fail "$example does not link with the shared library"
    try env LD_LIBRARY_PATH="$BUILD_DIR" "$dir/shared"
done

case " $COMPILE" in
*' -fsanitize='*) ;;
*)
    if [ -e "$BUILD_DIR/libstdio_bus.so" ] && python3 -c 'import asyncio, ctypes' 2>"$dir/err"; then
        STDIO_BUS_LIBRARY=$BUILD_DIR/libstdio_bus.so timeout 60 python3 -B \
            "$SOURCE_DIR/tests/embedded_host.py" 1600 "$TEST_WORKER" >"$dir/out" 2>&1 ||
            # With poll, or without timerfd, there is nothing that asyncio could wait for.
            grep -q 'this system has no descriptor to wait for' "$dir/out" ||
            { cat "$dir/out"; fail 'the host in Python has failed'; }
    fi
    ;;
esac

case " $COMPILE" in
*' -fsanitize='*) echo 'check_embed: C++ was left out: the objects have sanitizers'; exit 0 ;;
esac
for compiler in ${CXX-} c++ g++ clang++; do
    echo 'int main() { return 0; }' >"$dir/none.cc"
    "$compiler" -std=c++17 -o "$dir/none" "$dir/none.cc" 2>"$dir/err" || continue
    # shellcheck disable=SC2086 # the flags are to be split
    "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$include" -o "$dir/host" \
        "$SOURCE_DIR/tests/embedded_host.cc" "$BUILD_DIR/libstdio_bus.a" $LINK_FLAGS ||
        fail 'a host in C++ does not compile'
    timeout 60 "$dir/host" "$TEST_WORKER" 10000 || fail 'the host in C++ has failed'
    echo 'check_embed: C and C++'
    exit 0
done
echo 'check_embed: C; no C++ compiler was found'
