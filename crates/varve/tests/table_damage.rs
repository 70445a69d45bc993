//! A damaged table is noticed: whichever byte is flipped, cut or put elsewhere, an answer is right or Corrupt.

use std::rc::Rc;

use varve::codec::cipher::Keyring;
use varve::codec::hash::xxh3;
use varve::error::{Code, Error};
use varve::table::{
    BlockHandle, BlockKind, MemoryBlocks, Table, TableBuilder, TableMeta, TableOptions, open_block,
};
use varve::types::{Kind, RangeTombstone};

use crate::table_common::*;

fn small_table(keyring: &Keyring, compress: bool) -> (Vec<ModelEntry>, TableMeta, Vec<u8>) {
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
    let (meta, file) = build(keyring, &model, &tombstones, &options);
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
fn read_all(keyring: &Keyring, model: &[ModelEntry], meta: &TableMeta, file: Vec<u8>, what: &str) -> bool {
    let mut blocks = MemoryBlocks::new(keyring.clone());
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
    for (keyring, compress) in [(plain(), false), (plain(), true), (encrypted(), true)] {
        let (model, meta, file) = small_table(&keyring, compress);
        assert!(!read_all(&keyring, &model, &meta, file.clone(), "the whole table"));
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                let what = format!("byte {at} of {} flipped by {flip:#x}", file.len());
                assert!(read_all(&keyring, &model, &meta, damaged, &what), "{what} was not noticed");
            }
        }
    }
}

#[test]
fn every_cut_is_found() {
    let keyring = encrypted();
    let (model, meta, file) = small_table(&keyring, false);
    for len in (0..file.len()).step_by(7) {
        let what = format!("cut to {len}");
        assert!(read_all(&keyring, &model, &meta, file[..len].to_vec(), &what), "{what} was not noticed");
        let short = TableMeta { size: len as u64, ..meta.clone() };
        assert!(read_all(&keyring, &model, &short, file[..len].to_vec(), &what), "{what} was not noticed");
    }
}

/// The bytes of the second block, and where it lies.
fn second_block(keyring: &Keyring, meta: &TableMeta, file: &[u8]) -> (BlockHandle, Vec<u8>) {
    let mut blocks = MemoryBlocks::new(keyring.clone());
    blocks.insert(TABLE, file.to_vec());
    let handle = open(meta, &blocks).unwrap().index().handle(1);
    (handle, file[handle.offset as usize..handle.end() as usize].to_vec())
}

/// Gives a block the hash that it needs in another place.
fn rehash(stored: &mut [u8], store: &[u8; 16], table: u64, offset: u64) {
    let end = stored.len() - 8;
    let place = [&store[..], &table.to_le_bytes(), &offset.to_le_bytes()].concat();
    let hash = xxh3(&stored[..end], xxh3(&place, 0));
    stored[end..].copy_from_slice(&hash.to_le_bytes());
}

#[test]
fn a_block_in_another_place_table_or_store_is_refused() {
    for keyring in [plain(), encrypted()] {
        let (_, meta, file) = small_table(&keyring, false);
        let (handle, stored) = second_block(&keyring, &meta, &file);
        let read = |keyring: &Keyring, id, handle, kind| {
            open_block(keyring, id, meta.key, handle, stored.clone(), kind)
        };
        assert!(read(&keyring, TABLE, handle, BlockKind::Data).is_ok());
        let moved = BlockHandle { offset: 0, ..handle };
        for refused in [
            read(&keyring, TABLE, moved, BlockKind::Data),
            read(&keyring, TABLE + 1, handle, BlockKind::Data),
            read(&keyring.of_store([0; 16]), TABLE, handle, BlockKind::Data),
            read(&keyring, TABLE, handle, BlockKind::Index),
        ] {
            assert_eq!(refused.map(|_| ()).map_err(|error| error.code()), Err(Code::Corrupt));
        }
    }
}

