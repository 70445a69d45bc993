//! Clients that outlive their leaders see every write happen once: a fixed range of seeds. `fresh_seeds.rs` has others.

use varve_sim::takeovers::{Totals, take_over};

const SEEDS: u64 = 300;

fn run(seed: u64, totals: &mut Totals) {
    match take_over(seed) {
        Ok(ran) => totals.add(&ran),
        Err(what) => panic!("seed {seed}: {what}"),
    }
}

#[test]
fn every_write_happens_once_whoever_leads() {
    let mut totals = Totals::default();
    (0..SEEDS).for_each(|seed| run(seed, &mut totals));
    let numbers =
        [totals.takeovers, totals.writes, totals.repeated, totals.retries, totals.restored, totals.lost];
    assert!(numbers.iter().all(|number| *number > SEEDS / 10), "every case comes: {totals:?}");
}

/// An opening counted twice that a client had said nothing: it was removed too soon, and a write that it repeated happened again.
#[test]
fn a_client_is_kept_through_openings_that_only_delete_files() {
    run(1_795_744_118_000_089, &mut Totals::default());
}
