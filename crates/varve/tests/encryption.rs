//! Encrypted stores: what lies in their files, who can open them, and how their keys change.

use varve::manifest::key_slots;
use varve::repair;
use varve::scan::ScanOptions;
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotPool, Slots};
use varve::store::ChangesWanted;
use varve::types::FileName;
use varve::{Code, Durability, Encryption, Error, Host, Keyring, Options, RecoveryReport, Store};

use crate::store_damage::OneUnreadable;

type Memory = Store<SlotPool<MemorySlots>>;

const SLOTS: &[u8] = b"what wraps the keys";
/// In every key and value, and long enough to be nowhere by chance.
const CANARY: &[u8] = b"canary 3f9a";

fn encryption(keys: &[(u16, u8)], seed: u8) -> Encryption {
    let keys = keys.iter().map(|&(number, byte)| (number, [byte; 32])).collect();
    Encryption { keyring: Keyring::new([0; 16], keys, [seed; 16]).expect("keys"), slots: SLOTS.to_vec() }
}

fn open(slots: MemorySlots, encryption: Encryption, entropy: u64) -> Result<(Memory, RecoveryReport), Error> {
    let host = Host { now_ms: 0, entropy, store_id: [6; 16] };
    let options = Options {
        memtable_bytes_min: 16 << 10,
        memtable_bytes_max: 16 << 10,
        history_bytes: Some(1 << 20),
        encryption,
        ..Options::default()
    };
    Store::open(SlotPool::open(slots)?, options, host)
}

fn name(n: u32) -> Vec<u8> {
    [CANARY, format!(" {n:05}").as_bytes()].concat()
}

fn fill(store: &mut Memory, from: u32, count: u32) {
    for n in from..from + count {
        store.set(&name(n), &[CANARY, &[n as u8; 90]].concat()).expect("set");
        store.commit(Durability::Relaxed).expect("committed");
    }
}

fn keys(store: &Memory) -> Vec<Vec<u8>> {
    let found = (0..2000).map(name).filter(|key| store.has(key).expect("read"));
    found.collect()
}

fn shows_the_canary(slots: &MemorySlots) -> bool {
    (0..slots.count()).any(|slot| slots.slot(slot).windows(CANARY.len()).any(|bytes| bytes == CANARY))
}

fn slots_of(store: Memory) -> MemorySlots {
    store.into_storage().into_device()
}

#[test]
fn nothing_readable_lies_in_any_file_and_everything_comes_back() {
    let (mut store, _) = open(MemorySlots::new(40), encryption(&[(1, 7)], 1), 1).expect("a new store");
    fill(&mut store, 0, 1000);
    store.delete_range(&name(100), &name(200)).expect("deleted");
    store.commit(Durability::Strict).expect("committed");
    let dead = store.storage().device().clone();
    assert!(!shows_the_canary(&dead), "in the log and in tables");
    let (mut store, report) = open(dead, encryption(&[(1, 7)], 2), 2).expect("opens after a death");
    assert!(report.records > 0);
    assert_eq!(keys(&store).len(), 900);
    fill(&mut store, 1000, 10);
    store.compact().expect("compacted");
    store.close().expect("closed");
    let slots = slots_of(store);
    assert!(!shows_the_canary(&slots), "after compaction and close");
    let (store, _) = open(slots, encryption(&[(1, 7)], 3), 3).expect("opens");
    assert_eq!(keys(&store).len(), 910);
}

#[test]
fn only_its_key_opens_a_store_and_a_refusal_changes_nothing() {
    let (mut store, _) = open(MemorySlots::new(40), encryption(&[(1, 7)], 1), 1).expect("a new store");
    fill(&mut store, 0, 300);
    let slots = slots_of(store);
    let refused = |encryption, expected: Error| {
        let found = open(slots.clone(), encryption, 2).map(|_| ());
        assert_eq!(found, Err(expected));
    };
    refused(Encryption::none(), Error::NO_KEY);
    refused(encryption(&[(2, 7)], 2), Error::NO_KEY);
    refused(encryption(&[(1, 8)], 2), Error::WRONG_KEY);
    assert_eq!(Error::WRONG_KEY.code(), Code::Key);
    let pool = SlotPool::open(slots.clone()).expect("a pool");
    assert_eq!(key_slots(&pool).expect("read").as_deref(), Some(SLOTS));
    let (store, _) = open(slots, encryption(&[(1, 7)], 2), 2).expect("opens");
    assert_eq!((keys(&store).len(), store.key_slots()), (300, SLOTS));

    let (plain, _) = open(MemorySlots::new(40), Encryption::none(), 1).expect("a new store");
    let slots = slots_of(plain);
    assert_eq!(key_slots(&SlotPool::open(slots.clone()).expect("a pool")), Ok(None));
    assert_eq!(open(slots, encryption(&[(1, 7)], 2), 2).map(|_| ()), Err(Error::NOT_ENCRYPTED));
}

