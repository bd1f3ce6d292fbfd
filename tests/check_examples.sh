#!/bin/sh
# check_examples.sh: each example worker answers through the daemon with its configuration and ends
# on SIGTERM; the examples in C compile where they are installed, without the sources of the daemon;
# the demonstration reaches its end.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
examples=$SOURCE_DIR/doc/examples
dir=$(mktemp -d "${TMPDIR:-/tmp}/check_examples.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

cat >"$dir/requests" <<'END'
{"jsonrpc":"2.0","id":1,"method":"first"}
{"jsonrpc":"2.0","method":"a notification, not answered"}
{"jsonrpc":"2.0","id":"s\"2","method":"second","sessionId":"s"}
END
cat >"$dir/expected" <<'END'
{"jsonrpc":"2.0","id":"s\"2","sessionId":"s","result":{"pid":N,"echo":SECOND}}
{"jsonrpc":"2.0","id":1,"result":{"pid":N,"echo":FIRST}}
END

# check_answers CONFIGURATION DIRECTORY: runs in DIRECTORY, where the worker is. The two workers
# answer in any order.
check_answers() {
    (cd "$2" && "$STDIO_BUS" --config "$examples/$1") <"$dir/requests" >"$dir/out" 2>"$dir/log" ||
        fail "$1: exit status $?"
    sed -e 's/"pid":[0-9]*/"pid":N/' -e 's/"echo":{.*"first"}/"echo":FIRST/' \
        -e 's/"echo":{.*"id":"s\\"2","method":"second","sessionId":"s"}/"echo":SECOND/' \
        "$dir/out" | sort >"$dir/answers"
    diff "$dir/expected" "$dir/answers" || { fail "$1: other answers"; cat "$dir/log"; }
}

# check_sigterm COMMAND...: the worker answers a request, then ends on SIGTERM with status 0.
check_sigterm() {
    mkfifo "$dir/stdin" "$dir/stdout"
    "$@" <"$dir/stdin" >"$dir/stdout" 2>/dev/null &
    worker=$!
    exec 3>"$dir/stdin" 4<"$dir/stdout"
    head -n 1 "$dir/requests" >&3
    read -r _ <&4 || fail "$*: no answer"
    kill "$worker"
    wait "$worker" || fail "$*: SIGTERM: status $?"
    exec 3>&- 4<&-
    rm "$dir/stdin" "$dir/stdout"
}

mkdir "$dir/installed"
cp "$examples"/*.[ch] "$dir/installed"
# These need the library: tests/check_embed.sh
rm "$dir/installed/embedded_host.c" "$dir/installed/event_loop_host.c"
for file in "$dir/installed"/*.c; do
    # shellcheck disable=SC2086 # a command line
    $COMPILE $LINK_FLAGS -o "${file%.c}" "$file" || fail "${file##*/} does not compile by itself"
done
check_answers echo_c.json "$dir/installed"
check_answers echo_c.json "$BUILD_DIR/doc/examples"
check_sigterm "$BUILD_DIR/doc/examples/echo_worker"
if command -v python3 >/dev/null; then
    check_answers echo_python.json "$examples"
    check_sigterm python3 "$examples/echo_worker.py"
else
    echo 'python3 is not installed: echo_worker.py was not checked'
fi
if command -v node >/dev/null; then
    check_answers echo_javascript.json "$examples"
    check_sigterm node "$examples/echo_worker.js"
else
    echo 'node is not installed: echo_worker.js was not checked'
fi

if command -v npx >/dev/null; then
    "$STDIO_BUS" --check-config --config "$examples/mcp_server.json" || fail 'mcp_server.json'
fi
sh "$examples/demo.sh" >"$dir/demo" 2>&1 || { fail 'demo.sh'; cat "$dir/demo"; }

echo "check_examples: $failures failures"
[ $failures -eq 0 ]
