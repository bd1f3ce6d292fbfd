#!/bin/sh
# slowest.sh DIRECTORY...: the ten test programs that took the longest when `make check` ran there,
# on one line, from their logs (tests/run_test.sh). With SLOWEST_MAX in the environment it fails
# if a program took longer than that number of seconds.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII

find "$@" -name '*.trs' -type f | sed 's/trs$/log/' | xargs awk '
    /^took: [0-9]+ s; CPU time/ {
        name = FILENAME
        sub(/.*\//, "", name)
        sub(/\.log$/, "", name)
        print $2, name
    }
' | sort -k 1,1nr -k 2 | awk -v max="${SLOWEST_MAX:-1000000}" '
    NR <= 10 { printf "%s%s %d s", NR == 1 ? "slowest: " : ", ", $2, $1 }
    $1 > max { late = late " " $2 }
    END {
        print ""
        if (late != "")
            print "over " max " s:" late
        exit (late != "" || NR == 0)
    }
'
