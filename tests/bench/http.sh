#!/bin/sh
# http.sh: what HTTP and WebSocket in front cost. Run by `make bench-http`, which sets STDIO_BUS
# (the daemon) and BUILD_DIR; Linux only. Needs wrk and python3; nginx (proxying the same bytes to
# http_echo), supergateway and mcp-proxy are measured where they are found. The servers take turns.
# All processes share one processor (pinned), unless the rows say free: any processor. Fails if the
# log of a server has an error, or if a server does not keep connections. In the environment:
#
#   BENCH_RUNS     number of measurements, of which the median is shown        (3)
#   BENCH_SECONDS  length of each                                              (2)
#   BENCH_PORT     of 127.0.0.1, and the five after it; no port that the kernel
#                  gives to clients itself                                (21900)
#   BENCH_STREAMS  number of open streams whose memory is measured         (10000)
#   BENCH_ONLY     some of: posts page messages streams beside               (all)

export LC_ALL=C # the decimal point is that of ASCII
here=${SOURCE_DIR:-.}/tests/bench
programs=$BUILD_DIR/tests/bench
counter=$BUILD_DIR/doc/examples/mcp_counter
runs=${BENCH_RUNS:-3}
seconds=${BENCH_SECONDS:-2}
port=${BENCH_PORT:-21900}
streams=${BENCH_STREAMS:-10000}
only=${BENCH_ONLY:-posts page messages streams beside}
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
PATH=$PATH:/usr/sbin
work=$(mktemp -d) || exit 99
pids=
trap '[ -z "$pids" ] || kill $pids 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
. "$here/peer_logs.sh"

for program in wrk python3; do
    command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
for program in "$programs/load" "$programs/echo_worker" "$programs/http_echo" "$counter"; do
    [ -x "$program" ] || { echo "http.sh: $program is missing" >&2; exit 99; }
done

# The processor that load takes with --one-cpu: the last one.
processor=$(($(getconf _NPROCESSORS_CONF) - 1))
processors=$processor
pinned() {
    taskset -c "$processors" "$@"
}

client() {
    python3 "$here/http_client.py" "$@"
}

die() {
    echo "http.sh: $*" >&2
    exit 1
}

wanted() {
    case " $only " in *" $1 "*) ;; *) return 1 ;; esac
}

# answers PORT: something listens there.
answers() {
    python3 -c "import socket; socket.create_connection(('127.0.0.1', $1))" 2>/dev/null
}

# serve NAME PORT COMMAND...: starts a server, as $server, and waits until it listens. What it says
# is in its log: all of it but the stdout of those that write messages there.
serve() {
    serving=$1 at=$2 tries=0
    shift 2
    ! answers "$at" || die "something else listens at port $at: set BENCH_PORT"
    NODE_ENV=production taskset -c "$processors" "$@" </dev/null >"$work/$serving.out" \
        2>"$work/$serving.log" &
    server=$!
    pids="$pids $server"
    until answers "$at"; do
        tries=$((tries + 1))
        if ! kill -0 "$server" || [ $tries -gt 100 ]; then
            tail "$work/$serving.log" >&2
            die "no server: $*"
        fi
        sleep 0.1
    done
}

# end NAME PID: ends a server. Its log may have no error until then.
end() {
    peer_is_well "$1" "$work/$1.log" || die "$1 had errors: what was measured is not what it can"
    kill "$2"
    wait "$2" 2>/dev/null
}

