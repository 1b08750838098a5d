#!/usr/bin/env bash
# The CUDA tests on a real card, with the real driver and no emulator, and how long steps take there. Needs a card, its
# driver and the Rust toolchain; uses cuBLAS and PyTorch where they are installed (PYTHON says which Python has it).
# Once everything is built it takes less than five minutes, and ends with one table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PLIMSOLL_REAL_GPU=1

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader ||
    { echo "there is no card, or no driver: nvidia-smi does not run"; exit 1; }
echo "building"
cargo test --release --quiet -p plimsoll-runtime --features cuda --test 'cuda*' --no-run
cargo build --release --quiet --features cuda --example digits
cargo bench --quiet --features cuda --bench steps --no-run

out=$(mktemp)
trap 'rm -f "$out"' EXIT
result() {
    local name=$1 start=$SECONDS status=passed
    shift
    timeout 120 "$@" >"$out" 2>&1 || status=FAILED
    rows+="| $name | $status | $((SECONDS - start)) s |"$'\n'
    [[ $status == passed ]] || { cat "$out"; failed=1; }
}

rows="" failed=0
for test in runtime/tests/cuda*.rs; do
    name=$(basename "$test" .rs)
    result "$name" cargo test --release --quiet -p plimsoll-runtime --features cuda --test "$name"
done
result "digits" cargo run --release --quiet --features cuda --example digits -- --device cuda
times=$(timeout 150 cargo bench --quiet --features cuda --bench steps -- --cuda || echo "(no times: see above)")

printf '\n| what | result | took |\n|---|---|---|\n%s\n%s\n' "$rows" "$times"
exit $failed
