//! The cost of a read depends on what it returns: entries that were deleted before are walked over about once, however
//! often a scan passes them.
//!
//! Measured in batches: a scan that looks at 20,000 entries and delivers nothing ends its batch, for the caller to go on.

use varve::scan::{Batch, Cursor, Progress, ScanOptions, ScanRequest};
use varve::storage::{MemorySlots, SlotPool};
use varve::store::Caller;
use varve::{Durability, Error, Host, Op, Options, Store};

type Slots = Store<SlotPool<MemorySlots>>;

const KEYS: u64 = 100_000;

fn open() -> Slots {
    let storage = SlotPool::open(MemorySlots::new(60)).unwrap();
    Store::open(storage, Options::default(), Host { now_ms: 0, entropy: 7, store_id: [1; 16] }).unwrap().0
}

fn key(number: u64) -> Vec<u8> {
    [b"job".as_slice(), &number.to_be_bytes()].concat()
}

/// A store that is full of entries that can be deleted.
fn filled(expires: Option<u64>) -> Slots {
    let mut store = open();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    for keys in keys.chunks(1000) {
        let sets: Vec<_> = keys.iter().map(|key| Op::Set { key, value: b"waits", expires }).collect();
        store.stage(&sets).unwrap();
        store.commit(Durability::Relaxed).unwrap();
    }
    store
}

fn all(reverse: bool, limit: u64) -> ScanOptions {
    ScanOptions { lower: b"job".to_vec(), upper: Some(b"joc".to_vec()), reverse, limit: Some(limit) }
}

/// How many entries a scan finds, and in how many batches.
fn walk(store: &Slots, mut cursor: Cursor) -> (u32, u32) {
    let (mut found, mut batches) = (0, 0);
    loop {
        let mut batch = Batch::new(true, true);
        let progress = store.scan_next(&mut cursor, 1 << 20, &mut batch).unwrap();
        found += batch.count();
        batches += 1;
        if progress == Progress::Finished {
            return (found, batches);
        }
    }
}

fn scan(store: &Slots, reverse: bool, limit: u64) -> (u32, u32) {
    walk(store, store.scan(all(reverse, limit)).unwrap())
}

/// As [`scan`], in a snapshot.
fn scan_in(store: &mut Slots, snapshot: u32, options: ScanOptions) -> (u32, u32) {
    let (want_keys, want_values, want_expiries, batch_bytes) = (true, true, false, 1 << 20);
    let scan = ScanRequest { options, want_keys, want_values, want_expiries, snapshot, batch_bytes };
    let number = store.open_cursor(scan).unwrap();
    let (mut found, mut batches) = (0, 0);
    loop {
        let (progress, batch) = store.next_of_cursor(number, batch_bytes).unwrap();
        found += batch.count();
        batches += 1;
        if progress == Progress::Finished {
            return (found, batches);
        }
    }
}

fn delete(store: &mut Slots, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        store.delete(&key(number)).unwrap();
    }
    store.commit(Durability::Relaxed).unwrap();
}

#[test]
fn the_deleted_are_walked_over_once_forward_and_backward() {
    for reverse in [false, true] {
        let mut store = filled(None);
        let number = |n: u64| if reverse { KEYS - 1 - n } else { n };
        delete(&mut store, (0..90_000).map(number));
        let (found, batches) = scan(&store, reverse, 1);
        assert!(found == 1 && batches > 3, "the first scan walks: {batches} batches");
        assert_eq!(scan(&store, reverse, 1), (1, 1), "the second one does not");
        delete(&mut store, (90_000..95_000).map(number));
        assert_eq!(scan(&store, reverse, 1), (1, 1), "nor one that has little to walk over");
        // From the other end and from the middle as well.
        assert_eq!(scan(&store, !reverse, 10_000), (5000, 1));
        let middle = store.scan(ScanOptions { lower: key(number(50_000)), ..all(false, 1) }).unwrap();
        assert_eq!(walk(&store, middle).1, 1);
        // A job that is put back comes first.
        store.set(&key(number(70_000)), b"again").unwrap();
        assert_eq!(scan(&store, reverse, 10_000), (5001, 1));
    }
}

#[test]
fn so_are_those_whose_time_has_come() {
    let mut store = filled(Some(1000));
    store.set(&key(KEYS), b"for ever").unwrap();
    store.set_now(1000);
    let (found, batches) = scan(&store, false, 1);
    assert!(found == 1 && batches > 3, "{batches} batches");
    assert_eq!(scan(&store, false, 1), (1, 1));
}

