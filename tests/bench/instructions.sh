#!/bin/sh
# instructions.sh: the instructions of the daemon (without the kernel) per request, counted by
# valgrind in deterministic scenarios. Run by `make bench-instructions`, which sets STDIO_BUS,
# SOURCE_DIR and BUILD_DIR. Fails if a figure is more than 5 % above instructions.record, or if
# rewriting ids costs more than 16 %. BENCH_RECORD=yes writes new figures to the record. The figures
# are for the compiler, libc and processor in its first line; with others only rewriting is compared
# with plain traffic.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
programs=${BENCH_PROGRAMS:-$BUILD_DIR/tests/bench}
record=$SOURCE_DIR/tests/bench/instructions.record
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The platform of the figures.
made_with() {
    echo "# $(uname -m), $("${CC:-cc}" --version | sed 1q)," \
        "$(getconf GNU_LIBC_VERSION 2>/dev/null)," \
        "$(valgrind --version), $(grep -m 1 -o -w avx2 /proc/cpuinfo)"
}

if ! command -v valgrind >/dev/null; then
    echo 'skipped: valgrind is not installed'
    exit 77
fi
for workers in 1 2; do
    pool=$(printf '"id":"echo","command":"%s","instances":%d' "$programs/echo_worker" $workers)
    printf '{"pools":[{%s}]}\n' "$pool" >"$work/$workers.json"
    printf '{"pools":[{%s,"ids":"rewrite"}]}\n' "$pool" >"$work/rewrite-$workers.json"
done
kind= # or rewrite-: the daemon rewrites ids

# count REQUESTS WORKERS OPTION...: the instructions of a run with this many requests.
count() {
    requests=$1 workers=$2
    shift 2
    case " $* " in
    *' --unix '*) where="--unix $work/socket" ;;
    *) where=--stdio ;;
    esac
    rm -f "$work"/callgrind.*
    "$programs/load" --lockstep --one-cpu --workers "$workers" --requests "$requests" "$@" -- \
        valgrind -q --tool=callgrind --callgrind-out-file="$work/callgrind.%p" \
        "$STDIO_BUS" --config "$work/$kind$workers.json" $where --log-level error \
        >"$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
    awk '$1 == "summary:" { print $2 }' "$work"/callgrind.*
}

# scenario NAME REQUESTS WORKERS OPTION...: the difference of two runs omits start and end.
scenario() {
    name=$1 few=$2 workers=$3
    shift 3
    first=$(count "$few" "$workers" "$@") && second=$(count $((few * 3)) "$workers" "$@") || exit 1
    # load makes a tenth more requests, to warm up.
    echo "$kind$name $(((second - first) * 10 / (few * 22)))" >>"$work/figures"
}

scenario small-64-in-flight 6400 1 --window 64
scenario small-1-in-flight 2000 1 --window 1
scenario sessions-16-clients 6400 2 --unix "$work/socket" --clients 16 --window 16 --sessions
scenario 4KiB-16-in-flight 1600 1 --window 16 --payload 4096
scenario 64KiB-4-in-flight 200 1 --window 4 --payload 65536
scenario 900KiB-1-in-flight 40 1 --window 1 --payload 921600
kind=rewrite-
scenario small-64-in-flight 6400 1 --window 64
scenario 4KiB-16-in-flight 1600 1 --window 16 --payload 4096
scenario 900KiB-1-in-flight 40 1 --window 1 --payload 921600

made_with >"$work/made_with"
[ "$BENCH_RECORD" = yes ] && cat "$work/made_with" "$work/figures" >"$record"
same=1
if ! sed 1q "$record" | cmp -s - "$work/made_with"; then
    same=0
    echo 'the figures of record are of:' "$(sed 1q "$record")"
    echo 'not compared, these are of:  ' "$(cat "$work/made_with")"
fi
awk -v same=$same '
    NR == FNR { recorded[$1] = $2; next }
    {
        figures[$1] = $2
        change = recorded[$1] > 0 ? ($2 / recorded[$1] - 1) * 100 : 0
        printf "%-26s %10d instructions a request, recorded %10d: %+.1f %%\n", $1, $2,
               recorded[$1], change
        if (same && (recorded[$1] == 0 || change > 5))
            failed = 1
    }
    END {
        for (name in figures) {
            if (!sub(/^rewrite-/, "", name))
                continue
            change = (figures["rewrite-" name] / figures[name] - 1) * 100
            printf "rewriting ids: %-22s %+.1f %%, 16 are allowed\n", name, change
            if (change > 16)
                failed = 1
        }
        exit failed
    }
' "$record" "$work/figures"
