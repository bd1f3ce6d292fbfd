#!/bin/sh
# check_roads.sh: how many functions of src, in how many files, a message passes; roads.awk says
# what counts. Run by `make check-roads`. Fails when a bound is exceeded. ROADS_TRACE=1 prints the
# functions.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
roads=$BUILD_DIR/tests/roads
work=$(mktemp -d "${TMPDIR:-/tmp}/roads.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

"${NM:-nm}" -l "$roads/roads_bus" >"$work/symbols"
if ! grep -q '/src/main\.c:' "$work/symbols"; then
    echo 'skipped: nm does not say where functions are defined'
    exit 77
fi
# drive SCENE KEYS: the trace of a scene with a pool that has such keys.
drive() {
    directory=$work/$1
    mkdir "$directory" && mkfifo "$directory/requests" "$directory/answers" || exit 1
    printf '{"pools":[{"id":"p","command":"%s","args":["--worker"],"instances":1%s}]}\n' \
        "$roads/drive" "$2" >"$directory/config.json"
    (cd "$directory" && "$roads/drive" "$roads/roads_bus" "$1") >>"$work/trace" || exit 1
}
drive plain ''
drive rewriting ',"clients":"sticky","ids":"rewrite"'
drive post ',"protocol":"mcp"'
drive publication ''
drive front ''
awk -v show="${ROADS_TRACE:-0}" -v round=stdio_bus_event_loop_run_once \
    -f "$SOURCE_DIR/tests/roads/roads.awk" "$work/symbols" "$work/trace" | tee "$work/roads"

# bound ROAD CALLS FILES CHANGES
bound() {
    awk -v road="$1" -v c="$2" -v f="$3" -v x="$4" '
        index($0, road ": ") == 1 {
            split(substr($0, length(road) + 3), is)
            met = is[1] <= c && is[3] <= f && is[5] <= x && is[1] > 0
        }
        END {
            printf "%s: at most %d / %d / %d: %s\n", road, c, f, x, met ? "met" : "EXCEEDED"
            exit !met
        }' "$work/roads"
}
status=0
bound 'request, plain' 66 13 24 || status=1
bound 'request, rewriting' 83 17 30 || status=1
bound 'request, POST' 430 40 130 || status=1
bound 'answer, POST' 335 30 72 || status=1
bound 'publication and its message' 1005 36 450 || status=1
bound 'request, front' 97 20 38 || status=1
bound 'answer, front' 90 22 38 || status=1
exit $status
