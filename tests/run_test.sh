#!/bin/sh
# run_test.sh COMMAND...: runs a test program for `make check` and writes to its log how long it
# took, for tests/slowest.sh. Its exit status is that of the program. A program in the
# list TEST_NO_FORK runs all of its tests in one process: LeakSanitizer works at the end of each
# process, and takes longer than a short test.

case " ${TEST_NO_FORK-} " in *" ${1##*/} "*) export CK_FORK=no ;; esac

start=$(date +%s)
"$@"
status=$?
# `times` has a line for this shell and a line for its children, with user and system time.
echo "took: $(($(date +%s) - start)) s; CPU time of the shell and of the test:"
times
exit $status
