#!/bin/sh
# nats.sh: the time of a request over NATS to a pool (stdio_bus.rpc.POOL), and of one over a link to
# a pool of another daemon (client, daemon b, nats-server, daemon a, worker), beside a request of
# NATS to a responder of its own client, and beside a request to the same worker over the daemon's
# Unix socket. One request at a time, of 64 bytes of text. Prints medians in microseconds: the time
# of a request, its 99th percentile, and the CPU time for it of the daemon, or of the responder; of
# the daemon that is asked, if there are two; and of nats-server (user and system, all threads).
#
# Then the same with 1024 requests in flight: 16 links with 64 each, and NATS's own between two
# processes. Prints medians of requests a second, and of the CPU times. All take turns.
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
cat >"$work/asking.json" <<END
{"pools": [{"id": "echo", "remote": true, "instances": 1}],
 "nats": {"servers": ["127.0.0.1:$port"], "node": "b"}}
END
sed 's/"instances": 1/"instances": 16/' "$work/asking.json" >"$work/links.json"
"$STDIO_BUS" --config "$work/config.json" --unix "$work/socket" >"$work/stdio_bus.log" 2>&1 &
bus=$!
pids="$pids $bus"
await 'connected to' "$work/stdio_bus.log"
"$work/nats_bench" serve "$url" peer &
peer=$!
pids="$pids $peer"
"$work/nats_bench" serve-many "$url" many &
many=$!
pids="$pids $many"
sleep 0.5

# cpu PID: nanoseconds of all its threads.
cpu() {
    cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# field NAME: its value in what load has printed.
field() {
    sed -n "s/.*\<$1=\([0-9.]*\).*/\1/p" "$work/row"
}

# run_load OPTION... -- PROGRAM...: as load does.
run_load() {
    "$programs/load" --unix "$work/local" "$@" >"$work/row" 2>"$work/bus.log" || {
        cat "$work/bus.log"
        exit 1
    }
}

# measure_links NAME CONFIG REQUESTS OPTION...: requests over links, a row as the others.
measure_links() {
    name=$1 config=$2 requests=$3
    shift 3
    before="$(cpu "$bus") $(cpu "$nats")"
    run_load --requests "$requests" "$@" -- "$STDIO_BUS" --config "$config" --unix "$work/local"
    # The first one, and those that warm up, are a tenth more.
    echo "$before $(cpu "$bus") $(cpu "$nats") $requests" |
        awk -v name="$name" -v p50="$(field p50_us)" -v p99="$(field p99_us)" \
            -v cpu="$(field cpu_ns)" -v rate="$(field rate)" '{
                all = ($5 * 1.1 + 1) * 1000
                printf "%s %s %.1f %.1f %.1f %.1f\n", name, name == "links" ? rate : p50, p99,
                       cpu / 1000, ($4 - $2) / all, ($3 - $1) / all
            }' >>"$work/rows"
}

# measure NAME ACTION ARGUMENT...: a row of nats_bench.
measure() {
    name=$1
    shift
    "$work/nats_bench" "$@" >"$work/row" || exit 1
    sed "s/^/$name /" "$work/row" >>"$work/rows"
}

run=0
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    measure nats ask "$url" peer "$seconds" "$peer" "$nats"
    measure_links link "$work/asking.json" $((seconds * 4000))
    measure rpc ask "$url" stdio_bus.rpc.echo "$seconds" "$bus" "$nats"
    run_load --seconds "$seconds" -- "$STDIO_BUS" --unix "$work/local" -- "$programs/echo_worker"
    echo "local $(field p50_us) $(field p99_us) $(field cpu_ns)" |
        awk '{ printf "%s %s %.1f %.1f 0\n", $1, $2, $3, $4 / 1000 }' >>"$work/rows"
    measure many flood "$url" many "$seconds" 1024 "$many" "$nats"
    measure_links links "$work/links.json" $((seconds * 50000)) --clients 16 --window 64
    run_load --seconds "$seconds" --clients 16 --window 64 -- "$STDIO_BUS" --unix "$work/local" \
        -- "$programs/echo_worker"
    echo "locals $(field rate) 0 $(field cpu_ns)" |
        awk '{ printf "%s %s %.1f %.1f 0\n", $1, $2, $3, $4 / 1000 }' >>"$work/rows"
done

# table TITLE WIDTH PATTERN: the rows whose kind has the pattern.
table() {
    grep -E "$3" "$work/rows" | sort -k 1,1 -k 2,2n | awk -v title="$1" -v many="$2" '
    BEGIN {
        name["nats"] = name["many"] = "NATS, its own responder"
        name["rpc"] = "NATS, a pool"
        name["link"] = "a link"
        name["links"] = "16 links"
        name["local"] = name["locals"] = "Unix socket, a pool"
        printf "%-24s %10s %9s %9s %9s %12s\n", title, many ? "a second" : "p50 us",
               many ? "" : "p99 us", "CPU us", "asking us", "nats-server"
    }
    function print_row(    at) {
        at = int((count + 1) / 2)
        if (count > 0)
            printf "%-24s %10.*f %9s %9.1f %9s %12.1f\n", name[kind], !many, first[at],
                   many ? "" : sprintf("%.1f", p99[at]), cpu[at], asking[at], server[at]
        count = 0
    }
    # What there is: the first, p99, CPU, that of nats-server; of a link, first its asking daemon
    $1 != kind { print_row(); kind = $1 }
    {
        count++
        first[count] = $2
        p99[count] = $3
        is_link = $1 ~ /link/
        from = $1 == "many" ? 3 : is_link ? 6 : 4
        cpu[count] = $(from)
        server[count] = is_link ? $5 : $(from + 1)
        asking[count] = is_link ? sprintf("%.1f", $4) : ""
    }
    END { print_row() }'
}

table 'one request at a time' 0 '^(nats|rpc|link|local) '
table '16 x 64 in flight' 1 '^(many|links|locals) '
peer_is_well stdio_bus "$work/stdio_bus.log" && peer_is_well nats "$work/nats.log"
