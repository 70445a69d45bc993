//! A flush that is left out is found: for each kind of flush the engine makes, a disk that only pretends to make it, and
//! how many seeds it takes until the oracle misses something.
//!
//! The missing flush of a WAL segment's header is the hardest to find. The header shares a sector with the first record,
//! and a sector never contains a newer change without the older ones: if the header is lost, that record is lost too. Later
//! records are promised only after a flush of their own, which makes the header durable along with them. The missing
//! flush shows only where a segment without records is the link to the one before it.

use varve_sim::disk::FlushKind;
use varve_sim::run::run;
use varve_sim::trace::Trace;
use varve_sim::workload::generate;

/// Whether one of a hundred seeds fails on a disk that lies about one kind of flush.
fn is_missed(kind: FlushKind, first_seed: u64) -> bool {
    (first_seed..first_seed + 100).any(|seed| {
        let outcome = run(&Trace { lie: Some(kind), ..generate(seed) });
        outcome.failure.is_some_and(|failure| !failure.what.starts_with("panic"))
    })
}

#[test]
fn records_of_a_segment_that_are_not_flushed_are_missed() {
    assert!(is_missed(FlushKind::WalRecords, 0));
}

#[test]
fn the_header_of_a_segment_that_is_not_flushed_is_missed() {
    assert!(is_missed(FlushKind::WalHeader, 300));
}

#[test]
fn a_snapshot_of_the_manifest_that_is_not_flushed_is_missed() {
    assert!(is_missed(FlushKind::ManifestSnapshot, 0));
}

#[test]
fn an_edit_of_the_manifest_that_is_not_flushed_is_missed() {
    assert!(is_missed(FlushKind::ManifestEdit, 0));
}

#[test]
fn a_table_that_is_not_flushed_is_missed() {
    assert!(is_missed(FlushKind::Table, 0));
}
