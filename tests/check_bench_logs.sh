#!/bin/sh
# check_bench_logs.sh: the benchmarks notice errors in the logs of what they measure
# (tests/bench/peer_logs.sh), and nothing else.

export LC_ALL=C # a-z is that of ASCII
cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99
dir=$(mktemp -d "${TMPDIR:-/tmp}/check_bench_logs.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
. tests/bench/peer_logs.sh
failures=0

# is WELL|ILL NAME LINE: what is said of this server with this line in its log.
is() {
    printf '%s\n' "$3" >"$dir/log"
    said=ILL
    ! peer_is_well "$2" "$dir/log" 2>/dev/null || said=WELL
    [ "$said" = "$1" ] && return
    echo "$2: $said, not $1: $3"
    failures=$((failures + 1))
}

is ILL nginx '2026/11/24 05:00:00 [error] 7#7: *1 upstream sent more data than specified in
"Content-Length" header while reading upstream'
is ILL http_echo 'http_echo: read: Bad file descriptor'
is ILL floor 'relay: write: Broken pipe'
is ILL stdio_bus '2026-11-24T05:00:00.000Z WARN  [client=1] something'
is ILL bus '2026-11-24T05:00:00.000Z ERROR [worker=1] something'
is WELL stdio_bus '2026-11-24T05:00:00.000Z INFO  [client=1] connected: no ERROR'
is WELL bus '2026-11-24T05:00:00.000Z WARN  [client=8] disconnected (hung up), 9 bytes'
is WELL bus '2026-11-24T05:00:00.000Z WARN  [worker=1] discarded: unroutable: no such session'
is WELL bus '2026-11-24T05:00:00.000Z WARN  [worker=1] its output ended in the middle of a message'
is ILL supergateway '[supergateway] Child non-JSON: hello'
is WELL supergateway 'Failed to send Error: No connection established for request ID: 7'
is ILL mcp-proxy '[mcp-proxy] error forwarding notification'
is WELL mcp-proxy 'starting server on port 8080'
is ILL redis '7:M 24 Nov 2026 05:00:00.000 # Client closed: output buffer limits'
is WELL redis '7:M 24 Nov 2026 05:00:00.000 # WARNING Memory overcommit must be enabled!'
is WELL redis '7:M 24 Nov 2026 05:00:00.000 * Ready to accept connections'
is ILL nats-tcp '[7] 2026/11/24 05:00:00.000000 [WRN] Slow Consumer Detected'
is WELL nats-tcp '[7] 2026/11/24 05:00:00.000000 [INF] Server is ready'
is ILL mosquitto '1795500098: Outgoing messages are being dropped for client 1.'
is WELL mosquitto '1795500098: Warning: Mosquitto should not be run as root/administrator.'
is WELL mosquitto '1795500098: mosquitto version 2.0.11 running'

: >"$dir/log"
peer_is_well nginx "$dir/log" || failures=$((failures + 1))
[ $failures -eq 0 ]
