#!/bin/sh
# coverage.sh TARGET...: the coverage of src/ by the tests of make TARGET..., counted by gcovr.
# Builds in coverage/ below the working directory, with gcc's counters and without optimisation.
# coverage/missing.txt names the lines that never ran. Fails if a test fails, or below 92 % of the
# lines or 80 % of the branches. Run by `make coverage`.
#
# A program writes its counters at its exit: a killed program does not count.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
for tool in gcc gcovr; do
    command -v "$tool" >/dev/null || {
        echo "make coverage needs $tool (Debian: apt-get install $tool)" >&2
        exit 1
    }
done

jobs=$(getconf _NPROCESSORS_ONLN)
# gcovr knows files by their shortest names.
SOURCE_DIR=$(cd "$SOURCE_DIR" && pwd) || exit

# built DIRECTORY CONFIGURE-FLAG...
built() (
    mkdir "$1" && cd "$1" || exit
    shift
    # With -std=gnu99, gcc lets a child write its counters before it becomes another program.
    "$SOURCE_DIR/configure" --disable-hardening CC=gcc \
        CFLAGS='-O0 -g -std=gnu99 --coverage -fprofile-abs-path' "$@" &&
        rm -f ./*conftest.gc* && make -j"$jobs"
)

run_tests() {
    built epoll && built kqueue --with-event-backend=kqueue || return
    for target in "$@"; do
        make -C epoll -j"$jobs" "$target" || return
    done
    # kqueue.c is not in the build above, unless the system has kqueue.
    event_tests='tests/unit/check_event_loop tests/unit/check_event_rounds'
    make -C kqueue -j"$jobs" check check_PROGRAMS="$event_tests" TESTS="$event_tests"
}

rm -rf coverage && mkdir coverage && cd coverage || exit
run_tests "$@" >log 2>&1 || {
    tail -n 40 log
    exit 1
}
# What other machines compile of byte_runs.h: gcovr cannot merge what stands in other lines there.
find . -name '*check_scanner_portable-*.gc*' -exec rm {} +
gcovr --root "$SOURCE_DIR" --filter "$SOURCE_DIR/src/" --txt missing.txt --csv files.csv \
    --fail-under-line 92 --fail-under-branch 80 epoll kqueue
status=$?
awk -F, '
function percent(part, whole) {
    return whole > 0 ? sprintf("%5.1f %%", 100 * part / whole) : "      -"
}
FNR == 1 { print "  lines  branches"; next }
{
    print percent($3, $2), " ", percent($6, $5), " ", $1
    lines += $2; lines_run += $3; branches += $5; branches_run += $6
}
END {
    print percent(lines_run, lines), " ", percent(branches_run, branches), " ", "in all"
}' files.csv
exit "$status"