/// The change feed reads segments from memory, from files of this session, and from files of earlier ones.
/// The wrapped data keys of a store in its first session stood in one manifest: a bad sector there lost everything.
#[test]
fn from_the_first_session_on_the_wrapped_keys_survive_the_loss_of_either_manifest() {
    let (mut store, _) = open(MemorySlots::new(8), encryption(&[(1, 7)], 1), 1).expect("opens");
    fill(&mut store, 0, 300);
    let slots = slots_of(store);
    for lost in [0, 1].map(FileName::manifest) {
        let mut slots = slots.clone();
        let slot = SlotPool::open(slots.clone()).expect("a pool").slot_of(lost).expect("exists");
        slots.write(slot, SLOT_HEADER_BYTES, &[0x55; 4096]).expect("written");
        let pool = SlotPool::open(slots).expect("a pool");
        assert_eq!(key_slots(&pool).expect("read").as_deref(), Some(SLOTS), "without {lost:?}");
    }
}

/// A repair looked for the wrapped keys as an opening does. So one slot that could not be read, also an empty one, kept it from an
/// encrypted store.
#[test]
fn a_repair_finds_the_wrapped_keys_whichever_slot_is_damaged() {
    let (mut store, _) = open(MemorySlots::new(8), encryption(&[(1, 7)], 1), 1).expect("opens");
    fill(&mut store, 0, 300);
    let slots = slots_of(store);
    assert_eq!(repair::key_slots(&slots).expect("read").as_deref(), Some(SLOTS));
    for bad in 0..slots.count() {
        let device = OneUnreadable { slots: slots.clone(), bad };
        assert_eq!(
            repair::key_slots(&device).expect("read").as_deref(),
            Some(SLOTS),
            "slot {bad} cannot be read"
        );
        let mut slots = slots.clone();
        slots.write(bad, 0, &[0x55; SLOT_HEADER_BYTES as usize]).expect("written");
        assert_eq!(
            repair::key_slots(&slots).expect("read").as_deref(),
            Some(SLOTS),
            "the page of slot {bad} is lost"
        );
    }
}

#[test]
fn changes_are_reported_from_encrypted_history() {
    let (mut store, _) = open(MemorySlots::new(40), encryption(&[(1, 7)], 1), 1).expect("a new store");
    let count = |store: &mut Memory, since| {
        let (mut changes, mut since) = (0, since);
        loop {
            let wanted = ChangesWanted { since, bytes_max: 4096, start: b"", end: b"\xff" };
            let found = store.changes(&wanted, &mut |_, _| changes += 1).expect("changes");
            assert!(found.floor <= since, "nothing is missing");
            if found.through == since {
                return changes;
            }
            since = found.through;
        }
    };
    count(&mut store, 0);
    fill(&mut store, 0, 100);
    store.flush().expect("flushed");
    fill(&mut store, 100, 50);
    assert_eq!(count(&mut store, 0), 150);
    let (mut store, _) = open(slots_of(store), encryption(&[(1, 7)], 2), 2).expect("opens");
    assert_eq!(count(&mut store, 20), 130);
}

#[test]
fn keys_change_and_the_old_ones_go_once_no_file_needs_them() {
    let (mut store, _) = open(MemorySlots::new(40), encryption(&[(1, 7)], 1), 1).expect("a new store");
    fill(&mut store, 0, 500);
    let before = store.keys_in_use().expect("keys");
    assert_eq!(before, [1]);
    let alone = store.change_keys(encryption(&[(2, 9)], 2));
    assert!(matches!(alone, Err(Error::InvalidArgument(_))), "files still need key 1");
    store.change_keys(encryption(&[(1, 7), (2, 9)], 2)).expect("changed");
    fill(&mut store, 500, 500);
    assert_eq!(store.keys_in_use().expect("keys"), [1, 2]);
    // A death in between: the next opening goes on.
    let (mut store, _) = open(slots_of(store), encryption(&[(1, 7), (2, 9)], 3), 3).expect("opens");
    store.compact().expect("compacted");
    store.release().expect("released");
    assert_eq!(store.keys_in_use().expect("keys"), [2]);
    store.change_keys(encryption(&[(2, 9)], 4)).expect("key 1 is gone");
    fill(&mut store, 1000, 1);
    let slots = slots_of(store);
    assert_eq!(open(slots.clone(), encryption(&[(1, 7)], 5), 5).map(|_| ()), Err(Error::NO_KEY));
    let (store, _) = open(slots, encryption(&[(2, 9)], 5), 5).expect("opens");
    assert_eq!(keys(&store).len(), 1001);
}

