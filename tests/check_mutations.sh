#!/bin/sh
# check_mutations.sh: the tables of tests/mutations fit the sources and doc/conformance.md.
exec sh "${SOURCE_DIR:-$(dirname "$0")/..}/tests/mutations/run.sh" --check
