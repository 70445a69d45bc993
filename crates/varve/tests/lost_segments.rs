//! The newest segment grew or moved, and the half of the page that says so is lost: an older claim names it. The store does not open
//! without its end, a check finds that, and a repair returns everything. (`varve-sim` loses pages of all kinds.)

use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotHeader, SlotPool};
use varve::types::FileName;
use varve::{Code, Durability, Encryption, Host, Options, Store};

use crate::repair_damage::repair;
use crate::rotten_store::{SimpleStore, check};

const WHAT: &str = "a WAL segment, or its end, is in no slot's page";
const HALF: usize = SLOT_HEADER_BYTES as usize / 2;

fn open(slots: MemorySlots) -> varve::Result<SimpleStore> {
    let options = Options {
        memory_bytes: 1 << 20,
        memtable_bytes_min: 64 << 10,
        memtable_bytes_max: 64 << 10,
        ..Options::default()
    };
    let host = Host { now_ms: 1000, entropy: 5, store_id: [9; 16] };
    Store::open(SlotPool::open(slots)?, options, host).map(|(store, _)| store)
}

fn set(store: &mut SimpleStore, key: &str, bytes: usize) {
    store.set(key.as_bytes(), &vec![7; bytes]).expect("staged");
    store.commit(Durability::Strict).expect("committed");
}

/// Loses the newest half of each page with a segment in turn; at least one must name the segment.
fn lose_halves(mut store: SimpleStore, segment: u64, keys: &[(&str, usize)]) {
    store.close().expect("closed");
    let slots = store.into_storage().into_device();
    assert!(open(slots.clone()).is_ok());
    assert_eq!(check(&slots, &Encryption::none()).problems, []);
    let slot = SlotPool::open(slots.clone()).expect("opens").slot_of(FileName::wal(segment)).expect("a slot");
    let mut damaged = slots.clone();
    let bytes = damaged.slot_mut(slot).expect("a slot");
    let header = SlotHeader::decode(bytes, slot).expect("known").expect("valid");
    let newest = if header.encode(slot)[..HALF] == bytes[..HALF] { 0 } else { HALF };
    bytes[newest..newest + HALF].fill(0);
    // An older claim names it.
    let claimed = SlotPool::open(damaged.clone()).expect("opens").slot_of(FileName::wal(segment));
    assert_eq!(claimed, Some(slot));
    let error = open(damaged.clone()).map(|_| ()).expect_err("the end of the log is missing");
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.to_string().contains(WHAT), "{error}");
    let problems = check(&damaged, &Encryption::none()).problems;
    let is_named = |what: &str| what == WHAT;
    assert!(
        problems.iter().any(|found| found.file == FileName::wal(segment) && is_named(found.what)),
        "{problems:?}"
    );
    let (repaired, report) = repair(&damaged, &Encryption::none(), true);
    assert_eq!(report.lost, []);
    let repaired = open(repaired).expect("a repaired store opens");
    for (key, bytes) in keys {
        assert_eq!(repaired.get(key.as_bytes()).expect("read"), Some(vec![7; *bytes]), "{key}");
    }
}

#[test]
fn a_segment_whose_older_claim_has_less_room() {
    let mut store = open(MemorySlots::new(8)).expect("opens");
    let keys = [("a", 100), ("b", 5000), ("c", 20_000), ("d", 100)];
    for (key, bytes) in &keys[..3] {
        set(&mut store, key, *bytes);
        if *key != "c" {
            // Its room ends with its last record, so the next one needs more.
            store.shrink(0).expect("cut");
        }
    }
    set(&mut store, "d", 100);
    lose_halves(store, 1, &keys);
}

#[test]
fn a_segment_whose_older_claim_is_at_another_place() {
    // One slot without a manifest.
    let mut store = open(MemorySlots::new(3)).expect("opens");
    let keys = [("a", 100), ("b", 1000), ("c", 20_000), ("d", 100)];
    set(&mut store, "a", 100);
    store.freeze_active().expect("frozen");
    set(&mut store, "b", 1000);
    store.shrink(0).expect("cut");
    // The table of "a" lies behind the segment of "b".
    while store.run_slice(1 << 20).expect("a job") {}
    let place = |store: &SimpleStore| store.storage().place_of(FileName::wal(2)).expect("a place");
    let before = place(&store);
    set(&mut store, "c", 20_000);
    let after = place(&store);
    assert!(before.slot == after.slot && before.start != after.start, "{before:?} {after:?}");
    set(&mut store, "d", 100);
    lose_halves(store, 2, &keys);
}
