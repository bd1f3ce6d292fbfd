#!/bin/sh
# check_style.sh: the rules of the house that a machine can check. Prints each breach as
# FILE:LINE: what, and fails if there was one.
#
#   - no strcpy, strcat, sprintf, vsprintf, gets, atoi, atol, strtok, alloca
#   - a function has at most 60 lines, a file in src/ at most 700, any other C file at most 900
#   - each file of src/ but main.c and rmp_main.c is in a folder of the list in doc/architecture.md;
#     includes point down that list, or stay in the folder, never up; no service of the bus includes
#     another
#   - each .c file but the examples includes build_config.h before anything else
#   - lines of at most 100 columns (but the rows of tables in .md, and expressions of PromQL), no tabs
#     (but in makefiles and APKBUILD), no blanks at a line's end
#   - nothing in src/ prints but base/terminal.c, whose functions leave nothing that a terminal obeys
#   - nothing is left "to do"
#   - each C file is listed in Makefile.am, and the README.md that each folder of src/ has
#   - each path of a file that one of these, or doc/architecture.md, names exists

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99

c_files=$(find src tests doc fuzz -name '*.[ch]' -type f 2>/dev/null | sort)
other_files=$(find bootstrap configure.ac Makefile.am README README.md NEWS CONTRIBUTING .ci doc src tests \
    contrib -type f ! -path 'tests/interop/work/*' ! -name package-lock.json \
    ! -path 'contrib/completions/*/*' \
    \( -name '*.sh' -o -name '*.json' -o -name '*.js' -o -name '*.mjs' -o -name '*.py' \
    -o -name '*.md' -o -name '*.[1-8]' -o ! -path '*/*' -o -path '.ci/*' -o -path 'contrib/*' \
    -o -name README \) 2>/dev/null | sort)

# The script itself names what it looks for.
other_files=$(printf '%s\n' "$other_files" | grep -v '^tests/check_style\.sh$')

status=0
for file in $c_files; do
    grep -qwF "${file%.c}" Makefile.am || { echo "$file: not in Makefile.am"; status=1; }
done

for folder in src/*/; do
    readme=${folder}README.md
    [ -e "$readme" ] || { echo "$readme: is not there"; status=1; }
    grep -qwF "$readme" Makefile.am || { echo "$readme: not in Makefile.am"; status=1; }
done
# Paths in backticks, from src/ or from the top.
for text in src/*/README.md doc/architecture.md; do
    for name in $(grep -o '`[a-z_]*/[a-z_/]*\.[ch]`' "$text" | tr -d '`'); do
        [ -e "src/$name" ] || [ -e "$name" ] || {
            echo "$text: names $name, which is not there"
            status=1
        }
    done
done

# The folders in their order; those of services.
folders=$(sed -n 's/^    \([a-z]*\)\/ .*/\1/p' doc/architecture.md | tr '\n' ' ')
services=$(sed -n 's/^    \([a-z]*\)\/ *a service: .*/\1/p' doc/architecture.md | tr '\n' ' ')

# File names here have no blanks, so that the lists may be split.
# shellcheck disable=SC2086
awk -v folders="$folders" -v services="$services" '
function breach(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    breaches++
}

function end_of_file() {
    if (file == "")
        return
    if (lines > max_lines) {
        printf "%s: %d lines, %d are allowed\n", file, lines, max_lines
        breaches++
    }
    if (needs_config && !seen_include) {
        printf "%s: does not include build_config.h\n", file
        breaches++
    }
    checked++
}

# What is left of a line of C without comments and the insides of strings.
function code_of(line,   out, two) {
    gsub(/\\\\/, "", line)
    gsub(/\\"/, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    out = ""
    while (line != "") {
        if (in_comment) {
            two = index(line, "*/")
            if (two == 0)
                return out
            line = substr(line, two + 2)
            in_comment = 0
        }
        two = index(line, "/*")
        if (two == 0)
            return out line
        out = out substr(line, 1, two - 1)
        line = substr(line, two + 2)
        in_comment = 1
    }
    return out
}

# The folder of a path below src/; main.c and rmp_main.c have none.
function folder_of(path) {
    return path ~ /^(rmp_)?main\.c$/ ? "main" : substr(path, 1, index(path, "/") - 1)
}

function check_include(line,   path, target) {
    path = line
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", path)
    if (needs_config && !seen_include && path !~ /^"build_config.h"/)
        breach("build_config.h is not included first")
    seen_include = 1
    if (own == "" || path !~ /^"/)
        return
    gsub(/"/, "", path)
    sub(/[ \t].*/, "", path)
    target = folder_of(path)
    if (path == "build_config.h")
        return
    if (!(target in rank))
        breach("includes \"" path "\", which is in no folder of doc/architecture.md")
    else if (rank[target] < rank[own] ||
             own != target && is_service[own] && is_service[target])
        breach("includes \"" path "\": " own " must not know of " target)
}

function check_c_line(line,   code) {
    if (line ~ /^[ \t]*#[ \t]*include/)
        check_include(line)
    code = code_of(line)
    if (code ~ banned)
        breach("a banned function: " code)
    if (is_source && file != "src/base/terminal.c" && code ~ printing)
        breach("prints past base/terminal.h: " code)
    if (line == "{")
        function_start = FNR
    else if (line == "}" && function_start) {
        if (FNR - function_start + 1 > 60)
            breach("a function of " FNR - function_start + 1 " lines, 60 are allowed")
        function_start = 0
    }
}

BEGIN {
    count = split("main " folders, names)
    for (i = 1; i <= count; i++)
        rank[names[i]] = i
    count = split(services, names)
    for (i = 1; i <= count; i++)
        is_service[names[i]] = 1
    banned = "(^|[^A-Za-z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|strtok|alloca)[ \t]*[(]"
    printing = "(^|[^A-Za-z0-9_])(v?f?printf|v?dprintf|fputs|fputc|puts|putc|putchar|fwrite|perror)[ \t]*[(]"
}

FNR == 1 {
    end_of_file()
    file = FILENAME
    is_c = file ~ /\.[ch]$/
    needs_config = file ~ /\.c$/ && file !~ /^(doc\/examples|tests\/interop\/embed)\//
    is_source = file ~ /^src\//
    max_lines = is_source ? 700 : is_c ? 900 : 100000
    own = ""
    if (is_source) {
        own = folder_of(substr(file, 5))
        if (!(own in rank))
            breach("in no folder of doc/architecture.md")
    }
    seen_include = function_start = in_comment = 0
}

{
    lines = FNR
    if (length($0) > 100 && !(file ~ /\.md$/ && /^\|/) && !(file ~ /grafana/ && /"expr": /))
        breach(length($0) " columns, 100 are allowed")
    if (/[ \t]$/)
        breach("blank at the end of the line")
    if (/\t/ && file !~ /(^|\/)(Makefile\.am|debian\/rules|APKBUILD)$/)
        breach("a tab")
    if (/(^|[^A-Za-z])(TODO|FIXME|XXX)([^A-Za-z]|$)/)
        breach("left to do")
    if (is_c)
        check_c_line($0)
}

END {
    end_of_file()
    printf "check_style: %d files, %d breaches\n", checked, breaches
    exit (breaches > 0 || checked == 0)
}
' $c_files $other_files && exit "$status"
