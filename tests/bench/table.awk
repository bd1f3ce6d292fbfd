# table.awk: makes the table of `make bench` from the records of run.sh: lines of a scenario, a
# subject (floor, bus, peer), and NAME=VALUE pairs. A ratio is the median of the ratios of the runs,
# not the ratio of the medians: a disturbance of one run affects both its sides.

function sort_numbers(values, count,   i, j, value) {
    for (i = 2; i <= count; i++) {
        value = values[i]
        for (j = i - 1; j >= 1 && values[j] > value; j--)
            values[j + 1] = values[j]
        values[j + 1] = value
    }
}

# Sets low, high; returns the median.
function summarise(values, count) {
    sort_numbers(values, count)
    low = values[1]
    high = values[count]
    return count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
}

function median(scenario, subject, name,   values, count, i) {
    count = runs[scenario, subject]
    if (failed[scenario, subject] != "" || count == 0)
        return ""
    for (i = 1; i <= count; i++)
        values[i] = kept[scenario, subject, name, i]
    return summarise(values, count)
}

# The median of this over that, run by run; `scale` times that.
function ratio(scenario, subject, name, to_scenario, to_subject, scale,   values, count, i) {
    count = runs[scenario, subject]
    if (failed[scenario, subject] failed[to_scenario, to_subject] != "" || count == 0 ||
        runs[to_scenario, to_subject] != count)
        return ""
    for (i = 1; i <= count; i++) {
        if (kept[to_scenario, to_subject, name, i] == 0)
            return ""
        values[i] = kept[scenario, subject, name, i]
        values[i] /= kept[to_scenario, to_subject, name, i] * scale
    }
    return summarise(values, count)
}

function short(value) {
    if (value == "")
        return "-"
    return sprintf(value >= 1000 ? "%.0f" : value >= 100 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f",
                   value)
}

# A goal is "<= 2.5" or ">= 0.75".
function verdict(value, goal,   words) {
    split(goal, words, " ")
    if (goal == "" || value == "")
        return ""
    if (words[1] == "<=" ? value <= words[2] : value >= words[2])
        return "met"
    missed++
    return "MISSED"
}

function line(what, floor, bus, value, spread, goal, peer, word) {
    printf "%-47s %9s %9s  %7s %-15s %-8s %-6s", what, floor, bus, value, spread, goal, word
    if (with_peer)
        printf " %9s", peer
    printf "\n"
}

function spread_of(value) {
    return value == "" ? "" : "(" short(low) " to " short(high) ")"
}

function failures(what, scenario,   subject, text) {
    for (subject in subjects) {
        text = failed[scenario, subject]
        if (text != "" && !told[scenario, subject]++)
            notes = notes "\n" what ": " subject ": " text
    }
    if (failed[scenario, "bus"] failed[scenario, "floor"] != "")
        broken = 1
}

# A row: a measurement in this unit, relative to the floor, or to the bus in scenario `other`.
function compare(what, scenario, name, goal, other, scale,   to, subject, value, spread) {
    if (!(scenario in seen))
        return
    failures(what, scenario)
    to = other != "" ? other : scenario
    subject = other != "" ? "bus" : "floor"
    value = ratio(scenario, "bus", name, to, subject, scale == 0 ? 1 : scale)
    spread = spread_of(value)
    line(what, short(median(to, subject, name)), short(median(scenario, "bus", name)),
         short(value), spread, goal, short(median(scenario, "peer", name)), verdict(value, goal))
}

# A row without a comparison: the goal is for the value itself.
function plain(what, scenario, name, goal,   value, spread) {
    if (!(scenario in seen))
        return
    failures(what, scenario)
    value = median(scenario, "bus", name)
    spread = spread_of(value)
    line(what, short(median(scenario, "floor", name)), short(value), "", spread, goal,
         short(median(scenario, "peer", name)), verdict(value, goal))
}

# The relay of complete lines: the floor for any bus.
function lines_row(scenario,   value, spread) {
    value = ratio(scenario, "lines", "cpu_ns", scenario, "floor", 1)
    spread = spread_of(value)
    if (value != "")
        line("  a relay of whole lines: CPU ns/request", short(median(scenario, "floor", "cpu_ns")),
             short(median(scenario, "lines", "cpu_ns")), short(value), spread)
}

function large(what, scenario, goal) {
    compare(what ": CPU ns/request", scenario, "cpu_ns", goal)
    lines_row(scenario)
    compare("  requests/s", scenario, "rate")
    compare("  text without line ends: CPU ns/request", scenario "-plain", "cpu_ns", goal)
}

