#!/bin/sh
# busy.sh COUNT PID: starts COUNT processes that only compute, unless those of PID run already. They
# end with the process PID, which is the make that runs the tests: make check LOAD=8.

mark=${TMPDIR:-/tmp}/stdio_bus-busy-$2
mkdir "$mark" 2>/dev/null || exit 0

compute() {
    while kill -0 "$1" 2>/dev/null; do
        turns=0
        while [ $turns -lt 20000 ]; do
            turns=$((turns + 1))
        done
    done
    rmdir "$mark" 2>/dev/null
}

count=0
while [ $count -lt "$1" ]; do
    compute "$2" </dev/null >/dev/null 2>&1 &
    count=$((count + 1))
done
