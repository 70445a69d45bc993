//! Runs a target for a number of inputs or a time.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::allocations::most_allocated;
use super::mutate::{Random, mutated};

/// Inputs of a target when no time is given.
const ITERATIONS: u64 = 1500;
/// Bytes that a decoder may have allocated at a time for any input.
pub const DECODER_BYTES_MAX: usize = 64 << 10;
/// The same for a target that opens a store: its reserve, its cache, its memtables.
pub const STORE_BYTES_MAX: usize = 4 << 20;
/// Additional bytes for each byte of the input: a byte of a memtable's image makes up to 80, of a block 255.
const BYTES_PER_BYTE: usize = 300;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Feeds mutations of its corpus to a target.
///
/// # Panics
/// When the target does, or allocates too much; the seed and the input are printed.
pub fn run(name: &str, corpus: Vec<Vec<u8>>, bytes_max: usize, target: fn(&[u8])) {
    let first = variable("VARVE_FUZZ_SEED").unwrap_or(1);
    let until = variable("VARVE_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut most = 0;
    let mut seed = first;
    while until.map_or(seed - first < ITERATIONS, |until| Instant::now() < until) {
        let input = mutated(&corpus, &mut Random::new(seed));
        let mut allocated = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| allocated = most_allocated(|| target(&input))));
        let shown = input.iter().take(400).map(|byte| format!("{byte:02x}")).collect::<String>();
        let place = format!("{name}, VARVE_FUZZ_SEED={seed}, {} bytes: {shown}", input.len());
        assert!(outcome.is_ok(), "panic with {place}");
        let allowed = bytes_max + BYTES_PER_BYTE * input.len();
        assert!(allocated <= allowed, "{allocated} bytes allocated at a time, over {allowed}, with {place}");
        most = most.max(allocated);
        seed += 1;
    }
    // Not captured, so that it also shows when the test passes.
    let done =
        format!("{name}: {} iterations from seed {first}, {most} bytes allocated at most", seed - first);
    let _ = writeln!(std::io::stdout(), "{done}");
}
