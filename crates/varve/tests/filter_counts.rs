//! The counts of reads that filters save: each table that a get asks is counted once, and each table that its filter excluded.

use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Options, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

const TABLES: u32 = 3;
const KEYS: u32 = 300;

/// A store with `TABLES` tables in level 0 whose bounds overlap: key `n` is in table `n % TABLES`.
fn store() -> MemoryStore {
    let options = Options { memory_bytes: 1 << 20, block_bytes: 512, l0_trigger: 100, ..Options::default() };
    let storage = SlotPool::open(MemorySlots::new(50)).expect("slots");
    let host = Host { now_ms: 0, entropy: 3, store_id: [9; 16] };
    let mut store = Store::open(storage, options, host).expect("a store").0;
    for table in 0..TABLES {
        for n in (table..KEYS).step_by(TABLES as usize) {
            store.set(&key(n), b"value").expect("staged");
        }
        store.commit(Durability::Relaxed).expect("committed");
        store.flush().expect("flushed");
        while store.run_slice(usize::MAX).expect("a job") {}
    }
    assert_eq!(store.stats().levels[0].tables, u64::from(TABLES));
    store
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:08}").into_bytes()
}

/// The increase of the counts by `read`: filters asked, filters that excluded a table, blocks looked at.
fn added(store: &MemoryStore, read: impl FnOnce()) -> (u64, u64, u64) {
    let figures = || {
        let stats = store.stats();
        (stats.filter_checks, stats.filter_negatives, stats.cache_hits + stats.cache_misses)
    };
    let before = figures();
    read();
    let after = figures();
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

#[test]
fn a_get_of_an_absent_key_asks_every_table_and_looks_only_where_a_filter_is_wrong() {
    let store = store();
    let (checks, negatives, blocks) = added(&store, || {
        for n in 10..KEYS - 10 {
            let absent = [key(n), b"?".to_vec()].concat();
            assert_eq!(store.get(&absent), Ok(None));
        }
    });
    assert_eq!(checks, u64::from((KEYS - 20) * TABLES));
    assert_eq!(checks - negatives, blocks);
    assert!(negatives * 100 > checks * 95, "{negatives} of {checks}");
}

#[test]
fn a_get_asks_no_table_behind_the_one_that_has_its_key() {
    let store = store();
    let newest = (10..KEYS).find(|n| n % TABLES == TABLES - 1).expect("a key");
    assert_eq!(added(&store, || assert!(store.has(&key(newest)).expect("read"))), (1, 0, 1));
    let (checks, ..) = added(&store, || assert!(store.has(&key(newest + 1)).expect("read")));
    assert_eq!(checks, u64::from(TABLES));
}

#[test]
fn keys_outside_all_tables_and_keys_in_a_memtable_ask_no_filter() {
    let mut store = store();
    store.set(&key(7), b"newer").expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    let read = added(&store, || {
        assert_eq!(store.get(b"zebra"), Ok(None));
        assert_eq!(store.get(&key(7)), Ok(Some(b"newer".to_vec())));
    });
    assert_eq!(read, (0, 0, 0));
}
