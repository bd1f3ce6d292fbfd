#!/bin/sh
# check_upgrades.sh [PROGRAM...]: tests end to end, in which the daemon is upgraded in place before
# each step (tests/harness/steps.h). Without a PROGRAM, those that ask for all kinds of state which
# an upgrade hands over. The same for all programs is UPGRADE=each make check-spec. With TEST_FEWER,
# where a start of the daemon is dear, fewer programs, and an upgrade at each tenth step.

"$STDIO_BUS" --version | grep -q '^with:.* upgrade' || { echo 'built without upgrades'; exit 77; }
[ -z "${STDIO_BUS_WRAPPER-}" ] || { echo 'a wrapper is not in front of the next program'; exit 77; }
[ -e /proc/self/stat ] || { echo 'there is no /proc'; exit 77; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/check_upgrades.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
export UPGRADE=each
if [ -n "${TEST_FEWER-}" ]; then
    UPGRADE=10
    [ $# -gt 0 ] || set -- contract_stdio agents_one_handshake http_mcp http_streams rmp_bridge
fi
[ $# -gt 0 ] || set -- spec_6_routing contract_stdio design_half_close agents_sticky \
    agents_one_handshake agents_exclusive http_mcp http_stateless http_rpc rmp_broker rmp_bridge \
    rmp_history agents_abilities http_streams agents_sleep agents_memory agents_fresh
for name; do
    [ -x "$BUILD_DIR/tests/spec/$name" ] || { echo "$name was not built"; exit 77; }
done
for name; do
    { "$BUILD_DIR/tests/spec/$name" >"$dir/$name" 2>&1 || touch "$dir/$name.failed"; } &
done
wait

failed=0 least=4
[ "$UPGRADE" = each ] || least=0 # a test of few steps has none
for name; do
    upgrades=$(awk '$3 == "upgrades" { sum += $2 } END { print sum + 0 }' "$dir/$name")
    echo "$name: $upgrades upgrades"
    [ "$upgrades" -ge "$least" ] || { echo 'FAILED: hardly any'; failed=1; }
    [ ! -e "$dir/$name.failed" ] || { cat "$dir/$name"; failed=1; }
done
exit "$failed"
