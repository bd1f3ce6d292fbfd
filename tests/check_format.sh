#!/bin/sh
# check_format.sh: the C files are laid out as .clang-format has it. Run by `make check-format`;
# `clang-format -i` mends what it finds. Versions of clang-format differ, so only one is asked.

export LC_ALL=C # a-z, sort and the decimal point are those of ASCII
cd "${SOURCE_DIR:-$(dirname "$0")/..}" || exit 99
: "${CLANG_FORMAT:=clang-format}"

case $("$CLANG_FORMAT" --version 2>/dev/null) in
*' version 14.'*) ;;
*)
    echo 'skipped: clang-format 14 is not installed'
    exit 77
    ;;
esac
# File names here have no blanks, so that the list may be split.
# shellcheck disable=SC2046
"$CLANG_FORMAT" --dry-run -Werror $(find src tests doc fuzz -name '*.[ch]' -type f | sort)
