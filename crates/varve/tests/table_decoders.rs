//! Every decoder of a table accepts any bytes: it answers or refuses, and never panics.

use std::rc::Rc;

use proptest::prelude::*;
use varve::codec::cipher::KeyNumber;
use varve::codec::hash::xxh3;
use varve::codec::reader::Reader;
use varve::table::{
    Block, BlockHandle, BlockKind, Blocks, Filter, Footer, Index, MemoryBlocks, Properties, RangeTombstones,
    TableMeta, TableOptions, open_block, open_block_to_copy,
};
use varve::types::FileName;

use crate::table_common::*;

/// Returns the same block for every data block of a table.
struct OneBlock(Rc<Block>);

impl Blocks for OneBlock {
    fn block(&self, _: u64, _: KeyNumber, _: BlockHandle) -> varve::Result<Rc<Block>> {
        Ok(Rc::clone(&self.0))
    }

    fn raw(&self, _: u64, _: u64, _: u32) -> varve::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

/// Walks a block with any content in all possible ways; a step that fails ends the walk.
fn walk(block: Block, keys: &[Vec<u8>]) {
    let model = [b"a", b"m", b"z"].map(|key| ModelEntry {
        key: key.to_vec(),
        sequence: 1,
        kind: varve::types::Kind::Set,
        expires: None,
        value: Vec::new(),
    });
    let (meta, file) =
        build(&plain(), &model, &[], &TableOptions { block_bytes: 1, ..TableOptions::default() });
    let mut blocks = MemoryBlocks::new(plain());
    blocks.insert(TABLE, file);
    let table = open(&meta, &blocks).unwrap();
    let blocks = OneBlock(Rc::new(block));
    for key in keys {
        let _ = table.get_admitted(key, 7, &blocks);
        let mut cursor = table.cursor();
        if cursor.seek(key, &blocks).is_ok() {
            for _ in 0..40 {
                let _ = (cursor.key(), cursor.value());
                if cursor.next(&blocks).is_err()
                    || cursor.prev(&blocks).is_err()
                    || cursor.next(&blocks).is_err()
                {
                    break;
                }
            }
        }
        if cursor.seek_before(key, &blocks).is_ok() {
            for _ in 0..40 {
                let _ = (cursor.key(), cursor.value());
                if cursor.prev(&blocks).is_err() {
                    break;
                }
            }
        }
    }
}

/// Bytes with a few replaced: nearly right, which gets further than noise does.
fn damaged(bytes: Vec<u8>, changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes;
    for (at, byte) in changes {
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
    }
    bytes
}

fn any_changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(0x7f), Just(0x80), Just(0xff)];
    prop::collection::vec((any::<prop::sample::Index>(), byte), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let file = FileName::table(TABLE);
        let handle = BlockHandle { offset: 0, len: bytes.len() as u32 };
        prop_assert!(open_block(&plain(), TABLE, 0, handle, bytes.clone(), BlockKind::Data).is_err());
        prop_assert!(Footer::decode(&bytes, &STORE, file, 0).is_err());
        let _ = TableMeta::decode(&mut Reader::new(&bytes));
        let _ = Properties::decode(&bytes);
        let _ = RangeTombstones::decode(&bytes);
        if let Ok(filter) = Filter::decode(&bytes) {
            let _ = filter.may_contain(1);
        }
        if let Ok(index) = Index::decode(&bytes) {
            let _ = index.find(&bytes, 5);
        }
        if let Ok(block) = Block::parse(BlockKind::Data, bytes.clone()) {
            walk(block, &[bytes]);
        }
    }

    #[test]
    fn blocks_that_are_nearly_right_never_panic(
        model in any_model(40),
        options in any_options(),
        changes in any_changes(),
        keys in prop::collection::vec(any_key(), 1..6),
    ) {
        let options = TableOptions { compress: false, ..options };
        let (meta, file) = build(&plain(), &model, &[], &options);
        let mut blocks = MemoryBlocks::new(plain());
        blocks.insert(TABLE, file.clone());
        let table = open(&meta, &blocks).unwrap();
        for index in 0..table.index().len().min(4) {
            let handle = table.index().handle(index);
            let raw = file[handle.offset as usize..handle.end() as usize - 16].to_vec();
            if let Ok(block) = Block::parse(BlockKind::Data, damaged(raw, &changes)) {
                walk(block, &keys);
            }
        }
    }

    #[test]
    fn indexes_that_are_nearly_right_never_panic(
        separators in prop::collection::btree_set(any_key(), 1..20),
        changes in any_changes(),
        keys in prop::collection::vec(any_key(), 1..10),
    ) {
        let separators: Vec<_> = separators.into_iter().collect();
        let mut builder = varve::table::IndexBuilder::default();
        for (at, key) in separators.iter().enumerate() {
            builder.add(key, 9, separators.get(at + 1).map(Vec::as_slice), 4000);
        }
        if let Ok(index) = Index::decode(&damaged(builder.finish(), &changes)) {
            for key in &keys {
                prop_assert!(index.find(key, 3) <= index.len());
            }
        }
    }

    #[test]
    fn compressed_blocks_that_are_nearly_right_are_decoded_or_refused(
        text in "[ab]{400,600}|[ab]{2100,2400}",
        changes in any_changes(),
        raw_len in prop_oneof![Just(None), any::<u32>().prop_map(Some)],
    ) {
        let entry = ModelEntry {
            key: b"k".to_vec(),
            sequence: 1,
            kind: varve::types::Kind::Set,
            expires: None,
            value: text.into_bytes(),
        };
        let (meta, file) = build(&plain(), &[entry], &[], &TableOptions { compress: true, ..TableOptions::default() });
        let mut blocks = MemoryBlocks::new(plain());
        blocks.insert(TABLE, file.clone());
        let handle = open(&meta, &blocks).unwrap().index().handle(0);
        let mut stored = file[..handle.len as usize].to_vec();
        let payload = stored.len() - 16;
        prop_assert_eq!(stored[payload + 1], 1, "the block is compressed");
        let changed = damaged(stored[..payload].to_vec(), &changes);
        stored[..payload].copy_from_slice(&changed);
        if let Some(raw_len) = raw_len {
            stored[payload + 4..payload + 8].copy_from_slice(&raw_len.to_le_bytes());
        }
        let mut place = [0; 32];
        place[..16].copy_from_slice(&STORE);
        place[16..24].copy_from_slice(&TABLE.to_le_bytes());
        let hash = xxh3(&stored[..payload + 8], xxh3(&place, 0));
        stored[payload + 8..].copy_from_slice(&hash.to_le_bytes());
        // A merge that passes a block on looks at less of it; it may miss the damage, but must not panic.
        let whole = open_block(&plain(), TABLE, 0, handle, stored.clone(), BlockKind::Data);
        let front = open_block_to_copy(&plain(), TABLE, 0, handle, stored, BlockKind::Data, 0);
        for block in [whole, front].into_iter().flatten() {
            prop_assert!(block.weight() < 255 * 2600);
        }
    }
}

#[test]
fn counts_and_lengths_that_the_bytes_cannot_hold_are_refused_at_once() {
    let huge = u32::MAX.to_le_bytes();
    assert!(Block::parse(BlockKind::Data, huge.to_vec()).is_err());
    assert!(Block::parse(BlockKind::Data, [&[0; 60][..], &huge].concat()).is_err());
    assert!(Filter::decode(&[&[0, 6, 0, 0][..], &huge].concat()).is_err());
    let far = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert!(Index::decode(&far).is_err());
    assert!(Index::decode(&[&[0][..], &far, &[0, 1]].concat()).is_err());
    assert!(RangeTombstones::decode(&far).is_err());
    assert!(TableMeta::decode(&mut Reader::new(&far)).is_err());
}