function scanner_row(what, goal) {
    if (!(what in whole))
        return
    line("scanner, " what ", GB/s", "", short(whole[what]), "", "", goal, "",
         verdict(whole[what], goal))
    if (goal != "")
        line("  the same in 1 KiB pieces", short(whole[what]), short(pieces[what]),
             short(pieces[what] / whole[what]), "", ">= 0.9", "",
             verdict(pieces[what] / whole[what], ">= 0.9"))
}

$1 == "scanner" {
    name = $0
    sub(/^scanner bus /, "", name)
    sub(/  +.*/, "", name)
    for (i = 3; i < NF; i++) {
        if ($i == "whole")
            whole[name] = $(i + 1)
        if ($i == "pieces")
            pieces[name] = $(i + 1)
    }
    next
}

{
    seen[$1] = 1
    subjects[$2] = 1
    if ($2 == "peer")
        with_peer = 1
}

$3 == "failed" {
    text = $0
    sub(/^[^ ]+ [^ ]+ failed /, "", text)
    failed[$1, $2] = text
    next
}

{
    run = ++runs[$1, $2]
    for (i = 3; i <= NF; i++) {
        split($i, pair, "=")
        kept[$1, $2, pair[1], run] = pair[2]
    }
    if ($0 ~ / stopped=no/)
        unstopped[$2]++
}

END {
    line("", "floor", "bus", "ratio", "(spread)", "goal", "peer", "")
    compare("1 client, 64 in flight, 64 B: CPU ns/request", "one-64", "cpu_ns", "<= 2.5")
    compare("  requests/s", "one-64", "rate", ">= 0.75")
    compare("  requests/s, each process where it likes", "one-64-any-cpu", "rate", ">= 0.75")
    compare("  p99 us", "one-64", "p99_us")
    compare("  both ends batching: CPU ns/request", "one-64-batched", "cpu_ns", "<= 2.5")
    compare("  both ends batching: requests/s", "one-64-batched", "rate", ">= 0.75")
    compare("  framed client, worker of lines: CPU ns/request", "one-64-framed", "cpu_ns", "<= 3")
    compare("1 client, 1 in flight: p50 us", "one-1", "p50_us", "<= 1.10")
    compare("  CPU ns/request", "one-1", "cpu_ns", "<= 1.15")
    compare("16 x 16, sessions, 2 workers: CPU ns/request*", "16x16", "cpu_ns", "<= 1.5", "one-64")
    compare("  both ends batching*", "16x16-batched", "cpu_ns", "<= 1.5", "one-64-batched")
    compare("1000 x 1, sessions, 8 workers: CPU ns/request*", "1000x1", "cpu_ns", "<= 1.5", "16x1")
    plain("  peak memory KiB", "1000x1", "peak_kib", "<= 12288")
    large("1 client, 16 in flight, 4 KiB", "4KiB", "<= 1.5")
    large("1 client, 4 in flight, 64 KiB", "64KiB", "<= 1.3")
    compare("  framed client, worker of lines: CPU ns/request", "64KiB-framed", "cpu_ns")
    large("1 client, 1 in flight, 900 KiB", "900KiB", "<= 1.3")
    compare("900 KiB in pieces of 100 B: CPU ns/message*", "dribble-900KiB", "cpu_ns", "<= 1.5",
            "dribble-90KiB", 10)
    compare("  the same against the floor", "dribble-900KiB", "cpu_ns")
    compare("notifications/s to 10, beside a slow one*", "push-beside-slow", "rate", ">= 0.95",
            "push-alone")
    plain("  peak memory KiB", "push-beside-slow", "peak_kib")
    plain("10 x 1 beside 256 in flight, 4 KiB: p99.9 us", "greedy", "p999_us", "<= 10000")
    plain("  beside 256 in flight, 64 B: p99.9 us", "greedy-small", "p999_us", "<= 10000")
    plain("  beside 2 in flight, 1 MB: p99.9 us", "greedy-large", "p999_us", "<= 10000")
    plain("a turn: 64 KiB of {}, CPU ms", "turn", "turn_ms", "<= 10")
    plain("start to the first answer, ms", "start", "first_ms", "<= 5")
    plain("idle: resident KiB", "idle", "resident_kib", "<= 2048")
    plain("  bytes for a client that said nothing", "idle", "silent_client_bytes", "<= 1024")
    plain("  bytes for a client that has been answered", "idle", "idle_client_bytes", "<= 1024")
    scanner_row("small requests", ">= 0.8")
    scanner_row("long strings", ">= 8")
    scanner_row("structure and numbers", ">= 1")
    print "\n* against the bus itself: 1 client with 64 in flight; 16 clients x 1; a tenth of a"
    print "  message ten times smaller; without the slow one. The column \"floor\" has that figure."
    for (subject in unstopped)
        notes = notes sprintf("\n%s: did not end by itself with status 0, %d times", subject,
                              unstopped[subject])
    if (notes != "")
        print notes
    printf "\n%d goals missed\n", missed
    exit broken
}
