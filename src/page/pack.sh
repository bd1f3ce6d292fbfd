#!/bin/sh
# pack.sh PAGE.HTML: prints it as C, without the blanks before lines and the comments of a line. It
# is ASCII: a char may have a sign.
set -e
echo '#include "build_config.h"'
echo
echo '#include "page/source.h"'
echo
echo 'const char page_source[] = {'
sed 's/^[[:space:]]*//; /^\/\/ /d; /^$/d' "$1" | od -An -v -tu1 |
    sed 's/[[:space:]]*$//; s/^[[:space:]]*//; s/[[:space:]][[:space:]]*/, /g; s/$/,/'
echo '0};'
echo
echo 'const size_t page_source_len = sizeof page_source - 1;'