# The processor time of a process, all its threads, in nanoseconds.
cpu_ns() {
    cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# median COLUMN FILE
median() {
    sort -n -k "$1,$1" "$2" | awk -v column="$1" '{ of[NR] = $column }
        END { print NR % 2 ? of[(NR + 1) / 2] : (of[NR / 2] + of[NR / 2 + 1]) / 2 }'
}

# peer NAME PORT PID PATH: a server is one of those that take turns, after it has shown in a session
# that its answers are right and that it keeps the connection.
peer() {
    session=
    [ "$1" = nginx ] || session=$(client session "127.0.0.1:$2") || die "$1 begins no session"
    client kept "127.0.0.1:$2" "$4" "$session" || die "$1 does not serve as it should"
    echo "$@" "${session:-none}" >>"$work/peers"
    : >"$work/posts-$1"
}

# load NAME PORT PID PATH SESSION SECONDS: 16 requests in flight, on kept connections.
load() {
    before=$(cpu_ns "$3")
    pinned wrk -t 1 -c 16 -d "$6s" -s "$here/http_post.lua" "http://127.0.0.1:$2$4" -- \
        "${5#none}" >"$work/wrk" || die "wrk failed at $1"
    after=$(cpu_ns "$3")
    sed -n 's/^RESULT //p' "$work/wrk" | awk -v ns=$((after - before)) '
        { printf "%.0f %.0f %d %d %d\n", ns / $1, $1 / $3, $4, $5, $2 }' >"$work/result"
    awk '$5 == 0 { well = 1 } END { exit !well }' "$work/result" || die "wrk had errors at $1"
}

# Each server, in turns.
take_turns() {
    while read -r name rest; do
        # shellcheck disable=SC2086 # words
        load "$name" $rest 1
    done <"$work/peers"
    run=0
    while [ $run -lt "$runs" ]; do
        run=$((run + 1))
        while read -r name rest; do
            # shellcheck disable=SC2086 # words
            load "$name" $rest "$seconds"
            cat "$work/result" >>"$work/posts-$name"
        done <"$work/peers"
    done
    while read -r name rest; do
        file=$work/posts-$name
        printf '%-12s %12.0f %17s %12.0f %9.0f %9.0f\n' "$name" "$(median 1 "$file")" \
            "$(sort -n "$file" | awk 'NR == 1 { least = $1 } END { print least " to " $1 }')" \
            "$(median 2 "$file")" "$(median 3 "$file")" "$(median 4 "$file")"
    done <"$work/peers"
}

nginx_conf() {
    cat >"$work/nginx.conf" <<END
daemon off; worker_processes 1; pid $work/pid; error_log stderr warn; events {}
http {
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path $work/1; proxy_temp_path $work/2; fastcgi_temp_path $work/3;
    uwsgi_temp_path $work/4; scgi_temp_path $work/5;
    upstream echo { server 127.0.0.1:$((port + 1)); keepalive 32; keepalive_requests 1000000000; }
    server {
        listen 127.0.0.1:$((port + 2));
        location / {
            proxy_pass http://echo; proxy_http_version 1.1; proxy_set_header Connection '';
        }
    }
}
END
}

# child_of PID: its only child, as soon as it has one.
child_of() {
    until pgrep -P "$1"; do
        kill -0 "$1" || die "process $1 ended"
        sleep 0.1
    done
}

# http_echo counts: nginx has opened no more connections to it than it may keep, and 16 after each
# run of wrk, which leaves when its time is over.
end_echo() {
    end http_echo "$1"
    sed 's/[a-z]*=//g' "$work/http_echo.out" |
        awk -v runs="$runs" '{ exit !($1 <= 32 + 16 * (runs + 1) && $2 > 10 * $1) }' ||
        die "nginx does not keep its connections to http_echo: $(cat "$work/http_echo.out")"
    rm "$work/http_echo.out"
}

gateway() {
    serve supergateway $((port + 3)) supergateway --stdio "$counter" \
        --outputTransport streamableHttp --stateful --port $((port + 3)) --logLevel "$1"
}

# all_posts: starts the servers that there are, measures them and ends them.
all_posts() {
    : >"$work/peers"
    serve stdio_bus "$port" "$STDIO_BUS" --http "127.0.0.1:$port" --protocol mcp --instances 1 \
        --clients sticky -- "$counter"
    daemon_pid=$server nginx_pid='' gateway_pid='' proxy_pid=''
    peer stdio_bus "$port" "$server" /mcp
    if command -v nginx >/dev/null; then
        nginx_conf
        serve http_echo $((port + 1)) "$programs/http_echo" $((port + 1))
        echo_pid=$server
        serve nginx $((port + 2)) nginx -c "$work/nginx.conf"
        nginx_pid=$server
        peer nginx $((port + 2)) "$(child_of "$server")" /mcp
    fi
    if command -v supergateway >/dev/null; then
        # Its log costs time, and with none its errors are not in it either: a session with it.
        gateway info
        client kept "127.0.0.1:$at" /mcp "$(client session "127.0.0.1:$at")" ||
            die 'supergateway does not serve as it should'
        end supergateway "$server"
        gateway none
        gateway_pid=$server
        peer supergateway "$at" "$server" /mcp
    fi
    if command -v mcp-proxy >/dev/null; then
        serve mcp-proxy $((port + 4)) mcp-proxy --host 127.0.0.1 --port $((port + 4)) \
            --server stream -- "$counter"
        proxy_pid=$server
        peer mcp-proxy "$at" "$server" /mcp
    fi
    take_turns
    [ -z "$nginx_pid" ] || { end nginx "$nginx_pid"; end_echo "$echo_pid"; }
    [ -z "$gateway_pid" ] || end supergateway "$gateway_pid"
    [ -z "$proxy_pid" ] || end mcp-proxy "$proxy_pid"
    end stdio_bus "$daemon_pid"
}

if wanted posts; then
    for where in pinned free; do
        [ $where = pinned ] || processors=0-$processor
        [ $where = pinned ] || echo
        echo "POST of tools/call, 16 in flight, $where"
        echo 'server        CPU ns each    least to most   requests/s    p50 us    p99 us'
        all_posts
    done
    processors=$processor
fi

# What a browser costs that has the page open: it asks for its figures each second.
if wanted page; then
    serve stdio_bus "$port" "$STDIO_BUS" --http "127.0.0.1:$port" --protocol mcp --instances 1 \
        --clients sticky -- "$counter"
    session=$(client session "127.0.0.1:$port")
    load stdio_bus "$port" "$server" /mcp "$session" 1
    run=0
    while [ $run -lt "$runs" ]; do
        run=$((run + 1))
        load stdio_bus "$port" "$server" /mcp "$session" "$seconds"
        cat "$work/result" >>"$work/page-closed"
        client look "127.0.0.1:$port" "$seconds" >>"$work/looks" &
        load stdio_bus "$port" "$server" /mcp "$session" "$seconds"
        wait $!
        cat "$work/result" >>"$work/page-open"
    done
    printf '\nPOST, 16 in flight, pinned: CPU %.0f ns; %.0f ns beside a page that is open\n' \
        "$(median 1 "$work/page-closed")" "$(median 1 "$work/page-open")"
    awk '{ sum += $1 } END { print "the page has asked " sum " times" }' "$work/looks"
    end stdio_bus "$server"
fi

# messages NAME OPTION... -- OPTION...: those of load, and those of the daemon.
messages() {
    name=$1 options=
    shift
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    run=0
    while [ $run -lt "$runs" ]; do
        run=$((run + 1))
        # shellcheck disable=SC2086 # words
        "$programs/load" --one-cpu --each --window 16 --seconds "$seconds" $options -- \
            "$STDIO_BUS" --config "$work/echo.json" "$@" 2>"$work/echo.log" >"$work/echo.out" ||
            die "load failed: $(tail -n 3 "$work/echo.log")"
        peer_is_well stdio_bus "$work/echo.log" || die 'the daemon had errors'
        sed -n 's/.*cpu_ns=\([0-9.]*\).*/\1/p' "$work/echo.out" >>"$work/messages-$name"
    done
    median 1 "$work/messages-$name"
}

if wanted messages; then
    printf '{"pools":[{"id":"echo","command":"%s","args":["--each"],"instances":1}]}\n' \
        "$programs/echo_worker" >"$work/echo.json"
    lines=$(messages unix --unix "$work/lines" -- --unix "$work/lines")
    frames=$(messages http-unix --websocket --unix "$work/http" -- --http "unix:$work/http")
    tcp_lines=$(messages tcp --tcp "127.0.0.1:$((port + 5))" -- --tcp "127.0.0.1:$((port + 5))")
    tcp_frames=$(messages http --websocket --tcp "127.0.0.1:$((port + 5))" -- \
        --http "127.0.0.1:$((port + 5))")
    echo
    echo 'request and answer, 16 in flight, one client, CPU ns'
    echo "$lines $frames $tcp_lines $tcp_frames" | awk '{
        printf "Unix socket: lines %.0f, WebSocket %.0f; ratio %.2f (goal: 1.3)\n", $1, $2, $2 / $1
        printf "TCP:         lines %.0f, WebSocket %.0f; ratio %.2f\n", $3, $4, $4 / $3 }'
