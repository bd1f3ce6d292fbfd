# shellcheck shell=sh
# peer_logs.sh: sourced by the benchmarks. A server that has an error in its log was not measured at
# its best: then the benchmark fails.

# peer_errors NAME LOG: prints the lines of the log of this server that tell of an error.
peer_errors() {
    case $1 in
    # A client that leaves while messages come for it is no error, nor is the end of a worker that
    # writes; load brings that about at its end. A system may allow fewer descriptors than a
    # benchmark allows clients: those that it could not take would fail.
    stdio_bus | bus | peer) grep -E '^[^ ]+ (WARN|ERROR) ' "$2" | grep -vE \
        -e 'disconnected \(hung up\)|no such session$|its output ended in the middle of' \
        -e 'the limit of [0-9]+ open files may be too low' ;;
    # Of redis and mosquitto what they say of the machine and its user is left out.
    redis*) grep -E ' # |[Ee]rror' "$2" |
        grep -vE ' # (oO0O|Redis version|Configuration loaded|Server init|WARNING Memory )' ;;
    nats*) grep -E '\[(WRN|ERR|FTL)\]|^nats-server:' "$2" ;;
    mosquitto) grep -iE 'error|warning|denied|unable|dropp|exceeded|protocol|disconnect' "$2" |
        grep -v 'should not be run as root' ;;
    # A client that leaves while it waits is not their error; wrk does at its end.
    supergateway | mcp-proxy) grep -iE 'error|fail|exception|non-json|warn|exited' "$2" |
        grep -v 'No connection established for request ID' ;;
    *) grep . "$2" ;; # nginx and the programs of this directory: whatever they say
    esac
}

# peer_is_well NAME LOG: true if there is none; prints the first ones.
peer_is_well() {
    if peer_errors "$1" "$2" >"$2.errors"; then
        echo "errors in the log of $1:" >&2
        head -n 5 "$2.errors" >&2
        return 1
    fi
    return 0
}
