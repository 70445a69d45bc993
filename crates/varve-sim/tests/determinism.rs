//! The same seed gives the same run, bit for bit: the answers of the store and its calls to the disk.

use varve_sim::run::{Outcome, run};
use varve_sim::trace::{Op, Trace};
use varve_sim::workload::generate;

/// Runs a trace twice.
fn run_twice(trace: &Trace) -> Outcome {
    let (once, twice) = (run(trace), run(trace));
    assert_eq!(once, twice, "seed {}", trace.seed);
    once
}

#[test]
fn a_seed_run_twice_observes_the_same() {
    for seed in 1000..1012 {
        run_twice(&generate(seed));
    }
}

#[test]
fn leveled_compaction_is_the_same_every_time() {
    let (mut jobs, mut edits, mut levels) = (0, 0, 0);
    for seed in 0..24 {
        let mut trace = generate(seed);
        trace.options.level_base_bytes = 1 << 10;
        trace.options.level_factor = 2;
        trace.options.job_bytes_max = 4 << 10;
        let totals = run_twice(&trace).totals;
        (jobs, edits, levels) = (jobs + totals.jobs, edits + totals.edits, levels.max(totals.levels));
    }
    assert!(jobs > 5 && edits > 5 && levels >= 3, "{jobs} jobs, {edits} edits, {levels} levels");
}

#[test]
fn frames_are_the_same_every_time() {
    let has_frames = |trace: &Trace| trace.ops.iter().any(|op| matches!(op, Op::Frame { .. }));
    let commits: u64 =
        (0..40).map(generate).filter(has_frames).map(|trace| run_twice(&trace).totals.commits).sum();
    assert!(commits > 200, "{commits} commits");
}

#[test]
fn stores_without_a_log_are_the_same_every_time() {
    let changes = |trace: &Trace| !trace.options.log || trace.ops.contains(&Op::SwitchLog);
    let commits: u64 =
        (0..60).map(generate).filter(changes).map(|trace| run_twice(&trace).totals.commits).sum();
    assert!(commits > 200, "{commits} commits");
}

/// Commands, answers and calls to the disk all go into the hash: other seeds and other options give other hashes.
#[test]
fn different_seeds_observe_different_things() {
    let mut hashes: Vec<u64> = (0..8).map(|seed| run(&generate(seed)).hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 8);
}
