#!/bin/sh
# run.sh: servers of the Python world, and the official Python client of both eras, around the
# daemon. Run by `make check-python`, which sets STDIO_BUS (the daemon), SOURCE_DIR and BUILD_DIR.
# Installs the packages of handshake.txt and both.txt, each into an environment of its own in the
# build directory. (The .in files name what is wanted; `uv pip compile --universal
# --no-strip-extras --generate-hashes` makes the others of them.) With INTEROP_LATEST=yes the
# packages are the latest ones of what the .in files name. The arguments are words in the names of
# the tests to be run. Exits with status 77 where the packages cannot be had.

[ ${#TMPDIR} -le 60 ] || TMPDIR=/tmp # the path of a socket is short
python=${PYTHON-python3}
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo 'skipped: there is no Python 3.11 with venv'
    exit 77
fi

here=$SOURCE_DIR/tests/interop/python
work=$BUILD_DIR/tests/interop/work${INTEROP_LATEST:+-latest}/python
mkdir -p "$work" || exit 99

# install KIND OPTION...: installs what these options of pip name into a new environment.
install()
{
    environment=$work/$1
    shift
    { "$python" -m venv --clear "$environment" &&
        "$environment/bin/pip" install --quiet --disable-pip-version-check \
            --only-binary :all: "$@"; } >"$environment.log" 2>&1 </dev/null && return
    tail -n 20 "$environment.log"
    echo 'skipped: the Python packages cannot be had'
    exit 77
}

for kind in handshake both; do
    if [ -n "$INTEROP_LATEST" ]; then
        # The library 1.x stays below 2: it is the client of the handshake era.
        sed 's/==\(1\..*\)/>=\1,<2/; s/==/>=/' "$here/$kind.in" >"$work/$kind.in" || exit 99
        echo "Installing the latest Python packages of $kind.in"
        install "$kind" -r "$work/$kind.in"
        # pip lists what the file names first, and what these packages need after a line with ##.
        "$work/$kind/bin/pip" freeze -r "$work/$kind.in" | sed '/^##/,$d; /^#/d'
        continue
    fi
    cmp -s "$here/$kind.txt" "$work/$kind/installed.txt" && continue
    echo "Installing the Python packages of $kind.txt"
    install "$kind" --require-hashes -r "$here/$kind.txt"
    cp "$here/$kind.txt" "$work/$kind/installed.txt" || exit 99
done
PYTHON_WORK=$work exec "$python" -B "$here/check.py" "$@" </dev/null
