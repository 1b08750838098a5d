#!/usr/bin/env bash
# The CUDA tests on a real card, with the real driver and no emulator, the bytes that the driver gives, and how long steps take
# there. Needs a card, its driver and the Rust toolchain; uses cuBLAS and PyTorch where they are installed (PYTHON says which
# Python has it). Once everything is built it ends within LIMIT seconds, five minutes: what there is no time for is cut
# short or left out, and the table says so. It ends with one table.
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
deadline=$((SECONDS + ${LIMIT:-300}))
rows="" skipped="" failed=0

# Runs something in what is left of the time, with all that it prints in $out; 124 where that is too little.
within() {
    local left=$((deadline - SECONDS))
    : >"$out"
    ((left > 0)) || return 124
    timeout --kill-after=5 "$left" "$@" >"$out" 2>&1
}

# The same, with a row in the table. Tests that need the emulator pass on a card without doing anything, or only in part: they say so
# in a line each, and do not count as passed.
result() {
    local name=$1 status=passed code=0 start=$SECONDS ran left_out
    shift
    within "$@" || code=$?
    case $code in
    0) ;;
    124 | 137) status="NO TIME LEFT" failed=1 ;;
    *) status=FAILED failed=1 ;;
    esac
    ((code == 0)) || cat "$out"
    ran=$(sed -nE 's/.*[ :]([0-9]+) passed.*/\1/p' "$out" | awk '{ sum += $1 } END { print sum + 0 }')
    left_out=$(grep '^skipped: ' "$out" | grep -vc ': in part: ' || true)
    ((code != 0 || ran == 0)) || status+=", $((ran - left_out)) of $ran tests"
    skipped+=$(sed -n 's/^skipped: /- /p' "$out" | sort)$'\n'
    rows+="| $name | $status | $((SECONDS - start)) s |"$'\n'
}

for test in runtime/tests/cuda*.rs; do
    name=$(basename "$test" .rs)
    result "$name" cargo test --release --quiet -p plimsoll-runtime --features cuda --test "$name" -- --show-output
done
result "digits" cargo run --release --quiet --features cuda --example digits -- --device cuda
memory=$(grep -E '^(planned|allocated|given|context|free) +[0-9]+ ' "$out" || echo "(no report: see above)")

code=0
within cargo bench --quiet --features cuda --bench steps -- --cuda || code=$?
times=$(cat "$out")
case $code in
0) ;;
124 | 137) times+=$'\n(cut short: the time was up)' ;;
*) times+=$'\n(FAILED)' failed=1 ;;
esac

# One text, so that it can be copied as one piece.
cat <<END

| what | result | took |
|---|---|---|
$rows
Left out, or done in part, for want of the emulator:
$(grep . <<<"$skipped" || echo "- nothing")

Memory while \`digits\` trains, in bytes:
$memory

Steps of the networks of \`benches/steps.rs\`:
$times
END
exit $failed
