//! After every crash the store holds a prefix of its history, at least as long as what was acknowledged.

use varve_sim::run::{Totals, run};
use varve_sim::workload::{generate, plain};

#[test]
fn many_seeds_recover_a_prefix_of_their_history() {
    let mut totals = Totals::default();
    for seed in 0..150 {
        let outcome = run(&generate(seed));
        if let Some(failure) = outcome.failure {
            panic!(
                "seed {seed}, operation {}: {}\nreplay: cargo run -p varve-sim -- --seed {seed}",
                failure.op, failure.what
            );
        }
        totals.add(&outcome.totals);
    }
    // A generator that stopped crashing or writing would make this test pass for nothing.
    assert!(totals.edits > 20 && totals.levels >= 3, "{totals}");
    assert!(totals.transactions > 200 && totals.conflicts > 500, "{totals}");
    assert!(totals.crashes > 500 && totals.commits > 5000 && totals.groups_lost > 500, "{totals}");
}

/// The story: what was staged before a frame was to be committed first. That commit only waited for a slot, so all of it
/// stayed staged, the frame was then refused for want of room, and the store took both back, as it should; the oracle
/// had counted on the former. Frames and deletes in the reserve now wait until the commit before them is settled.
#[test]
fn what_waits_for_a_slot_is_settled_before_a_frame() {
    for seed in [1_795_265_038_004_155, 1_795_265_038_001_260] {
        assert_eq!(run(&plain(seed)).failure, None, "seed {seed}");
    }
}
