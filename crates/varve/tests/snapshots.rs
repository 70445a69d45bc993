//! Snapshots by number. That they outlive flushes and merges is the simulator's business.

use varve::frame::ScanRequest;
use varve::scan::ScanOptions;
use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Error, Host, Options, Store};

type TestStore = Store<SlotPool<MemorySlots>>;

fn open() -> TestStore {
    let pool = SlotPool::open(MemorySlots::new(12)).expect("a pool opens");
    let host = Host { now_ms: 1000, entropy: 3, store_id: [7; 16] };
    Store::open(pool, Options::default(), host).expect("a store opens").0
}

fn value(store: &TestStore, snapshot: u32, key: &[u8]) -> Option<Vec<u8>> {
    store.find_in(snapshot, key, |entry| entry.map(|entry| entry.value.to_vec())).expect("read")
}

/// A scan of everything, in a snapshot or (0) in the store.
fn scan_of(snapshot: u32) -> ScanRequest {
    let options = ScanOptions::default();
    ScanRequest {
        options,
        want_keys: true,
        want_values: true,
        want_expiries: false,
        snapshot,
        batch_bytes: 1,
    }
}

#[test]
fn a_number_is_good_until_its_snapshot_is_closed() {
    let mut store = open();
    store.set(b"k", b"old").expect("staged");
    let (first, second) = (store.open_snapshot().expect("taken"), store.open_snapshot().expect("taken"));
    store.set(b"k", b"new").expect("staged");
    assert_eq!(value(&store, first, b"k"), Some(b"old".to_vec()));
    assert_eq!(value(&store, 0, b"k"), Some(b"new".to_vec()));
    store.close_snapshot(first);
    assert!(matches!(store.snapshot_sequence(first), Err(Error::InvalidArgument(_))));
    assert!(matches!(store.open_cursor(scan_of(first)), Err(Error::InvalidArgument(_))));
    assert_eq!(value(&store, second, b"k"), Some(b"old".to_vec()), "the other one stays");
    store.set_now(1500);
    assert_eq!((store.stats().snapshots, store.stats().snapshot_age_ms), (1, 500));
    store.close_snapshot(77);
    assert_eq!(store.open_snapshot(), Ok(first), "numbers are used again");
}

/// A full disk refused a staged write, and the next write took over its sequence: a scan or snapshot opened in between,
/// which had seen that sequence, showed a write that came after it.
#[test]
fn a_write_that_takes_the_sequence_of_a_refused_one_is_not_seen() {
    let mut store = open();
    store.set(b"first", b"v").expect("staged");
    store.commit(Durability::Strict).expect("committed");
    store.set(b"refused", &vec![1; 1 << 20]).expect("staged");
    let snapshot = store.open_snapshot().expect("taken");
    let cursor = store.open_cursor(scan_of(0)).expect("a scan");
    store.storage_mut().device_mut().set_limit(Some(0));
    assert_eq!(store.commit(Durability::Relaxed), Err(Error::StorageFull));
    store.storage_mut().device_mut().set_limit(None);
    assert_eq!(store.set(b"later", b"v"), Ok(2));
    assert_eq!(store.snapshot_sequence(snapshot), Ok(1));
    assert_eq!(value(&store, snapshot, b"later"), None);
    let (_, batch) = store.next_of_cursor(cursor, usize::MAX).expect("a batch");
    assert_eq!(batch.count(), 1);
}
