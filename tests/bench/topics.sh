#!/bin/sh
# topics.sh: the cost of a delivery on the topic bus, from one publisher to 1, 10 and 100
# subscribers, beside a process that copies, and beside redis-server, nats-server and mosquitto
# where they are installed. Prints a table: deliveries a second and the server's CPU time for each
# (user and system, all its threads), of the run with the median CPU time, and the least and most
# CPU time of all runs. The servers take turns, so that what else the machine does meets them all.
# Fails if the log of a server has an error.
# Run by `make bench`, which sets STDIO_BUS (the daemon) and BUILD_DIR. In the environment:
#
#   BENCH_RUNS     number of measurements                                 (5)
#   BENCH_SECONDS  length of each                                         (1)
#   BENCH_PORT     of 127.0.0.1, for nats, which has no Unix socket, and the next port for redis,
#                  to compare                                             (41883)

export LC_ALL=C # the decimal point is that of ASCII
program=${BENCH_PROGRAMS:-$BUILD_DIR/tests/bench}/topic_bench
runs=${BENCH_RUNS:-5}
seconds=${BENCH_SECONDS:-1}
port=${BENCH_PORT:-41883}
[ -x "$program" ] || { echo "topics.sh: $program is missing" >&2; exit 99; }
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
PATH=$PATH:/usr/sbin
work=$(mktemp -d) || exit 99
pids=
trap '[ -z "$pids" ] || { kill $pids 2>/dev/null; wait; }; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
. "${SOURCE_DIR:-.}/tests/bench/peer_logs.sh"
failed=

# serve NAME COMMAND...: starts a server, if it is installed; its process is $server.
serve() {
    server=
    serving=$1
    shift
    command -v "$1" >/dev/null || return 1
    "$@" >"$work/$serving.log" 2>&1 &
    server=$!
    pids="$pids $server"
}

# peer NAME PROTOCOL [SOCKET PID]: what is to be measured.
peer() {
    echo "$@" >>"$work/peers"
}

# measure COUNT: all peers with that many subscribers, once.
measure() {
    while read -r name protocol where; do
        # shellcheck disable=SC2086 # a socket and a process
        if ! "$program" "$protocol" "$1" "$seconds" $where </dev/null >"$work/row"; then
            echo "topics.sh: $name failed with $1 subscribers" >&2
            failed=yes
        fi
        sed "s/^/$name $1 /" "$work/row" >>"$work/rows"
    done <"$work/peers"
}

# report: the rows of each peer and number of subscribers, in order of CPU time, as one.
report() {
    sort -k 1,1 -k 2,2n -k 4,4n "$work/rows" | awk '
        function print_row(at) {
            at = int((count + 1) / 2)
            if (count > 0)
                printf "%-12s %11d %14.0f %16.0f %8.0f %8.0f\n", name, subscribers, rate[at],
                       ns[at], ns[1], ns[count]
            count = 0
        }
        $1 != name || $2 != subscribers { print_row(); name = $1; subscribers = $2 }
        { rate[++count] = $3; ns[count] = $4 }
        END { print_row() }'
}

peer copy copy
serve stdio_bus "$STDIO_BUS" --rmp "$work/rmp.sock" &&
    peer stdio_bus rmp "$work/rmp.sock" "$server"
# A queue of connections that the system would cut is a warning.
if serve redis redis-server --bind 127.0.0.1 --port $((port + 1)) --unixsocket "$work/redis.sock" \
    --save '' --dir "$work" --tcp-backlog 128; then
    peer redis redis "$work/redis.sock" "$server"
    peer redis-tcp redis "127.0.0.1:$((port + 1))" "$server"
fi
serve nats-tcp nats-server -a 127.0.0.1 -p "$port" && peer nats-tcp nats "127.0.0.1:$port" "$server"
# Started by root it would become the user mosquitto, who cannot write to our directory.
cat >"$work/mosquitto.conf" <<END
listener 0 $work/mqtt.sock
allow_anonymous true
max_queued_messages 0
connection_messages false
user $(id -un)
END
serve mosquitto mosquitto -c "$work/mosquitto.conf" &&
    peer mosquitto mqtt "$work/mqtt.sock" "$server"
sleep 1 # until they listen

for _ in $(seq "$runs"); do
    for count in 1 10 100; do
        measure "$count"
    done
done
for log in "$work"/*.log; do
    name=${log##*/}
    peer_is_well "${name%.log}" "$log" || failed=yes
done
echo
echo 'server       subscribers   deliveries/s  CPU ns/delivery    least     most'
report
[ -z "$failed" ] || { echo 'topics.sh: not all of this was measured as it should' >&2; exit 1; }
