//! The same seed gives the same run, bit for bit: what the store answered and what it asked of the disk.

use varve_sim::run::run;
use varve_sim::workload::generate;

#[test]
fn a_seed_run_twice_observes_the_same() {
    for seed in 1000..1012 {
        let trace = generate(seed);
        assert_eq!(run(&trace).hash, run(&trace).hash, "seed {seed}");
    }
}

#[test]
fn different_seeds_observe_different_things() {
    let mut hashes: Vec<u64> = (0..8).map(|seed| run(&generate(seed)).hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 8);
}
