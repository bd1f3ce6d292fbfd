#!/bin/sh
# plots.sh: draws the tables of doc/performance.md as SVG files in doc/figures/. Run by
# `make bench-plots` after a table was replaced by what a benchmark has printed. Needs gnuplot.
# PLOTS_DIR: where the files go.

export LC_ALL=C # the decimal point is that of ASCII
cd "${SOURCE_DIR:-$(dirname "$0")/../..}" || exit 99
document=doc/performance.md
figures=${PLOTS_DIR:-doc/figures}
data=$(mktemp -d) || exit 99
trap 'rm -rf "$data"' EXIT
command -v gnuplot >/dev/null || {
    echo 'make bench-plots needs gnuplot (Debian: apt-get install gnuplot-nox)' >&2
    exit 77
}
mkdir -p "$figures"

# table HEADING: the rows of the table whose first line begins so: fields between tabs, without
# stars, units and what is in brackets.
table() {
    awk -v heading="| $1" '
        index($0, heading) == 1 { inside = 1; getline; next }
        inside && !/^\|/ { exit }
        inside {
            gsub(/\*\*|`/, "")
            gsub(/ \([^|]*\)/, "")
            gsub(/, missed/, "")
            gsub(/^\| *| *\|$/, "")
            gsub(/ *\| */, "\t")
            print
        }
    ' "$document" >"$data/table"
    [ -s "$data/table" ] || { echo "plots.sh: $document has no table \"$1\"" >&2; exit 1; }
}

# rows COLUMNS: into "$data/rows" the names of that table and these columns, the last row first,
# which gnuplot draws at the bottom.
rows() {
    awk -F '\t' -v columns="$1" '
        {
            sub(/, sessions by URL$/, "", $1)
            sub(/^each session its own servers$/, "without sharing", $1)
            sub(/, (one|a proxy) for each server$/, "", $1)
            sub(/^the same, with supergateway.*/, "mcp-proxy and supergateway", $1)
            sub(/: a bare copy$/, "", $1)
            line = "\"" $1 "\""
            count = split(columns, column, " ")
            for (i = 1; i <= count; i++) {
                gsub(/,/, "", $column[i])
                line = line "\t" ($column[i] + 0)
            }
            lines[++n] = line
        }
        END { for (; n > 0; n--) print lines[n] }
    ' "$data/table" >"$data/rows"
}

# Colours that can be seen on white and on black.
ink='#7d8590'
blue='#3b82f6'
amber='#d97706'

# draw NAME HEIGHT TITLE: with the commands of gnuplot from stdin. Without a background, and with a
# title for those who hear it.
draw() {
    {
        cat <<END
set terminal svg size 720,$2 dynamic noenhanced font "sans-serif,13"
set output "$figures/$1.svg"
set border 0
set tics scale 0 textcolor rgb "$ink"
set title "$3" textcolor rgb "$ink"
set key textcolor rgb "$ink" samplen 1
set grid linecolor rgb "$ink" linewidth 0.3
END
        cat
    } >"$data/commands"
    gnuplot "$data/commands" || { echo "plots.sh: gnuplot refuses $1" >&2; exit 1; }
    sed "s|<title>Gnuplot</title>|<title>$3</title>|; /^<desc>/d; /^<rect .* fill=\"#ffffff\"/d
        s/ *$//" "$figures/$1.svg" >"$data/svg" && cat "$data/svg" >"$figures/$1.svg" || exit 1
    printf '%s\n' "$figures/$1.svg"
}

# series COLUMN OFFSET HALF COLOUR FORMAT TITLE: of "$data/rows", horizontal bars from `low`, around
# this offset of each row, and their numbers.
# shellcheck disable=SC2016 # gnuplot's
series() {
    printf '"%s" using (low):($0+%s):(low):%s:($0+%s-%s):($0+%s+%s) with boxxyerror ' \
        "$data/rows" "$2" "$1" "$2" "$3" "$2" "$3"
    printf 'fillstyle solid noborder linecolor rgb "%s" %s, ' "$4" "$6"
    printf '"" using %s:($0+%s):(sprintf("  %s", $%s)) with labels left offset 0.5 ' \
        "$1" "$2" "$5" "$1"
    printf 'textcolor rgb "%s" notitle' "$ink"
}

# The names of the rows, at the left.
names='"'$data'/rows" using (low):0:ytic(1) with dots linecolor rgb "'$ink'" notitle'

table 'server | CPU of a request'
rows '2 4'
draw request 260 'CPU time of the server for a POST, microseconds' <<END
low = 1
set logscale x
set xrange [low:2000]
set yrange [-0.6:3.6]
set key at graph 1, 1 right top
plot $names, $(series 2 0.18 0.16 "$blue" '%g' 'title "pinned to one processor"'), \
    $(series 3 -0.18 0.16 "$amber" '%g' 'title "free"')
END

table '| processes | memory'
rows 3
draw sessions 240 'Memory of ten sessions with five servers each, MiB' <<END
low = 0
set xrange [low:5600]
set yrange [-0.6:4.6]
plot $names, $(series 2 0 0.3 "$blue" '%.0f' notitle)
END

table 'scenario | floor'
grep '^10 x 1 beside\|^the same beside' "$data/table" |
    sed 's/^10 x 1 beside\(.*\): p99.9 ms/beside\1/; s/^the same beside/beside/' >"$data/beside"
mv "$data/beside" "$data/table"
rows 3
draw waiting 180 'Time to an answer beside a flood, p99.9, milliseconds' <<END
low = 0
set xrange [low:10.5]
set yrange [-0.6:2.6]
set arrow from 10, graph 0 to 10, graph 1 nohead linecolor rgb "$amber"
plot $names, $(series 2 0 0.3 "$blue" '%.2f' notitle)
END

table 'server | 1 subscriber'
grep -v '^deliveries' "$data/table" >"$data/without" && mv "$data/without" "$data/table"
rows '2 3 4'
draw topics 400 'CPU time of the server for a delivery, nanoseconds' <<END
low = 10
set logscale x
set xrange [low:60000]
set yrange [-0.6:5.6]
set key at graph 1, 1 right top
plot $names, $(series 2 0.26 0.12 "$blue" '%.0f' 'title "1 subscriber"'), \
    $(series 3 0 0.12 "$amber" '%.0f' 'title "10 subscribers"'), \
    $(series 4 -0.26 0.12 "$ink" '%.0f' 'title "100 subscribers"')
END
