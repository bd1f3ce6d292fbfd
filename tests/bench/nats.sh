#!/bin/sh
# nats.sh: the time of a request over NATS to a pool (stdio_bus.rpc.POOL), beside a request of NATS
# to a responder of its own client, and beside a request to the same worker over the daemon's Unix
# socket. One request at a time, of 64 bytes of text. Prints medians in microseconds: the time of a
# request, its 99th percentile, and the CPU time for it of the daemon, or of the responder, and of
# nats-server (user and system, all threads). The three take turns.
# Run by `make bench-nats`, which sets STDIO_BUS (the daemon), SOURCE_DIR, BUILD_DIR and CC. Exits
# with status 77 without nats-server or libnats (apt-get install nats-server libnats-dev). In the
# environment:
#
#   BENCH_RUNS     number of measurements    (5)
#   BENCH_SECONDS  length of each            (1)
#   BENCH_PORT     of 127.0.0.1, for NATS    (41885)

export LC_ALL=C # the decimal point is that of ASCII
runs=${BENCH_RUNS:-5}
seconds=${BENCH_SECONDS:-1}
port=${BENCH_PORT:-41885}
bench=$SOURCE_DIR/tests/bench
programs=$BUILD_DIR/tests/bench
PATH=$PATH:/usr/sbin
command -v nats-server >/dev/null || { echo 'skipped: nats-server is not installed'; exit 77; }
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
work=$(mktemp -d) || exit 99
pids=
trap '[ -z "$pids" ] || { kill $pids 2>/dev/null; wait; }; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
. "$bench/peer_logs.sh"

# shellcheck disable=SC2086 # CC may be several words
${CC:-cc} -O2 -I"$BUILD_DIR" -I"$bench" -o "$work/nats_bench" "$bench/nats_bench.c" \
    "$bench/histogram.c" -lnats 2>"$work/cc.log" || {
    grep -q 'nats/nats.h' "$work/cc.log" || { cat "$work/cc.log"; exit 1; }
    echo 'skipped: libnats is not installed'
    exit 77
}

# await WORDS LOG: until the log has these words, for 5 seconds at most.
await() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        grep -q "$1" "$2" && return
        sleep 0.5
    done
    cat "$2"
    exit 1
}

url=nats://127.0.0.1:$port
nats-server -a 127.0.0.1 -p "$port" >"$work/nats.log" 2>&1 &
nats=$!
pids=$nats
await 'Server is ready' "$work/nats.log"
cat >"$work/config.json" <<END
{"pools": [{"id": "echo", "command": "$programs/echo_worker", "export": true}],
 "nats": {"servers": ["127.0.0.1:$port"]}}
END
"$STDIO_BUS" --config "$work/config.json" --unix "$work/socket" >"$work/stdio_bus.log" 2>&1 &
bus=$!
pids="$pids $bus"
await 'connected to' "$work/stdio_bus.log"
"$work/nats_bench" serve "$url" peer &
peer=$!
pids="$pids $peer"
sleep 0.5

run=0
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    "$work/nats_bench" ask "$url" peer "$seconds" "$peer" "$nats" >"$work/row" || exit 1
    sed 's/^/nats /' "$work/row" >>"$work/rows"
    "$work/nats_bench" ask "$url" stdio_bus.rpc.echo "$seconds" "$bus" "$nats" >"$work/row" ||
        exit 1
    sed 's/^/rpc /' "$work/row" >>"$work/rows"
    "$programs/load" --unix "$work/local" --seconds "$seconds" -- "$STDIO_BUS" --unix \
        "$work/local" -- "$programs/echo_worker" >"$work/row" 2>"$work/bus.log" || {
        cat "$work/bus.log"
        exit 1
    }
    sed -n 's/.*cpu_ns=\([0-9.]*\).*p50_us=\([0-9.]*\) p99_us=\([0-9.]*\).*/\2 \3 \1/p' \
        "$work/row" | awk '{ printf "local %.1f %.1f %.1f 0\n", $1, $2, $3 / 1000 }' >>"$work/rows"
done

sort -k 1,1 -k 2,2n "$work/rows" | awk '
    BEGIN {
        name["nats"] = "NATS, its own responder"
        name["rpc"] = "NATS, a pool"
        name["local"] = "Unix socket, a pool"
        printf "%-24s %9s %9s %14s %14s\n", "requests over", "p50 us", "p99 us", "CPU us",
               "nats-server us"
    }
    function print_row(    at) {
        at = int((count + 1) / 2)
        if (count > 0)
            printf "%-24s %9.1f %9.1f %14.1f %14.1f\n", name[kind], p50[at], p99[at], cpu[at],
                   server[at]
        count = 0
    }
    $1 != kind { print_row(); kind = $1 }
    { count++; p50[count] = $2; p99[count] = $3; cpu[count] = $4; server[count] = $5 }
    END { print_row() }'
peer_is_well stdio_bus "$work/stdio_bus.log" && peer_is_well nats "$work/nats.log"
