#!/bin/sh
# run.sh: breaks the daemon on purpose, one line at a time, and looks which tests notice.
#
#   run.sh [CLAUSE...]            the mutants of clauses.txt, or those of the clauses (7.1.2a): each
#                                 has to be noticed by a test that doc/conformance.md names for its
#                                 clause. Fails if one was not. With MUTANTS_RECORD=yes the verdicts
#                                 are put into results.txt.
#   run.sh --sample FILE STEP...  the mutants of a table (sample.txt): the steps in their order,
#                                 until one fails. A step is unit, spec or scripts, or a target of
#                                 make.
#   run.sh --kqueue [NAME...]     the mutants of kqueue.txt, in a build with the kqueue backend over
#                                 its shim; each names the tests that have to notice it.
#   run.sh --check                builds nothing: each clause has a mutant or a reason, the text of
#                                 each mutant is in the sources, and results.txt has no verdict but
#                                 that it was killed.
#
# SOURCE_DIR and BUILD_DIR are those of the tests (make check-mutations sets them); the copy that is
# broken is in BUILD_DIR/mutations, with its own objects, and is kept. JOBS: how many programs are
# compiled or run at once.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
top=$(cd "${SOURCE_DIR:-$(dirname "$0")/../..}" && pwd) || exit 99
tables=$top/tests/mutations
: "${JOBS:=1}" "${MAKE:=make}"
separator=$(printf '\037')
unset MAKEFLAGS MFLAGS MAKELEVEL TEST_ONLY
table=$tables/clauses.txt place=mutations configuration='' some_programs=''

die() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 99
}

# read_table FILE: its mutants, a line each.
read_table() {
    awk -v top="$top" -f "$tables/table.awk" "$1"
}

# Each clause of doc/conformance.md without its blanks, and a colon, followed by its tests.
clauses() {
    awk '
        function put() { if (clause != "") print clause ":" tests }
        /^## Index/ { exit }
        /^- \*\*/ {
            put()
            clause = $0
            sub(/^- \*\*/, "", clause)
            sub(/\*\*.*/, "", clause)
            gsub(/ /, "", clause)
            tests = ""
        }
        /^  `/ {
            gsub(/[`,]/, " ")
            for (i = 1; i <= NF; i++) tests = tests " " $i
        }
        END { put() }
    ' "$top/doc/conformance.md"
}

# --- the cheap check ---

check() {
    status=0
    mutants=$(read_table "$tables/clauses.txt") || status=1
    sample=$(read_table "$tables/sample.txt") || status=1
    read_table "$tables/kqueue.txt" >/dev/null || status=1
    broken=$(printf '%s\n' "$mutants" | sed "s/$separator.*//" | sort -u)
    excused=$(sed -n 's/^\([^ #]*\): .*/\1/p' "$tables/clauses.txt" | sort -u)
    named=$(clauses | sed 's/:.*//' | sort -u)
    for clause in $named; do
        printf '%s\n' "$broken" "$excused" | grep -Fqx "$clause" ||
            { echo "clauses.txt: no mutant and no reason for clause $clause"; status=1; }
    done
    for clause in $broken $excused; do
        printf '%s\n' "$named" | grep -Fqx "$clause" ||
            { echo "clauses.txt: doc/conformance.md has no clause $clause"; status=1; }
    done
    verdicts=$(grep -v '^#' "$tables/results.txt") || status=1
    for clause in $(printf '%s\n' "$verdicts" | sed 's/ .*//'); do
        printf '%s\n' "$broken" | grep -Fqx "$clause" ||
            { echo "results.txt: clauses.txt has no mutant $clause"; status=1; }
    done
    printf '%s\n' "$verdicts" | grep -v ' killed: ' && status=1
    printf 'check_mutations: %d mutants of %d clauses, %d killed; %d reasons; %d in the sample\n' \
        "$(printf '%s\n' "$mutants" | grep -c .)" "$(printf '%s\n' "$broken" | grep -c .)" \
        "$(printf '%s\n' "$verdicts" | grep -c .)" \
        "$(printf '%s\n' "$excused" | grep -c .)" "$(printf '%s\n' "$sample" | grep -c .)"
    exit "$status"
}

# --- the copy ---

