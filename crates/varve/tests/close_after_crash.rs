//! A store that is opened after a crash and closed at once is as safe from unnoticed damage as any closed store.
//!
//! The story: `close` seals the segment that is being written. After a crash nothing is being written yet: the segment
//! that was recovered stayed the newest, without a seal, and the next opening reported the store as "replayed" instead
//! of clean. A byte that went bad in its last record then counted as a torn tail, and the record, flushed and
//! acknowledged long ago, was dropped.

use varve::storage::{MemorySlots, SlotPool, Slots, Storage};
use varve::types::FileKind;
use varve::{Durability, Error, Host, Options, RecoveryReport, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

fn open(slots: MemorySlots, entropy: u64) -> Result<(MemoryStore, RecoveryReport), Error> {
    Store::open(SlotPool::open(slots)?, Options::default(), Host { now_ms: 0, entropy, store_id: [3; 16] })
}

/// A store that crashed after two flushed writes.
fn crashed() -> MemorySlots {
    let (mut store, _) = open(MemorySlots::new(10), 1).expect("opens");
    for (key, value) in [(b"silt", b"fine"), (b"clay", b"soft")] {
        store.set(key, value).expect("staged");
        store.commit(Durability::Strict).expect("committed");
    }
    store.into_storage().into_device()
}

#[test]
fn a_store_closed_right_after_a_crash_opens_clean() {
    let (mut store, report) = open(crashed(), 2).expect("opens");
    assert!(!report.clean && !report.torn, "{report:?}");
    store.close().expect("closed");
    let (_, report) = open(store.into_storage().into_device(), 3).expect("opens");
    assert!(report.clean, "{report:?}");
}

#[test]
fn a_store_closed_right_after_a_freeze_opens_clean() {
    let (mut store, _) = open(crashed(), 2).expect("opens");
    store.set(b"loam", b"rich").expect("staged");
    store.freeze_active().expect("frozen");
    store.close().expect("closed");
    let (_, report) = open(store.into_storage().into_device(), 3).expect("opens");
    assert!(report.clean, "{report:?}");
}

#[test]
fn damage_to_the_last_record_of_a_store_closed_right_after_a_crash_shows() {
    let (mut store, _) = open(crashed(), 2).expect("opens");
    store.close().expect("closed");
    let slots = store.into_storage().into_device();
    let mut damaged = 0;
    for slot in 0..slots.count() {
        let found = slots.slot(slot).windows(8).position(|bytes| bytes == b"claysoft");
        let Some(at) = found else { continue };
        let mut flipped = slots.clone();
        flipped.slot_mut(slot).expect("exists")[at] ^= 1;
        let answer = open(flipped, 3).map(|(_, report)| report);
        assert!(matches!(answer, Err(Error::Corrupt(_))), "{answer:?}");
        damaged += 1;
    }
    assert_eq!(damaged, 1);
}

/// The story: a job crashed while it wrote table 12. The next opening deleted that file, and wrote the manifest anew before, with the floors
/// that it had read, so 12 was free there. The store was closed without an edit, which took the name of the deleted file from its slot. The
/// session after that gave the number out again. A block proves by its number that it is not an older one: bytes of the first table 12 would
/// have passed for the second.
#[test]
fn numbers_of_files_that_a_crash_left_behind_are_never_used_again() {
    let (mut store, _) = open(MemorySlots::new(20), 1).expect("opens");
    let highest = |store: &MemoryStore, kind| {
        let files = store.storage().list().into_iter().map(|(file, _)| file);
        files.filter(|file| file.kind == kind).map(|file| file.id).max().unwrap_or(0)
    };
    let tables = |store: &MemoryStore| highest(store, FileKind::Table);
    let segments = |store: &MemoryStore| highest(store, FileKind::Wal);
    store.set(b"silt", b"fine").expect("staged");
    store.flush().expect("flushed");
    let before = tables(&store);
    store.set(b"clay", b"soft").expect("staged");
    store.commit(Durability::Strict).expect("committed");
    store.freeze_active().expect("frozen");
    while tables(&store) == before {
        assert!(store.run_slice(1).expect("a job"), "the flush has not begun");
    }
    let (table, segment) = (tables(&store), segments(&store));
    let (mut store, report) = open(store.into_storage().into_device(), 2).expect("opens");
    assert!(report.orphans > 0, "{report:?}");
    assert!(tables(&store) < table);
    store.close().expect("closed");
    let (mut store, report) = open(store.into_storage().into_device(), 3).expect("opens");
    assert_eq!(report.orphans, 0, "nothing names the orphan any more");
    let job = store.take_job().expect("a job").expect("the log waits for its flush");
    assert!(job.first_output > table, "{} after {table}", job.first_output);
    store.set(b"loam", b"rich").expect("staged");
    store.commit(Durability::Strict).expect("committed");
    assert!(segments(&store) > segment);
}
