//! Memtables, cached blocks and open tables keep within one budget, whatever the store's size.

use varve::storage::{MemorySlots, SlotPool};
use varve::store::Stats;
use varve::{Durability, Host, Op, Options, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

const MEMORY: usize = 256 << 10;
const MEMTABLE: usize = 16 << 10;

fn open(slots: MemorySlots) -> MemoryStore {
    let options = Options {
        memory_bytes: MEMORY,
        memtable_bytes_min: MEMTABLE,
        memtable_bytes_max: MEMTABLE,
        block_bytes: 512,
        table_bytes: 32 << 10,
        level_base_bytes: 128 << 10,
        ..Options::default()
    };
    let storage = SlotPool::open(slots).expect("slots");
    Store::open(storage, options, Host { now_ms: 0, entropy: 3, store_id: [9; 16] }).expect("a store").0
}

fn key(n: u32) -> Vec<u8> {
    format!("key {:08}", n.wrapping_mul(2_654_435_761)).into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    format!("value {n:06}").into_bytes()
}

fn fill(store: &mut MemoryStore, keys: std::ops::Range<u32>) {
    for n in keys {
        store.set(&key(n), &value(n)).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
        while store.run_slice(usize::MAX).expect("a job") {}
    }
}

fn in_use(stats: &Stats) -> u64 {
    let memtables = stats.memtable_bytes + stats.frozen_bytes + stats.retained_bytes;
    memtables + stats.cache_bytes + stats.resident_bytes
}

fn assert_within(stats: &Stats) {
    assert!(in_use(stats) <= stats.memory_bytes_max, "{stats:?}");
}

#[test]
fn tables_whose_indexes_do_not_fit_are_closed_and_opened_again() {
    const KEYS: u32 = 60_000;
    let mut store = open(MemorySlots::new(200));
    fill(&mut store, 0..KEYS);
    store.flush().expect("flushed");
    let mut resident_max = 0;
    for n in 0..KEYS {
        let n = n.wrapping_mul(7919) % KEYS;
        assert_eq!(store.get(&key(n)), Ok(Some(value(n))), "{n}");
        let stats = store.stats();
        resident_max = stats.resident_bytes.max(resident_max);
        assert_within(&stats);
    }
    let stats = store.stats();
    let tables: u64 = stats.levels.iter().map(|level| level.tables).sum();
    // 10 bits of filter for each key alone are 75 KB; indexes of blocks of 512 bytes are more than twice that.
    assert!(resident_max > 100 << 10 && tables > 40, "{resident_max} bytes of {tables} tables: {stats:?}");
    assert_eq!(store.has(b"none"), Ok(false));
}

#[test]
fn what_a_snapshot_retains_is_taken_from_the_cache() {
    let mut store = open(MemorySlots::new(100));
    fill(&mut store, 0..2000);
    let snapshot = store.open_snapshot().expect("opened");
    let before = store.stats();
    fill(&mut store, 2000..6000);
    let stats = store.stats();
    assert!(stats.retained_bytes > 0 && before.retained_bytes == 0, "{stats:?}");
    for n in 0..6000 {
        assert_eq!(store.has(&key(n)), Ok(true));
    }
    assert_within(&store.stats());
    store.close_snapshot(snapshot);
    fill(&mut store, 6000..8000);
    assert_eq!(store.stats().retained_bytes, 0);
}

#[test]
fn a_batch_larger_than_a_memtable_is_flushed_by_itself_and_soon() {
    let mut store = open(MemorySlots::new(100));
    fill(&mut store, 0..100);
    let (keys, values): (Vec<_>, Vec<_>) = (1000..9000).map(|n| (key(n), value(n))).unzip();
    let ops: Vec<_> =
        keys.iter().zip(&values).map(|(key, value)| Op::Set { key, value, expires: None }).collect();
    store.stage(&ops).expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    let stats = store.stats();
    assert!(stats.frozen == 1 && stats.memtable_bytes > 10 * MEMTABLE as u64, "{stats:?}");
    assert_eq!(stats.cache_bytes_max, MEMORY as u64 / 8, "the cache makes way");
    while store.run_slice(usize::MAX).expect("a job") {}
    let stats = store.stats();
    assert!(
        stats.frozen == 0 && stats.memtable_entries == 0,
        "nothing had to be written after it: {stats:?}"
    );
    assert!(stats.cache_bytes_max > MEMORY as u64 / 2, "{stats:?}");
    let store = open(store.into_storage().into_device());
    for n in (0..100).chain(1000..9000) {
        assert_eq!(store.get(&key(n)), Ok(Some(value(n))), "{n}");
    }
}