# list VARIABLE: the programs in this variable of the makefile.
list() {
    (cd "$objects" && "$MAKE" -s list-programs PROGRAMS="\$($1)")
}

# Brings the copy up to date and builds what the tests need. What is unbroken is kept in whole/.
prepare() {
    : "${BUILD_DIR:=$top/build}"
    work=$BUILD_DIR/$place
    copy=$work/source
    objects=$work/objects
    whole=$work/whole
    log=$work/log
    mkdir -p "$copy" "$objects" "$whole" || exit 99
    (cd "$top" && find . \( -name build -o -name 'build-[!a]*' -o -name .git -o -name node_modules \
        -o -name autom4te.cache -o -path ./tests/interop/work \) -prune -o -type f -print) |
        while read -r file; do
            case $file in # the copy makes its own
            ./configure | ./aclocal.m4 | */Makefile.in | ./build_config.h.in)
                [ ! -f "$copy/$file" ] || continue
                ;;
            esac
            cmp -s "$top/$file" "$copy/$file" && continue
            { mkdir -p "$copy/${file%/*}" && cp "$top/$file" "$copy/$file"; } || exit 1
        done || die "cannot copy $top"
    echo "building in $objects ..." >&2
    # shellcheck disable=SC2086 # options, without blanks
    {
        cd "$objects" &&
            { test -f Makefile || ../source/configure -q CFLAGS='-O1' $configuration; } &&
            "$MAKE" -j"$JOBS" all && programs=$some_programs &&
            : "${programs:="$(list unit_tests) $(list spec_tests) $(list replay_tests)"}" &&
            "$MAKE" -j"$JOBS" check TESTS= \
                check_PROGRAMS="$programs tests/harness/test_worker"
    } >"$log" 2>&1 </dev/null || die "the unbroken copy does not build: see $log"
    mkdir -p "$whole/tests/unit"
    { cp -p stdio_bus stdio_bus_rmp "$whole" && cp -p tests/unit/check_* "$whole/tests/unit"; } ||
        die "cannot keep the unbroken programs in $whole"
    rm -rf "$work/sound" && mkdir "$work/sound"
    broken_file=
    trap restore EXIT
    trap 'exit 130' HUP INT TERM
}

# The object comes after its source, so that it is not compiled again.
restore() {
    [ -n "$broken_file" ] || return 0
    cp "$top/$broken_file" "$copy/$broken_file"
    [ ! -f "$work/object" ] || mv "$work/object" "${broken_file%.c}.o"
    touch -c "${broken_file%.c}.o"
    broken_file=
}

# break_line FILE LINE OLD NEW: and builds the programs; fails if they do not build.
break_line() {
    broken_file=$1
    rm -f "$work/object"
    [ ! -f "${1%.c}.o" ] || cp "${1%.c}.o" "$work/object"
    LINE=$2 OLD=$3 NEW=$4 awk '
        NR == ENVIRON["LINE"] {
            at = index($0, ENVIRON["OLD"])
            $0 = substr($0, 1, at - 1) ENVIRON["NEW"] substr($0, at + length(ENVIRON["OLD"]))
        }
        { print }
    ' "$top/$1" >"$copy/$1" || exit 99
    "$MAKE" -j"$JOBS" stdio_bus stdio_bus_rmp >"$log" 2>&1 </dev/null
}

