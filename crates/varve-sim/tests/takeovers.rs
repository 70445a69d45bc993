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
    let Totals { takeovers, writes, repeated, retries, restored, transactions, conflicts, lost, .. } = totals;
    let numbers = [takeovers, writes, repeated, retries, restored, transactions, conflicts, lost];
    assert!(numbers.iter().all(|number| *number > SEEDS / 10), "every case comes: {totals:?}");
}

/// An opening counted twice that a client had sent nothing: it was removed too soon, and a write that it repeated happened again.
#[test]
fn a_client_is_kept_through_openings_that_only_delete_files() {
    run(1_795_744_118_000_089, &mut Totals::default());
}

/// A delete that found no room was done behind a set of the same frame, and reported that the key was there: rightly, but this check took the
/// order of the requests.
#[test]
fn a_delete_from_the_reserve_sees_the_writes_of_its_frame() {
    run(1_795_839_084_000_026, &mut Totals::default());
}

/// A read was sent again. The request behind it was a delete from the reserve, so the read saw a write that its client sent later.
#[test]
fn a_repeated_read_sees_nothing_that_was_sent_after_it() {
    run(1_795_839_626_004_232, &mut Totals::default());
}

/// A read was sent again. A delete before it had gone to the reserve, behind a set after it: the read saw neither, and not even what its own
/// client had deleted before.
#[test]
fn a_repeated_read_sees_the_deletes_that_were_sent_before_it() {
    run(1_795_855_549_000_766, &mut Totals::default());
}
