#!/bin/sh
# run.sh: servers of the Python world, and the official Python client of both eras, around the
# daemon. Run by `make check-python`, which sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR.
# Installs the packages of handshake.txt and both.txt, each into an environment of its own in the
# build directory. (The .in files name what is wanted; `uv pip compile --universal
# --no-strip-extras --generate-hashes` makes the others of them.) The arguments are words in the
# names of the tests to be run. Exits with status 77 where the packages cannot be had.

[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
python=${PYTHON-python3}
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo 'skipped: there is no Python 3.11 with venv'
    exit 77
fi

here=$SOURCE_DIR/tests/interop/python
work=$BUILD_DIR/tests/interop/work/python
mkdir -p "$work" || exit 99
for kind in handshake both; do
    cmp -s "$here/$kind.txt" "$work/$kind/installed.txt" && continue
    echo "Installing the Python packages of $kind.txt"
    if ! { "$python" -m venv --clear "$work/$kind" &&
        "$work/$kind/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
            --only-binary :all: -r "$here/$kind.txt"; } >"$work/$kind.log" 2>&1 </dev/null; then
        tail -n 20 "$work/$kind.log"
        echo 'skipped: the Python packages cannot be had'
        exit 77
    fi
    cp "$here/$kind.txt" "$work/$kind/installed.txt" || exit 99
done
PYTHON_WORK=$work exec "$python" -B "$here/check.py" "$@" </dev/null
