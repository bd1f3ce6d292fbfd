#!/bin/sh
# build.sh: builds the fuzzers into $OUT, with their corpora and dictionaries. Run by OSS-Fuzz in a
# checkout, which sets CC, CFLAGS and OUT.
set -eu

./bootstrap
mkdir -p build-fuzz
(cd build-fuzz && ../configure --enable-fuzzing && make -j"$(nproc)")
for fuzzer in build-fuzz/fuzz/fuzz_*; do
    name=${fuzzer##*/fuzz_}
    case $name in *.*) continue ;; esac
    cp "$fuzzer" "$OUT/"
    (cd "fuzz/corpora/$name" && zip -q -r "$OUT/fuzz_${name}_seed_corpus.zip" .)
    [ ! -e "fuzz/fuzz_$name.dict" ] || cp "fuzz/fuzz_$name.dict" "$OUT/"
done
