#!/bin/sh
# embed.sh: the cost of a request inside a program, from stdio_bus_ingest to on_message, beside that
# of the floor: medians, and the ratio of the single runs with its spread. Run by
# `make bench-embed`. All processes share one processor, if there is taskset. BENCH_RUNS: how many
# runs (7). Prints processor time in nanoseconds: of the bus in its host, and of the relay.

export LC_ALL=C # the decimal point
programs=$BUILD_DIR/tests/bench
pin=
if command -v taskset >/dev/null; then pin='taskset -c 0'; fi

run=0
while [ $((run += 1)) -le "${BENCH_RUNS:-7}" ]; do
    for each in '' --each; do
        # $pin and $each are words, or none.
        # shellcheck disable=SC2086
        bus=$($pin "$programs/embed_bench" 300000 64 "$programs/echo_worker" $each) &&
            floor=$($pin "$programs/load" --seconds 0.4 --window 64 $each -- "$programs/relay" \
                "$programs/echo_worker" $each) || exit 1
        printf '%s %s %s\n' "${each:-batching}" "${bus#*cpu_ns=}" \
            "${floor#*cpu_ns=}"
    done
done | awk '
    { n[$1]++; bus[$1, n[$1]] = $2 + 0; floor[$1, n[$1]] = $5 + 0; ratio[$1, n[$1]] = $2 / $5 }
    function sort(of, kind,    i, j, x) {
        for (i = 2; i <= n[kind]; i++) {
            x = of[kind, i]
            for (j = i - 1; j > 0 && of[kind, j] > x; j--)
                of[kind, j + 1] = of[kind, j]
            of[kind, j + 1] = x
        }
        return of[kind, int((n[kind] + 1) / 2)]
    }
    function row(name, kind) {
        printf "%s: floor %d ns, bus %d ns, ratio %.2f", name, sort(floor, kind), sort(bus, kind),
            sort(ratio, kind)
        printf " (%.2f to %.2f)\n", ratio[kind, 1], ratio[kind, n[kind]]
    }
    END { row("a write for each message", "--each"); row("both ends batching", "batching") }'
