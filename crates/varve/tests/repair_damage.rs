//! Repair of a store with a damaged byte, a file cut short, a page or a manifest gone: readable entries come back, others
//! are listed as lost, and no key gets a value that it never had.

use varve::repair::{Lost, Repair, RepairOptions, RepairReport};
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, Slots};
use varve::types::FileName;
use varve::wal::{Piece, SegmentHeader, salvage_segment};
use varve::{Code, Durability, Encryption, Error, Keyring};

use crate::rotten_store::{
    Keys, Live, Rotten, SLOTS, build, build_under, check, holder, live, open, open_under,
};

pub fn repair(slots: &MemorySlots, encryption: &Encryption, strict: bool) -> (MemorySlots, RepairReport) {
    let encryption = encryption.clone();
    let options =
        RepairOptions { drop_older: strict, store_id: [3; 16], entropy: 11, files_max: 128, encryption };
    let mut repair = Repair::new(slots.clone(), MemorySlots::new(SLOTS), options).expect("of this format");
    let mut last = 0;
    while repair.step().expect("repairs") {
        let (done, total) = repair.progress();
        assert!(last <= done && done <= total, "{last} {done} {total}");
        last = done;
    }
    let report = repair.report().clone();
    (repair.into_target(), report)
}

/// Everything a store contains, which a check must find sound.
fn contents(slots: MemorySlots, encryption: &Encryption) -> Keys {
    assert_eq!(check(&slots, encryption).problems, []);
    let store = open_under(slots, encryption).expect("a repaired store opens");
    let mut cursor = store.scan(ScanOptions::default()).expect("scans");
    let mut keys = Vec::new();
    loop {
        let mut batch = Batch::new(true, false);
        let progress = store.scan_next(&mut cursor, 1 << 20, &mut batch).expect("reads");
        keys.extend(batch.entries().map(|(key, _)| key.to_vec()));
        if progress == Progress::Finished {
            break;
        }
    }
    let value = |key: &Vec<u8>| store.get(key).expect("read").expect("there");
    keys.into_iter().map(|key| (key.clone(), value(&key))).collect()
}

/// The result that the damage allows.
fn judge(built: &Rotten, slots: &MemorySlots, place: &str, with_strict: bool) -> RepairReport {
    let (repaired, report) = repair(slots, &built.encryption, false);
    let found = contents(repaired, &built.encryption);
    assert_eq!(report.entries, found.len() as u64);
    // A loss excuses a key if it may have contained the key's newest version: the key is in its range, and the sequence too.
    let excused = |key: &[u8]| {
        let sequence = built.sequences.get(key);
        let may_have = |lost: &Lost| match (lost.sequences, sequence) {
            (Some((first, last)), Some(&sequence)) => (first..=last).contains(&sequence),
            _ => true,
        };
        report.lost.iter().any(|lost| lost.concerns(key) && may_have(lost)) || !report.is_sealed
    };
    for (key, value) in &built.now {
        assert!(found.get(key) == Some(value) || excused(key), "{place}: lost {key:?}\n{report:#?}");
    }
    for (key, value) in &found {
        let ever = built.ever.get(key).is_some_and(|values| values.contains(value));
        assert!(ever, "{place}: {key:?} never had that value");
        let may_be_back = report.may_resurrect && !built.now.contains_key(key);
        assert!(
            built.now.get(key) == Some(value) || excused(key) || may_be_back,
            "{place}: {key:?} is wrong\n{report:#?}"
        );
    }
    if with_strict && !report.lost.is_empty() && report.is_sealed && !report.may_resurrect {
        let (strict, _) = repair(slots, &built.encryption, true);
        for (key, value) in contents(strict, &built.encryption) {
            assert_eq!(
                built.now.get(&key),
                Some(&value),
                "{place}: {key:?} is older than what was lost\n{report:#?}"
            );
        }
    }
    report
}

/// Places to damage: every byte of the files that matter, except the padding of pages, and samples of the other written
/// bytes.
fn places(slots: &MemorySlots) -> Vec<(u32, usize)> {
    let used = |slot: u32| slots.slot(slot).iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let all = (0..slots.count()).flat_map(|slot| (0..used(slot)).map(move |at| (slot, at)));
    let (page, live) = (SLOT_HEADER_BYTES as usize, live(slots, &Keyring::plain([0; 16])));
    let counts = |slot: u32, at: usize| {
        let is_live =
            |file: &Live| file.slot == slot && (file.start..file.start + file.bytes).contains(&(at as u64));
        at < page || live.values().any(is_live)
    };
    all.filter(|&(slot, at)| (at >= page || at % 1024 < 128) && (at % 11 == 0 || counts(slot, at))).collect()
}

