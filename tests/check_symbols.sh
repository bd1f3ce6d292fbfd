#!/bin/sh
# check_symbols.sh: libstdio_bus shows the names of src/embed/stdio_bus_embed.map, and no others.
# A program that has a function of each hidden name links with the archive, and with the archive
# inside a shared object of its own.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
if [ ! -e "$BUILD_DIR/libstdio_bus.a" ]; then
    echo 'skipped: this build has no libstdio_bus.a'
    exit 77
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/symbols.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# Names that begin with __ are the compiler's.
defined_names()
{
    "$NM" "$@" | awk 'NF == 3 && $2 !~ /[UA]/ && $3 !~ /^__/ { sub(/@.*/, "", $3); print $3 }' |
        sort -u
}

# Compares the names in $dir/shown to those of the map.
compare()
{
    diff "$dir/wanted" "$dir/shown" >"$dir/difference" && return
    echo "FAILED: $1 does not show (<), or shows beside its interface (>):"
    grep '^[<>]' "$dir/difference"
    exit 1
}

sed -n 's/^ *\(stdio_bus_[a-z_]*\);$/\1/p' "$SOURCE_DIR/src/embed/stdio_bus_embed.map" |
    sort >"$dir/wanted"
sed -n 's/.*[ *]\(stdio_bus_[a-z_]*\)(.*/\1/p' "$SOURCE_DIR/src/embed/stdio_bus_embed.h" \
    "$SOURCE_DIR/src/event/stdio_bus_event_loop.h" |
    grep -v '_cb$' | sort -u >"$dir/declared"
grep -xFf "$dir/wanted" "$dir/declared" | cmp -s - "$dir/wanted" || {
    echo 'FAILED: the headers do not declare each name of the map.'
    exit 1
}
defined_names -g "$BUILD_DIR/libstdio_bus.a" >"$dir/shown"
compare libstdio_bus.a
if [ -e "$BUILD_DIR/libstdio_bus.so" ]; then
    defined_names -D "$BUILD_DIR/libstdio_bus.so" >"$dir/shown"
    compare libstdio_bus.so
fi

defined_names -g "$BUILD_DIR/libstdio_bus_core.a" | grep -vxFf "$dir/wanted" >"$dir/names"
{
    sed 's/.*/void &(void); void &(void) {}/' "$dir/names"
    echo 'void *stdio_bus_create(const void *);'
    echo 'int host(void); int host(void) { return stdio_bus_create(0) != 0; }'
} >"$dir/program.c"
# The flags are to be split.
# shellcheck disable=SC2086
$COMPILE -w -DMAIN -c -o "$dir/program.o" "$dir/program.c" &&
    printf 'int host(void); int main(void) { return host(); }\n' >"$dir/main.c" &&
    $COMPILE -w -o "$dir/program" "$dir/main.c" "$dir/program.o" "$BUILD_DIR/libstdio_bus.a" \
        $LINK_FLAGS && "$dir/program" || {
    echo 'FAILED: a program with functions of these names does not link with the library.'
    exit 1
}
case " $COMPILE" in
*' -fsanitize='*) ;;
*)
    # shellcheck disable=SC2086
    $COMPILE -fPIC -w -shared -o "$dir/host.so" "$dir/program.c" "$BUILD_DIR/libstdio_bus.a" || {
        echo 'FAILED: a shared object with the library inside cannot be linked.'
        exit 1
    }
    ;;
esac
echo "check_symbols: $(wc -l <"$dir/wanted") names are shown, $(wc -l <"$dir/names") are hidden"