# with BUS COMMAND...: the command with the environment of tests.
with() {
    bus=$1
    shift
    STDIO_BUS=$bus SOURCE_DIR=$copy BUILD_DIR=${bus%/*} MAKE=$MAKE \
        TEST_WORKER=$objects/tests/harness/test_worker "$@"
}

# limited BUS COMMAND...: the same, without input, and for five minutes; then the status is 124.
limited() {
    bus=$1
    shift
    with "$bus" timeout -k 10 300 "$@" </dev/null
}

# --- clauses ---

# run_test TEST BUS UNIT-PROGRAMS OUTPUT: 0: the test passed; 124: it took too long; else it failed.
# A program that cannot run a single test is run as a whole, once.
run_test() {
    case $1 in
    *:*)
        program=tests/unit/${1%%:*}
        single=${1#*:}
        if grep -qE "^TEST(_ROWS)?\(${single}[,)]" "$copy/$program.c"; then
            TEST_ONLY=$single limited "$2" "$3/$program" >"$4" 2>&1
            return
        fi
        shared=$4.${1%%:*}
        [ -f "$shared" ] || {
            limited "$2" "$3/$program" >"$shared" 2>&1
            echo "exit $?" >>"$shared"
        }
        cp "$shared" "$4"
        case $(tail -n 1 "$shared") in
        'exit 0') return 0 ;;
        'exit 124') return 124 ;;
        esac
        if grep -q '^[0-9]*%: Checks' "$shared"; then
            ! grep -qE ":[FE]:[^:]*:$single:" "$shared"
            return
        fi
        return 1
        ;;
    esac
    suite=$(grep -lsE "^TEST(_ROWS)?\(${1}[,)]" "$copy"/tests/spec/*.c)
    program=$objects/tests/spec/$(basename "$suite" .c)
    TEST_ONLY=$1 limited "$2" "$program" >"$4" 2>&1
}

# is_sound TEST: the test passes while nothing is broken.
is_sound() {
    kept=$work/sound/$(printf '%s' "$1" | tr : .)
    [ -f "$kept" ] || { run_test "$1" "$whole/stdio_bus" "$whole" "$work/sound/output"
        echo $? >"$kept"; }
    [ "$(cat "$kept")" = 0 ]
}

# judge TEST...: sets `verdict`.
judge() {
    verdict=SURVIVED
    rm -f "$work"/output*
    for test; do
        case $test in
        *:*)
            "$MAKE" -j"$JOBS" "tests/unit/${test%%:*}" >"$log" 2>&1 </dev/null ||
                { verdict='DOES NOT BUILD with its unit test'; return; }
            ;;
        esac
        run_test "$test" "$objects/stdio_bus" "$objects" "$work/output"
        case $? in
        0) continue ;;
        124) verdict="killed: $test timed out" ;;
        *) verdict="killed: $test" ;;
        esac
        is_sound "$test" || verdict="NO VERDICT: $test fails in the unbroken copy as well"
        return
    done
}

# Puts the verdicts of this run into results.txt, in the order of clauses.txt.
record() {
    awk -v separator="$separator" '
        FNR == 1 { part++ }
        part == 1 && /^#/ { print; next }
        part <= 2 { of[$1] = $0; next }
        { split($0, field, separator) }
        field[1] in of { print of[field[1]] }
    ' "$tables/results.txt" "$work/verdicts" "$work/mutants" >"$work/results" &&
        cp "$work/results" "$tables/results.txt"
}

# run_clauses [CLAUSE...]
run_clauses() {
    prepare
    read_table "$table" >"$work/mutants" || exit 99
    : >"$work/verdicts"
    clauses >"$work/clauses"
    killed=0 survived=0 errors=0
    while IFS=$separator read -r name file line old new tests <&3; do
        [ $# -eq 0 ] || printf '%s\n' "$@" | grep -Fqx "$name" || continue
        # shellcheck disable=SC2046,SC2086 # names of tests, without blanks
        set_of_tests=$(sed -n "s/^$name://p" "$work/clauses")
        if break_line "$file" "$line" "$old" "$new"; then
            # shellcheck disable=SC2086 # names of tests, without blanks
            judge $set_of_tests $tests
        else
            verdict='DOES NOT BUILD'
        fi
        restore
        case $verdict in
        killed*) killed=$((killed + 1)) ;;
        SURVIVED) survived=$((survived + 1)) ;;
        *) errors=$((errors + 1)) ;;
        esac
        printf '%-10s %-34s %s\n' "$name" "$file:$line" "$verdict"
        printf '%s %s %s\n' "$name" "$file" "$verdict" >>"$work/verdicts"
    done 3<"$work/mutants"
    [ "${MUTANTS_RECORD:-no}" != yes ] || [ ! -s "$work/verdicts" ] || record || exit 99
    printf '%d mutants: %d killed, %d survived, %d without a verdict\n' \
        $((killed + survived + errors)) "$killed" "$survived" "$errors"
    [ $((survived + errors)) -eq 0 ] && [ "$killed" -gt 0 ]
}

# --- the sample ---

# run_programs PROGRAM...: as many as JOBS at once; stops at a failure. What fails has to fail once
# more, alone. Prints what failed.
run_programs() {
    printf '%s\n' "$@" >"$work/programs"
    while [ -s "$work/programs" ]; do
        rm -rf "$work/failed" && mkdir "$work/failed"
        # shellcheck disable=SC2016 # expanded by the inner shell
        with "$objects/stdio_bus" xargs -P "$JOBS" -n 1 sh -c '
            echo "$1" >>"$0/begun"
            timeout -k 10 300 "./$1" >"$0/log.$$" 2>&1 </dev/null || {
                echo "$1" >"$0/failed.$$"; exit 255; }' "$work/failed" <"$work/programs" 2>/dev/null
        # shellcheck disable=SC2013 # names of programs, without blanks
        for failed in $(cat "$work/failed"/failed.* 2>/dev/null); do
            limited "$objects/stdio_bus" "./$failed" >"$work/output" 2>&1 && continue
            printf '%s' "$failed"
            return 1
        done
        # What passed, or passed at its second trial, was begun; the rest is still to be run.
        grep -Fvx -f "$work/failed/begun" "$work/programs" >"$work/programs.new"
        mv "$work/programs.new" "$work/programs"
    done
}

# run_step STEP: prints what failed.
run_step() {
    case $1 in
    unit)
        programs="$(list unit_tests) $(list replay_tests)"
        # shellcheck disable=SC2086 # names of programs, without blanks
        "$MAKE" -j"$JOBS" $programs >"$log" 2>&1 </dev/null || { printf 'make'; return 1; }
        # shellcheck disable=SC2086
        run_programs $programs
        ;;
    spec)
        # shellcheck disable=SC2046
        run_programs $(list spec_tests)
        ;;
    scripts) # but for the one that compares the tables with the sources
        scripts=$(list script_tests | sed 's/ *tests.check_mutations.sh//')
        "$MAKE" -j"$JOBS" check TESTS="$scripts" check_PROGRAMS= >"$work/output" 2>&1 </dev/null ||
            { sed -n 's/^FAIL: //p' "$work/output" | head -n 1 | tr -d '\n'; return 1; }
        ;;
    *)
        "$MAKE" -j"$JOBS" "$1" >"$work/output" 2>&1 </dev/null
        ;;
    esac
}

# run_sample FILE STEP...
run_sample() {
    table=$1
    shift
    case $table in /*) ;; *) table=$PWD/$table ;; esac
    prepare
    read_table "$table" >"$work/mutants" || exit 99
    found=0 missed=0
    while IFS=$separator read -r name file line old new tests <&3; do
        verdict='NOT FOUND'
        if break_line "$file" "$line" "$old" "$new"; then
            for step; do
                failed=$(run_step "$step") && continue
                verdict="$step${failed:+ ($failed)}"
                break
            done
        else
            verdict='compiler'
        fi
        restore
        case $verdict in 'NOT FOUND') missed=$((missed + 1)) ;; *) found=$((found + 1)) ;; esac
        # shellcheck disable=SC2016 # code in a document
        printf '%s | %s:%s | `%s` becomes `%s` | %s\n' "$name" "$file" "$line" "$old" "$new" \
            "$verdict"
    done 3<"$work/mutants"
    printf '%d mutants: %d found, %d not found\n' $((found + missed)) "$found" "$missed"
}

main() {
    case ${1-} in
    --check) check ;;
    --sample)
        [ $# -ge 3 ] || die 'usage: run.sh --sample FILE STEP...'
        shift
        run_sample "$@"
        ;;
    --kqueue)
        shift
        table=$tables/kqueue.txt place=mutations-kqueue configuration=--with-event-backend=any
        some_programs='tests/unit/check_kqueue tests/unit/check_event_loop'
        unset MUTANTS_RECORD
        export STDIO_BUS_EVENT_BACKEND=kqueue
        run_clauses "$@"
        ;;
    -*) die 'usage: run.sh [CLAUSE...] | --kqueue [NAME...] | --sample FILE STEP... | --check' ;;
    *) run_clauses "$@" ;;
    esac
}

main "$@"; exit # in one line: the file may be edited meanwhile