#[test]
fn a_sound_store_comes_back_whole_with_sequences_and_expiries() {
    let built = build();
    let before = built.slots.clone();
    let report = judge(&built, &built.slots, "sound", true);
    assert_eq!(
        (report.lost.len(), report.older, report.may_resurrect, report.is_sealed),
        (0, 0, false, true)
    );
    let (repaired, _) = repair(&built.slots, &built.encryption, false);
    assert_eq!(contents(repaired.clone(), &built.encryption), built.now);
    let (old, new) = (open(before).expect("opens"), open(repaired).expect("opens"));
    assert_eq!(old.last_sequence(), new.last_sequence());
    let entry = |store: &crate::rotten_store::SimpleStore, key: &[u8]| {
        store.find(key, |entry| entry.map(|entry| (entry.sequence, entry.expires))).expect("read")
    };
    let mut expiring = 0;
    for key in built.now.keys() {
        let found = entry(&new, key);
        assert_eq!(found, entry(&old, key), "{key:?}");
        expiring += u32::from(found.is_some_and(|(_, expires)| expires.is_some()));
    }
    assert!(expiring > 2, "{expiring}");
}

#[test]
fn after_any_flipped_byte_all_that_is_intact_comes_back_and_the_rest_is_listed() {
    let built = build();
    let (mut flips, mut listed) = (0u32, 0u32);
    for (slot, at) in places(&built.slots) {
        let mut slots = built.slots.clone();
        slots.slot_mut(slot).expect("a slot")[at] ^= 1 << (at % 8);
        let report = judge(&built, &slots, &format!("slot {slot}, byte {at}"), at % 4 == 0);
        flips += 1;
        listed += u32::from(!report.lost.is_empty());
    }
    println!("{flips} flips, {listed} with a loss");
    assert!(flips > 5000 && listed > 2000 && listed < flips, "{listed} of {flips}");
}

#[test]
fn a_damaged_block_costs_only_the_keys_between_its_neighbours() {
    let built = build();
    let mut costs = Vec::new();
    for slot in 0..SLOTS {
        let is_table = |file: FileName| holder(&built.slots, file).filter(|(holder, _)| *holder == slot);
        let Some((_, start)) = (1..40).map(FileName::table).find_map(is_table) else { continue };
        let mut slots = built.slots.clone();
        slots.slot_mut(slot).expect("a slot")[start as usize + 20] ^= 4;
        let report = judge(&built, &slots, &format!("slot {slot}"), true);
        costs
            .extend(report.lost.iter().map(|lost| built.now.keys().filter(|key| lost.concerns(key)).count()));
    }
    assert!(!costs.is_empty() && costs.iter().all(|&keys| keys < built.now.len() / 3), "{costs:?}");
}

#[test]
fn a_store_cut_short_anywhere_gives_what_was_before_the_cut() {
    let built = build();
    for slot in 0..SLOTS {
        let bytes = built.slots.size(slot);
        let used = built.slots.slot(slot).iter().rposition(|&byte| byte != 0).unwrap_or(0) as u64;
        for keep in (0..used).step_by(97).chain([used, SLOT_HEADER_BYTES, 48]).filter(|&keep| keep < bytes) {
            let mut slots = built.slots.clone();
            slots.truncate(slot, keep).expect("cut");
            judge(&built, &slots, &format!("slot {slot} cut to {keep}"), true);
        }
    }
}

#[test]
fn a_slot_whose_page_is_zeroed_is_known_by_its_contents() {
    let built = build();
    for slot in 0..SLOTS {
        let mut slots = built.slots.clone();
        let bytes = slots.slot_mut(slot).expect("a slot");
        let page = bytes.len().min(SLOT_HEADER_BYTES as usize);
        bytes[..page].fill(0);
        let report = judge(&built, &slots, &format!("slot {slot} without its page"), true);
        assert_eq!(report.lost, [], "slot {slot}");
    }
}

#[test]
fn without_any_manifest_every_key_comes_back_and_perhaps_some_that_were_deleted() {
    let built = build();
    let mut slots = built.slots.clone();
    for id in [0, 1] {
        let (slot, _) = holder(&built.slots, FileName::manifest(id)).expect("a slot");
        slots.slot_mut(slot).expect("a slot")[SLOT_HEADER_BYTES as usize..].fill(0);
    }
    let report = judge(&built, &slots, "no manifest", true);
    assert!(report.may_resurrect);
    let found = contents(repair(&slots, &built.encryption, false).0, &built.encryption);
    for (key, value) in &built.now {
        assert_eq!(found.get(key), Some(value), "{key:?}");
    }
}

#[test]
fn a_block_written_to_the_place_of_another_is_not_believed() {
    let built = build();
    for slot in 0..SLOTS {
        let file = SLOT_HEADER_BYTES as usize;
        let mut slots = built.slots.clone();
        let bytes = slots.slot_mut(slot).expect("a slot");
        if bytes.len() < file + 900 {
            continue;
        }
        bytes.copy_within(file..file + 300, file + 320);
        judge(&built, &slots, &format!("slot {slot}, a block misdirected"), true);
    }
}

