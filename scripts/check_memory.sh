#!/usr/bin/env bash
# Memory checks: the Rust tests and the fuzz targets under AddressSanitizer, and the tests of the modules
# with unsafe code under valgrind. `scripts/check_memory.sh [SECONDS]` fuzzes each target for that long (10).
# AddressSanitizer needs a flag of nightly compilers; RUSTC_BOOTSTRAP lets the stable one take it. Leaks are not
# checked. Miri is not run: it does not come with the stable toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
host=$(rustc -vV | sed -n 's/^host: //p')

# The target is named so that build scripts and macros are built without the sanitizer.
sanitized() {
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
    "$@" --target "$host"
}

echo "== AddressSanitizer: tests of the core, the corpus reader and the spill"
CARGO_TARGET_DIR=target/asan sanitized cargo test --quiet \
  -p byteweld-core -p byteweld-corpus -p byteweld-spill --lib --tests

echo "== AddressSanitizer: fuzz targets, $seconds seconds each"
CARGO_TARGET_DIR=target/asan sanitized cargo build --quiet --release --manifest-path fuzz/Cargo.toml
ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
  "target/asan/$host/release/byteweld-fuzz" --unlimited --seconds "$seconds" --seed "${SEED:-0}"

if ! command -v valgrind > /dev/null; then
  echo "skipped: valgrind (not installed)"
  exit 0
fi
echo "== valgrind memcheck: tests of the core's modules with unsafe code"
tests=$(cargo test --quiet -p byteweld-core --lib --no-run --message-format=json |
  sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
# valgrind 3.19 does not know AVX-512, and its cpuid does not report it: the tests find the other tiers only.
# AddressSanitizer above runs all of them.
valgrind --quiet --error-exitcode=1 --leak-check=no "$tests" \
  cpu:: utf8:: pretoken::bits::tiers:: pretoken::tests::blocks::bytes_in_any_order encode::cache:: \
  --test-threads=1

echo "== valgrind memcheck: the bindings' unsafe code"
# The loader and Python make reports of their own; only those with a frame in Rust count.
log=$(mktemp)
PYTHONMALLOC=malloc valgrind --quiet --undef-value-errors=no --leak-check=no --log-file="$log" \
  .venv/bin/python scripts/touch_bindings.py
if grep -E '\.rs:[0-9]+\)' "$log"; then
  echo "the whole report is $log"
  exit 1
fi
rm "$log"
