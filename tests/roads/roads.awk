# roads.awk: reads the output of `nm -l` of the instrumented daemon, then that of drive, and prints
# "NAME: CALLS calls, FILES files, CHANGES changes of file" for the last road of each name. With
# show=1 also its functions, indented by depth, each with its file; * marks a change of file.
#
# A road is what the rounds of the event loop call, from the one in which the daemon waited when the
# event came to the one before it waits again: run_once itself, the callbacks and the after-hook.
# Counted are the functions of src, inline ones in the file that defines them. Not counted:
#   - base/. Its inline functions, called from elsewhere, count as functions of the caller's file.
#   - the timers, the backend of the event loop, and what the scanner calls.
# A change of file is between one counted call and the next in time, whoever calls.

# Whether the call counts; sets as[depth], the file that it counts as.
function counts(file,   i) {
    as[depth] = file
    for (i = 1; i < depth; i++)
        if (inside[i] ~ /^(json|format)\/scanner|^base\//)
            return 0
    if (file ~ /^base\/.*\.h$/)
        as[depth] = as[depth - 1]
    else if (file ~ /^base\//)
        return 0
    return file != "" && file !~ /^event\/(timers\.|epoll|poll|kqueue)/
}

function measure(from, to,   i, file, calls, files, changes, last, change, seen, text) {
    depth = calls = files = changes = 0
    for (i = from; i < to; i++) {
        if (kind[i] == "<" && depth > 0)
            depth--
        if (kind[i] == "<" || (depth == 0 && name[called[i]] != round))
            continue
        inside[++depth] = where[called[i]]
        if (!counts(inside[depth]))
            continue
        file = as[depth]
        change = calls++ > 0 && file != last
        changes += change
        files += !(file in seen)
        seen[file]
        last = file
        text = text sprintf("%*s%s  %s%s\n", 2 * depth, "", name[called[i]], file,
                            change ? "  *" : "")
    }
    roads[road] = sprintf("%d calls, %d files, %d changes of file", calls, files, changes)
    shown[road] = text
}

NR == FNR {
    sub(/^0+/, "", $1)
    name[$1] = $3
    sub(/:[0-9]+$/, "", $4)
    if (sub(/^.*\/src\//, "", $4))
        where[$1] = $4
    next
}

$1 == "road" {
    road = substr($0, 6)
    begin = frame
    if (!(road in roads))
        order[++count] = road
    next
}

$1 == "end" {
    measure(begin, frame)
    next
}

{
    kind[++events] = $1
    called[events] = $2
    if ($1 == ">" && name[$2] == round)
        frame = events
}

END {
    for (i = 1; i <= count; i++) {
        print order[i] ": " roads[order[i]]
        if (show)
            printf "%s", shown[order[i]]
    }
}
