//! A store whose tables are under several keys comes under the newest, table by table.

use std::collections::BTreeMap;

use super::Store;
use crate::codec::cipher::{Encryption, KEY_BYTES, KeyNumber, Keyring};
use crate::options::{Durability, Host, Options};
use crate::storage::{MemorySlots, SlotPool};

type Memory = Store<SlotPool<MemorySlots>>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const STORE: [u8; 16] = [3; 16];

/// Levels a thousandth of the usual size.
fn options() -> Options {
    Options {
        memtable_bytes_min: 4 << 10,
        memtable_bytes_max: 4 << 10,
        block_bytes: 256,
        table_bytes: 2 << 10,
        level_base_bytes: 8 << 10,
        level_factor: 4,
        job_bytes_max: 24 << 10,
        l0_trigger: 4,
        ..Options::default()
    }
}

/// The keys of these numbers, with nonces of opening `opening`.
fn keys(numbers: &[KeyNumber], opening: u64) -> Encryption {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&opening.to_le_bytes());
    let key = |&number: &KeyNumber| (number, [number as u8; KEY_BYTES]);
    let keyring = Keyring::new(STORE, numbers.iter().map(key).collect(), seed).expect("ascending numbers");
    Encryption { keyring, slots: b"wrapped".to_vec() }
}

fn open(slots: MemorySlots, encryption: Encryption) -> Memory {
    let host = Host { now_ms: 1_000, entropy: 5, store_id: STORE };
    let options = Options { encryption, ..options() };
    Store::open(SlotPool::open(slots).expect("slots"), options, host).expect("opens").0
}

/// Sets keys. Each table that is due is merged if `merges`.
fn fill(store: &mut Memory, model: &mut Model, count: u32, merges: bool) {
    for number in 0..count {
        let key = format!("key {:06}", number.wrapping_mul(2_654_435_761) % 3000).into_bytes();
        let value = format!("value {number} after {}", store.last_sequence()).into_bytes();
        store.set(&key, &value).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
        model.insert(key, value);
        while merges && store.run_slice(1000).expect("a job") {}
    }
    store.flush().expect("flushed");
}

/// Tables under each of the keys 0, 1 and 2.
fn tables(store: &Memory) -> [usize; 3] {
    [0, 1, 2].map(|key| store.version.tables().filter(|(_, table)| table.key == key).count())
}

fn check(store: &Memory, model: &Model) {
    for (key, value) in model {
        assert_eq!(store.get(key).expect("read").as_ref(), Some(value));
    }
}

/// A store with tables under no key and under key 1, whose current key is 2.
fn mixed() -> (Memory, Model) {
    let (mut store, mut model) = (open(MemorySlots::new(200), Encryption::none()), Model::new());
    fill(&mut store, &mut model, 6000, true);
    store.change_keys(keys(&[1], 1)).expect("encrypted");
    fill(&mut store, &mut model, 300, false);
    let [plain, first, _] = tables(&store);
    assert!(plain > 3 && first > 0, "{plain} plain tables, {first} under key 1");
    store.change_keys(keys(&[1, 2], 2)).expect("changed");
    (store, model)
}

#[test]
fn all_tables_come_under_the_newest_key_though_jobs_are_killed() {
    let (mut store, model) = mixed();
    let (mut slices, mut kills, mut next_kill) = (0_u64, 0, 5);
    while store.run_slice(200).expect("a job") {
        slices += 1;
        assert!(slices < 5000, "jobs never end: {:?}", tables(&store));
        if slices == next_kill {
            kills += 1;
            next_kill += 5 * kills;
            store = open(store.into_storage().into_device(), keys(&[1, 2], 100 + kills));
        }
    }
    let [plain, first, second] = tables(&store);
    assert!((plain, first) == (0, 0) && second > 3 && kills > 3, "{plain} {first} {second}, {kills} kills");
    // The old key is not needed any more.
    store.change_keys(keys(&[2], 500)).expect("dropped");
    let store = open(store.into_storage().into_device(), keys(&[2], 1000));
    check(&store, &model);
}

#[test]
fn a_compaction_of_everything_rewrites_the_tables_that_lie_deepest_too() {
    let (mut store, model) = mixed();
    store.compact().expect("compacted");
    store.change_keys(keys(&[2, 3], 3)).expect("changed");
    store.compact().expect("compacted");
    assert_eq!(tables(&store), [0, 0, 0]);
    store.change_keys(keys(&[3], 4)).expect("dropped");
    check(&store, &model);
}
