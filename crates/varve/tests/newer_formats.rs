//! Files that a newer version wrote are no damage: opening, checking and repairing refuse the store, and nothing is written.

use varve::codec::hash::xxh3;
use varve::repair::{Repair, RepairOptions};
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, Slots};
use varve::types::{FileKind, FileName};
use varve::wal::{Records, SegmentHeader};
use varve::{Code, Durability, Encryption, Keyring, Op};

use crate::repair_damage::repair;
use crate::rotten_store::{
    Live, Rotten, SLOTS, build, build_under, holder, live, open, open_under, try_check,
};

/// Sets a byte, and the hash of the `len` bytes from `at` on, which follows them.
fn change(bytes: &mut [u8], at: usize, byte: u8, len: usize, seed: u64) {
    bytes[at] = byte;
    let hash = xxh3(&bytes[..len], seed);
    bytes[len..len + 8].copy_from_slice(&hash.to_le_bytes());
}

/// The store with this file as a newer version would write it.
fn with_newer(built: &Rotten, file: FileName, place: Live) -> MemorySlots {
    let mut slots = built.slots.clone();
    let bytes = slots.slot_mut(place.slot).expect("a slot");
    let bytes = &mut bytes[place.start as usize..];
    match file.kind {
        FileKind::Manifest => change(bytes, 4, 9, 56, 0),
        FileKind::Wal => change(bytes, 4, 9, 40, 0),
        FileKind::Table => {
            change(&mut bytes[place.bytes as usize - 96..], 80, 9, 88, xxh3(&[9; 16], 0));
        }
    }
    slots
}

/// The error of a repair, which has written nothing.
fn repair_error(slots: &MemorySlots, encryption: &Encryption) -> Code {
    let encryption = encryption.clone();
    let options =
        RepairOptions { drop_older: false, store_id: [3; 16], entropy: 11, files_max: 128, encryption };
    let mut repair = match Repair::new(slots.clone(), MemorySlots::new(SLOTS), options) {
        Ok(repair) => repair,
        Err(error) => return error.code(),
    };
    let error = loop {
        match repair.step() {
            Ok(more) => assert!(more, "the repair ended"),
            Err(error) => break error,
        }
    };
    let target = repair.into_target();
    assert_eq!((0..SLOTS).map(|slot| target.size(slot)).max(), Some(0), "something was written");
    error.code()
}

fn encrypted() -> Encryption {
    let keyring = Keyring::new([9; 16], vec![(1, [1; 32])], [4; 16]).expect("keys");
    Encryption { keyring, slots: b"wrapped".to_vec() }
}

#[test]
fn a_newer_file_of_any_kind_is_reported_and_never_repaired_away() {
    for built in [build(), build_under(encrypted())] {
        let live = live(&built.slots, &built.encryption.keyring);
        let has = |kind| live.keys().any(|file| file.kind == kind);
        assert!(has(FileKind::Manifest) && has(FileKind::Wal) && has(FileKind::Table));
        for (&file, &place) in &live {
            let slots = with_newer(&built, file, place);
            let code = |checked: varve::Result<_>| checked.map(|_| ()).map_err(|error| error.code());
            assert_eq!(code(try_check(&slots, &built.encryption, None)), Err(Code::Version), "{file}");
            assert_eq!(code(try_check(&slots, &Encryption::none(), None)), Err(Code::Version), "{file}");
            assert_eq!(repair_error(&slots, &built.encryption), Code::Version, "{file}");
            if file.kind != FileKind::Table {
                let opened = open_under(slots, &built.encryption).map(|_| ()).map_err(|error| error.code());
                assert_eq!(opened, Err(Code::Version), "{file}");
            }
        }
    }
}

#[test]
fn a_newer_file_is_known_in_a_store_whose_manifests_and_pages_are_lost() {
    let built = build();
    for (file, place) in live(&built.slots, &built.encryption.keyring) {
        let mut slots = with_newer(&built, file, place);
        let page = &mut slots.slot_mut(place.slot).expect("a slot")[..SLOT_HEADER_BYTES as usize];
        page.fill(0);
        assert_eq!(repair_error(&slots, &built.encryption), Code::Version, "{file} without its page");
        let mut slots = with_newer(&built, file, place);
        for (slot, start) in [0, 1].map(|id| holder(&built.slots, FileName::manifest(id)).expect("a slot")) {
            if file.kind != FileKind::Manifest {
                slots.slot_mut(slot).expect("a slot")[start as usize..].fill(0);
            }
        }
        assert_eq!(repair_error(&slots, &built.encryption), Code::Version, "{file} without a manifest");
    }
}

#[test]
fn a_manifest_that_requires_something_unknown_refuses_the_store_before_it_is_changed() {
    let built = build();
    let live = live(&built.slots, &built.encryption.keyring);
    let (_, place) = live.iter().find(|(file, _)| file.kind == FileKind::Manifest).expect("one");
    for bit in [0, 7, 63] {
        let mut slots = built.slots.clone();
        let bytes = &mut slots.slot_mut(place.slot).expect("a slot")[place.start as usize..];
        change(bytes, 48 + bit / 8, 1 << (bit % 8), 56, 0);
        assert_eq!(open(slots.clone()).map(|_| ()).map_err(|error| error.code()), Err(Code::Version));
        assert_eq!(repair_error(&slots, &Encryption::none()), Code::Version);
    }
}

/// The story: the entry and all that followed it in its batch were left out without a word.
#[test]
fn the_rest_of_a_batch_behind_an_entry_that_does_not_decode_is_listed_as_lost() {
    let mut store = open(MemorySlots::new(SLOTS)).expect("opens");
    for value in [b"old", b"new"] {
        let keys = [b"a", b"b", b"c", b"d"];
        let ops = keys.map(|key| Op::Set { key, value, expires: None });
        store.stage(&ops).expect("staged");
        store.commit(Durability::Strict).expect("committed");
    }
    let mut slots = store.into_storage().into_device();
    let (slot, start) = holder(&slots, FileName::wal(1)).expect("a segment");
    let bytes = &mut slots.slot_mut(slot).expect("a slot")[start as usize..];
    let salt = SegmentHeader::decode(bytes).expect("sound").salt;
    let record = Records::new(bytes, salt).nth(1).expect("two").expect("sound");
    let (at, end, first) = (record.offset, record.end, record.first_sequence);
    let entry = record.entries.clone().nth(1).expect("four").expect("sound").offset as usize;
    bytes[entry] = 3;
    let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes")) as usize;
    let hashed = [&bytes[at..at + 16], &bytes[at + 24..at + 24 + len]].concat();
    bytes[at + 16..at + 24].copy_from_slice(&xxh3(&hashed, salt).to_le_bytes());

    let (repaired, report) = repair(&slots, &Encryption::none(), false);
    let lost: Vec<_> = report.lost.iter().filter(|lost| lost.offset == at as u64).collect();
    assert_eq!(lost.len(), 1, "{report:?}");
    assert_eq!((lost[0].sequences, lost[0].is_data), (Some((first + 1, first + 3)), true));
    assert_eq!(lost[0].bytes, Some((end - at) as u64));
    let store = open(repaired).expect("opens");
    let found = [b"a", b"b", b"c", b"d"].map(|key| store.get(key).expect("read").expect("there"));
    assert_eq!(found, [b"new", b"old", b"old", b"old"]);
}
