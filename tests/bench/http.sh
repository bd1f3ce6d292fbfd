#!/bin/sh
# http.sh: what HTTP and WebSocket in front cost. Run by `make bench-http`, which sets STDIO_BUS
# (the daemon) and BUILD_DIR; Linux only. Needs wrk and python3; nginx (proxying the same bytes to
# http_echo), supergateway and mcp-proxy are measured where they are found. All processes share one
# processor. In the environment:
#
#   BENCH_RUNS     number of measurements, of which the median is shown        (3)
#   BENCH_SECONDS  length of each                                              (2)
#   BENCH_PORT     of 127.0.0.1, and the five after it; no port that the kernel
#                  gives to clients itself                                (21900)
#   BENCH_STREAMS  number of open streams whose memory is measured         (10000)
#   BENCH_ONLY     some of: posts messages streams beside                    (all)

export LC_ALL=C # the decimal point is that of ASCII
here=${SOURCE_DIR:-.}/tests/bench
programs=$BUILD_DIR/tests/bench
counter=$BUILD_DIR/doc/examples/mcp_counter
runs=${BENCH_RUNS:-3}
seconds=${BENCH_SECONDS:-2}
port=${BENCH_PORT:-21900}
streams=${BENCH_STREAMS:-10000}
only=${BENCH_ONLY:-posts messages streams beside}
[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
PATH=$PATH:/usr/sbin
work=$(mktemp -d) || exit 99
pids=
trap '[ -z "$pids" ] || kill $pids 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for program in wrk python3; do
    command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
for program in "$programs/load" "$programs/echo_worker" "$programs/http_echo" "$counter"; do
    [ -x "$program" ] || { echo "http.sh: $program is missing" >&2; exit 99; }
done

# The processor that load takes with --one-cpu: the last one.
processor=$(($(getconf _NPROCESSORS_CONF) - 1))
pinned() {
    taskset -c $processor "$@"
}

client() {
    python3 "$here/http_client.py" "$@"
}

wanted() {
    case " $only " in *" $1 "*) ;; *) return 1 ;; esac
}

# serve PORT COMMAND...: starts a server on one processor, as $server, and waits until it listens.
serve() {
    at=$1 tries=0
    shift
    taskset -c $processor "$@" >>"$work/log" 2>&1 </dev/null &
    server=$!
    pids="$pids $server"
    until python3 -c "import socket; socket.create_connection(('127.0.0.1', $at))" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -le 100 ] || { echo "http.sh: no server: $*" >&2; tail "$work/log" >&2; exit 99; }
        sleep 0.1
    done
}

# stop: ends $server.
stop() {
    kill "$server"
    wait "$server" 2>/dev/null
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

# posts NAME PORT PID PATH SESSION: 16 requests in flight, on kept connections.
posts() {
    pinned wrk -t 1 -c 16 -d 1s -s "$here/http_post.lua" "http://127.0.0.1:$2$4" -- "$5" \
        >/dev/null
    run=0
    while [ $run -lt "$runs" ]; do
        run=$((run + 1))
        before=$(cpu_ns "$3")
        pinned wrk -t 1 -c 16 -d "${seconds}s" -s "$here/http_post.lua" \
            "http://127.0.0.1:$2$4" -- "$5" >"$work/wrk"
        after=$(cpu_ns "$3")
        sed -n 's/^RESULT //p' "$work/wrk" | awk -v ns=$((after - before)) '
            { print ns / $1, $1 / $3, $4, $5, $2 }' >>"$work/posts-$1"
    done
    awk '$5 > 0 { print "http.sh: errors: " $5; exit 1 }' "$work/posts-$1" >&2
    printf '%-12s %12.0f %12.0f %9.0f %9.0f\n' "$1" "$(median 1 "$work/posts-$1")" \
        "$(median 2 "$work/posts-$1")" "$(median 3 "$work/posts-$1")" \
        "$(median 4 "$work/posts-$1")"
}

daemon() {
    serve "$port" "$STDIO_BUS" --http "127.0.0.1:$port" --protocol mcp --instances 1 \
        --clients sticky -- "$counter"
}

if wanted posts; then
    echo 'POST of tools/call, 16 in flight'
    echo 'server        CPU ns each   requests/s    p50 us    p99 us'
    daemon
    posts stdio_bus "$port" "$server" /mcp "$(client session "127.0.0.1:$port")"
    stop
    if command -v nginx >/dev/null; then
        cat >"$work/nginx.conf" <<END
daemon off; worker_processes 1; pid $work/pid; error_log stderr; events {}
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
        serve $((port + 1)) "$programs/http_echo" $((port + 1))
        echo_pid=$server
        serve $((port + 2)) nginx -c "$work/nginx.conf"
        posts nginx $((port + 2)) "$(pgrep -P "$server")" /mcp ''
        stop
        kill "$echo_pid"
    fi
    if command -v supergateway >/dev/null; then
        serve $((port + 3)) supergateway --stdio "$counter" --outputTransport streamableHttp \
            --stateful --port $((port + 3)) --logLevel none
        session=$(client session "127.0.0.1:$((port + 3))")
        posts supergateway $((port + 3)) "$server" /mcp "$session"
        stop
    fi
    if command -v mcp-proxy >/dev/null; then
        serve $((port + 4)) mcp-proxy --host 127.0.0.1 --port $((port + 4)) --server stream \
            -- "$counter"
        session=$(client session "127.0.0.1:$((port + 4))")
        posts mcp-proxy $((port + 4)) "$server" /mcp "$session"
        stop
    fi
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
            "$STDIO_BUS" --config "$work/echo.json" "$@" 2>>"$work/log" |
            sed -n 's/.*cpu_ns=\([0-9.]*\).*/\1/p' >>"$work/messages-$name"
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
    serve "$port" "$STDIO_BUS" --config "$work/streams.json" --http "127.0.0.1:$port"
    printf '\n%d sessions with an open stream each: %d bytes of memory each (goal: 4096)\n' \
        "$streams" "$(client streams "127.0.0.1:$port" "$streams" "$server")"
    stop
fi

# latency FILE: of one request after the other, on any processor.
latency() {
    wrk -t 1 -c 1 -d "${seconds}s" -s "$here/http_post.lua" "http://127.0.0.1:$port/mcp" -- \
        "$session" | sed -n 's/^RESULT //p' | awk '{ print $4, $5 }' >"$work/$1"
}

if wanted beside; then
    processor=0-$processor # any
    serve "$port" "$STDIO_BUS" --http "127.0.0.1:$port" --protocol mcp --instances 2 -- "$counter"
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
    stop
fi
exit 0
