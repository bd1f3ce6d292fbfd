#!/bin/sh
# run.sh: the benchmarks of doc/performance.md: each scenario for the daemon; with one client also
# for the floor (tests/bench/relay); with long messages also for a relay of complete lines. Prints a
# table. Run by `make bench`, which sets STDIO_BUS (the daemon) and BUILD_DIR. In the environment:
#
#   PEER           another daemon with the same command line: one more column
#   BENCH_RUNS     number of measurements                                 (5)
#   BENCH_SECONDS  length of each                                         (1)
#   BENCH_CPUS     "--one-cpu": all processes share one processor, which
#                  makes figures repeatable; "": any processor        (--one-cpu)
#   BENCH_ONLY     a regular expression for the names of scenarios
#   BENCH_DATA     keep the results in this file

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
programs=${BENCH_PROGRAMS:-$BUILD_DIR/tests/bench}
runs=${BENCH_RUNS:-5}
seconds=${BENCH_SECONDS:-1}
cpus=${BENCH_CPUS---one-cpu}
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
work=$(mktemp -d) || exit 99
data=${BENCH_DATA:-$work/data}
: >"$data" || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
. "${SOURCE_DIR:-.}/tests/bench/peer_logs.sh"

for program in load relay echo_worker scanner_bench; do
    [ -x "$programs/$program" ] || { echo "run.sh: $programs/$program is missing" >&2; exit 99; }
done

# config NAME WORKERS [ARGUMENT]: writes a configuration.
config() {
    printf '{"pools":[{"id":"echo","command":"%s","args":[%s],"instances":%d}]}\n' \
        "$programs/echo_worker" "${3:+\"$3\"}" "$2" >"$work/$1.json"
}
for workers in 1 2 8 11; do
    config "$workers" $workers --each
    config "$workers-batched" $workers
done

# Reads all input and sends no answer; its stdout stays open.
cat >"$work/sink.json" <<'END'
{"pools":[{"id":"sink","command":"sh","args":["-c","exec cat 3>&1 >/dev/null"],"instances":1}]}
END

# keep SCENARIO SUBJECT COMMAND...: records the output of load, or its failure. An error in the log
# of what it measured is one.
keep() {
    scenario=$1 subject=$2
    shift 2
    if result=$("$@" 2>"$work/errors"); then
        if error=$(peer_errors "$subject" "$work/errors"); then
            echo "$scenario $subject failed $(printf '%s' "$error" | head -n 1 | cut -c 1-200)"
        else
            echo "$scenario $subject $result"
        fi >>"$data"
    else
        reason=$(grep '^load: ' "$work/errors" | head -n 1 | cut -c 1-200)
        echo "$scenario $subject failed ${reason:-without a word}" >>"$data"
    fi
}

wanted() {
    printf '%s\n' "$1" | grep -Eqe "${BENCH_ONLY:-.}"
}

# one SCENARIO OPTION...: a client over stdio; the floor and the daemons.
# many SCENARIO WORKERS OPTION...: clients over a Unix domain socket; the daemons.
# Each message is a write of its own, at both ends, unless the scenario is "...-batched".
one() {
    scenario=$1
    shift
    wanted "$scenario" || return 0
    each=--each config=1
    case $scenario in *-batched) each='' config=1-batched ;; esac
    keep "$scenario" floor "$programs/load" --seconds "$seconds" $cpus $each "$@" -- \
        "$programs/relay" "$programs/echo_worker" $each
    case $scenario in *KiB)
        keep "$scenario" lines "$programs/load" --seconds "$seconds" $cpus $each "$@" -- \
            "$programs/relay" --lines "$programs/echo_worker" $each
    esac
    for subject in bus ${PEER:+peer}; do
        keep "$scenario" $subject "$programs/load" --seconds "$seconds" $cpus $each "$@" -- \
            "$(daemon $subject)" --config "$work/$config.json" --stdio
    done
}

