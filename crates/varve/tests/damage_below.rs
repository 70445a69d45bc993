//! Damage in the deepest level, and nothing is written: jobs come to an end.
//!
//! The story: a table of the deepest level was due to be rewritten, because a job had narrowed it or half of it had expired. It could not
//! be read, so the best other table of its level was rewritten in its place, and as the first one was still due, that one again, without
//! end. A store with one bad sector read and wrote for as long as it was open.

use varve::storage::{MemorySlots, SlotPool, Storage};
use varve::store::Op;
use varve::types::FileKind;
use varve::{Host, Options, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

/// More slices than any of these stores needs.
const SLICES_MAX: usize = 500;

fn open(slots: MemorySlots, now_ms: u64) -> MemoryStore {
    open_with(slots, now_ms, 1500, 4000)
}

fn open_with(slots: MemorySlots, now_ms: u64, table_bytes: u64, job_bytes_max: u64) -> MemoryStore {
    let options = Options {
        memory_bytes: 64 << 10,
        memtable_bytes_min: 16 << 10,
        memtable_bytes_max: 16 << 10,
        block_bytes: 256,
        restart_interval: 4,
        table_bytes,
        job_bytes_max,
        compress: false,
        ..Options::default()
    };
    let host = Host { now_ms, entropy: 3, store_id: [9; 16] };
    Store::open(SlotPool::open(slots).expect("a pool"), options, host).expect("opens").0
}

/// Sets 200 keys; a third of them expires at this time.
fn fill(store: &mut MemoryStore, round: u8, expires: Option<u64>) {
    for number in 0..200_u32 {
        let expires = expires.filter(|_| (70..130).contains(&number));
        let key = format!("key {number:03}");
        store.stage(&[Op::Set { key: key.as_bytes(), value: &[round; 40], expires }]).expect("staged");
    }
}

/// Damages one table after the other: each store must come to rest. Returns how many of them have a table that cannot be read.
fn rests_whatever_is_damaged(store: MemoryStore, now_ms: u64) -> u32 {
    let pool = store.into_storage();
    let tables: Vec<_> = pool.list().into_iter().filter(|(file, _)| file.kind == FileKind::Table).collect();
    let places: Vec<_> =
        tables.iter().map(|(file, bytes)| (pool.place_of(*file).expect("a table"), *bytes)).collect();
    let slots = pool.into_device();
    let mut met = 0;
    for ((file, _), (place, bytes)) in tables.iter().zip(places) {
        let mut damaged = slots.clone();
        let slot = damaged.slot_mut(place.slot).expect("a slot");
        for at in (0..bytes).step_by(64) {
            slot[(place.start + at) as usize] ^= 1;
        }
        let mut store = open(damaged, now_ms);
        let mut failures = 0;
        let is_at_rest = (0..SLICES_MAX).any(|_| match store.run_slice(10_000) {
            Ok(is_more) => !is_more,
            Err(_) => {
                failures += 1;
                false
            }
        });
        let stats = store.stats();
        assert!(is_at_rest, "{} compactions around {file:?}: {:?}", stats.compactions, stats.levels);
        met += u32::from(failures > 0);
    }
    met
}

#[test]
fn of_a_table_that_has_expired() {
    let mut store = open(MemorySlots::new(60), 1000);
    fill(&mut store, 1, Some(5000));
    store.compact().expect("merged");
    store.release().expect("released");
    let deepest = store.stats().levels.last().map_or(0, |level| level.tables);
    assert!(deepest > 4, "{:?}", store.stats().levels);
    let met = rests_whatever_is_damaged(store, 6000);
    assert!(met > 0, "no job met the damage");
}

#[test]
fn of_a_table_that_a_job_has_narrowed() {
    // Tables that are longer than a job later.
    let mut store = open_with(MemorySlots::new(60), 1000, 6000, 1 << 20);
    fill(&mut store, 1, None);
    store.compact().expect("merged");
    let deepest = store.stats().levels.last().map_or(0, |level| level.tables);
    assert!(deepest > 1, "{:?}", store.stats().levels);
    fill(&mut store, 2, None);
    store.flush().expect("flushed");
    let mut store = open(store.into_storage().into_device(), 1000);
    let before = store.stats().compactions;
    store.begin_idle().expect("idle");
    while store.stats().compactions == before {
        assert!(store.run_slice(10_000).expect("a job"), "level 0 is due");
    }
    let levels = store.stats().levels;
    assert!(levels[0].tables == 1, "the job did not take all of level 0: {levels:?}");
    let met = rests_whatever_is_damaged(store, 1000);
    assert!(met > 0, "no job met the damage");
}
