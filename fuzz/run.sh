#!/bin/sh
# run.sh FUZZER ...: runs each for $FUZZ_SECONDS, from its committed corpus, until its first
# finding, with the seed $FUZZ_SEED (0 or none: a random one). Findings stay in fuzz/work/NAME below
# the build directory. Run by `make fuzz`.

status=0
for fuzzer in "$@"; do
    name=${fuzzer##*/fuzz_}
    work=fuzz/work/$name
    mkdir -p "$work/corpus" || exit 1
    set -- -max_total_time="${FUZZ_SECONDS:-60}" -timeout=60 -seed="${FUZZ_SEED:-0}" \
        -artifact_prefix="$work/"
    if [ -f "$SOURCE_DIR/fuzz/fuzz_$name.dict" ]; then
        set -- "$@" -dict="$SOURCE_DIR/fuzz/fuzz_$name.dict"
    fi
    echo "==> $name"
    "$fuzzer" "$@" "$work/corpus" "$SOURCE_DIR/fuzz/corpora/$name" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log"
        status=1
        continue
    }
    tail -n 1 "$work/log"
done
exit $status
