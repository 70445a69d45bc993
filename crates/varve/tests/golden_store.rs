//! A whole store as it once lay in its slots, whose pages are of version 2: `golden/store-v2`, with tables on several levels, range
//! tombstones, entries that expire, a manifest with edits, and two WAL segments. It must open, have its contents, take new
//! writes and merge, for as long as there is a Varve. `store-v2-encrypted` is the same under a fixed data key.
//!
//! `VARVE_BLESS=1 cargo test -p varve-engine --test engine golden_store` writes it anew, for a new format version only.

use std::path::PathBuf;

use varve::manifest::key_slots;
use varve::scan::{Batch, ScanOptions};
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotPool, Slots};
use varve::{Durability, Encryption, Keyring};

use crate::rotten_store::{Keys, SLOTS, SimpleStore, build, build_under, open_under};
use crate::scan_common::entries;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The versions that are written.
const NEWEST: &str = "store-v2";
const NEWEST_ENCRYPTED: &str = "store-v2-encrypted";

fn encryption() -> Encryption {
    let keyring = Keyring::new([0; 16], vec![(1, [0x1e; 32]), (2, [0x2e; 32])], [0x3e; 16]).expect("keys");
    Encryption { keyring, slots: b"the wrapped data keys".to_vec() }
}

fn bless(name: &str, slots: &MemorySlots) {
    std::fs::create_dir_all(folder(name)).expect("the folder is made");
    for slot in 0..SLOTS {
        let bytes = slots.slot(slot);
        // Room that was grown ahead of need is zeros: the name keeps the length.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let path = folder(name).join(format!("{slot:02}-{}.slot", bytes.len()));
        std::fs::write(path, &bytes[..used]).expect("the slot is written");
    }
}

fn golden(name: &str) -> MemorySlots {
    let mut slots = MemorySlots::new(SLOTS);
    for file in std::fs::read_dir(folder(name)).expect("the folder is there") {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let (slot, len) = name.split_once('-').expect("a slot and its length");
        let mut bytes = std::fs::read(path).expect("the slot is read");
        bytes.resize(len.parse().expect("a length"), 0);
        assert_eq!(slots.write(slot.parse().expect("a slot"), 0, &bytes), Ok(bytes.len()));
    }
    slots
}

fn all(store: &SimpleStore, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = store.scan(ScanOptions { reverse, ..ScanOptions::default() }).expect("a scan");
    let mut batch = Batch::new(true, true);
    store.scan_next(&mut cursor, usize::MAX, &mut batch).expect("a batch");
    entries(&batch)
}

/// Everything is read, by scans and one by one.
fn holds(store: &SimpleStore, keys: &Keys) {
    let expected: Vec<_> = keys.clone().into_iter().collect();
    assert_eq!(all(store, false), expected);
    assert_eq!(all(store, true), expected.iter().rev().cloned().collect::<Vec<_>>());
    for (key, value) in keys {
        assert_eq!(store.get(key).expect("read").as_ref(), Some(value));
    }
}

#[test]
fn a_store_opens_and_goes_on() {
    let built = build();
    if std::env::var_os("VARVE_BLESS").is_some() {
        bless(NEWEST, &built.slots);
    }
    assert!(built.now.len() > 30, "a store with something in it");
    let golden = golden(NEWEST);
    let has = |part: &[u8]| {
        (0..SLOTS).filter(|slot| golden.slot(*slot).windows(part.len()).any(|bytes| bytes == part)).count()
    };
    assert!(has(b"VRVP\x02\0") >= 8 && has(b"VRVM\x01\0") == 2, "pages of version 2, manifests of version 1");
    assert!(has(b"VRVL\x01\0") >= 1 && has(b"\x01\0\0\0VRVS") >= 3, "segments and tables of version 1");
    goes_on(NEWEST, built.now, &Encryption::none());
}

#[test]
fn an_encrypted_store_opens_and_goes_on_with_its_key() {
    let built = build_under(encryption());
    if std::env::var_os("VARVE_BLESS").is_some() {
        bless(NEWEST_ENCRYPTED, &built.slots);
    }
    let golden = golden(NEWEST_ENCRYPTED);
    let page = SLOT_HEADER_BYTES as usize;
    let files = |magic: &[u8]| {
        (0..SLOTS)
            .filter(|slot| golden.slot(*slot)[page.min(golden.slot(*slot).len())..].starts_with(magic))
            .count()
    };
    assert_eq!((files(b"VRVM\x02\0"), files(b"VRVL\x02\0") > 0), (2, true), "files of format version 2");
    assert_eq!(key_slots(&SlotPool::open(golden).expect("a pool")).expect("read"), Some(encryption().slots));
    goes_on(NEWEST_ENCRYPTED, built.now, &encryption());
}

fn goes_on(name: &str, mut keys: Keys, encryption: &Encryption) {
    let mut store = open_under(golden(name), encryption).expect("opens");
    holds(&store, &keys);
    store.set(b"a new key", b"a new value").expect("staged");
    store.commit(Durability::Strict).expect("committed");
    keys.insert(b"a new key".to_vec(), b"a new value".to_vec());
    store.compact().expect("compacted");
    holds(&store, &keys);
    store.close().expect("closed");
    holds(&open_under(store.into_storage().into_device(), encryption).expect("opens again"), &keys);
}