/// The story: a fresh seed had a snapshot open while keys changed. The tables that only the snapshot still read were not counted, so
/// their key was dropped, and the snapshot could no longer be read.
#[test]
fn a_key_stays_as_long_as_a_scan_may_read_tables_under_it() {
    let (mut store, _) = open(MemorySlots::new(40), encryption(&[(1, 7)], 1), 1).expect("a new store");
    fill(&mut store, 0, 500);
    store.flush().expect("flushed");
    let scan = store.scan(ScanOptions::default()).expect("a scan");
    store.change_keys(encryption(&[(1, 7), (2, 9)], 2)).expect("changed");
    store.compact().expect("compacted");
    assert_eq!(store.keys_in_use().expect("keys"), [1, 2]);
    assert!(matches!(store.change_keys(encryption(&[(2, 9)], 3)), Err(Error::InvalidArgument(_))));
    drop(scan);
    store.release().expect("released");
    assert_eq!(store.keys_in_use().expect("keys"), [2]);
    store.change_keys(encryption(&[(2, 9)], 3)).expect("changed");
}

#[test]
fn a_plain_store_becomes_an_encrypted_one_and_its_old_files_are_overwritten() {
    let (mut store, _) = open(MemorySlots::new(40), Encryption::none(), 1).expect("a new store");
    // Files that are deleted before the encryption leave their bytes in spare slots, unless these are cut at once.
    store.storage_mut().set_spare(1 << 20);
    for _ in 0..3 {
        fill(&mut store, 0, 500);
        store.compact().expect("compacted");
        store.release().expect("released");
    }
    assert!(shows_the_canary(store.storage().device()));
    store.change_keys(encryption(&[(1, 7)], 2)).expect("encrypted");
    fill(&mut store, 500, 100);
    assert_eq!(store.keys_in_use().expect("keys"), [0, 1]);
    let (mut store, _) = open(slots_of(store), encryption(&[(1, 7)], 3), 3).expect("opens");
    store.compact().expect("compacted");
    store.release().expect("released");
    // Files that an edit dropped wait for the next one.
    store.release().expect("released");
    assert_eq!(store.keys_in_use().expect("keys"), [1]);
    assert!(!shows_the_canary(store.storage().device()), "nothing is left in any slot");
    let (store, _) = open(slots_of(store), encryption(&[(1, 7)], 4), 4).expect("opens");
    assert_eq!(keys(&store).len(), 600);
}

/// Seed 1795846014000182: the last flush before a store was closed left a plain segment for the change feed and only encrypted tables. The
/// next opening saw no plain file, so it kept the segment.
#[test]
fn plain_segments_for_the_change_feed_go_after_the_next_opening_too() {
    let (mut store, _) = open(MemorySlots::new(40), Encryption::none(), 1).expect("a new store");
    fill(&mut store, 0, 10);
    store.change_keys(encryption(&[(1, 7)], 2)).expect("encrypted");
    store.flush().expect("flushed");
    let (mut store, _) = open(slots_of(store), encryption(&[(1, 7)], 3), 3).expect("opens");
    for n in 10..12 {
        fill(&mut store, n, 1);
        store.flush().expect("flushed");
    }
    assert_eq!(store.keys_in_use().expect("keys"), [1]);
    assert!(!shows_the_canary(store.storage().device()));
    let (store, _) = open(slots_of(store), encryption(&[(1, 7)], 4), 4).expect("opens");
    assert_eq!(keys(&store).len(), 12);
}

/// The story: before the keys changed, the staged writes were logged, but they were promised only after the manifest was written. It found
/// no room. So the next refusal, of another write, rolled these back as well, and cut the memtable before what the log already had. The next
/// write then began before the end of the log's file: its bytes counted as written, and it was acknowledged and lost.
#[test]
fn a_change_of_keys_that_finds_no_room_leaves_the_log_whole() {
    let (mut store, _) = open(MemorySlots::new(40), encryption(&[(1, 7)], 1), 1).expect("a new store");
    store.set(&name(0), &[1; 100]).expect("staged");
    let used = store.storage().device().bytes();
    store.storage_mut().device_mut().set_limit(Some(used));
    // A snapshot of the manifest with these slots is longer than its file.
    let too_long = Encryption { slots: vec![8; 1 << 20], ..encryption(&[(1, 7), (2, 9)], 2) };
    assert_eq!(store.change_keys(too_long), Err(Error::StorageFull));
    store.discard_staged();
    store.storage_mut().device_mut().set_limit(None);
    store.set(&name(1), &[2; 50]).expect("staged");
    store.commit(Durability::Strict).expect("committed");
    let (store, report) = open(slots_of(store), encryption(&[(1, 7)], 3), 2).expect("opens after a death");
    assert_eq!((keys(&store), report.torn), (vec![name(0), name(1)], false), "{report:?}");
}
