#!/bin/sh
# demo.sh: shows what stdio_bus does, with the echo workers of this directory. Run by `make demo`,
# which sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR.

config=$SOURCE_DIR/doc/examples/echo_c.json
cd "$BUILD_DIR/doc/examples" || exit 1 # where ./echo_worker is
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
dir=$(mktemp -d "${TMPDIR:-/tmp}/stdio_bus_demo.XXXXXX") || exit 1
daemon=
trap 'finish 1' HUP INT TERM

finish() {
    [ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon"
    rm -rf "$dir"
    exit "$1"
}

fail() {
    printf '\ndemo: %s\n' "$*" >&2
    [ -s "$dir/log" ] && printf 'The log of the daemon:\n' >&2 && cat "$dir/log" >&2
    finish 1
}

title() {
    printf '\n%s\n' "$*"
    printf '%s\n' "$*" | sed 's/./-/g'
}

# Process ids in the answers of file $1, one a line.
pids_in() {
    sed -n 's/^[^<]*< .*"result":{"pid":\([0-9]*\).*/\1/p' "$1"
}

wait_for_socket() {
    tries=0
    until [ -S "$dir/bus.sock" ]; do
        tries=$((tries + 1))
        [ $tries -le 100 ] || fail 'the socket did not appear within 10 seconds'
        sleep 0.1
    done
}

# A process keeps its number until its parent, the daemon, has reaped it.
wait_until_reaped() {
    tries=0
    while kill -0 "$1" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -le 100 ] || fail "the daemon did not notice the end of worker $1 for 10 seconds"
        sleep 0.1
    done
}

# ask NAME: sends stdin as client NAME; records both directions in $dir/NAME.
ask() {
    ./line_client "$dir/bus.sock" "$1" >"$dir/$1"
}

# expect NAME COUNT: shows both directions of NAME; fails without COUNT answers.
expect() {
    sed 's/^/  /' "$dir/$1"
    [ "$(pids_in "$dir/$1" | wc -l)" -eq "$2" ] || fail "$1 should have had $2 answers"
}

title '1. One client, over stdin and stdout'
printf '  $ stdio_bus --config echo_c.json\n'
request='{"jsonrpc":"2.0","id":1,"method":"hello","params":{"to":"world"}}'
printf '%s\n' "$request" | "$STDIO_BUS" --config "$config" >"$dir/answer" 2>"$dir/log"
status=$?
{ printf 'stdin  > %s\n' "$request"; sed 's/^/stdout < /' "$dir/answer"; } >"$dir/stdio"
expect stdio 1
[ $status -eq 0 ] || fail "the daemon should have ended with status 0, not $status"
cat <<END

  The daemon started two echo workers, passed the line to one of them (process
  $(pids_in "$dir/stdio")) and its answer back, unchanged. At the end of its input it stopped the
  workers and ended with status 0. This is how an MCP client runs a server.
END

title '2. Two clients share the workers over a Unix socket'
printf '  $ stdio_bus --config echo_c.json --unix bus.sock &\n'
"$STDIO_BUS" --config "$config" --unix "$dir/bus.sock" 2>"$dir/log" &
daemon=$!
wait_for_socket
ask alice <<'END' &
{"jsonrpc":"2.0","id":1,"method":"hello","sessionId":"alice-1"}
{"jsonrpc":"2.0","id":2,"method":"again","sessionId":"alice-1"}
END
alice=$!
ask bob <<'END'
{"jsonrpc":"2.0","id":1,"method":"hello"}
{"jsonrpc":"2.0","id":2,"method":"again"}
END
wait $alice
expect alice 2
expect bob 2
worker=$(pids_in "$dir/alice" | sed -n 1p)
[ "$worker" = "$(pids_in "$dir/alice" | sed -n 2p)" ] ||
    fail 'both requests of the session should have been answered by one worker'
cat <<END

  Both clients used the ids 1 and 2 at the same time, and each got its own
  answers. Alice named a session, which stays with one worker: $worker answered
  both. Bob named none; the workers took turns.
END

title '3. A worker dies'
printf '  $ kill -KILL %s\n' "$worker"
kill -KILL "$worker" || fail "there should be a worker with process id $worker"
wait_until_reaped "$worker"
ask carol <<'END'
{"jsonrpc":"2.0","id":"one","method":"still there?"}
{"jsonrpc":"2.0","id":"two","method":"and you?"}
END
expect carol 2
cat <<END

  The daemon starts a new worker in its place. Until that is there, the other
  one answers: clients do not notice.
END

title '4. The end'
printf '  $ kill %s\n' "$daemon"
kill "$daemon"
wait "$daemon"
status=$?
daemon=
[ $status -eq 0 ] || fail "the daemon should have ended with status 0, not $status"
[ ! -e "$dir/bus.sock" ] || fail 'the socket should be gone'
cat "$dir/stdio" "$dir/alice" "$dir/bob" "$dir/carol" >"$dir/all"
for pid in $(pids_in "$dir/all"); do
    kill -0 "$pid" 2>/dev/null && fail "worker $pid should be gone"
done
cat <<END

  SIGTERM: the daemon stopped its workers, removed its socket and ended with
  status 0. No process is left. Its log:

END
sed 's/^/  /' "$dir/log"
finish 0
