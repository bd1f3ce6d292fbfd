#!/bin/sh
# check_cycles.sh: the files of src depend on each other without a cycle. x.c and x.h are one file
# x. It depends on the files that it includes, and on those that define a symbol that x.o uses.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII

# Dependencies that are left out, "FILE USED-FILE" each.
allowed='
json/scanner_quick json/scanner
router/requests_archive router/router_archive
router/handshakes_archive router/router_archive
'
# Folders whose own cycles are yet to be broken.
unfinished=

: "${NM:=nm}"
command -v "$NM" >/dev/null || { echo 'skipped: nm was not found'; exit 77; }
cd "$SOURCE_DIR/src" || exit 99

# Prints "FILE USED-FILE" for each include, "FILE defines SYMBOL", and "FILE uses SYMBOL".
dependencies()
{
    grep '^#include "' ./*.[ch] ./*/*.[ch] | sed 's/^\.\///; s/\.[ch]:#include "/ /; s/\.h"$//'
    for source in ./*.c ./*/*.c; do
        file=${source#./}
        file=${file%.c}
        object=$BUILD_DIR/src/$file.o
        test -f "$object" || continue
        "$NM" -g "$object" | awk -v file="$file" '
            NF >= 2 { print file, $(NF - 1) ~ /^[Uvw]$/ ? "uses" : "defines", $NF }'
    done
}

dependencies | awk -v allowed="$allowed" -v unfinished="$unfinished" '
    function folder_of(file)
    {
        return file ~ /\// ? substr(file, 1, index(file, "/") - 1) : ""
    }

    function is_left_out(file, used)
    {
        return file == used || (file, used) in left_out ||
            folder_of(file) == folder_of(used) && folder_of(file) in is_unfinished
    }

    function add(file, used)
    {
        if ((file, used) in known || is_left_out(file, used))
            return
        known[file, used]
        if (!(file in count))
            files[++file_count] = file
        uses[file, ++count[file]] = used
    }

    # Every cycle has an edge that leads back to a file of the path that is followed.
    function visit(file, depth,    i, at, used, path)
    {
        state[file] = "on the path"
        stack[depth] = file
        for (i = 1; i <= count[file]; i++) {
            used = uses[file, i]
            if (state[used] == "") {
                visit(used, depth + 1)
            } else if (state[used] == "on the path") {
                path = used
                for (at = depth; stack[at] != used; at--)
                    path = stack[at] " -> " path
                print "cycle: " used " -> " path
                cycles++
            }
        }
        state[file] = "done"
    }

    BEGIN {
        words = split(allowed, word, " ")
        for (i = 1; i < words; i += 2)
            left_out[word[i], word[i + 1]]
        words = split(unfinished, word, " ")
        for (i = 1; i <= words; i++)
            is_unfinished[word[i]]
    }
    NF == 2 && $2 != "build_config" { add($1, $2) }
    $2 == "defines" { definer[$3] = $1 }
    $2 == "uses" { user[++user_count] = $1; symbol[user_count] = $3 }
    END {
        for (i = 1; i <= user_count; i++)
            if (symbol[i] in definer)
                add(user[i], definer[symbol[i]])
        for (i = 1; i <= file_count; i++)
            if (state[files[i]] == "")
                visit(files[i], 1)
        print "check_cycles: " file_count " files, " cycles + 0 " cycles"
        exit cycles > 0 || user_count == 0 || file_count == 0
    }'