# framed SCENARIO OPTION...: as one, with a framed client and a worker of lines for the bus; the
# floor, which does not parse, has lines at both sides.
framed() {
    scenario=$1
    shift
    wanted "$scenario" || return 0
    keep "$scenario" floor "$programs/load" --seconds "$seconds" $cpus --each "$@" -- \
        "$programs/relay" "$programs/echo_worker" --each
    keep "$scenario" bus "$programs/load" --seconds "$seconds" $cpus --each --framed "$@" -- \
        "$STDIO_BUS" --config "$work/1.json" --stdio --framing content-length
}

many() {
    scenario=$1 workers=$2
    shift 2
    wanted "$scenario" || return 0
    each=--each config=$workers
    case $scenario in *-batched) each='' config=$workers-batched ;; esac
    for subject in bus ${PEER:+peer}; do
        keep "$scenario" $subject "$programs/load" --seconds "$seconds" $cpus $each \
            --unix "$work/socket" --workers "$workers" "$@" -- \
            "$(daemon $subject)" --config "$work/$config.json" --unix "$work/socket"
    done
}

daemon() {
    if [ "$1" = peer ]; then echo "$PEER"; else echo "$STDIO_BUS"; fi
}

# turn SCENARIO LINE: the processor time for 64 KiB of this line, the share of a client in a round;
# from a file, so that each read is full.
turn() {
    wanted "$1" || return 0
    yes "$2" | head -c $((64 * 256 * 1024)) >"$work/lines"
    for subject in bus ${PEER:+peer}; do
        if ("$(daemon $subject)" --config "$work/sink.json" --stdio <"$work/lines" 2>/dev/null &&
            times >"$work/times"); then
            sed -n '$s/[ms]/ /gp' "$work/times" | awk -v what="$1 $subject" '{
                print what, "turn_ms=" (60 * ($1 + $3) + $2 + $4) * 1000 / 256
            }' >>"$data"
        else
            echo "$1 $subject failed with status $?" >>"$data"
        fi
    done
}

run=0
while [ $run -lt "$runs" ]; do
    run=$((run + 1))
    [ -t 2 ] && printf 'run %d of %d\r' $run "$runs" >&2
    one one-64 --window 64
    (cpus=; one one-64-any-cpu --window 64)
    one one-64-batched --window 64
    one one-1 --window 1
    framed one-64-framed --window 64
    framed 64KiB-framed --window 4 --payload 65536
    many 16x16 2 --clients 16 --window 16 --sessions
    many 16x16-batched 2 --clients 16 --window 16 --sessions
    many 16x1 8 --clients 16 --window 1 --sessions
    many 1000x1 8 --clients 1000 --window 1 --sessions
    for text in '' -plain; do
        one 4KiB$text --window 16 --payload 4096 ${text:+-$text}
        one 64KiB$text --window 4 --payload 65536 ${text:+-$text}
        one 900KiB$text --window 1 --payload 921600 ${text:+-$text}
    done
    one dribble-90KiB --window 1 --payload 92160 --dribble 100 --requests 50
    one dribble-900KiB --window 1 --payload 921600 --dribble 100 --requests 5
    many push-alone 11 --warmup 0.5 --clients 11 --push --slow 0
    many push-beside-slow 11 --warmup 0.5 --clients 11 --push --slow 1000000
    many greedy 2 --clients 11 --window 1 --payload 4096 --greedy 256
    many greedy-small 2 --clients 11 --window 1 --greedy 256
    many greedy-large 2 --clients 11 --window 1 --greedy 2 --greedy-payload 1000000
    turn turn '{}'
    one start --window 1 --requests 1
    many idle 1 --clients 1000 --idle
done
if wanted scanner; then
    "$programs/scanner_bench" >"$work/scanner" && sed 's/^/scanner bus /' "$work/scanner" >>"$data"
fi
awk -f "${SOURCE_DIR:-.}/tests/bench/table.awk" "$data"