#[test]
fn a_repair_that_does_not_end_leaves_nothing_that_opens() {
    let built = build();
    let options = RepairOptions {
        drop_older: false,
        store_id: [3; 16],
        entropy: 11,
        files_max: 128,
        encryption: Encryption::none(),
    };
    let mut steps = 0;
    loop {
        let mut repair =
            Repair::new(built.slots.clone(), MemorySlots::new(SLOTS), options.clone()).expect("starts");
        let ended = (0..steps).any(|_| !repair.step().expect("repairs"));
        let opened = open(repair.into_target());
        if ended {
            assert_eq!(
                opened.expect("opens").last_sequence(),
                open(built.slots).expect("opens").last_sequence()
            );
            return;
        }
        // Nothing was written yet, or tables without a manifest.
        assert!(
            opened.is_err() || opened.is_ok_and(|store| store.last_sequence() == 0),
            "after {steps} steps"
        );
        steps += 1;
    }
}

#[test]
fn an_encrypted_store_is_repaired_with_its_keys_and_the_new_one_is_encrypted_too() {
    let keys = vec![(1, [1; 32]), (2, [2; 32])];
    let keyring = Keyring::new([9; 16], keys, [4; 16]).expect("keys");
    let built = build_under(Encryption { keyring, slots: b"wrapped".to_vec() });
    assert_eq!(judge(&built, &built.slots, "sound", true).lost, []);
    let mut listed = 0;
    for slot in 0..SLOTS {
        let used = built.slots.slot(slot).iter().rposition(|&byte| byte != 0).unwrap_or(0);
        for at in (SLOT_HEADER_BYTES as usize..used).step_by(211) {
            let mut slots = built.slots.clone();
            slots.slot_mut(slot).expect("a slot")[at] ^= 1 << (at % 8);
            let report = judge(&built, &slots, &format!("slot {slot}, byte {at}"), true);
            listed += u32::from(!report.lost.is_empty());
        }
    }
    assert!(listed > 20, "{listed}");
    let (repaired, _) = repair(&built.slots, &built.encryption, false);
    for slots in [&built.slots, &repaired] {
        assert_eq!(open(slots.clone()).map(|_| ()).map_err(|error| error.code()), Err(Code::Key));
        let bytes = (0..SLOTS).flat_map(|slot| slots.slot(slot).to_vec()).collect::<Vec<_>>();
        assert!(!bytes.windows(8).any(|window| window == b"value 00"));
    }
}

/// Damages a record or a seal of a segment, counted from 0.
fn damage_piece(slots: &mut MemorySlots, segment: u64, number: usize) {
    let (slot, start) = holder(slots, FileName::wal(segment)).expect("a slot");
    let image = &mut slots.slot_mut(slot).expect("a slot")[start as usize..];
    let salt = SegmentHeader::decode(image).expect("a header").salt;
    let offset = match &salvage_segment(image, salt, image.len())[number] {
        Piece::Record(record) => record.offset,
        Piece::Seal { offset } | Piece::Gap { offset, .. } => *offset,
    };
    image[offset + 16] ^= 1;
}

/// The story: behind a damaged record, a seal and the unused end of the file counted as writes that may be lost, so later entries were
/// older than these. So did a damaged seal at the end of a segment. A strict repair then left out nearly everything.
#[test]
fn entries_count_as_older_than_lost_writes_only_if_they_may_be() {
    let mut store = open(MemorySlots::new(SLOTS)).expect("opens");
    for key in [b"a", b"b", b"c"] {
        store.set(key, b"value").expect("staged");
        store.commit(Durability::Strict).expect("committed");
        store.seal().expect("sealed");
    }
    store.close().expect("closed");
    let one = store.into_storage().into_device();
    let mut store = open(one.clone()).expect("opens");
    store.set(b"d", b"value").expect("staged");
    store.close().expect("closed");
    let two = store.into_storage().into_device();
    // In the first segment: a, seal, b, seal, c, seal.
    for (mut slots, piece, older, newer) in [(one, 2, 1, 1), (two, 5, 0, 4)] {
        damage_piece(&mut slots, 1, piece);
        let [all, strict] = [false, true].map(|strict| repair(&slots, &Encryption::none(), strict).1);
        assert_eq!((all.entries, all.older, strict.entries), (older + newer, older, newer), "{all:#?}");
        assert_eq!((all.lost.len(), all.is_sealed), (1, true), "{all:#?}");
    }
}

/// The story: a page came back after a repair and went on with its snapshot, although a repair keeps only the newest version of each key.
#[test]
fn a_snapshot_from_before_a_repair_is_not_opened_again() {
    let built = build();
    let mut store = open(repair(&built.slots, &built.encryption, false).0).expect("opens");
    let last = store.last_sequence();
    assert_eq!(store.restore_snapshot(1_u32.into(), last - 1, 1000), Err(Error::Retry));
    assert_eq!(store.restore_snapshot(1_u32.into(), last, 1000), Ok(()), "nothing was written since");
}
