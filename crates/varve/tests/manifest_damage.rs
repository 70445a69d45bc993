//! Damaged manifests: flipped bytes, missing files, arbitrary bytes. The answer is an error or the right version,
//! never an older one, and never a panic.

use proptest::prelude::*;
use varve::codec::reader::Reader;
use varve::error::Error;
use varve::manifest::{Edit, Manifest, Version};
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotHeader, SlotPool, Storage};
use varve::types::FileName;
use varve::{Encryption, Keyring};

use crate::manifest_edits::{Random, next_edit};

const STORE: [u8; 16] = [0xa5; 16];

/// A store's slots after some commits, with the last two versions.
struct Built {
    slots: MemorySlots,
    last: Version,
    before: Version,
    /// Where each manifest lies.
    manifests: [u32; 2],
    /// Which manifest file is the current one.
    current: usize,
    /// Where the last edit starts in its slot.
    last_edit: u64,
}

/// Creates a store with a WAL segment, commits, opens `openings` times and commits twice more.
fn build(openings: usize) -> Built {
    let mut pool = SlotPool::open(MemorySlots::new(5)).expect("opens");
    let (mut manifest, mut version) =
        Manifest::create(&mut pool, STORE, Encryption::none(), 1).expect("created");
    pool.create(FileName::wal(1), 0).expect("a slot is free");
    let mut before = version.clone();
    let mut last_edit = 0;
    for round in 0..=openings {
        if round > 0 {
            (manifest, version, _) =
                Manifest::open(&mut pool, &Keyring::plain(STORE), 7).expect("opens").expect("exists");
        }
        for key_bytes in [5, 40] {
            let edit = next_edit(&version, key_bytes);
            before = version;
            version = before.apply(&edit).expect("fits");
            last_edit = SLOT_HEADER_BYTES + manifest.bytes();
            manifest.commit(&mut pool, &version, &edit).expect("committed");
        }
    }
    let current = if manifest.rotation() % 2 == 1 { 0 } else { 1 };
    let manifests = [0, 1].map(|id| pool.slot_of(FileName::manifest(id)).expect("exists"));
    Built { slots: pool.into_device(), last: version, before, manifests, current, last_edit }
}

fn open(slots: MemorySlots) -> Result<Option<Version>, Error> {
    let mut pool = SlotPool::open(slots)?;
    Ok(Manifest::open(&mut pool, &Keyring::plain(STORE), 9)?.map(|(_, version, _)| version))
}

/// How far a manifest slot is written with anything but zeros.
fn written(slots: &MemorySlots, slot: u32) -> usize {
    let bytes = slots.slot(slot);
    bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0).count()
}

#[test]
fn every_flipped_byte_is_corrupt_or_harmless_or_costs_the_last_edit_alone() {
    for openings in [0, 1, 2, 3] {
        let built = build(openings);
        assert_eq!(open(built.slots.clone()), Ok(Some(built.last.clone())));
        let (mut harmless, mut older, mut corrupt) = (0, 0, 0);
        for (id, &slot) in built.manifests.iter().enumerate() {
            for byte in 0..written(&built.slots, slot) + 64 {
                let mut slots = built.slots.clone();
                slots.slot_mut(slot).expect("exists")[byte] ^= 1 << (byte % 8);
                let in_current = id == built.current && byte as u64 >= SLOT_HEADER_BYTES;
                match open(slots) {
                    Ok(Some(found)) if found == built.last => harmless += 1,
                    Err(Error::Corrupt(_)) if in_current => corrupt += 1,
                    Ok(Some(found)) if in_current && found == built.before => older += 1,
                    other => panic!("manifest {id}, byte {byte}, {openings} openings: {other:?}"),
                }
            }
        }
        assert!(harmless > 4096 && older > 30 && corrupt > 60, "{harmless} {older} {corrupt}");
    }
}

#[test]
fn a_manifest_slot_that_is_gone_is_corrupt_if_it_was_the_current_one() {
    for openings in [0, 1, 2] {
        let built = build(openings);
        for (id, &slot) in built.manifests.iter().enumerate() {
            let mut slots = built.slots.clone();
            slots.slot_mut(slot).expect("exists").clear();
            let found = open(slots);
            if id == built.current {
                assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}");
            } else {
                assert_eq!(found, Ok(Some(built.last.clone())));
            }
        }
    }
}

