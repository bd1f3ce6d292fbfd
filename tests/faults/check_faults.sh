#!/bin/sh
# check_faults.sh [--all] [--share N] [--pairs COUNT] [--seed NUMBER] [--only TEXT]: the fault
# sweep, see sweep.c. Before it the lists are compared with the daemon: each function of the C
# library that it imports is in faults.c or, if it cannot fail, in sure.txt; faults.c has no other
# functions; and all listed calls exist.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
if [ -n "$FAULTS_MISSING" ]; then
    echo "skipped: the fault sweep cannot be done in this build: $FAULTS_MISSING"
    exit 77
fi
[ -r /proc/self/stat ] || command -v ps >/dev/null || {
    echo 'skipped: without /proc and ps (apt-get install procps) shared servers have no memory'
    exit 77
}
faults=$SOURCE_DIR/tests/faults
FAULTY_BUS=$BUILD_DIR/tests/faults/faulty_bus
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
FAULTS_DIR=$(mktemp -d "${TMPDIR:-/tmp}/faults.XXXXXX") || exit 99
TMPDIR=$FAULTS_DIR # a file whose unlink was failed stays behind
export FAULTY_BUS FAULTS_DIR TMPDIR
trap 'rm -rf "$FAULTS_DIR"' EXIT
trap 'exit 1' HUP INT TERM
status=0

"$NM" "$BUILD_DIR/tests/faults/faults.o" | sed -n 's/.* T faulty_//p' | sort >"$FAULTS_DIR/failed"
sed -n 's/^\([a-z0-9_]*\): ..*/\1/p' "$faults/sure.txt" | sort >"$FAULTS_DIR/sure"

# Undefined in the daemon's objects, and defined in none of them. (The linked program imports more
# with a sanitizer, and nothing if it is static.)
"$NM" -g "$BUILD_DIR/src/main.o" "$BUILD_DIR/libstdio_bus_embed.a" \
    "$BUILD_DIR/libstdio_bus_core.a" | awk '
    /^[^ ]*:$/ { shim = /kqueue_shim|vnode/; next }
    shim || NF < 2 { next }
    $(NF - 1) != "U" { defined[$NF]; next }
    $NF ~ /^__(asan|ubsan|lsan|sanitizer)_|^__gcov_(init|exit|merge)/ { next }
    $NF != "_GLOBAL_OFFSET_TABLE_" { asked[$NF] }
    END { for (name in asked) if (!(name in defined)) print name }
' | sed 's/^__\(.*\)_chk$/\1/; s/^__gcov_//' | sort -u >"$FAULTS_DIR/imported"
unknown=$(sort -u "$FAULTS_DIR/failed" "$FAULTS_DIR/sure" | comm -13 - "$FAULTS_DIR/imported")
if [ -n "$unknown" ]; then
    echo 'FAILED: the daemon imports functions that are neither in names.def nor in sure.txt:'
    echo "$unknown"
    status=1
fi

# A function of the daemon with a name of names.def would be renamed, too.
"$NM" "$BUILD_DIR/tests/faults/renamed.a" | sed -n 's/.* [Tt] faulty_//p' >"$FAULTS_DIR/shadows"
if [ -s "$FAULTS_DIR/shadows" ]; then
    echo 'FAILED: the daemon defines a function with a name of the C library:'
    cat "$FAULTS_DIR/shadows"
    status=1
fi

# Each call in the faulty daemon, by its return address: "NAME OFFSET FUNCTION".
start=$("$NM" "$FAULTY_BUS" | awk '$3 == "__executable_start" { print $1 }')
"$OBJDUMP" -d --no-show-raw-insn "$FAULTY_BUS" | awk '
    /^[0-9a-f]+ <.*>:$/ { at = $2; gsub(/[<>:]/, "", at); next }
    name != "" && /^ *[0-9a-f]+:/ { sub(":", "", $1); print name, $1, within; name = "" }
    match($0, /<faulty_[a-z0-9_]+>$/) && at !~ /^faulty_/ {
        name = substr($0, RSTART + 8, RLENGTH - 9)
        within = at
    }
' | while read -r name address within; do
    printf '%s %x %s\n' "$name" $((0x$address - 0x$start)) "$within"
done >"$FAULTS_DIR/sites"

# Only one of the event backends is linked.
{
    cut -d ' ' -f 1 "$FAULTS_DIR/sites"
    "$NM" -u "$BUILD_DIR"/src/event/epoll.o "$BUILD_DIR"/src/event/poll.o | awk '{ print $2 }'
} | sort -u | comm -23 "$FAULTS_DIR/failed" - >"$FAULTS_DIR/uncalled"
if [ -s "$FAULTS_DIR/uncalled" ]; then
    echo 'FAILED: names.def has functions that the daemon does not call:'
    cat "$FAULTS_DIR/uncalled"
    status=1
fi

cat "$faults/silent.txt" "$faults/unreached.txt" |
    sed -n 's/^\([a-z0-9_]*\) \([a-z0-9_*-]*\)\( ([^)]*)\)\{0,1\}: ..*/\1 \2/p' |
    awk '
        NR == FNR && ($1, $3) in site { next }
        NR == FNR { site[$1, $3]; site[$1, "*"]; callers[$1]++; next }
        $2 == "-" ? callers[$1] != 1 : !(($1, $2) in site)
    ' "$FAULTS_DIR/sites" - >"$FAULTS_DIR/gone"
if [ -s "$FAULTS_DIR/gone" ]; then
    echo 'FAILED: silent.txt or unreached.txt has calls that do not exist (-: not in one function):'
    cat "$FAULTS_DIR/gone"
    status=1
fi

"$BUILD_DIR/tests/faults/sweep" --sites "$FAULTS_DIR/sites" "$@" || status=1
exit "$status"
