#!/bin/sh
# check_manual.sh: the manual pages are correct mdoc(7), by mandoc.

mandoc=${MANDOC:-$(command -v mandoc)}
if [ -z "$mandoc" ]; then
    echo 'mandoc is not installed: the manual pages were not checked'
    exit 77
fi
cd "${SOURCE_DIR:-$(dirname "$0")/..}/doc" || exit 99
"$mandoc" -T lint -W warning stdio_bus.1 stdio_bus_ctl.1 stdio_bus_rmp.1 \
    stdio_bus.conf.5 libstdio_bus.3 \
    "$BUILD_DIR/doc/stdio_bus_protocol.7" &&
    echo 'check_manual: 6 pages'
