#!/bin/sh
# analyze.sh: gcc -fanalyzer, clang-tidy and cppcheck over src/, several files at a time. Prints
# their findings and fails if there are any. Run by `make analyze`. With ANALYZE_QUICK=yes most of
# the time is saved: clang-tidy without clang's analyzer, cppcheck with one configuration. With
# ANALYZE_SINCE=COMMIT it looks at the files alone that have changed since, they or the header of
# the same name: all of them where git does not know the commit.
#
# Exceptions: for clang-tidy in .clang-tidy and clang_exceptions below, for cppcheck in
# cppcheck.suppressions, for gcc in gcc_exceptions.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII

# The assertions tell the tools what callers guarantee. The shim lets kqueue.c compile on any
# system.
includes="-DSTDIO_BUS_ASSERTIONS -I$SOURCE_DIR/src -I$BUILD_DIR -I$SOURCE_DIR/tests/kqueue-shim"

gcc_exceptions() {
    case $1 in
    # gcc loses memory whose only pointer is in a struct of an array or list: the pools that
    # config_free frees, the lists of http_keys_free, the tokens of tokens_free, the requests that
    # pending_free frees, what a worker's peer has, the events of runs, the names of
    # included files, what an upgrade puts into the lists of the bus and of its HTTP sessions, the
    # values of a text in TOML, remembered pages and fresh results, the embedded workers of a
    # host, the calls that come over NATS.
    */cli/toml.c | */config/config.c | */config/keys.c | */config/pool_config.c | \
        */config/listen.c | */config/tokens.c | \
        */config/include.c | */router/pending.c | */router/greeting.c | */router/remembered.c | \
        */router/fresh.c | */federation/calls.c | */rmp/control.c | \
        */embed/embedded_worker.c | */rmp/history.c | */control/clients.c | */web/lines.c | \
        */bus/listeners.c | */bus/origins.c)
        echo -Wno-analyzer-malloc-leak
        ;;
    esac
}

clang_exceptions() {
    case $1 in
    # clang does not see that what is freed is in no list any more, that an owner lives as long as
    # it has runs, and that the rows of before are those of one look.
    */cli/ctl_top.c | */rmp/history.c | */rmp/known.c | */router/fresh.c)
        echo ,-clang-analyzer-unix.Malloc
        ;;
    # It does not look into archive_made().
    */topics/bridge.c) echo ,-clang-analyzer-core.NullDereference ;;
    esac
}

# The includes and exceptions are lists of words.
# shellcheck disable=SC2046,SC2086
examine() {
    case $1 in
    gcc)
        gcc -std=c99 -O2 -Wall -Wextra -fanalyzer -Werror $(gcc_exceptions "$2") $includes \
            -c -o /dev/null "$2"
        ;;
    clang-tidy)
        clang-tidy --quiet --config-file="$SOURCE_DIR/.clang-tidy" \
            --checks="${ANALYZE_QUICK:+-clang-analyzer-*}$(clang_exceptions "$2")" "$2" \
            -- -std=c99 $includes
        ;;
    cppcheck)
        # Without build_config.h it tries all configurations.
        configurations=--force
        [ -z "$ANALYZE_QUICK" ] || configurations=--max-configs=1
        cppcheck --quiet --std=c99 --library=posix "$configurations" --error-exitcode=1 \
            --enable=warning,style,performance,portability --inline-suppr \
            --suppressions-list="$SOURCE_DIR/tests/analysis/cppcheck.suppressions" \
            -I"$SOURCE_DIR/src" "$2"
        ;;
    esac
}

# One tool and one file: the output is printed at once, and only with findings.
if [ $# -eq 2 ]; then
    output=$(examine "$@" 2>&1) && exit
    printf '%s\n' "$output"
    exit 1
fi

for tool in gcc clang-tidy cppcheck; do
    command -v "$tool" >/dev/null || {
        echo "make analyze needs $tool (Debian: apt-get install $tool)" >&2
        exit 1
    }
done

# Changes that are not committed count, too.
changed_files() (
    cd "$SOURCE_DIR" || exit
    git diff --name-only --diff-filter=d "$ANALYZE_SINCE" -- 'src/*.[ch]' | sed 's/h$/c/' |
        sort -u | while read -r file; do
        [ ! -e "$file" ] || printf '%s\n' "$PWD/$file"
    done
)

if [ -n "$ANALYZE_SINCE" ] &&
    git -C "$SOURCE_DIR" rev-parse -q --verify "$ANALYZE_SINCE^{commit}" >/dev/null; then
    files=$(changed_files)
else
    files=$(find "$SOURCE_DIR/src" -name '*.c' | sort)
fi
[ -n "$files" ] || {
    echo 'no file of src/ has changed'
    exit
}
status=0
for tool in gcc clang-tidy cppcheck; do
    printf '%s\n' "$files" |
        xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" sh "$0" "$tool" || status=1
    echo "$tool: $(printf '%s\n' "$files" | wc -l) files"
done
[ "$status" -eq 0 ] || echo 'There are findings: see above.' >&2
exit "$status"
