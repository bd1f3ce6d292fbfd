#!/bin/sh
# run_test.sh COMMAND...: runs a test program for `make check` and writes to its log how long it
# took, for tests/slowest.sh. Its exit status is that of the program. TEST_NO_FORK is a list of
# programs whose tests share a process: a sanitizer looks for leaks at the end of each process,
# which for many short tests takes longer than they do.

case " ${TEST_NO_FORK-} " in *" ${1##*/} "*) export CK_FORK=no ;; esac

start=$(date +%s)
"$@"
status=$?
# `times` has a line for this shell and a line for its children, with user and system time.
echo "took: $(($(date +%s) - start)) s; CPU time of the shell and of the test:"
times
exit $status
