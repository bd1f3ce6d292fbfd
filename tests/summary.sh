#!/bin/sh
# summary.sh DIRECTORY...: counts the tests that `make check` ran there, from their .trs and .log
# files; prints "N passed, N failed, N skipped". Each case of a libcheck program is a test; any
# other program is one test. Fails if a test failed or if there was none.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
if [ $# -eq 0 ]; then
    echo 'usage: summary.sh DIRECTORY...' >&2
    exit 64
fi

find "$@" -name '*.trs' -type f | sort | awk '
{
    log_file = $0
    sub(/\.trs$/, ".log", log_file)
    result = ""
    while ((getline line < $0) > 0)
        if (line ~ /^:global-test-result: /)
            result = substr(line, 22)
    close($0)

    cases = bad = 0
    while ((getline line < log_file) > 0)
        if (line ~ /^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+/) {
            split(line, words, /[^0-9]+/)
            cases += words[2]
            bad += words[3] + words[4]
        }
    close(log_file)

    if (result == "SKIP")
        skipped++
    else if (cases == 0)
        cases = 1
    if (result != "PASS" && result != "SKIP" && bad == 0)
        bad = 1 # a crash, or a leak found after the last case
    passed += cases - bad
    failed += bad
}

END {
    printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
    exit (failed > 0 || passed == 0)
}
'
