# table.awk: reads a table of mutants (clauses.txt tells the form) and finds the place of each in the
# sources below `top`. Prints name, file, line, old text, new text and tests of each mutant, with
# \037 between them. Fails if a text is not there, or is in several lines and has no number.

function breach(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
    breaches++
}

# The number of the line of `path` that has `old` for the nth time; n 0: for the only time.
function line_of(path, old, n,   i, seen, at) {
    if (!(path in length_of)) {
        length_of[path] = 0
        while ((getline line[path, length_of[path] + 1] <(top "/" path)) > 0)
            length_of[path]++
        close(top "/" path)
    }
    for (i = 1; i <= length_of[path]; i++)
        if (index(line[path, i], old) > 0 && (++seen == n || n == 0 && seen == 1))
            at = i
    if (n == 0 && seen > 1)
        breach(name ": " seen " lines of " path " have this text; which one is told by #NUMBER")
    return at + 0
}

function end_of_mutant(   at) {
    if (name == "")
        return
    if (old == "" || !has_new)
        breach(name ": has no lines with - and +")
    else if ((at = line_of(path, old, number)) == 0)
        breach(name ": " path " has no such text: " old)
    else
        printf "%s\037%s\037%d\037%s\037%s\037%s\n", name, path, at, old, new, tests
    name = ""
}

/^#/ { next }
/^- / { old = substr($0, 3); next }
/^\+( |$)/ { new = substr($0, 3); has_new = 1; next }
/^= / { tests = tests " " substr($0, 3); next }
{ end_of_mutant() }
/^$/ || /^[^ ]+: ./ { next }
NF == 2 && $2 ~ /^(src|tests\/kqueue-shim)\// {
    name = $1
    path = $2
    number = 0
    if (match(path, /#[0-9]+$/)) {
        number = substr(path, RSTART + 1) + 0
        path = substr(path, 1, RSTART - 1)
    }
    old = new = tests = ""
    has_new = 0
    next
}
{ breach("neither a mutant nor a reason: " $0) }

END {
    end_of_mutant()
    exit breaches > 0
}
