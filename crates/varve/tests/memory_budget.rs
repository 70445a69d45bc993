//! Memtables, cached blocks and open tables stay within one budget, for any size of the store.

use std::cell::Cell;
use std::rc::Rc;

use varve::storage::{MemorySlots, SlotError, SlotPool, Slots};
use varve::store::Stats;
use varve::{Durability, Host, Op, Options, Store};

use crate::same_as::same_as;

type MemoryStore<D = MemorySlots> = Store<SlotPool<D>>;

const MEMORY: usize = 256 << 10;
const MEMTABLE: usize = 16 << 10;

fn options() -> Options {
    Options {
        memory_bytes: MEMORY,
        memtable_bytes_min: MEMTABLE,
        memtable_bytes_max: MEMTABLE,
        block_bytes: 512,
        table_bytes: 32 << 10,
        level_base_bytes: 128 << 10,
        ..Options::default()
    }
}

fn open(slots: MemorySlots) -> MemoryStore {
    open_with(slots, options())
}

fn open_with<D: Slots>(slots: D, options: Options) -> MemoryStore<D> {
    let storage = SlotPool::open(slots).expect("slots");
    Store::open(storage, options, Host { now_ms: 0, entropy: 3, store_id: [9; 16] }).expect("a store").0
}

fn key(n: u32) -> Vec<u8> {
    format!("key {:08}", n.wrapping_mul(2_654_435_761)).into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    format!("value {n:06}").into_bytes()
}

fn fill<D: Slots>(store: &mut MemoryStore<D>, keys: std::ops::Range<u32>) {
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

/// Slots that count the bytes that are read from them.
struct CountedSlots {
    slots: MemorySlots,
    read_bytes: Rc<Cell<u64>>,
}

impl Slots for CountedSlots {
    same_as!(slots: count is_open size write flush truncate);

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        self.read_bytes.set(self.read_bytes.get() + into.len() as u64);
        self.slots.read(slot, offset, into)
    }
}

/// Ten million pairs in a store of 32 MiB gave 9.9k gets a second, where four million had 121k: indexes and filters did not
/// fit into the cache, and one get of three found its table closed and read hundreds of KB to open it.
#[test]
fn a_get_reads_its_block_and_little_more_where_indexes_fit_and_filters_do_not() {
    const KEYS: u32 = 200_000;
    const GETS: u32 = 20_000;
    let read_bytes = Rc::new(Cell::new(0));
    let slots = CountedSlots { slots: MemorySlots::new(200), read_bytes: Rc::clone(&read_bytes) };
    let options = Options { block_bytes: 4096, table_bytes: 256 << 10, ..options() };
    let mut store = open_with(slots, options);
    fill(&mut store, 0..KEYS);
    store.flush().expect("flushed");
    let bytes_a_get = |key: &dyn Fn(u32) -> Vec<u8>, value: &dyn Fn(u32) -> Option<Vec<u8>>| {
        let before = read_bytes.get();
        for n in 0..GETS {
            let n = n.wrapping_mul(7919) % KEYS;
            assert_eq!(store.get(&key(n)), Ok(value(n)), "{n}");
            assert_within(&store.stats());
        }
        (read_bytes.get() - before) / u64::from(GETS)
    };
    let found = bytes_a_get(&key, &|n| Some(value(n)));
    let missed = bytes_a_get(&|n| [key(n), b"?".to_vec()].concat(), &|_| None);
    let stats = store.stats();
    // 10 bits of filter for each key.
    assert!(u64::from(KEYS) * 10 / 8 > stats.cache_bytes_max, "{stats:?}");
    assert!(found < 2 * 4096, "{found} bytes a get of a key that is there");
    assert!(missed < 2 * 4096, "{missed} bytes a get of one that is not");
}

#[test]
fn tables_without_their_filters_read_them_once_there_is_room() {
    const KEYS: u32 = 100_000;
    let options = || Options { memory_bytes: 1 << 20, block_bytes: 4096, ..options() };
    // Blocks that gets of absent keys look at.
    let blocks = |store: &MemoryStore| {
        let looks = || store.stats().cache_hits + store.stats().cache_misses;
        let before = looks();
        for n in 0..KEYS {
            assert_eq!(store.has(&[key(n), b"?".to_vec()].concat()), Ok(false), "{n}");
        }
        looks() - before
    };
    let mut store = open_with(MemorySlots::new(200), options());
    fill(&mut store, 0..KEYS);
    store.flush().expect("flushed");
    assert!(blocks(&store) < u64::from(KEYS) / 5, "filters save nearly all of them");

    // A batch larger than a memtable leaves the cache an eighth of the memory.
    store.set(b"a large value", &vec![7; 1 << 20]).expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    let narrow = store.stats();
    assert!(blocks(&store) > u64::from(KEYS) / 2, "most tables of the lowest level do without their filters");
    for n in 0..KEYS {
        assert_eq!(store.get(&key(n)), Ok(Some(value(n))), "{n}");
    }
    let stats = store.stats();
    assert!(stats.cache_bytes + stats.resident_bytes <= stats.cache_bytes_max, "{stats:?}");

    while store.run_slice(usize::MAX).expect("a job") {}
    assert!(store.stats().cache_bytes_max > 4 * narrow.cache_bytes_max);
    blocks(&store);
    assert!(blocks(&store) < u64::from(KEYS) / 5, "filters are there again");

    // The memory that is counted for tables is that of tables opened with their filters.
    let resident_bytes = store.stats().resident_bytes;
    let store = open_with(store.into_storage().into_device(), options());
    blocks(&store);
    assert_eq!(store.stats().resident_bytes, resident_bytes);
}

