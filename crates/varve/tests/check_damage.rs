//! A check of a sound store finds nothing. After damage to any byte that matters, it names the file.
//!
//! Damage to bytes that nothing reads cannot be noticed. These bytes are counted here one by one, so that nothing else hides
//! among them.

mod rotten_store;

use rotten_store::{Live, build, check, live, open};
use varve::Encryption;
use varve::storage::{SLOT_HEADER_BYTES, SlotHeader, Slots};
use varve::types::FileKind;

#[test]
fn a_sound_store_has_no_problems_and_everything_is_counted() {
    let built = build();
    let report = check(&built.slots, &Encryption::none());
    assert_eq!(report.problems, []);
    let live = live(&built.slots);
    let tables = live.keys().filter(|file| file.kind == FileKind::Table).count();
    assert_eq!(report.tables, tables as u64);
    assert_eq!(report.bytes, live.values().map(|file| file.bytes).sum::<u64>());
    assert!(report.blocks > 12 && report.segments > 1 && report.entries > 80, "{report:?}");
}

#[test]
fn every_flipped_byte_of_a_live_file_is_reported_as_a_problem_of_that_file() {
    let built = build();
    let live = live(&built.slots);
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
    for (file, Live { slot, start, bytes }) in live(&built.slots) {
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
    let (&file, &Live { slot, start, .. }) =
        live(&built.slots).iter().find(|(file, _)| file.kind == FileKind::Table).expect("one");
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
