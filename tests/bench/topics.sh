#!/bin/sh
# topics.sh: the cost of a delivery on the topic bus, from one publisher to 1, 10 and 100
# subscribers, beside a process that copies, and beside redis-server, nats-server and mosquitto
# where they are installed. Prints a table: deliveries a second, and the server's CPU time for each,
# the medians by CPU time. Run by `make bench`, which sets STDIO_BUS (the daemon) and BUILD_DIR. In
# the environment:
#
#   BENCH_RUNS     number of measurements                                 (5)
#   BENCH_SECONDS  length of each                                         (1)
#   BENCH_PORT     of 127.0.0.1, for servers without a Unix socket        (41883)

export LC_ALL=C # the decimal point is that of ASCII
program=${BENCH_PROGRAMS:-$BUILD_DIR/tests/bench}/topic_bench
runs=${BENCH_RUNS:-5}
seconds=${BENCH_SECONDS:-1}
port=${BENCH_PORT:-41883}
[ -x "$program" ] || { echo "topics.sh: $program is missing" >&2; exit 99; }
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
PATH=$PATH:/usr/sbin
work=$(mktemp -d) || exit 99
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# measure NAME PROTOCOL [SOCKET PID]: a row for each number of subscribers.
measure() {
    name=$1 protocol=$2
    shift 2
    for count in 1 10 100; do
        for _ in $(seq "$runs"); do
            "$program" "$protocol" "$count" "$seconds" "$@" 2>>"$work/errors"
        done | sort -n -k 2 | awk -v name="$name" -v count="$count" '
            { rate[NR] = $1; ns[NR] = $2 }
            END {
                at = int((NR + 1) / 2)
                if (NR > 0)
                    printf "%-12s %11d %14.0f %16.0f\n", name, count, rate[at], ns[at]
                else
                    printf "%-12s %11d %14s\n", name, count, "failed"
            }'
    done
}

# serve NAME PROTOCOL SOCKET COMMAND...: starts a server, measures it, ends it.
serve() {
    name=$1 protocol=$2 socket=$3
    shift 3
    command -v "$1" >/dev/null || return 0
    "$@" >"$work/log" 2>&1 &
    server=$!
    sleep 1
    measure "$name" "$protocol" "$socket" "$server"
    kill "$server"
    wait "$server"
    server=
}

echo
echo 'server       subscribers   deliveries/s  CPU ns/delivery'
measure copy copy
serve stdio_bus rmp "$work/rmp.sock" "$STDIO_BUS" --rmp "$work/rmp.sock"
serve redis redis "$work/redis.sock" redis-server --port 0 --save '' --dir "$work" \
    --unixsocket "$work/redis.sock"
serve nats nats "127.0.0.1:$port" nats-server -a 127.0.0.1 -p "$port"
cat >"$work/mosquitto.conf" <<END
listener 0 $work/mqtt.sock
allow_anonymous true
max_queued_messages 0
END
serve mosquitto mqtt "$work/mqtt.sock" mosquitto -c "$work/mosquitto.conf"
exit 0
