#!/bin/sh
# check_symbols.sh: the daemon's objects can be linked into another program. Linked to one object
# whose hidden symbols are local, they define no name but those that begin with stdio_bus_, and a
# program that has a function of each other name of theirs links with it.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
if [ -z "$NM" ] || [ -z "$OBJCOPY" ] || [ -z "$LD" ]; then
    echo 'skipped: nm, objcopy or ld was not found'
    exit 77
fi
case " $COMPILE" in
*' -fvisibility=hidden'*) ;;
*) echo 'skipped: the compiler has no -fvisibility=hidden'; exit 77 ;;
esac
case " $COMPILE" in
*' -flto'*) echo 'skipped: with -flto the objects hold no code'; exit 77 ;;
esac
dir=$(mktemp -d "${TMPDIR:-/tmp}/symbols.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# Names that begin with __ are the compiler's.
global_names()
{
    "$NM" -g "$1" | awk 'NF == 3 && $2 != "U" && $3 !~ /^(__|stdio_bus_)/ { print $3 }' | sort -u
}

global_names "$BUILD_DIR/libstdio_bus_core.a" >"$dir/names"
$LD -r -o "$dir/whole.o" --whole-archive "$BUILD_DIR/libstdio_bus_core.a" &&
    "$OBJCOPY" --localize-hidden "$dir/whole.o" || exit 1
global_names "$dir/whole.o" >"$dir/left"
if [ -s "$dir/left" ]; then
    echo 'FAILED: names that do not begin with stdio_bus_ and are not hidden:'
    cat "$dir/left"
    exit 1
fi

{
    sed 's/.*/void &(void); void &(void) {}/' "$dir/names"
    echo 'void *stdio_bus_event_loop_create(void);'
    echo 'int main(void) { return stdio_bus_event_loop_create() == 0; }'
} >"$dir/program.c"
# The flags are to be split.
# shellcheck disable=SC2086
$COMPILE -w -o "$dir/program" "$dir/program.c" "$dir/whole.o" $LINK_FLAGS || {
    echo 'FAILED: a program with functions of these names does not link with the objects.'
    exit 1
}
echo "check_symbols: $(wc -l <"$dir/names") names are hidden"
