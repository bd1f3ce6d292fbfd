#!/bin/sh
# demo.sh: shows what stdio_bus does: two clients share an MCP server, the one of this directory, by
# a command line in place of the server's own. Run by `make demo`, which sets STDIO_BUS (the
# daemon), SOURCE_DIR and BUILD_DIR.

cd "$BUILD_DIR/doc/examples" || exit 1 # where ./mcp_counter is
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
dir=$(mktemp -d "${TMPDIR:-/tmp}/stdio_bus_demo.XXXXXX") || exit 1
XDG_RUNTIME_DIR=$dir # the demonstration shares nothing with what runs already
XDG_CACHE_HOME=$dir
export XDG_RUNTIME_DIR XDG_CACHE_HOME
trap 'finish 1' HUP INT TERM

finish() {
    exec 3>&- 4>&-
    wait
    rm -rf "$dir"
    exit "$1"
}

fail() {
    printf '\ndemo: %s\n' "$*" >&2
    for file in "$dir"/*.log "$dir"/stdio_bus/*.log; do
        [ -s "$file" ] && printf '%s:\n' "$file" >&2 && cat "$file" >&2
    done
    finish 1
}

title() {
    printf '\n%s\n' "$*"
    printf '%s\n' "$*" | sed 's/./-/g'
}

# start_client NAME: a program that runs the shared server as its own, with pipes.
start_client() {
    mkfifo "$dir/$1.in"
    "$STDIO_BUS" --share --idle-exit 1 -- ./mcp_counter <"$dir/$1.in" >"$dir/$1.out" \
        2>"$dir/$1.log" &
}

# wait_for_list TEXT: until a daemon other than $daemon is listed, or nothing is.
wait_for_list() {
    tries=0
    until "$STDIO_BUS" --list >"$dir/list" 2>"$dir/list.log" && grep -q "$1" "$dir/list" &&
        ! grep -q " $daemon " "$dir/list"; do
        tries=$((tries + 1))
        [ $tries -le 150 ] || fail "--list did not show $1 for 15 seconds"
        sleep 0.1
    done
}

# send NAME MESSAGE
send() {
    printf '  %-6s > %s\n' "$1" "$2"
    case $1 in
    alice) printf '%s\n' "$2" >&3 ;;
    bob) printf '%s\n' "$2" >&4 ;;
    esac
}

# show NAME LINE: what NAME got up to this line and was not shown yet, as it came.
show() {
    eval "from=\${shown_$1:-1}"
    [ "$2" -ge "$from" ] || return
    sed -n "$from,$2s/^/  $(printf '%-6s' "$1") < /p" "$dir/$1.out"
    eval "shown_$1=$(($2 + 1))"
}

# wait_for_text NAME REGEX: shows what NAME gets up to the first line that matches.
wait_for_text() {
    tries=0
    until grep -q "$2" "$dir/$1.out"; do
        tries=$((tries + 1))
        [ $tries -le 150 ] || fail "$1 waited 15 seconds for $2"
        sleep 0.1
    done
    show "$1" "$(grep -n "$2" "$dir/$1.out" | sed 's/:.*//;q')"
}

# wait_for NAME ID: shows what NAME gets up to the answer to ID, and leaves that in $answer.
wait_for() {
    wait_for_text "$1" "\"id\":$2[,}]"
    answer=$(grep "\"id\":$2[,}]" "$dir/$1.out")
}

process_in() {
    printf '%s\n' "$1" | sed -n 's/.*process \([0-9]*\).*/\1/p'
}

handshake() {
    params='"protocolVersion":"2025-11-25","capabilities":{}'
    params="$params,\"clientInfo\":{\"name\":\"$1\",\"version\":\"1\"}"
    send "$1" "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{$params}}"
    wait_for "$1" 0
    send "$1" '{"jsonrpc":"2.0","method":"notifications/initialized"}'
}

# count NAME ID NUMBER TOKEN: with progress.
count() {
    params="\"name\":\"count\",\"arguments\":{\"to\":$3},\"_meta\":{\"progressToken\":\"$4\"}"
    send "$1" "{\"jsonrpc\":\"2.0\",\"id\":$2,\"method\":\"tools/call\",\"params\":{$params}}"
}

next() {
    send "$1" '{"jsonrpc":"2.0","id":'"$2"',"method":"tools/call","params":{"name":"next"}}'
    wait_for "$1" "$2"
}

title '1. Two clients, one server'
cat <<END
  Alice and Bob are two programs. Each runs, as its MCP server,

  \$ stdio_bus --share -- ./mcp_counter

END
start_client alice
start_client bob
exec 3>"$dir/alice.in" 4>"$dir/bob.in"
handshake alice
handshake bob
next alice 1
server=$(process_in "$answer")
next bob 1
[ "$(process_in "$answer")" = "$server" ] || fail 'both should have been served by one process'
cat <<END

  One process, $server, serves both: they count on from each other. It has seen one
  handshake. Both used the ids 0 and 1, and each got its own answers.
END

title '2. Progress'
count alice 2 3 a
wait_for alice 2
grep -q progressToken "$dir/bob.out" && fail 'bob should have seen no progress'
cat <<END

  The progress of Alice's request was sent to Alice alone.
END

title '3. The server dies'
count alice 3 100 b
wait_for_text alice '"progressToken":"b"'
printf '  $ kill -KILL %s\n' "$server"
kill -KILL "$server" || fail "there should be a server with process id $server"
wait_for alice 3
next alice 4
next bob 2
[ "$(process_in "$answer")" != "$server" ] || fail 'another process should have answered'
cat <<END

  What was in flight got an error, not silence. Both clients continue with a new
  process, and need no new handshake: the daemon has repeated it.
END

title '4. The daemon dies'
printf '  $ stdio_bus --list\n'
"$STDIO_BUS" --list >"$dir/list" || fail 'stdio_bus --list'
sed 's/^/  /' "$dir/list"
daemon=$(sed -n '2s/^[^ ]* *\([0-9]*\).*/\1/p' "$dir/list")
printf '  $ kill -KILL %s\n' "$daemon"
kill -KILL "$daemon" || fail "there should be a daemon with process id $daemon"
wait_for_list 'mcp_counter'
next alice 5
next bob 3
cat <<END

  The first of them has started another daemon, the other has joined it.
END
exec 3>&- 4>&-
wait
wait_for_list 'nothing is shared' # --idle-exit is over

title 'What to do next'
cat <<END
  The program is $STDIO_BUS; it needs no other file.
  \`make -C $BUILD_DIR install\` installs it with its manual pages.

  In the configuration of an MCP client, write it in front of the command of a
  server; everything else stays. In claude_desktop_config.json, .mcp.json (Claude
  Code) and .cursor/mcp.json, for instance:

    { "mcpServers": { "memory": {
        "command": "$STDIO_BUS",
        "args": ["--share", "--", "npx", "-y", "@modelcontextprotocol/server-memory"] } } }

  In .vscode/mcp.json the first name is "servers". README.md has more: a URL for
  a server, packages. Daemons with a configuration are in doc/guide.md.
END
finish 0
