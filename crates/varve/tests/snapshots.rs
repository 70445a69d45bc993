//! Snapshots by number. The simulator tests that they outlive flushes and merges.

use varve::scan::{Progress, ScanOptions, ScanRequest};
use varve::storage::{MemorySlots, SlotPool};
use varve::store::{Caller, Op};
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
    let (first, second) =
        (store.open_snapshot().expect("a snapshot"), store.open_snapshot().expect("a snapshot"));
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
    let long = [Op::Set { key: b"refused", value: &vec![1; 1 << 20], expires: None }];
    store.stage_for(Caller::default(), &long).expect("staged");
    let snapshot = store.open_snapshot().expect("a snapshot");
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

/// Another opening of what a store has committed so far, as after a crash.
fn opened_again(slots: &MemorySlots) -> TestStore {
    let pool = SlotPool::open(slots.clone()).expect("a pool opens");
    let host = Host { now_ms: 2000, entropy: 4, store_id: [8; 16] };
    Store::open(pool, Options::default(), host).expect("a store opens").0
}

fn keys_left(store: &mut TestStore, cursor: u32) -> Result<Vec<u8>, ()> {
    let mut keys = Vec::new();
    loop {
        let Ok((progress, batch)) = store.next_of_cursor(cursor, 1) else { return Err(()) };
        keys.extend(batch.entries().flat_map(|(key, _)| key));
        if progress == Progress::Finished {
            return Ok(keys);
        }
    }
}

/// A store with `a` to `d`, committed; its slots then; and a snapshot and a scan that stands behind `a`.
fn with_readers() -> (TestStore, MemorySlots, u32, u32) {
    let mut store = open();
    for key in [b"a", b"b", b"c", b"d"] {
        store.set(key, b"old").expect("staged");
    }
    store.commit(Durability::Strict).expect("committed");
    let (snapshot, cursor) =
        (store.open_snapshot().expect("a snapshot"), store.open_cursor(scan_of(0)).expect("a scan"));
    let (_, batch) = store.next_of_cursor(cursor, 1).expect("a batch");
    assert_eq!(batch.entries().collect::<Vec<_>>(), [(b"a".as_slice(), b"old".as_slice())]);
    let slots = store.storage().device().clone();
    (store, slots, snapshot, cursor)
}

#[test]
fn snapshots_and_scans_go_on_when_the_storage_took_back_what_came_after_them() {
    let (mut former, slots, snapshot, cursor) = with_readers();
    former.set(b"b", b"refused").expect("staged");
    former.set(b"e", b"refused").expect("staged");
    former.commit(Durability::Strict).expect("committed, as the engine sees it");
    let late = former.open_snapshot().expect("a snapshot");
    let late_scan = former.open_cursor(scan_of(0)).expect("a scan");
    let mut store = opened_again(&slots);
    store.adopt(&mut former);
    store.set(b"b", b"new").expect("staged");
    store.set(b"f", b"new").expect("staged");
    assert_eq!(value(&store, snapshot, b"b"), Some(b"old".to_vec()));
    assert_eq!(value(&store, snapshot, b"f"), None);
    assert_eq!(keys_left(&mut store, cursor), Ok(b"bcd".to_vec()));
    // Snapshots and scans that saw the refused write are closed, and nothing else has their numbers.
    assert!(matches!(store.snapshot_sequence(late), Err(Error::InvalidArgument(_))));
    assert_eq!(keys_left(&mut store, late_scan), Err(()));
    assert!(![snapshot, late].contains(&store.open_snapshot().expect("a snapshot")));
    assert!(![cursor, late_scan].contains(&store.open_cursor(scan_of(0)).expect("a scan")));
    store.close_snapshot(late);
    assert_eq!(store.open_snapshot().expect("a snapshot"), late);
}

#[test]
fn snapshots_and_scans_from_before_a_flush_are_over_when_the_storage_took_something_back() {
    let (mut former, slots, snapshot, cursor) = with_readers();
    former.flush().expect("flushed");
    let mut store = opened_again(&slots);
    store.adopt(&mut former);
    assert!(matches!(store.open_cursor(scan_of(snapshot)), Err(Error::InvalidArgument(_))));
    assert_eq!(keys_left(&mut store, cursor), Err(()));
    assert_ne!(store.open_snapshot().expect("a snapshot"), snapshot);
}

/// The story: a clock was two hours ahead, so k had expired, and was set right. Then a full IndexedDB took something back. The store that
/// was opened on what it had kept did not know of those hours, so k came back, in the same page.
#[test]
fn what_had_expired_is_absent_when_the_storage_took_something_back() {
    let mut former = open();
    former.stage(&[Op::Set { key: b"k", value: b"v", expires: Some(3_600_000) }]).expect("staged");
    former.commit(Durability::Strict).expect("committed");
    former.set_now(7_200_000);
    former.set_now(1500);
    assert_eq!(former.has(b"k"), Ok(false));
    let mut store = opened_again(former.storage().device());
    store.adopt(&mut former);
    assert_eq!(store.has(b"k"), Ok(false));
    let clock = store.clock();
    assert_eq!(clock.to_host(clock.now_ms), 2000, "lifetimes are right");
}

/// The story: an app wrote again and again to a full IndexedDB. Each time that the storage took something back, the log got one more
/// segment, until an opening flushed them. That kept the newest versions, and in a snapshot from before, keys that were written since were
/// absent.
#[test]
fn a_snapshot_is_over_when_the_next_opening_flushed_versions_that_it_sees() {
    let mut slots = MemorySlots::new(40);
    let write = |store: &mut TestStore, value: &[u8]| {
        store.set(b"k", value).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
    };
    for _ in 0..15 {
        let mut store = opened_again(&slots);
        write(&mut store, b"old");
        slots = store.into_storage().into_device();
    }
    let mut former = opened_again(&slots);
    let snapshot = former.open_snapshot().expect("a snapshot");
    write(&mut former, b"new");
    let late = former.open_snapshot().expect("a snapshot");
    let mut store = opened_again(former.storage().device());
    assert_eq!((former.stats().flushes, store.stats().flushes), (0, 1));
    store.adopt(&mut former);
    assert!(matches!(store.snapshot_sequence(snapshot), Err(Error::InvalidArgument(_))));
    assert_eq!(value(&store, late, b"k"), Some(b"new".to_vec()));
}
