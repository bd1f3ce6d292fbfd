#!/bin/sh
# check_cycles.sh: the files of src depend on each other without a cycle. x.c and x.h are one file
# x. It depends on the files that it includes, and on those that define a symbol that x.o uses.
# What x.c offers to others is declared in x.h, or else a file could use parts of others that the
# header of one of them hides; or in a header that has no file of its own.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII

# Dependencies that are left out, "FILE USED-FILE" each.
allowed='
json/scanner_quick json/scanner
'
# Files that are declared by the header of another one: "FILE USED-FILE" each.
declared='
cli/rmp_submit cli/rmp_commands
'
# Folders whose own cycles are yet to be broken.
unfinished=

: "${NM:=nm}"
command -v "$NM" >/dev/null || { echo 'skipped: nm was not found'; exit 77; }
cd "$SOURCE_DIR/src" || exit 99

# Prints "FILE USED-FILE" for each include, "FILE defines SYMBOL", "FILE uses SYMBOL", and
# "FILE declares WORD" for all words of its header.
dependencies()
{
    grep '^#include "' ./*.[ch] ./*/*.[ch] | sed 's/^\.\///; s/\.[ch]:#include "/ /; s/\.h"$//'
    grep -ow '[a-z][a-z0-9_]*' ./*/*.h | sed 's/^\.\///; s/\.h:/ declares /' | sort -u
    for source in ./*.c ./*/*.c; do
        file=${source#./}
        file=${file%.c}
        object=$BUILD_DIR/src/$file.o
        test -f "$object" || continue
        "$NM" -g "$object" | awk -v file="$file" '
            NF >= 2 { print file, $(NF - 1) ~ /^[Uvw]$/ ? "uses" : "defines", $NF }'
    done
}

dependencies | awk -v allowed="$allowed" -v declared="$declared" -v unfinished="$unfinished" '
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

    # A symbol that the header of another source file declares, and its own does not.
    function find_stray(file, name,    i, list, headers)
    {
        headers = split(users_of_word[name], list, " ")
        for (i = 1; i <= headers; i++)
            if (list[i] == file || !(list[i] in has_source))
                return
        for (i = 1; i <= headers; i++) {
            if ((file, list[i]) in is_declared)
                continue
            print "stray: " name " of " file ".c is declared in " list[i] ".h"
            strays++
        }
    }

    BEGIN {
        words = split(declared, word, " ")
        for (i = 1; i < words; i += 2)
            is_declared[word[i], word[i + 1]]
        words = split(allowed, word, " ")
        for (i = 1; i < words; i += 2)
            left_out[word[i], word[i + 1]]
        words = split(unfinished, word, " ")
        for (i = 1; i <= words; i++)
            is_unfinished[word[i]]
    }
    NF == 2 && $2 != "build_config" { add($1, $2) }
    $2 == "declares" { users_of_word[$3] = users_of_word[$3] " " $1 }
    $2 == "defines" { definer[$3] = $1 }
    $2 == "defines" || $2 == "uses" { has_source[$1] }
    $2 == "uses" { user[++user_count] = $1; symbol[user_count] = $3 }
    END {
        for (i = 1; i <= user_count; i++)
            if (symbol[i] in definer)
                add(user[i], definer[symbol[i]])
        for (name in definer)
            find_stray(definer[name], name)
        for (i = 1; i <= file_count; i++)
            if (state[files[i]] == "")
                visit(files[i], 1)
        print "check_cycles: " file_count " files, " cycles + 0 " cycles, " strays + 0 " strays"
        exit cycles > 0 || strays > 0 || user_count == 0 || file_count == 0
    }'
