//! After every crash the store contains a prefix of its history, at least as long as the acknowledged part.

use varve_sim::run::{Totals, run};
use varve_sim::trace::Trace;
use varve_sim::workload::{generate, plain, unencrypted};

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
    assert!(totals.changes > 50_000 && totals.cuts > 1000, "{totals}");
    assert!(totals.crashes > 500 && totals.commits > 5000 && totals.groups_lost > 500, "{totals}");
    assert!(totals.again > 1000, "{totals}");
}

/// The trace of a story. Its disk reads at once, as it did when the story happened: waits would change what the disk is asked for.
fn at_once(seed: u64) -> Trace {
    Trace { waits: false, ..unencrypted(seed) }
}

/// The story: in the middle of a frame the flush that should make room failed, so one write was refused and not staged; the writes
/// behind it were staged, and then the machine died. The oracle assumed that all refused writes were staged, in order, so it expected
/// wrong sequences for the later ones. Later a dozen were refused like this, one after another.
#[test]
fn a_write_refused_amid_a_frame_that_dies_may_be_the_only_one_not_staged() {
    assert_eq!(run(&at_once(31141)).failure, None);
}

/// The story: hundreds of small tables used up a full disk. An opening writes the snapshot of the manifest into its other file, and the
/// snapshot found no room there.
#[test]
fn a_store_of_many_tables_opens_on_a_full_disk() {
    assert_eq!(run(&at_once(3360)).failure, None);
}

/// The story: on a full disk two deletes of a frame were put off until its end, where they may take from the reserve. The power went
/// before that, and only the set behind them was logged. Nothing of it was acknowledged. The oracle knew histories without one of the
/// refused writes, but none without two.
#[test]
fn deletes_put_off_in_a_frame_that_dies_may_all_be_missing() {
    assert_eq!(run(&at_once(4_100_024_768)).failure, None);
}

/// The story: slots were given to files of the kind that they had contained before. After everything was deleted on a nearly full disk, a WAL
/// segment began in an empty slot that could not grow, though a long one, of a table, was free, and the set was refused. The set was
/// refused again when deleted tables were cut without asking whether there was room. It was always refused when no write had reached the
/// end of the room yet: the segment claimed a short slot, and only its first record found that the slot could not grow.
#[test]
fn a_segment_takes_the_free_slot_of_a_table() {
    for seed in [1_795_278_553_000_819, 1_795_288_954_001_818] {
        assert_eq!(run(&at_once(seed)).failure, None, "seed {seed}");
    }
}

/// The story: an edit was written but its flush failed, so the store was poisoned and the job's outputs were deleted. The process died,
/// but the edit was there, and named tables that were deleted. (Their headers had always survived such a delete, until deleted tables
/// were cut to return their room.)
#[test]
fn the_tables_of_an_edit_that_may_be_durable_stay() {
    assert_eq!(run(&at_once(1_795_283_804_000_030)).failure, None);
}

/// The story: spare slots were cut to zero bytes, with their headers. At the next opening nothing showed any more which numbers and
/// generations they had carried, so new tables got them again; then a power cut undid the cut, and an old header won over a new one.
#[test]
fn a_spare_slot_keeps_its_header() {
    assert_eq!(run(&at_once(1_795_287_337_001_821)).failure, None);
}

/// The story: data that was staged before a frame had to be committed first. That commit only waited for a slot, so all of it stayed
/// staged. The frame was then refused for lack of room, and the store rolled back both, as it should; the oracle had counted on the
/// staged data. Frames and deletes in the reserve now wait until the commit before them is finished.
#[test]
fn a_write_that_waits_for_a_slot_is_committed_before_a_frame() {
    for seed in [1_795_265_038_004_155, 1_795_265_038_001_260] {
        assert_eq!(run(&plain(seed)).failure, None, "seed {seed}");
    }
}

/// The story: a slot was refused to grow, and later there was room again. A merge that writers waited for did not ask: it took an
/// earlier refusal for the end of the room, because only the reserved slots had enough room written ahead. The set was refused.
#[test]
fn a_merge_asks_for_room_again_that_was_refused_before() {
    assert_eq!(run(&at_once(1_795_460_801_000_101)).failure, None);
}

/// The story: the header that announces more room for a segment was not written whole. The write was refused, but the pool went on as if
/// the segment had the room: the next record went there, and the next opening knew only of the room before it.
#[test]
fn room_that_no_header_names_is_none() {
    assert_eq!(run(&at_once(1_795_471_139_002_450)).failure, None);
}

/// The story: a write that found no room flushed the waiting data, and that flush met a fault. The write was reported as refused, but it
/// stayed.
#[test]
fn a_fault_while_room_is_made_takes_the_write_back() {
    assert_eq!(run(&at_once(1_795_469_751_004_033)).failure, None);
}

/// The story: a segment moved, and the write of the header at its new place was reported as short, though all of it was written. The
/// segment stayed where it was and took records; the next opening found the newer claim, and the segment as it was before these records.
#[test]
fn a_segment_that_did_not_move_is_found_where_it_is() {
    assert_eq!(run(&at_once(1_795_475_491_003_982)).failure, None);
}

/// The story: the flush of an edit failed, so the store was poisoned; the edit was in the file all the same, and the next opening read it.
/// That opening had nothing in its log, so a sync flushed nothing. Then the power took the edit, and with it what the sync had covered.
#[test]
fn a_sync_covers_the_edit_that_the_opening_read() {
    assert_eq!(run(&unencrypted(1_795_805_196_000_492)).failure, None);
}

/// The story: a segment of an earlier session was kept for the change feed, though the process had died before its header was written.
/// A change of keys asked for the key of every segment, and called the store damaged because this one has none.
#[test]
fn keys_change_although_a_kept_segment_was_never_written_to() {
    assert_eq!(run(&generate(1_795_825_664_000_826)).failure, None);
}
