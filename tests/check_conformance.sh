#!/bin/sh
# check_conformance.sh: the tests that doc/conformance.md and doc/security.md name. Fails when one
# does not exist, when a clause or a defence has no test, when a clause is not in the index, when a
# unit test is never run, and when doc/security.md does not name a test of tests/spec/security.c.
# Tests of tests/spec/ run where they are defined (tests/harness/suite.h).

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99

status=0
breach() {
    printf '%s\n' "$*"
    status=1
}

# exists FILES NAME: a test of this name is defined there.
exists() {
    grep -qsE "^(START_)?TEST(_ROWS)?\\($2[,)]" $1
}

doc=doc/conformance.md

# Each clause on a line of its own, followed by the names of its tests.
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

# all_exist DOC NAME...
all_exist() {
    named_in=$1
    shift
    for name; do
        case $name in
        *:*) files=tests/unit/${name%%:*}.c ;;
        *) files='tests/spec/*.c' ;;
        esac
        exists "$files" "${name#*:}" || breach "$named_in: there is no test $name"
    done
}

names=$(printf '%s\n' "$clauses" | sed 's/^[^:]*://' | tr -s ' ' '\n' | sort -u | sed '/^$/d')
all_exist "$doc" $names

# Every word like this is a test's name, in the table of differences and in doc/security.md.
security=doc/security.md
prefixes='spec_|design_|stress_|security_|contract_|control_|adr_|agents_|rmp_|http_|rfc_'
prefixes="$prefixes|websocket_|connect_|upgrade_|page_"
pattern="\`(check_[a-z_]+:|$prefixes)[a-z0-9_]+\`"

# Each row of the table names one.
rows=$(sed -n '/^## Differences/,/^## Index/p' "$doc" | grep '^|' | sed 1,2d)
all_exist "$doc" $(printf '%s\n' "$rows" | grep -oE "$pattern" | tr -d '`' | sort -u)
unshown=$(printf '%s\n' "$rows" | grep -vE "$pattern" | sed 's/^| *\([^|]*[^| ]\) *|.*/\1/')
[ -z "$unshown" ] || breach "$doc: no test shows the difference of" $unshown
harm=$(grep -oE "$pattern" "$security" | tr -d '`' | sort -u)
[ -n "$harm" ] || breach "$security names no test"
all_exist "$security" $harm
for name in $(sed -n 's/^TEST[A-Z_]*(\([a-z0-9_]*\)[,)].*/\1/p' tests/spec/security.c); do
    printf '%s\n' "$harm" | grep -qx "$name" || breach "$security does not name $name"
done

# Each defence, an item of a list, names a test; what has no defence need not.
defences=$(awk -v test="$pattern" '
    function judge() { if (item != "" && !shown) print substr(item, 1, 60) }
    /^- |^No defence|^## / {
        judge()
        item = ""
        shown = 0
    }
    /^## / { open = 0 }
    /^No defence/ { open = 1 }
    /^- / && !open { item = $0 }
    $0 ~ test { shown = 1 }
    END { judge() }
' "$security")
[ -z "$defences" ] || breach "$security names no test for: $defences"

index=$(sed '1,/^## Index/d' "$doc" | tr ';' '\n' | sed 's/^ *//; s/ *$//; /^$/d')
old_ifs=$IFS
IFS='
'
for clause in $index; do
    printf '%s\n' "$clauses" | grep -F "$clause:" | grep -q "^$clause: .*[a-z]" ||
        breach "$doc: clause $clause has no test"
done
for clause in $(printf '%s\n' "$clauses" | sed 's/:.*//'); do
    printf '%s\n' "$index" | grep -Fqx "$clause" ||
        breach "$doc: clause $clause is not in the index"
done
IFS=$old_ifs

count=$(printf '%s\n' "$index" | wc -l)
printf 'check_conformance: %d clauses, %d tests named; %d for security\n' "$count" \
    "$(printf '%s\n' "$names" | wc -l)" "$(printf '%s\n' "$harm" | wc -l)"
[ "$count" -gt 0 ] || status=1
exit "$status"
