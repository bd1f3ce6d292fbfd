# manual.awk: makes stdio_bus_protocol(7), in mdoc(7), of protocol.md. It knows the Markdown that is
# used there: headings, paragraphs, lists of one level, tables, literal blocks, `code`, **strong
# emphasis** and *emphasis*.
#
#     awk -v date='November 22, 2026' -f manual.awk protocol.md

# The inside of a line of mdoc: fonts for the marks, which may span lines of the source.
function inline(text,   i, c, out, code, strong, slanted) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "`") {
            code = !code
            out = out (code || strong ? "\\fB" : "\\fR")
        } else if (!code && substr(text, i, 2) == "**") {
            strong = !strong
            out = out (strong ? "\\fB" : "\\fR")
            i++
        } else if (!code && c == "*") {
            slanted = !slanted
            out = out (slanted ? "\\fI" : "\\fR")
        } else {
            out = out (c == "\\" ? "\\e" : c == "-" && code ? "\\-" : c)
        }
    }
    return out
}

# A text line that looks like a request is none.
function protect(line) {
    return line ~ /^[.']/ ? "\\&" line : line
}

# A sentence begins on a new line, as mdoc(7) wants it.
function print_text(text,   count, words, i, line, ends_sentence) {
    count = split(inline(text), words, " ")
    for (i = 1; i <= count; i++) {
        if (line != "" && (ends_sentence || length(line) + length(words[i]) > 78)) {
            print protect(line)
            line = ""
        }
        line = line (line == "" ? "" : " ") words[i]
        ends_sentence = words[i] ~ /[.!?][)"]*(\\fR)?$/
    }
    if (line != "")
        print protect(line)
}

# An argument of a macro: words that could be macros are none.
function argument(text,   count, words, i, out) {
    text = inline(text)
    gsub(/"/, "\\(dq", text)
    count = split(text, words, " ")
    for (i = 1; i <= count; i++)
        out = out (i > 1 ? " " : "") (length(words[i]) <= 3 ? "\\&" : "") words[i]
    return out
}

function end_text() {
    if (text != "")
        print_text(text)
    text = ""
}

function end_block() {
    end_text()
    if (block == "literal")
        print ".Ed"
    else if (block != "")
        print ".El"
    block = ""
    blanks = 0
}

function begin_block(name, macro) {
    if (block == name)
        return
    end_block()
    print macro
    block = name
    after_heading = 0
}

function begin_text() {
    if (text == "" && block == "" && !after_heading)
        print ".Pp"
    after_heading = 0
}

function heading(macro, title) {
    end_block()
    print macro, title
    after_heading = 1
}

function table_row(line,   count, cells, i) {
    gsub(/^\| *| *\|$/, "", line)
    count = split(line, cells, / *\| */)
    if (block != "table") {
        begin_block("table", ".Bl -tag -width Ds")
        for (i = 1; i <= count; i++)
            titles[i] = cells[i]
        return
    }
    print ".It", argument(cells[1])
    for (i = 2; i <= count; i++)
        if (cells[i] != "")
            text = text (text == "" ? "" : "; ") (count > 2 ? titles[i] ": " : "") cells[i]
    end_text()
}

BEGIN {
    print ".\\\" Made of protocol.md by manual.awk."
    print ".Dd " date
    print ".Dt STDIO_BUS_PROTOCOL 7\n.Os\n.Sh NAME\n.Nm stdio_bus_protocol"
    print ".Nd what goes over the wire between clients, daemon and workers"
}

/^# / { heading(".Sh", "DESCRIPTION"); next }
/^## / { heading(".Sh", toupper(substr($0, 4))); next }
/^### / { heading(".Ss", substr($0, 5)); next }

/^$/ {
    if (block == "literal")
        blanks++
    else
        end_text()
    next
}

/^    / && (block == "literal" || (text == "" && block !~ /^list/)) {
    begin_block("literal", ".Bd -literal -offset indent")
    for (; blanks > 0; blanks--)
        print ""
    line = substr($0, 5)
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    print protect(line)
    next
}

/^\|[-|]*\|$/ { next }
/^\|/ { end_text(); table_row($0); next }

/^- / {
    end_text()
    begin_block("list of points", ".Bl -bullet")
    print ".It"
    text = substr($0, 3)
    next
}

/^[0-9]+\. / {
    end_text()
    begin_block("list of numbers", ".Bl -enum")
    print ".It"
    text = substr($0, index($0, " ") + 1)
    next
}

# The end of a block, unless it is a line of an item.
block != "" && !(block ~ /^list/ && (/^  / || text != "")) { end_block() }

{
    begin_text()
    sub(/^ +/, "")
    text = text (text == "" ? "" : " ") $0
}

END {
    end_block()
    print ".Sh SEE ALSO\n.Xr stdio_bus 1 ,\n.Xr stdio_bus_rmp 1 ,\n.Xr stdio_bus.conf 5"
}
