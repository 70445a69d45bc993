//! Seeds that were never tried before: for `VARVE_SIM_SECONDS` (2; `npm test` sets 60), from one that the clock gives and that is
//! printed.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use varve_sim::run::{Totals, run};
use varve_sim::workload::generate;

#[test]
fn fresh_seeds_recover_a_prefix_of_their_history() {
    let seconds =
        std::env::var("VARVE_SIM_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = since_1970.as_secs() * 1_000_000;
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seeds, mut totals) = (0, Totals::default());
    while seeds == 0 || Instant::now() < end {
        let seed = first + seeds;
        let outcome = run(&generate(seed));
        if let Some(failure) = outcome.failure {
            panic!(
                "seed {seed}, operation {}: {}\nreplay: npm run sim -- --seed {seed}",
                failure.op, failure.what
            );
        }
        totals.add(&outcome.totals);
        seeds += 1;
    }
    // Not `println`, because the test runner would capture it.
    let _ = writeln!(std::io::stdout(), "{seeds} fresh seeds from {first}: {totals}");
}
