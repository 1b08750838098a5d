#!/usr/bin/env bash
# Runs the CPU's `unsafe` code under Miri, an interpreter that finds undefined behaviour: memory out of bounds or not
# initialized, references that should not be there at one time, data races.
#
# Needs: rustup toolchain install nightly --component miri --component rust-src
# Takes some five minutes, and the building before that. On any machine, an x86-64 with Linux is interpreted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo +nightly miri --version; then
    echo "Miri is missing: rustup toolchain install nightly --component miri --component rust-src"
    exit 1
fi

# Miri's processor is what it is told to be. With these, the kernels for AVX2 run, whose instructions Miri knows.
export RUSTFLAGS="-C target-feature=+avx2,+fma"
export RUST_BACKTRACE=0 CARGO_INCREMENTAL=0 CARGO_PROFILE_TEST_DEBUG=0

# miri FLAGS ARGUMENTS...: tests of the runtime. Isolation is off for the clock alone, which times them.
miri() {
    printf '\n== %s\n' "${*:2}"
    MIRIFLAGS="-Zmiri-disable-isolation $1" cargo +nightly miri test --target x86_64-unknown-linux-gnu \
        -p plimsoll-runtime "${@:2}"
}
times=(-Zunstable-options --report-time)

miri "-Zmiri-strict-provenance" --lib -- cpu:: --skip cpu::crew --skip cpu::parallel "${times[@]}"

# Kernels for AVX-512 whose instructions Miri knows.
miri "-Zmiri-strict-provenance -C target-feature=+avx512f,+avx512bw,+avx512vl,+avx512dq" --lib -- "${times[@]}" \
    --exact cpu::microkernel::tests::{kernels,dots}_agree cpu::winograd::kernel::tests::kernels_by_definition

# Threads, whose turns come in another order with every seed. The queues of rayon make pointers of integers, which strict
# provenance forbids, and break the rules of Stacked Borrows, not those of Tree Borrows; and its threads are never joined.
miri "-Zmiri-permissive-provenance -Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-many-seeds=0..4" --lib -- \
    cpu::crew cpu::parallel "${times[@]}"

# Whole training steps, in an arena.
miri "-Zmiri-strict-provenance" --test proofs -- a_small_network_agrees "${times[@]}"
