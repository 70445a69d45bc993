//! One key with far more versions than a block contains: a get reads one block and finds the right version.

use std::cell::Cell;
use std::rc::Rc;

use varve::codec::cipher::KeyNumber;
use varve::table::{Block, BlockHandle, Blocks, MemoryBlocks, Table, TableOptions};
use varve::types::{Kind, SEQUENCE_MAX, Sequence};

use crate::table_common::*;

struct CountedBlocks {
    inner: MemoryBlocks,
    reads: Cell<u32>,
}

impl Blocks for CountedBlocks {
    fn block(&self, table: u64, key: KeyNumber, handle: BlockHandle) -> varve::Result<Rc<Block>> {
        self.reads.set(self.reads.get() + 1);
        self.inner.block(table, key, handle)
    }

    fn raw(&self, table: u64, offset: u64, len: u32) -> varve::Result<Vec<u8>> {
        self.inner.raw(table, offset, len)
    }
}

fn entry(key: &[u8], sequence: Sequence) -> ModelEntry {
    let value = format!("{sequence:020}").into_bytes();
    ModelEntry { key: key.to_vec(), sequence, kind: Kind::Set, expires: None, value }
}

#[test]
fn a_get_reads_one_block_however_many_versions_there_are() {
    let mut entries = vec![entry(b"clay", 5000), entry(b"silt", 3), entry(b"silt\0", 4000), entry(b"t", 1)];
    entries.extend((5..500).map(|number| entry(b"sand", number * 2)));
    let model = model_of(entries);
    for block_bytes in [1, 64, 256] {
        let options = TableOptions { block_bytes, ..TableOptions::default() };
        let (meta, file) = build(&plain(), &model, &[], &options);
        let mut blocks = CountedBlocks { inner: MemoryBlocks::new(plain()), reads: Cell::new(0) };
        blocks.inner.insert(TABLE, file);
        let table = Table::open(&plain(), &meta, &blocks).unwrap();
        assert!(table.index().len() > 30, "the versions span blocks");
        for snapshot in (0..1005).chain([SEQUENCE_MAX]) {
            for key in [&b"clay"[..], b"sand", b"silt", b"silt\0", b"t"] {
                blocks.reads.set(0);
                let found = table.get(key, snapshot, &blocks).unwrap();
                assert!(blocks.reads.get() <= 1, "{} reads for one get", blocks.reads.get());
                let expected = model_get(&model, key, snapshot);
                assert_eq!(found.as_ref().map(|found| found.sequence), expected.map(|found| found.sequence));
                assert_eq!(found.as_ref().map(|found| found.value()), expected.map(|found| &found.value[..]));
            }
        }
    }
}

#[test]
fn a_seek_to_a_version_enters_the_middle_of_a_key() {
    let model = model_of((1..400).map(|number| entry(b"sand", number * 2)).collect());
    let options = TableOptions { block_bytes: 128, ..TableOptions::default() };
    let (meta, file) = build(&plain(), &model, &[], &options);
    let mut blocks = MemoryBlocks::new(plain());
    blocks.insert(TABLE, file);
    let mut cursor = open(&meta, &blocks).unwrap().cursor();
    for sequence in 2..800 {
        cursor.seek_version(b"sand", sequence, &blocks).unwrap();
        assert_eq!(cursor.sequence(), (sequence / 2 * 2).min(798));
    }
    cursor.seek_version(b"sand", 1, &blocks).unwrap();
    assert!(!cursor.valid());
    cursor.seek(b"sand", &blocks).unwrap();
    assert_eq!(cursor.sequence(), 798);
    cursor.seek_before(b"sand", &blocks).unwrap();
    assert!(!cursor.valid());
}

#[test]
#[should_panic(expected = "in order")]
fn a_builder_refuses_entries_out_of_order() {
    build(&plain(), &[entry(b"silt", 3), entry(b"silt", 3)], &[], &TableOptions::default());
}
