#!/bin/sh
# check_conformance.sh: doc/conformance.md holds what it says. Fails when a test that it names does
# not exist, when a clause of its index has no test, and when an end-to-end test is never run.

cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99

status=0
breach() {
    printf '%s\n' "$*"
    status=1
}

# exists FILES NAME: a test of this name is defined there.
exists() {
    grep -qs "^START_TEST($2)" $1
}

doc=doc/conformance.md

# Each clause on a line of its own with the names of its tests behind it.
clauses=$(awk '
    /^## Index/ { exit }
    /^- \*\*/ {
        if (clause != "") print clause ":" tests
        clause = $0
        sub(/^- \*\*/, "", clause)
        sub(/\*\*.*/, "", clause)
        tests = ""
        next
    }
    clause != "" && /^  `/ {
        gsub(/[`,]/, " ")
        tests = tests " " $0
    }
    END { print clause ":" tests }
' "$doc")

names=$(printf '%s\n' "$clauses" | sed 's/^[^:]*://' | tr -s ' ' '\n' | sort -u | sed '/^$/d')
for name in $names; do
    case $name in
    *:*) files=tests/unit/${name%%:*}.c ;;
    *) files='tests/spec/*.c' ;;
    esac
    exists "$files" "${name#*:}" || breach "$doc: there is no test $name"
done

index=$(sed '1,/^## Index/d' "$doc" | tr ';' '\n' | sed 's/^ *//; s/ *$//; /^$/d')
old_ifs=$IFS
IFS='
'
for clause in $index; do
    printf '%s\n' "$clauses" | grep -F "$clause:" | grep -q "^$clause: .*[a-z]" ||
        breach "$doc: clause $clause has no test"
done
IFS=$old_ifs

for file in tests/spec/*.c; do
    for name in $(sed -n 's/^START_TEST(\(.*\))$/\1/p' "$file"); do
        [ "$(grep -cw "$name" "$file")" -ge 2 ] || breach "$file: $name is defined but never added"
    done
done

count=$(printf '%s\n' "$index" | wc -l)
printf 'check_conformance: %d clauses, %d tests named\n' "$count" \
    "$(printf '%s\n' "$names" | wc -l)"
[ "$count" -gt 0 ] || status=1
exit "$status"
