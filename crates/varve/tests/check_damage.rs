//! A check of a sound store finds nothing; after any damage to a byte that counts it names the file.
//!
//! What cannot be noticed: bytes that nothing reads. They are counted here byte for byte, so that nothing else hides among them.

mod rotten_store;

use std::collections::BTreeMap;

use rotten_store::{build, check, holder, open};
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, Slots};
use varve::types::{FileKind, FileName};

/// The files that count, with where they lie and how many of their bytes count.
fn live(slots: &MemorySlots) -> BTreeMap<FileName, (u32, u64)> {
    use varve::manifest::inspect_manifest;
    let mut live = BTreeMap::new();
    let file_of = |slot: u32| slots.slot(slot).get(SLOT_HEADER_BYTES as usize..).unwrap_or_default();
    let manifests = [0, 1].map(FileName::manifest).into_iter().filter_map(|file| {
        let slot = holder(slots, file)?;
        Some((file, slot, inspect_manifest(file_of(slot)).ok()??))
    });
    let newest = manifests.max_by_key(|(_, _, found)| found.header.rotation).expect("a manifest");
    live.insert(newest.0, (newest.1, newest.2.end));
    let version = newest.2.version.expect("a version");
    for (_, table) in version.tables() {
        let file = FileName::table(table.id);
        live.insert(file, (holder(slots, file).expect("a slot"), table.size));
    }
    for id in version.floors.log_floor + 1..version.floors.next_segment + 9 {
        let file = FileName::wal(id);
        let Some(slot) = holder(slots, file) else { continue };
        let bytes = file_of(slot);
        let Ok(header) = varve::wal::SegmentHeader::decode(bytes) else { continue };
        let scan = varve::wal::scan_segment(bytes, &header, None, file).expect("sound");
        live.insert(file, (slot, scan.end as u64));
    }
    live
}

#[test]
fn a_sound_store_has_no_problems_and_everything_is_counted() {
    let built = build();
    let report = check(&built.slots);
    assert_eq!(report.problems, []);
    let live = live(&built.slots);
    let tables = live.keys().filter(|file| file.kind == FileKind::Table).count();
    assert_eq!(report.tables, tables as u64);
    assert_eq!(report.bytes, live.values().map(|(_, bytes)| bytes).sum::<u64>());
    assert!(report.blocks > 12 && report.segments > 1 && report.entries > 80, "{report:?}");
}

#[test]
fn every_flipped_byte_of_a_live_file_is_told_as_a_problem_of_that_file() {
    let built = build();
    let live = live(&built.slots);
    let mut flipped = 0;
    for (file, (slot, bytes)) in &live {
        let end = (SLOT_HEADER_BYTES + bytes) as usize;
        // The padding of a page is all alike: samples of it do.
        let in_page = (0..SLOT_HEADER_BYTES as usize).filter(|at| at % 2048 < 64 || at % 331 == 0);
        for at in in_page.chain(SLOT_HEADER_BYTES as usize..end) {
            let mut slots = built.slots.clone();
            slots.slot_mut(*slot).expect("a slot")[at] ^= 1 << (at % 8);
            let report = check(&slots);
            let named = report.problems.iter().any(|problem| problem.file == *file);
            // Behind the header of the newest manifest its whole file is lost, and the other one names it.
            assert!(named, "{file}, byte {at}: {:?}", report.problems);
            flipped += 1;
        }
    }
    assert!(flipped > 5000, "{flipped}");
}

#[test]
fn a_check_names_files_that_are_gone_or_short() {
    let built = build();
    for (file, (slot, bytes)) in live(&built.slots) {
        for keep in [0, 48, SLOT_HEADER_BYTES, SLOT_HEADER_BYTES + bytes / 2, SLOT_HEADER_BYTES + bytes - 1] {
            let mut slots = built.slots.clone();
            slots.truncate(slot, keep).expect("cut");
            let report = check(&slots);
            // A newest segment that is gone is proven by nobody but the open store.
            let is_newest = file.kind == FileKind::Wal && keep < SLOT_HEADER_BYTES + bytes;
            let named = report.problems.iter().any(|problem| problem.file == file);
            assert!(named || is_newest, "{file} cut to {keep}: {:?}", report.problems);
        }
    }
}

#[test]
fn one_damaged_block_does_not_hide_the_next() {
    let built = build();
    let (&file, &(slot, _)) =
        live(&built.slots).iter().find(|(file, _)| file.kind == FileKind::Table).expect("one");
    let mut slots = built.slots.clone();
    for at in [10, 600] {
        slots.slot_mut(slot).expect("a slot")[SLOT_HEADER_BYTES as usize + at] ^= 1;
    }
    let report = check(&slots);
    assert_eq!(
        report.problems.iter().filter(|problem| problem.file == file).count(),
        2,
        "{:?}",
        report.problems
    );
}

#[test]
fn what_a_check_finds_sound_opens() {
    let built = build();
    let store = open(built.slots).expect("opens");
    for (key, value) in &built.now {
        assert_eq!(store.get(key).expect("read").as_ref(), Some(value));
    }
}
