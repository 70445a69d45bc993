//! A store without a log (durability `memory`) leaves no log behind that a later opening could take for new writes.
//!
//! The story: idle time sealed the log, also of a store that has none; sealing logs the staged data first, so a
//! segment appeared. Flushing the memtable to a table did not retire it, because such a store's flushes left the log's
//! floor where it was. The next opening replayed the segment as the newest writes: reads by key found values overwritten
//! long before. The same happened to a store that crashed with a log and was opened without one.

use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Options, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

fn open(slots: MemorySlots, log: bool, entropy: u64) -> MemoryStore {
    let options = Options { log, ..Options::default() };
    let storage = SlotPool::open(slots).expect("slots");
    Store::open(storage, options, Host { now_ms: 0, entropy, store_id: [5; 16] }).expect("a store").0
}

fn write(store: &mut MemoryStore, key: &[u8], value: &[u8]) {
    store.set(key, value).expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
}

/// The slots of a store whose process dies.
fn crash(store: MemoryStore) -> MemorySlots {
    store.into_storage().into_device()
}

#[test]
fn sealing_a_store_without_a_log_logs_nothing() {
    let mut store = open(MemorySlots::new(10), false, 1);
    write(&mut store, b"silt", b"old");
    store.seal().expect("sealed");
    assert_eq!(store.stats().wal_segments, 0);
    write(&mut store, b"silt", b"new");
    store.flush().expect("flushed");
    write(&mut store, b"silt", b"lost");
    let store = open(crash(store), false, 2);
    assert_eq!(store.get(b"silt"), Ok(Some(b"new".to_vec())));
}

#[test]
fn a_log_that_was_recovered_without_one_is_not_recovered_again() {
    let mut store = open(MemorySlots::new(10), true, 1);
    write(&mut store, b"silt", b"logged");
    let mut store = open(crash(store), false, 2);
    assert_eq!(store.get(b"silt"), Ok(Some(b"logged".to_vec())));
    store.flush().expect("flushed");
    write(&mut store, b"silt", b"new");
    store.flush().expect("flushed");
    for log in [false, true] {
        let store = open(store.storage().device().clone(), log, 3);
        assert_eq!(store.get(b"silt"), Ok(Some(b"new".to_vec())));
    }
}

/// The story: a close that found no spare slot was refused but closed the store all the same, so everything in memory was
/// lost, and the host could not try again. Now files share slots, and a close of any size needs no additional slot.
#[test]
fn closing_needs_no_slots_for_what_is_in_memory() {
    let options =
        Options { log: false, memtable_bytes_min: 4096, memtable_bytes_max: 4096, ..Options::default() };
    let storage = SlotPool::open(MemorySlots::new(4)).expect("slots");
    let host = Host { now_ms: 0, entropy: 1, store_id: [5; 16] };
    let (mut store, _) = Store::open(storage, options, host).expect("a store");
    let mut count = 0_u32;
    while count < 2000 {
        store.set(&count.to_be_bytes(), &[7; 500]).expect("staged");
        store.commit(Durability::Memory).expect("promised");
        count += 1;
    }
    store.close().expect("closed");
    let store = open(crash(store), false, 2);
    for n in 0..count {
        assert_eq!(store.has(&n.to_be_bytes()), Ok(true), "{n} of {count}");
    }
}
