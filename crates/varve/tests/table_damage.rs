//! A damaged table is noticed: whichever byte is flipped, cut or put elsewhere, an answer is right or Corrupt.

mod table_common;

use std::rc::Rc;

use table_common::*;
use varve::error::{Code, Error};
use varve::table::{
    BlockHandle, BlockKind, MemoryBlocks, Table, TableBuilder, TableMeta, TableOptions, open_block,
};
use varve::types::{Kind, RangeTombstone};

fn small_table(compress: bool) -> (Vec<ModelEntry>, TableMeta, Vec<u8>) {
    let entry = |number: u64| ModelEntry {
        key: format!("layer:{:04}", number / 2).into_bytes(),
        sequence: 1000 - number,
        kind: if number.is_multiple_of(7) { Kind::Delete } else { Kind::Set },
        expires: number.is_multiple_of(5).then_some(number),
        value: if number.is_multiple_of(7) {
            Vec::new()
        } else {
            format!("clay clay clay {number}").repeat(2).into_bytes()
        },
    };
    let model = model_of((0..60).map(entry).collect());
    let tombstones =
        [RangeTombstone { start: b"layer:0003".to_vec(), end: b"layer:0006".to_vec(), sequence: 999 }];
    let options = TableOptions { block_bytes: 512, compress, ..TableOptions::default() };
    let (meta, file) = build(&model, &tombstones, &options);
    (model, meta, file)
}

fn assert_corrupt<T>(result: Result<T, Error>, what: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.code(), Code::Corrupt, "{what}: {error}");
            None
        }
    }
}

/// Reads everything that can be read; each answer must be right or Corrupt. True when something was Corrupt.
fn read_all(model: &[ModelEntry], meta: &TableMeta, file: Vec<u8>, what: &str) -> bool {
    let mut blocks = MemoryBlocks::new(STORE);
    blocks.insert(TABLE, file);
    let Some(table) = assert_corrupt(open(meta, &blocks), what) else {
        return true;
    };
    assert_eq!(table.tombstone_over(b"layer:0004", 999), 999, "{what}");
    assert_eq!(table.tombstone_over(b"layer:0006", 999), 0, "{what}");
    let mut damaged = false;
    for entry in model {
        let found = assert_corrupt(table_get(&table, &blocks, &entry.key, entry.sequence), what);
        damaged |= found.is_none();
        assert!(found.is_none_or(|found| found.as_ref() == Some(entry)), "{what}: a wrong answer");
    }
    for entries in [scan(&table, &blocks), reversed(scan_back(&table, &blocks))] {
        let entries = assert_corrupt(entries, what);
        damaged |= entries.is_none();
        assert!(entries.is_none_or(|entries| entries == model), "{what}: a wrong scan");
    }
    damaged
}

fn reversed(entries: varve::error::Result<Vec<ModelEntry>>) -> varve::error::Result<Vec<ModelEntry>> {
    entries.map(|entries| entries.into_iter().rev().collect())
}

#[test]
fn every_flipped_byte_is_found() {
    for compress in [false, true] {
        let (model, meta, file) = small_table(compress);
        assert!(!read_all(&model, &meta, file.clone(), "the whole table"));
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                let what = format!("byte {at} of {} flipped by {flip:#x}", file.len());
                assert!(read_all(&model, &meta, damaged, &what), "{what} was not noticed");
            }
        }
    }
}

#[test]
fn every_cut_is_found() {
    let (model, meta, file) = small_table(false);
    for len in (0..file.len()).step_by(7) {
        let what = format!("cut to {len}");
        assert!(read_all(&model, &meta, file[..len].to_vec(), &what), "{what} was not noticed");
        let short = TableMeta { size: len as u64, ..meta.clone() };
        assert!(read_all(&model, &short, file[..len].to_vec(), &what), "{what} was not noticed");
    }
}

#[test]
fn a_block_in_another_place_table_or_store_is_refused() {
    let (_, meta, file) = small_table(false);
    let mut blocks = MemoryBlocks::new(STORE);
    blocks.insert(TABLE, file.clone());
    let table = open(&meta, &blocks).unwrap();
    let handle = table.index().handle(1);
    let stored = || file[handle.offset as usize..handle.end() as usize].to_vec();
    let read = |store, id, handle, kind| open_block(store, id, handle, stored(), kind);
    assert!(read(&STORE, TABLE, handle, BlockKind::Data).is_ok());
    let moved = BlockHandle { offset: 0, ..handle };
    for refused in [
        read(&STORE, TABLE, moved, BlockKind::Data),
        read(&STORE, TABLE + 1, handle, BlockKind::Data),
        read(&[0; 16], TABLE, handle, BlockKind::Data),
        read(&STORE, TABLE, handle, BlockKind::Index),
    ] {
        assert_eq!(refused.map(|_| ()).map_err(|error| error.code()), Err(Code::Corrupt));
    }
}

#[test]
fn a_valid_table_that_the_manifest_does_not_name_is_refused() {
    let (_, meta, _) = small_table(false);
    let mut builder = TableBuilder::new(STORE, TABLE, TableOptions::default());
    builder.add(b"other", 1, Kind::Set, None, b"");
    let other = builder.finish();
    let mut blocks = MemoryBlocks::new(STORE);
    blocks.insert(TABLE, builder.take());
    assert!(open(&other, &blocks).is_ok());
    let named = TableMeta { size: other.size, ..meta };
    assert_eq!(open(&named, &blocks).map(|_| ()).map_err(|error| error.code()), Err(Code::Corrupt));
}

#[test]
fn a_newer_format_is_not_reported_as_damage() {
    let (_, meta, mut file) = small_table(false);
    let footer = file.len() - 96;
    file[footer + 80] = 9;
    let seed = varve::codec::hash::xxh3(&STORE, 0);
    let hash = varve::codec::hash::xxh3(&file[footer..footer + 88], seed);
    file[footer + 88..].copy_from_slice(&hash.to_le_bytes());
    let meta = TableMeta { footer_hash: hash, ..meta };
    let mut blocks = MemoryBlocks::new(STORE);
    blocks.insert(TABLE, file);
    assert_eq!(open(&meta, &blocks).map(|_| ()), Err(Error::Version { found: 9, supported: 1 }));
}

#[test]
fn a_table_without_entries_opens_and_answers_nothing() {
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"c".to_vec(), sequence: 4 };
    for tombstones in [&[][..], &[tombstone]] {
        let (meta, file) = build(&[], tombstones, &TableOptions::default());
        let mut blocks = MemoryBlocks::new(STORE);
        blocks.insert(TABLE, file);
        let table: Rc<Table> = open(&meta, &blocks).unwrap();
        assert_eq!(table_get(&table, &blocks, b"a", 9), Ok(None));
        assert_eq!(scan(&table, &blocks), Ok(Vec::new()));
        assert_eq!(scan_back(&table, &blocks), Ok(Vec::new()));
        assert_eq!(
            table.tombstone_over(b"b", 9),
            tombstones.first().map_or(0, |tombstone| tombstone.sequence)
        );
    }
}
