//! A check of a sound store finds nothing. After damage to any byte that matters, it names the file.
//!
//! Damage to bytes that nothing reads cannot be noticed. These bytes are counted here one by one, so that nothing else hides
//! among them.

use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotHeader, Slots};
use varve::types::FileKind;
use varve::{Encryption, Keyring};

use crate::rotten_store::{Live, build, build_under, check, check_to, live, open};

#[test]
fn a_sound_store_has_no_problems_and_everything_is_counted() {
    let built = build();
    let report = check(&built.slots, &Encryption::none());
    assert_eq!(report.problems, []);
    let live = live(&built.slots, &built.encryption.keyring);
    let tables = live.keys().filter(|file| file.kind == FileKind::Table).count();
    assert_eq!(report.tables, tables as u64);
    assert_eq!(report.bytes, live.values().map(|file| file.bytes).sum::<u64>());
    assert!(report.blocks > 12 && report.segments > 1 && report.entries > 80, "{report:?}");
}

#[test]
fn every_flipped_byte_of_a_live_file_is_reported_as_a_problem_of_that_file() {
    let built = build();
    let live = live(&built.slots, &built.encryption.keyring);
    let mut flipped = 0;
    for (file, Live { slot, start, bytes }) in &live {
        // The padding of a page is all alike, so samples of it are enough. Nothing reads the half that was not written last.
        let header = SlotHeader::decode(built.slots.slot(*slot), *slot).expect("known").expect("valid");
        let page = &built.slots.slot(*slot)[..SLOT_HEADER_BYTES as usize];
        let half = if header.encode(*slot)[..2048] == page[..2048] { 0 } else { 2048 };
        let in_page = (half..half + 2048).filter(|at| at % 1024 < 128 || at % 331 == 0);
        for at in in_page.chain(*start as usize..(start + bytes) as usize) {
            let mut slots = built.slots.clone();
            slots.slot_mut(*slot).expect("a slot")[at] ^= 1 << (at % 8);
            let report = check(&slots, &Encryption::none());
            let named = report.problems.iter().any(|problem| problem.file == *file);
            // If the header of the newest manifest is damaged, its whole file is lost, and the other manifest names it.
            assert!(named, "{file}, byte {at}: {:?}", report.problems);
            flipped += 1;
        }
    }
    assert!(flipped > 5000, "{flipped}");
}

#[test]
fn a_check_names_files_that_are_gone_or_short() {
    let built = build();
    for (file, Live { slot, start, bytes }) in live(&built.slots, &built.encryption.keyring) {
        for keep in [0, 48, SLOT_HEADER_BYTES, start + bytes / 2, start + bytes - 1] {
            let mut slots = built.slots.clone();
            slots.truncate(slot, keep).expect("cut");
            let report = check(&slots, &Encryption::none());
            // If the newest segment is gone, only the open store can prove it.
            let is_newest = file.kind == FileKind::Wal && keep < start + bytes;
            let named = report.problems.iter().any(|problem| problem.file == file);
            assert!(named || is_newest, "{file} cut to {keep}: {:?}", report.problems);
        }
    }
}

#[test]
fn one_damaged_block_does_not_hide_the_next() {
    let built = build();
    let (&file, &Live { slot, start, .. }) = live(&built.slots, &built.encryption.keyring)
        .iter()
        .find(|(file, _)| file.kind == FileKind::Table)
        .expect("one");
    let mut slots = built.slots.clone();
    for at in [10, 600] {
        slots.slot_mut(slot).expect("a slot")[start as usize + at] ^= 1;
    }
    let report = check(&slots, &Encryption::none());
    assert_eq!(
        report.problems.iter().filter(|problem| problem.file == file).count(),
        2,
        "{:?}",
        report.problems
    );
}

#[test]
fn a_store_that_a_check_finds_sound_opens() {
    let built = build();
    let store = open(built.slots).expect("opens");
    for (key, value) in &built.now {
        assert_eq!(store.get(key).expect("read").as_ref(), Some(value));
    }
}

fn encryption() -> Encryption {
    Encryption {
        keyring: Keyring::new([0; 16], vec![(1, [7; 32])], [1; 16]).expect("keys"),
        slots: b"slots".to_vec(),
    }
}

