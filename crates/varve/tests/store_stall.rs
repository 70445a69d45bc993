//! A writer that level 0 holds up waits for what is due, not for a merge of the whole store.
//!
//! The story: a synchronous turn that met `l0_stall` tables merged everything there was, so one set in a store of a few
//! hundred megabytes took seconds.

use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Options, Store};

#[test]
fn a_stalled_turn_merges_level_0_and_only_the_tables_it_overlaps() {
    let options = Options {
        memtable_bytes_min: 4096,
        memtable_bytes_max: 4096,
        frozen_max: 1,
        table_bytes: 16 << 10,
        l0_trigger: 2,
        l0_stall: 3,
        compress: false,
        ..Options::default()
    };
    let host = Host { now_ms: 0, entropy: 9, store_id: [9; 16] };
    let slots = SlotPool::open(MemorySlots::new(100)).expect("opens");
    let (mut store, _) = Store::open(slots, options, host).expect("opens");
    for n in 0..2000 {
        store.set(format!("low{n:05}").as_bytes(), &[1; 100]).expect("staged");
    }
    store.compact().expect("merged");
    let before = store.stats();
    let store_bytes = before.levels.iter().map(|level| level.bytes).sum::<u64>();
    assert!(store_bytes > 200_000, "{store_bytes}");

    // These lie behind all the others.
    for n in 0..400 {
        store.set(format!("z{n:05}").as_bytes(), &[2; 100]).expect("staged");
    }
    store.commit(Durability::Relaxed).expect("committed");
    let after = store.stats();
    assert!(after.compactions > before.compactions, "the stall was met");
    let read = (after.compaction_bytes_read - before.compaction_bytes_read)
        / (after.compactions - before.compactions);
    assert!(read < store_bytes / 3, "{read} bytes read by one merge of a store of {store_bytes}");
}