#[test]
fn an_old_current_manifest_put_back_is_not_taken_for_the_newest() {
    let mut pool = SlotPool::open(MemorySlots::new(5)).expect("opens");
    let (_, version) = Manifest::create(&mut pool, STORE, Encryption::none(), 1).expect("created");
    pool.create(FileName::wal(1), 0).expect("a slot is free");
    let slot = pool.slot_of(FileName::manifest(1)).expect("exists");
    let blank = pool.device().slot(slot).to_vec();
    // Rotation 2 goes into manifest 1, then is lost: manifest 0 names it.
    let (mut manifest, ..) =
        Manifest::open(&mut pool, &Keyring::plain(STORE), 2).expect("opens").expect("exists");
    let edit = next_edit(&version, 9);
    manifest.commit(&mut pool, &version.apply(&edit).expect("fits"), &edit).expect("committed");
    pool.device_mut().slot_mut(slot).expect("exists").clone_from(&blank);
    let found = open(pool.into_device());
    assert_eq!(found, Err(Error::corrupt(FileName::manifest(1), 0, "the newer manifest does not open")));
}

#[test]
fn without_a_manifest_there_is_no_store_unless_a_file_is_left() {
    assert_eq!(open(MemorySlots::new(3)), Ok(None));
    let mut built = build(0);
    for slot in built.manifests {
        built.slots.slot_mut(slot).expect("exists")[SLOT_HEADER_BYTES as usize..].fill(0);
    }
    let found = open(built.slots.clone());
    assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}");
    // Without the WAL segment it is a creation that crashed, and can be begun again in the same slots.
    let wal = (0..5).find(|slot| !built.manifests.contains(slot) && !built.slots.slot(*slot).is_empty());
    built.slots.slot_mut(wal.expect("a WAL segment")).expect("exists").clear();
    assert_eq!(open(built.slots.clone()), Ok(None));
    let mut pool = SlotPool::open(built.slots).expect("opens");
    Manifest::create(&mut pool, [9; 16], Encryption::none(), 3).expect("created");
    let files: Vec<FileName> = pool.list().into_iter().map(|(file, _)| file).collect();
    assert_eq!(files.len(), 2);
    assert_eq!(open(pool.into_device()), Ok(Some(Version::default())));
}

/// The bytes of a slot with another slot's number in them.
fn moved(bytes: &[u8], from: u32, to: u32) -> Vec<u8> {
    let mut moved = bytes.to_vec();
    if let Ok(Some(header)) = SlotHeader::decode(bytes, from) {
        moved[..SLOT_HEADER_BYTES as usize].copy_from_slice(&header.encode(to));
    }
    moved
}

#[test]
fn two_slots_claiming_one_manifest_read_as_the_newer_claim() {
    let built = build(1);
    let pool = SlotPool::open(built.slots).expect("opens");
    let slot = pool.slot_of(FileName::manifest(0)).expect("exists");
    let stale = pool.device().slot(slot).to_vec();
    // The stale claim lies in a lower or a higher slot than the good one.
    for place in [0, 5] {
        let mut slots = MemorySlots::new(6);
        for from in 0..4 {
            slots.slot_mut(from + 1).expect("exists").clone_from(&moved(
                pool.device().slot(from),
                from,
                from + 1,
            ));
        }
        let mut copy = stale.clone();
        let header = SlotHeader::decode(&copy, slot).expect("known").expect("valid");
        let older = SlotHeader { generation: 0, ..header };
        copy[..SLOT_HEADER_BYTES as usize].copy_from_slice(&older.encode(place));
        copy[SLOT_HEADER_BYTES as usize + 70] ^= 0xff;
        slots.slot_mut(place).expect("exists").clone_from(&copy);
        assert_eq!(open(slots), Ok(Some(built.last.clone())));
    }
}

/// Manifests that look right up to a point: whole stores with a few bytes replaced.
#[test]
fn runs_of_random_bytes_never_give_another_version() {
    let mut random = Random(0x0dd_ba11);
    let built = build(2);
    for _ in 0..3000 {
        let mut slots = built.slots.clone();
        let slot = built.manifests[random.below(2) as usize];
        let end = written(&built.slots, slot) as u64;
        let start = SLOT_HEADER_BYTES + random.below(end - SLOT_HEADER_BYTES);
        let len = 1 + random.below(64);
        // A run over the last two edits looks like a tail that was torn there.
        if start < built.last_edit && start + len > built.last_edit {
            continue;
        }
        for byte in start..(start + len) {
            slots.slot_mut(slot).expect("exists")[byte as usize] = random.next() as u8;
        }
        match open(slots) {
            Err(Error::Corrupt(_)) => {}
            Ok(Some(found)) => assert!(found == built.last || found == built.before, "{start} {len}"),
            other => panic!("{start} {len}: {other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        other in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = Edit::decode(&mut Reader::new(&bytes));
        let _ = Version::decode(&mut Reader::new(&bytes));
        let mut slots = build(0).slots;
        for (slot, bytes) in [(0, bytes), (1, other)] {
            let content = slots.slot_mut(slot).expect("exists");
            content.truncate(SLOT_HEADER_BYTES as usize);
            content.extend_from_slice(&bytes);
        }
        let refused = matches!(open(slots), Err(Error::Corrupt(_) | Error::Version { .. }));
        prop_assert!(refused);
    }
}
