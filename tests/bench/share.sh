#!/bin/sh
# share.sh: what the front of a shared server costs: the first answer through a daemon that runs,
# its memory, and the processor time of a request through front and daemon, to that of the daemon
# alone. Run by `make bench-share`, which sets STDIO_BUS (the daemon) and BUILD_DIR; Linux only. In
# the environment:
#
#   BENCH_RUNS      number of measurements, of which the median is shown     (5)
#   BENCH_REQUESTS  requests of each                                    (50000)
#   BENCH_STARTS    fronts that are started for the first answer            (50)

export LC_ALL=C # the decimal point is that of ASCII
programs=$BUILD_DIR/tests/bench
runs=${BENCH_RUNS:-5} requests=${BENCH_REQUESTS:-50000} starts=${BENCH_STARTS:-50}
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
work=$(mktemp -d) || exit 99
export XDG_RUNTIME_DIR="$work" XDG_CACHE_HOME="$work"
keeper='' daemon=''
end() {
    [ -z "$keeper" ] || kill "$keeper"
    [ -z "$daemon" ] || kill "$daemon"
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

. "${SOURCE_DIR:-.}/tests/bench/peer_logs.sh"

die() {
    echo "share.sh: $*" >&2
    exit 99
}

for program in load echo_worker; do
    [ -x "$programs/$program" ] || die "$programs/$program is missing"
done

# The processor that load takes with --one-cpu: the last one.
processor=$(($(getconf _NPROCESSORS_CONF) - 1))
set -- "$STDIO_BUS" --share --idle-exit 60 -- "$programs/echo_worker" --each

# A client that stays, and the daemon that it has started.
mkfifo "$work/in" || exit 99
taskset -c $processor "$@" <"$work/in" >"$work/out" &
keeper=$!
exec 3>"$work/in"
echo '{"jsonrpc":"2.0","id":1,"method":"echo"}' >&3
tries=0
until [ -s "$work/out" ]; do
    tries=$((tries + 1))
    [ $tries -le 100 ] || die 'no answer'
    sleep 0.1
done
daemon=$("$STDIO_BUS" --list | awk 'NR == 2 { print $2 }')

cpu_ns() {
    cut -d ' ' -f 1 "/proc/$1/schedstat"
}

# value NAME: that of NAME= in the output of load.
value() {
    sed -n "s/.*\\b$1=\\([0-9.]*\\).*/\\1/p" "$work/result"
}

# median COLUMN FILE
median() {
    sort -n -k "$1,$1" "$2" | awk -v column="$1" '{ of[NR] = $column }
        END { print NR % 2 ? of[(NR + 1) / 2] : (of[NR / 2] + of[NR / 2 + 1]) / 2 }'
}

: >"$work/first"
while [ "$starts" -gt 0 ]; do
    starts=$((starts - 1))
    "$programs/load" --requests 1 -- "$@" >"$work/result" || die 'load has failed'
    value first_ms >>"$work/first"
done

# through WINDOW: front and daemon, then the daemon alone, both with so many requests in flight.
through() {
    before=$(cpu_ns "$daemon")
    "$programs/load" --one-cpu --each --window "$1" --requests "$requests" -- \
        "$STDIO_BUS" --share --idle-exit 60 -- "$programs/echo_worker" --each >"$work/result" ||
        die 'load has failed'
    after=$(cpu_ns "$daemon")
    front=$(value cpu_ns)
    "$programs/load" --one-cpu --each --window "$1" --requests "$requests" --unix "$work/alone" -- \
        "$STDIO_BUS" --unix "$work/alone" --protocol mcp --clients sticky --instances 1 \
        -- "$programs/echo_worker" --each >"$work/result" 2>"$work/log" || die 'load has failed'
    peer_is_well stdio_bus "$work/log" || die 'the daemon had errors'
    alone=$(value cpu_ns)
    # A tenth as many have warmed it up.
    awk -v front="$front" -v daemon=$((after - before)) -v alone="$alone" -v n="$requests" 'BEGIN {
        daemon /= 1.1 * n
        print front, daemon, alone, (front + daemon) / alone }' >>"$work/through-$1"
}

run=0
while [ $run -lt "$runs" ]; do
    run=$((run + 1))
    through 1
    through 16
done

echo "first answer through a running daemon, ms after exec: $(median 1 "$work/first") (goal: 20)"
awk '/^(VmRSS|RssAnon)/ { of[$1] = $2 } END {
    printf "memory of a front, KiB: %d resident, of which %d its own (goal: 1536)\n",
           of["VmRSS:"], of["RssAnon:"] }' "/proc/$keeper/status"
for window in 1 16; do
    file=$work/through-$window
    printf '%2d in flight, CPU ns: front %.0f, daemon %.0f, daemon alone %.0f; ' $window \
        "$(median 1 "$file")" "$(median 2 "$file")" "$(median 3 "$file")"
    printf 'ratio %.2f (goal: 1.6)\n' "$(median 4 "$file")"
done
