//! What a store is spared by being closed well: the next opening replays little, and nothing goes unheard on the way.
//!
//! The story: the first `fold_log` logged what was staged on its way to a table. On a full storage that is refused and rolled
//! back, and as hosts take no notice of what folding is refused with, closing then had nothing left to refuse: the simulator
//! found writes gone from a store that had been closed without an error (seed 9100000864).

use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Error, Host, Options, RecoveryReport, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

const FIRST: usize = 64 << 10;

fn open(slots: MemorySlots, entropy: u64) -> (MemoryStore, RecoveryReport) {
    let host = Host { now_ms: 0, entropy, store_id: [6; 16] };
    let options = Options { memtable_bytes_min: FIRST, ..Options::default() };
    Store::open(SlotPool::open(slots).expect("a pool"), options, host).expect("opens")
}

/// Writes `count` entries of a good KiB, each of them logged.
fn fill(store: &mut MemoryStore, count: u32) {
    for n in 0..count {
        store.set(&n.to_be_bytes(), &[n as u8; 1024]).expect("staged");
        store.commit(Durability::Relaxed).expect("logged");
    }
}

fn reopened(mut store: MemoryStore) -> (MemoryStore, RecoveryReport) {
    store.close().expect("closed");
    open(store.into_storage().into_device(), 2)
}

#[test]
fn a_log_of_more_than_a_quarter_of_a_memtable_is_not_replayed_again() {
    let (mut store, _) = open(MemorySlots::new(16), 1);
    fill(&mut store, 20);
    store.fold_log().expect("folded");
    let (store, report) = reopened(store);
    assert!(report.clean, "{report:?}");
    assert_eq!((report.entries, report.tables, report.sequence), (0, 1, 20));
    assert_eq!(store.get(&7u32.to_be_bytes()), Ok(Some(vec![7; 1024])));
}

#[test]
fn a_short_log_stays_one() {
    let (mut store, _) = open(MemorySlots::new(16), 1);
    fill(&mut store, 10);
    store.fold_log().expect("left alone");
    let (_, report) = reopened(store);
    assert_eq!((report.entries, report.tables, report.clean), (10, 0, true));
}

#[test]
fn what_a_full_storage_refuses_is_told_by_closing_when_it_was_folded_before() {
    let (mut store, _) = open(MemorySlots::with_limit(16, 1 << 20), 1);
    let refused = (0u32..).find_map(|n| {
        store.set(&n.to_be_bytes(), &[1; 1024]).expect("staged");
        store.commit(Durability::Relaxed).err()
    });
    assert_eq!(refused, Some(Error::StorageFull));
    store.set(b"staged", &[2; 4096]).expect("staged");
    let _ = store.fold_log();
    assert_eq!(store.close(), Err(Error::StorageFull));
}