/// The memory of an open table was once assumed to be the number of bytes that are read to open it, which is less than half
/// of it. Tables that would have fitted without their filters were opened with them, and get after get they closed each
/// other.
#[test]
fn gets_read_no_index_again_where_some_of_the_filters_fit() {
    const KEYS: u32 = 30_000;
    const BLOCK: usize = 1024;
    let options =
        |memory_bytes| Options { memory_bytes, block_bytes: BLOCK, table_bytes: 256 << 10, ..options() };
    let mut store = open_with(MemorySlots::new(200), options(1 << 20));
    fill(&mut store, 0..KEYS);
    store.flush().expect("flushed");
    let mut slots = store.into_storage().into_device();
    for memory_bytes in (96 << 10..180 << 10).step_by(8 << 10) {
        let read_bytes = Rc::new(Cell::new(0));
        let mut store =
            open_with(CountedSlots { slots, read_bytes: Rc::clone(&read_bytes) }, options(memory_bytes));
        let read_some = |store: &MemoryStore<CountedSlots>| {
            let before = read_bytes.get();
            for n in 0..KEYS / 10 {
                assert_eq!(store.has(&key(n.wrapping_mul(7919) % KEYS)), Ok(true), "{n}");
            }
            (read_bytes.get() - before) / u64::from(KEYS / 10)
        };
        // As long as it is not in a table, the cache has an eighth of the memory.
        store.set(b"a large value", &vec![7; 1 << 20]).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
        read_some(&store);
        while store.run_slice(usize::MAX).expect("a job") {}
        read_some(&store);
        let a_get = read_some(&store);
        assert!(a_get < BLOCK as u64, "{a_get} bytes a get with {memory_bytes}: {:?}", store.stats());
        slots = store.into_storage().into_device().slots;
    }
}

/// A table that moves down to the lowest level unchanged has two handles, where a snapshot keeps the view before that. Each
/// closed what the other had opened, so that alternating reads of both opened it every time.
#[test]
fn reads_of_a_snapshot_and_of_the_present_share_the_tables_that_are_open() {
    const KEYS: u32 = 10_000;
    let key = |n: u32| format!("key {n:08}").into_bytes();
    let read_bytes = Rc::new(Cell::new(0));
    let slots = CountedSlots { slots: MemorySlots::new(100), read_bytes: Rc::clone(&read_bytes) };
    let options =
        || Options { memory_bytes: 8 << 20, table_bytes: 8 << 10, level_base_bytes: 16 << 10, ..options() };
    let write = |store: &mut MemoryStore<CountedSlots>, keys: std::ops::Range<u32>| {
        for n in keys {
            store.set(&key(n), &value(n)).expect("staged");
            store.commit(Durability::Relaxed).expect("committed");
            while store.run_slice(usize::MAX).expect("a job") {}
        }
    };
    let mut store = open_with(slots, options());
    write(&mut store, 0..KEYS);
    store.flush().expect("flushed");
    let mut store = open_with(store.into_storage().into_device(), options());
    let snapshot = store.open_snapshot().expect("accepted");
    write(&mut store, KEYS..3 * KEYS);
    assert!(store.stats().moves > 0, "{:?}", store.stats());
    let read_all = || {
        let before = read_bytes.get();
        for n in 0..KEYS {
            let past = store.find_in(snapshot, &key(n), |entry| entry.map(|entry| entry.value.to_vec()));
            assert_eq!(past, Ok(Some(value(n))), "{n}");
            assert_eq!(store.get(&key(n)), Ok(Some(value(n))), "{n}");
        }
        read_bytes.get() - before
    };
    read_all();
    assert_eq!(read_all(), 0, "{:?}", store.stats());
}

#[test]
fn memory_that_a_snapshot_retains_comes_out_of_the_cache() {
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

/// The story: memtables could have any size. Offsets into them have 32 bits, so with 8 GiB the write that passed 4 GiB panicked.
#[test]
fn a_memtable_is_frozen_before_its_offsets_overflow() {
    let much = Options { memtable_bytes_min: usize::MAX, memtable_bytes_max: usize::MAX, ..options() };
    let store = open_with(MemorySlots::new(12), much);
    assert!(store.stats().memtable_bytes_max <= u64::from(u32::MAX));
}
