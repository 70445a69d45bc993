//! Seeds that were never tried before: for `VARVE_SIM_SECONDS` (2; `npm test` sets 60), from one that the clock gives and that is
//! printed. The tests are in one file so that they run at the same time.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use varve_sim::run::{self, run};
use varve_sim::takeovers::{self, take_over};
use varve_sim::workload::generate;

/// Calls `each` with fresh seeds for as long as was asked; returns the first seed and how many there were.
fn fresh_seeds(mut each: impl FnMut(u64)) -> (u64, u64) {
    let seconds =
        std::env::var("VARVE_SIM_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = since_1970.as_secs() * 1_000_000;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut seeds = 0;
    while seeds == 0 || Instant::now() < end {
        each(first + seeds);
        seeds += 1;
    }
    (first, seeds)
}

#[test]
fn fresh_seeds_recover_a_prefix_of_their_history() {
    let mut totals = run::Totals::default();
    let (first, seeds) = fresh_seeds(|seed| {
        let outcome = run(&generate(seed));
        if let Some(failure) = outcome.failure {
            panic!(
                "seed {seed}, operation {}: {}\nreplay: npm run sim -- --seed {seed}",
                failure.op, failure.what
            );
        }
        totals.add(&outcome.totals);
    });
    // Not `println`, because the test runner would capture it.
    let _ = writeln!(std::io::stdout(), "{seeds} fresh seeds from {first}: {totals}");
}

#[test]
fn writes_of_fresh_seeds_happen_once_whoever_leads() {
    let mut totals = takeovers::Totals::default();
    let (first, seeds) = fresh_seeds(|seed| match take_over(seed) {
        Ok(ran) => totals.add(&ran),
        Err(what) => panic!("seed {seed}: {what}"),
    });
    let _ = writeln!(std::io::stdout(), "{seeds} fresh seeds of takeovers from {first}: {totals:?}");
}