fi

if wanted streams; then
    printf '{"pools":[{"id":"counter","command":"%s","protocol":"mcp","clients":"sticky",
        "instances":1}],"limits":{"max_connections":%d}}\n' "$counter" $((streams * 2 + 100)) \
        >"$work/streams.json"
    ulimit -n "$(ulimit -H -n)"
    serve stdio_bus "$port" "$STDIO_BUS" --config "$work/streams.json" --http "127.0.0.1:$port"
    printf '\n%d sessions with an open stream each: %d bytes of memory each (goal: 4096)\n' \
        "$streams" "$(client streams "127.0.0.1:$port" "$streams" "$server")"
    end stdio_bus "$server"
fi

# latency FILE: of one request after the other, on any processor.
latency() {
    wrk -t 1 -c 1 -d "${seconds}s" -s "$here/http_post.lua" "http://127.0.0.1:$port/mcp" -- \
        "$session" | sed -n 's/^RESULT //p' | awk '{ print $4, $5 }' >"$work/$1"
}

if wanted beside; then
    processors=0-$processor
    serve stdio_bus "$port" "$STDIO_BUS" --http "127.0.0.1:$port" --protocol mcp --instances 2 -- \
        "$counter"
    session=$(client session "127.0.0.1:$port")
    latency alone
    client uploads "127.0.0.1:$port" $((seconds + 2)) 20000000 >"$work/uploads" &
    sleep 1
    latency beside
    wait $!
    # shellcheck disable=SC2046 # two numbers
    printf '\nPOST, 1 in flight: alone p50 %d us, p99 %d us; ' $(cat "$work/alone")
    # shellcheck disable=SC2046 # two numbers
    printf 'beside %d transfers of 20 MB p50 %d us, p99 %d us (goal: 10000)\n' \
        "$(cat "$work/uploads")" $(cat "$work/beside")
    end stdio_bus "$server"
fi
exit 0
