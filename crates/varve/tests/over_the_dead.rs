//! A read costs what it returns: what was deleted before is walked over about once, however often a scan comes by it.
//!
//! Measured in blocks of tables that scans look at, which a machine's speed does not change.

use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Options, Store};

type Slots = Store<SlotPool<MemorySlots>>;

/// A store whose memtables hold a hundred entries or so.
fn small() -> Slots {
    let options = Options {
        memtable_bytes_min: 8 << 10,
        memtable_bytes_max: 8 << 10,
        block_bytes: 256,
        table_bytes: 16 << 10,
        level_base_bytes: 64 << 10,
        ..Options::default()
    };
    let storage = SlotPool::open(MemorySlots::new(60)).unwrap();
    Store::open(storage, options, Host { now_ms: 0, entropy: 7, store_id: [1; 16] }).unwrap().0
}

fn key(number: u64) -> Vec<u8> {
    [b"job".as_slice(), &number.to_be_bytes()].concat()
}

/// How many entries a scan finds.
fn scan(store: &Slots, reverse: bool, limit: u64) -> u64 {
    let options =
        ScanOptions { lower: b"job".to_vec(), upper: Some(b"joc".to_vec()), reverse, limit: Some(limit) };
    let mut cursor = store.scan(options).unwrap();
    let mut found = 0;
    loop {
        let mut batch = Batch::new(true, false);
        let progress = store.scan_next(&mut cursor, 1 << 20, &mut batch).unwrap();
        found += u64::from(batch.count());
        if progress == Progress::Finished {
            return found;
        }
    }
}

fn blocks_looked_at(store: &Slots) -> u64 {
    let stats = store.stats();
    stats.cache_hits + stats.cache_misses
}

/// Looks at a queue from either end while it passes thousands of jobs on, without a merge of what died.
#[test]
fn a_queue_is_read_as_fast_after_thousands_of_jobs() {
    for reverse in [false, true] {
        let mut store = small();
        let number = |step: u64| if reverse { 1_000_000 - step } else { step };
        for step in 0..200 {
            store.set(&key(number(step)), b"waits").unwrap();
        }
        store.commit(Durability::Relaxed).unwrap();
        let mut looked_at = Vec::new();
        for step in 0..8000 {
            store.set(&key(number(200 + step)), b"waits").unwrap();
            let before = blocks_looked_at(&store);
            assert_eq!(scan(&store, reverse, 1), 1);
            looked_at.push(blocks_looked_at(&store) - before);
            store.delete(&key(number(step))).unwrap();
            store.commit(Durability::Relaxed).unwrap();
        }
        let sum = |steps: &[u64]| steps.iter().sum::<u64>();
        let (first, last) = (sum(&looked_at[..2000]), sum(&looked_at[6000..]));
        assert!(last < 2 * first + 2000, "{first} blocks for the first 2,000 steps, {last} for the last");
    }
}

/// A log of ten days, over four hundred days.
#[test]
fn a_log_is_read_as_fast_after_many_days() {
    let mut store = small();
    let mut looked_at = Vec::new();
    for day in 0..400_u64 {
        for entry in 0..20 {
            store.set(&key(day * 100 + entry), b"an entry").unwrap();
        }
        if day >= 10 {
            store.delete_range(&key(0), &key((day - 9) * 100)).unwrap();
        }
        store.commit(Durability::Relaxed).unwrap();
        let before = blocks_looked_at(&store);
        assert_eq!(scan(&store, false, 1000), 20 * (day + 1).min(10));
        looked_at.push(blocks_looked_at(&store) - before);
    }
    let most = looked_at[..50].iter().max().unwrap();
    let late = looked_at[350..].iter().max().unwrap();
    assert!(*late <= 3 * most + 20, "{most} blocks at most on the first days, {late} on the last");
}

/// Ten counters raised four hundred thousand times leave nearly nothing behind in tables.
#[test]
fn counters_flush_next_to_nothing() {
    let storage = SlotPool::open(MemorySlots::new(60)).unwrap();
    let host = Host { now_ms: 0, entropy: 7, store_id: [1; 16] };
    let (mut store, _) = Store::open(storage, Options::default(), host).unwrap();
    for step in 0..400_000_u64 {
        store.set(&key(step % 10), &step.to_be_bytes()).unwrap();
        if step % 100 == 99 {
            store.commit(Durability::Relaxed).unwrap();
        }
    }
    assert_eq!(scan(&store, false, 100), 10);
    let stats = store.stats();
    assert!(
        stats.flush_bytes < 64 << 10,
        "{} bytes were flushed in {} tables",
        stats.flush_bytes,
        stats.flushes
    );
}
