#!/bin/sh
# run_test.sh COMMAND...: runs a test program for `make check` and writes to its log how long it
# took, for tests/slowest.sh. Its exit status is that of the program.

start=$(date +%s)
"$@"
status=$?
# `times` has a line for this shell and a line for its children, with user and system time.
echo "took: $(($(date +%s) - start)) s; CPU time of the shell and of the test:"
times
exit $status