#[test]
fn without_its_key_a_sound_store_has_no_problems_and_all_bytes_are_counted() {
    let built = build_under(encryption());
    let (with, without) = (check(&built.slots, &built.encryption), check(&built.slots, &Encryption::none()));
    assert_eq!((&with.problems, &without.problems), (&vec![], &vec![]));
    assert!(!with.without_key && without.without_key);
    // Tables and segments that are no longer in use may still be there.
    assert!(without.tables >= with.tables && without.blocks >= with.blocks, "{without:?}");
    assert!(without.segments >= with.segments && without.records >= with.records, "{without:?}");
    assert!(with.tables > 1 && with.segments > 1 && without.bytes >= with.bytes, "{without:?}");
    assert_eq!(without.entries, 0);
}

#[test]
fn without_its_key_every_flipped_byte_of_a_live_file_is_reported_as_a_problem_of_that_file() {
    let built = build_under(encryption());
    let mut flipped = 0;
    for (file, Live { slot, start, bytes }) in live(&built.slots, &built.encryption.keyring) {
        // A damaged header leaves the other manifest as the newest.
        let skipped = if file.kind == FileKind::Manifest { 64 } else { 0 };
        for at in (start + skipped) as usize..(start + bytes) as usize {
            let mut slots = built.slots.clone();
            slots.slot_mut(slot).expect("a slot")[at] ^= 1 << (at % 8);
            let report = check(&slots, &Encryption::none());
            let named = report.problems.iter().any(|problem| problem.file == file);
            assert!(named, "{file}, byte {at}: {:?}", report.problems);
            let of_slots = |what: &str| what == "the key slots are damaged";
            let is_of_slots = report.problems.iter().any(|problem| of_slots(problem.what));
            let slots_end = start + (64 + 24 + 1 + built.encryption.slots.len() as u64).next_multiple_of(8);
            assert_eq!(is_of_slots, file.kind == FileKind::Manifest && (at as u64) < slots_end, "byte {at}");
            flipped += 1;
        }
    }
    assert!(flipped > 5000, "{flipped}");
}

#[test]
fn a_crash_may_have_cut_off_the_last_record_of_a_store_that_is_not_open() {
    for (made, given) in [
        (Encryption::none(), Encryption::none()),
        (encryption(), encryption()),
        (encryption(), Encryption::none()),
    ] {
        let built = build_under(made);
        let live = live(&built.slots, &built.encryption.keyring);
        let (file, newest) = live.iter().rfind(|(file, _)| file.kind == FileKind::Wal).expect("one");
        let mut slots = built.slots.clone();
        // The seal, and the end of the record before it.
        let end = (newest.start + newest.bytes) as usize;
        slots.slot_mut(newest.slot).expect("a slot")[end - 30..end].fill(0);
        let reported = check_to(&slots, &given, None).problems;
        assert!(reported.len() == 1 && reported[0].file == *file, "{reported:?}");
        assert_eq!(check_to(&slots, &given, Some(0)).problems, []);
    }
}

#[test]
fn without_its_key_one_damaged_block_does_not_hide_the_next() {
    let built = build_under(encryption());
    let live = live(&built.slots, &built.encryption.keyring);
    let (&file, &Live { slot, start, .. }) =
        live.iter().find(|(file, live)| file.kind == FileKind::Table && live.bytes > 1500).expect("one");
    let mut slots = built.slots.clone();
    // The first block, and one behind an intact one.
    for at in [10, 900] {
        slots.slot_mut(slot).expect("a slot")[start as usize + at] ^= 1;
    }
    let report = check(&slots, &Encryption::none());
    let offsets: Vec<_> =
        report.problems.iter().filter(|problem| problem.file == file).map(|p| p.offset).collect();
    assert_eq!(offsets.len(), 2, "{:?}", report.problems);
}

#[test]
fn a_place_without_a_store_is_sound() {
    let report = check(&MemorySlots::new(4), &Encryption::none());
    assert_eq!((report.problems, report.without_key), (vec![], false));
}
