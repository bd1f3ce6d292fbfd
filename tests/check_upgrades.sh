#!/bin/sh
# check_upgrades.sh [PROGRAM...]: tests end to end, in which the daemon is upgraded in place before
# each step (tests/harness/steps.h). Without a PROGRAM, those of the tables of state that an upgrade
# hands over: pending requests and sessions, handshakes that clients share, topics, HTTP sessions.
# The same for all programs is UPGRADE=each make check-spec.

"$STDIO_BUS" --version | grep -q '^with:.* upgrade' || { echo 'built without upgrades'; exit 77; }
[ -z "${STDIO_BUS_WRAPPER-}" ] || { echo 'a wrapper is not in front of the next program'; exit 77; }
[ -e /proc/self/stat ] || { echo 'there is no /proc'; exit 77; }

log=$(mktemp "${TMPDIR:-/tmp}/check_upgrades.XXXXXX") || exit 99
trap 'rm -f "$log"' EXIT
failed=0
[ $# -gt 0 ] || set -- spec_6_routing agents_sticky rmp_broker http_mcp design_half_close
for name; do
    program=$BUILD_DIR/tests/spec/$name
    [ -x "$program" ] || { echo "$name was not built"; exit 77; }
    UPGRADE=each "$program" >"$log" 2>&1 || { cat "$log"; failed=1; }
    upgrades=$(awk '$3 == "upgrades" { sum += $2 } END { print sum + 0 }' "$log")
    echo "$name: $upgrades upgrades"
    [ "$upgrades" -ge 20 ] || { echo 'FAILED: hardly any'; failed=1; }
done
exit "$failed"
