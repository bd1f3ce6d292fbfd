#!/bin/sh
# upgrade.sh: how long the clients of a daemon that is upgraded in place again and again wait for
# their answers at most, to those of one that is not. Run by `make bench-upgrade`, which sets
# STDIO_BUS (the daemon) and BUILD_DIR; Linux only. In the environment:
#
#   BENCH_OTHER     another build, upgraded to and from in turns   (a copy of the same)
#   BENCH_SECONDS   of each row                                    (15)
#   BENCH_UPGRADES  in a minute                                    (100)
#   BENCH_RATE      requests a second, all 50 clients together     (2000)

export LC_ALL=C # the decimal point is that of ASCII
programs=$BUILD_DIR/tests/bench
seconds=${BENCH_SECONDS:-15} a_minute=${BENCH_UPGRADES:-100} rate=${BENCH_RATE:-2000}
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

. "${SOURCE_DIR:-.}/tests/bench/peer_logs.sh"

die() {
    echo "upgrade.sh: $*" >&2
    exit 99
}

for program in load echo_worker; do
    [ -x "$programs/$program" ] || die "$programs/$program is missing"
done
cp "$STDIO_BUS" "$work/this" && cp "${BENCH_OTHER:-$STDIO_BUS}" "$work/other" || exit 99
cat >"$work/pools.json" <<END
{"pools": [{"id": "echo", "command": "$programs/echo_worker", "args": ["--each"], "instances": 4}]}
END

# The next program takes the place of the one before as a package's does.
replace() {
    cp "$work/$1" "$work/next" && mv "$work/next" "$work/stdio_bus"
}

ctl() {
    "$STDIO_BUS" ctl "$work/control" --json "$@"
}

# upgrades: prints how many there were until the file `stop` is there, and of them done.
upgrades() {
    asked=0 done=0 build=other
    until ctl status >/dev/null 2>&1; do sleep 0.1; done
    until [ -e "$work/stop" ]; do
        sleep "$(awk -v a="$a_minute" 'BEGIN { print 60 / a }')"
        [ ! -e "$work/stop" ] || break
        replace $build
        asked=$((asked + 1))
        [ $build = other ] && build=this || build=other
        ctl upgrade >/dev/null 2>>"$work/problems" && done=$((done + 1))
    done
    echo "$done of $asked"
}

# row NAME UPGRADED LISTEN OPTION...: 50 clients of a daemon with these words.
row() {
    name=$1 upgraded=$2 listen=$3
    shift 3
    rm -f "$work/stop" "$work/control"
    replace this
    if "$upgraded"; then upgrades >"$work/upgrades" & else echo none >"$work/upgrades"; fi
    # shellcheck disable=SC2086 # the options of the daemon
    "$programs/load" --clients 50 --workers 4 --payload 3000 --seconds "$seconds" --rate "$rate" \
        "$@" --unix "$work/socket" -- "$work/stdio_bus" --config "$work/pools.json" \
        --control "$work/control" $listen \
        >"$work/result" 2>"$work/log" || die "load has failed: $(grep -e ^load: "$work/log")"
    : >"$work/stop"
    wait
    peer_is_well stdio_bus "$work/log" || die 'the daemon had errors'
    sed 's/[^ ]*=/& /g' "$work/result" | awk -v name="$name" -v upgrades="$(cat "$work/upgrades")" '
        { for (i = 1; i < NF; i++) of[$i] = $(i + 1) }
        END { printf "%-30s %9s %9d %8.2f %8.2f %8.2f\n", name, upgrades, of["requests="],
              of["p50_us="] / 1000, of["p99_us="] / 1000, of["max_us="] / 1000 }'
}

echo "50 clients, $rate requests a second of 3,000 bytes; milliseconds to the answer"
echo
printf '%-30s %9s %9s %8s %8s %8s\n' '' upgrades answered median '99 %' most
lines="--unix $work/socket"
for upgraded in false true; do
    row lines "$upgraded" "$lines"
    row 'lines, cut every 700 bytes' "$upgraded" "$lines" --dribble 700
    row 'lines, in sessions' "$upgraded" "$lines" --sessions
    row Content-Length "$upgraded" "$lines --framing content-length" --framed
    row WebSocket "$upgraded" "--http unix:$work/socket" --websocket
done
[ ! -s "$work/problems" ] || cat "$work/problems"
