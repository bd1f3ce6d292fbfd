#!/bin/sh
# check_documents.sh: each configuration in the manual pages, README.md, doc/ and --help is accepted
# without a warning (--check-config --strict). The programs that they name are stubs.

export LC_ALL=C # a-z and sort are those of ASCII
dir=$(mktemp -d "${TMPDIR:-/tmp}/check_documents.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99
failures=0
count=0

mkdir "$dir/bin"
for name in bash-language-server my-agent my-mcp-server my-server node npx python3 search-server \
    uvx; do
    printf '#!/bin/sh\n' >"$dir/bin/$name"
    chmod +x "$dir/bin/$name"
done
ln -s "$dir/bin/my-server" "$dir/echo_worker"
(umask 077 && printf 'ann:1\n\n' >"$dir/tokens")

# blocks FILE...: writes each literal block of a page, or indented or fenced block of a text, that
# begins with "{" and has the key "pools", to a file of its own.
blocks() {
    awk -v dir="$dir" '
        function finish() {
            if (text ~ /^[ \n]*\{/ && text ~ /"pools"/) {
                name = sprintf("%s/%03d.json", dir, ++found)
                printf "%s", text >name
                close(name)
                print FILENAME ":" start, name
            }
            text = ""
        }
        function add(line) {
            if (text == "")
                start = FNR
            text = text line "\n"
        }
        FNR == 1 { finish(); inside = 0 }
        FILENAME ~ /\.[1-9]$/ {
            if (/^\.Bd -literal/) inside = 1
            else if (/^\.Ed/) { finish(); inside = 0 }
            else if (inside) { gsub(/\\\(dq/, "\""); add($0) }
            next
        }
        /^```/ { if (inside) finish(); inside = !inside; next }
        inside || /^    / { add($0); next }
        /^$/ && text != "" { next }
        { finish() }
        END { finish() }
    ' "$@"
}

# check FILE NAME
check() {
    count=$((count + 1))
    (cd "$dir" && PATH=$dir/bin:$PATH "$STDIO_BUS" --check-config --strict --config "$1") \
        >"$dir/log" 2>&1 && return
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$2"
    cat "$dir/log"
}

# The schema that is installed is what the program prints; a 32-bit one has another bound.
"$STDIO_BUS" --schema | sed '/"max_memory"/,/}/s/1073741824/1099511627776/' |
    cmp - doc/stdio_bus.schema.json || {
    failures=$((failures + 1))
    echo 'FAILED: doc/stdio_bus.schema.json is not what stdio_bus --schema prints'
}

# The example of --help, indented as in a text.
"$STDIO_BUS" --help | sed -n '/^  {/,/}$/s/^/    /p' >"$dir/help"

blocks doc/stdio_bus.1 doc/stdio_bus.conf.5 README.md doc/*.md doc/examples/README "$dir/help" \
    >"$dir/list"
while read -r name file; do
    check "$file" "$name"
done <"$dir/list"
[ "$count" -ge 8 ] || {
    echo "FAILED: only $count configurations were found in the documents"
    failures=$((failures + 1))
}
for file in doc/examples/*.json; do
    check "$PWD/$file" "$file"
done

echo "check_documents: $count configurations, $failures failures"
[ "$failures" -eq 0 ]