#[test]
fn an_encrypted_block_is_refused_elsewhere_though_its_hash_is_right_there() {
    let keyring = encrypted();
    let (_, meta, file) = small_table(&keyring, false);
    let (handle, stored) = second_block(&keyring, &meta, &file);
    let read = |keyring: &Keyring, id, key, handle: BlockHandle, kind, mut stored: Vec<u8>| {
        rehash(&mut stored, keyring.store(), id, handle.offset);
        let refused = open_block(keyring, id, key, handle, stored, kind);
        refused.map(|_| "opened").unwrap_or_else(|error| match error {
            Error::Corrupt(damage) => damage.what,
            other => panic!("{other}"),
        })
    };
    assert_eq!(read(&keyring, TABLE, 3, handle, BlockKind::Data, stored.clone()), "opened");
    let undecipherable = "a block does not decrypt";
    let moved = BlockHandle { offset: 0, ..handle };
    assert_eq!(read(&keyring, TABLE, 3, moved, BlockKind::Data, stored.clone()), undecipherable);
    assert_eq!(read(&keyring, TABLE + 1, 3, handle, BlockKind::Data, stored.clone()), undecipherable);
    let elsewhere = keyring.of_store([0; 16]);
    assert_eq!(read(&elsewhere, TABLE, 3, handle, BlockKind::Data, stored.clone()), undecipherable);
    assert_eq!(read(&plain(), TABLE, 3, handle, BlockKind::Data, stored.clone()), undecipherable);
    let trailer = stored.len() - 16;
    let changed = |at: usize, byte: u8| {
        let mut changed = stored.clone();
        changed[at] = byte;
        changed
    };
    // Under the name of another kind, or of another key.
    let index = changed(trailer, BlockKind::Index as u8);
    assert_eq!(read(&keyring, TABLE, 3, handle, BlockKind::Index, index), undecipherable);
    let key = changed(trailer + 2, 1);
    assert_eq!(read(&keyring, TABLE, 1, handle, BlockKind::Data, key.clone()), undecipherable);
    let other = "a block under another key than its table";
    assert_eq!(read(&keyring, TABLE, 3, handle, BlockKind::Data, key), other);
    for at in (0..trailer).step_by(5) {
        let flipped = changed(at, stored[at] ^ 4);
        assert_eq!(read(&keyring, TABLE, 3, handle, BlockKind::Data, flipped), undecipherable, "byte {at}");
    }
    // A plain block in an encrypted table.
    let (_, meta, file) = small_table(&plain(), false);
    let (handle, forged) = second_block(&plain(), &meta, &file);
    assert_eq!(read(&keyring, TABLE, 3, handle, BlockKind::Data, forged), other);
}

#[test]
fn a_table_is_refused_without_its_key_and_under_another() {
    let (_, meta, file) = small_table(&encrypted(), false);
    let open_with = |keyring: Keyring, key| {
        let mut blocks = MemoryBlocks::new(keyring);
        blocks.insert(TABLE, file.clone());
        open(&TableMeta { key, ..meta.clone() }, &blocks).map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(open_with(encrypted(), 3), Ok(()));
    assert_eq!(open_with(plain(), 3), Err(Code::Key));
    let older = Keyring::new(STORE, vec![(1, [1; 32])], [5; 16]).unwrap();
    assert_eq!(open_with(older, 3), Err(Code::Key));
    let wrong = Keyring::new(STORE, vec![(3, [4; 32])], [5; 16]).unwrap();
    assert_eq!(open_with(wrong, 3), Err(Code::Corrupt));
    // The manifest names another key: an older table under the same number, or one that someone put there.
    for key in [0, 1] {
        assert_eq!(open_with(encrypted(), key), Err(Code::Corrupt));
    }
}

#[test]
fn no_key_and_no_value_occur_in_an_encrypted_file() {
    let canary = b"the secret of the clay";
    let entry = |number: u32| ModelEntry {
        key: [&number.to_be_bytes()[..], canary].concat(),
        sequence: 1,
        kind: Kind::Set,
        expires: None,
        value: [canary, &number.to_be_bytes()[..]].concat(),
    };
    let model: Vec<_> = (0..500).map(entry).collect();
    let range = RangeTombstone { start: canary.to_vec(), end: b"zzz".to_vec(), sequence: 9 };
    let shows = |keyring: &Keyring, compress| {
        let options = TableOptions { block_bytes: 512, compress, ..TableOptions::default() };
        let (_, file) = build(keyring, &model, std::slice::from_ref(&range), &options);
        file.windows(8).any(|window| window == &canary[..8])
    };
    for compress in [false, true] {
        assert!(shows(&plain(), compress));
        assert!(!shows(&encrypted(), compress));
    }
}

#[test]
fn a_valid_table_that_the_manifest_does_not_name_is_refused() {
    let (_, meta, _) = small_table(&plain(), false);
    let mut builder = TableBuilder::new(&plain(), TABLE, TableOptions::default());
    builder.add(b"other", 1, Kind::Set, None, b"");
    let other = builder.finish();
    let mut blocks = MemoryBlocks::new(plain());
    blocks.insert(TABLE, builder.take());
    assert!(open(&other, &blocks).is_ok());
    let named = TableMeta { size: other.size, ..meta };
    assert_eq!(open(&named, &blocks).map(|_| ()).map_err(|error| error.code()), Err(Code::Corrupt));
}

#[test]
fn a_newer_format_is_not_reported_as_damage() {
    let (_, meta, mut file) = small_table(&plain(), false);
    let footer = file.len() - 96;
    file[footer + 80] = 9;
    let seed = xxh3(&STORE, 0);
    let hash = xxh3(&file[footer..footer + 88], seed);
    file[footer + 88..].copy_from_slice(&hash.to_le_bytes());
    let meta = TableMeta { footer_hash: hash, ..meta };
    let mut blocks = MemoryBlocks::new(plain());
    blocks.insert(TABLE, file);
    assert_eq!(open(&meta, &blocks).map(|_| ()), Err(Error::Version { found: 9, supported: 2 }));
}

#[test]
fn a_table_without_entries_opens_and_answers_nothing() {
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"c".to_vec(), sequence: 4 };
    for tombstones in [&[][..], &[tombstone]] {
        let (meta, file) = build(&plain(), &[], tombstones, &TableOptions::default());
        let mut blocks = MemoryBlocks::new(plain());
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