/// The story: a log drops its oldest day every day, and is read once in a hundred days. The first scan walked over two thousand entries.
#[test]
fn deleted_ranges_are_not_walked_over_at_all() {
    for reverse in [false, true] {
        let mut store = filled(None);
        let before = store.open_snapshot().unwrap();
        for day in 0..99 {
            let from = if reverse { 99 - day } else { day } * 1000;
            store.delete_range(&key(from), &key(from + 1000)).unwrap();
        }
        assert_eq!(scan(&store, reverse, 1), (1, 1));
        assert_eq!(scan(&store, !reverse, KEYS), (1000, 1));
        assert_eq!(
            scan_in(&mut store, before, all(reverse, KEYS)).0,
            KEYS as u32,
            "a reader before the deletions"
        );
        // In one batch, a set before the deletion of its range is dead, and a set behind it lives.
        let (one, other) = (key(5000), key(5001));
        store
            .stage(&[
                Op::Set { key: &one, value: b"dead", expires: None },
                Op::DeleteRange { start: &key(5000), end: &key(6000) },
                Op::Set { key: &other, value: b"lives", expires: None },
            ])
            .unwrap();
        assert_eq!(scan(&store, reverse, KEYS), (1001, 1));
    }
}

/// The gap of a deletion is gone with the first set in it, unless a scan has used it. Then its entries are walked over once.
#[test]
fn a_range_that_is_deleted_and_filled_again_is_walked_over_once() {
    let mut store = filled(None);
    store.delete_range(&key(0), &key(99_000)).unwrap();
    store.set(&key(98_000), b"again").unwrap();
    let (found, batches) = scan(&store, false, 1);
    assert!(found == 1 && batches > 3, "{batches} batches");
    assert_eq!(scan(&store, false, 1), (1, 1));
    assert_eq!(scan(&store, false, KEYS), (1001, 1));
}

#[test]
fn a_snapshot_walks_over_what_was_dead_at_its_read_point_once() {
    let mut store = filled(None);
    delete(&mut store, 0..90_000);
    let snapshot = store.open_snapshot().unwrap();
    delete(&mut store, 90_000..99_000);
    // The notes of the present belong to a later read point.
    scan(&store, false, 1);
    assert_eq!(scan(&store, false, KEYS), (1000, 1));
    let mut of_snapshot = |limit| scan_in(&mut store, snapshot, all(false, limit));
    let (found, batches) = of_snapshot(1);
    assert!(found == 1 && batches > 3, "{batches} batches");
    assert_eq!(of_snapshot(1), (1, 1));
    assert_eq!(of_snapshot(KEYS), (10_000, 1));
}

#[test]
fn versions_of_a_key_are_not_walked_over_by_readers_of_any_age() {
    let mut store = open();
    store.set(b"job", b"first").unwrap();
    let snapshot = store.open_snapshot().unwrap();
    // No more than fit one memtable, whose versions nothing drops.
    for step in 0..35_000_u64 {
        store.set(b"job", &step.to_be_bytes()[6..]).unwrap();
    }
    for reverse in [false, true] {
        assert_eq!(scan(&store, reverse, 10), (1, 1));
        assert_eq!(scan_in(&mut store, snapshot, all(reverse, 10)), (1, 1));
    }
}

/// Ten counters raised four hundred thousand times leave almost nothing behind in tables.
#[test]
fn counters_flush_next_to_nothing() {
    let mut store = open();
    for step in 0..400_000_u64 {
        store.set(&key(step % 10), &step.to_be_bytes()).unwrap();
        if step % 100 == 99 {
            store.commit(Durability::Relaxed).unwrap();
        }
    }
    assert_eq!(scan(&store, false, 100), (10, 1));
    let stats = store.stats();
    assert!(
        stats.flush_bytes < 64 << 10,
        "{} bytes were flushed in {} tables",
        stats.flush_bytes,
        stats.flushes
    );
}

/// A gap over deletes that are staged and that the commit then refuses: everything is alive again.
#[test]
fn deletes_that_are_refused_leave_no_gap() {
    let mut store = filled(None);
    let deletes: Vec<_> = (0..20_000).map(key).collect();
    let ops: Vec<_> = deletes.iter().map(|key| Op::Delete { key }).collect();
    store.stage_for(Caller::default(), &ops).unwrap();
    assert_eq!(scan(&store, false, 10).0, 10);
    store.storage_mut().device_mut().set_limit(Some(0));
    // Not even the reserve has room for this.
    let long = [Op::Set { key: b"long", value: &[1; 1 << 20], expires: None }];
    store.stage_for(Caller::default(), &long).unwrap();
    assert_eq!(store.commit(Durability::Relaxed), Err(Error::StorageFull));
    store.storage_mut().device_mut().set_limit(None);
    // The next writes take the sequences of the refused ones.
    for number in 0..30_000_u64 {
        store.set(&number.to_be_bytes(), b"other").unwrap();
    }
    assert_eq!(u64::from(scan(&store, false, u64::MAX).0), KEYS);
}
