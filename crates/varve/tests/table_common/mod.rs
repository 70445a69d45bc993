//! Shared parts of the tests of tables: a model of a table as one sorted list, and generators for it.

#![allow(dead_code, reason = "the fuzz targets use a part of it")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use varve::codec::cipher::Keyring;
use varve::error::Result;
use varve::table::{MemoryBlocks, Table, TableBuilder, TableCursor, TableMeta, TableOptions};
use varve::types::{Kind, RangeTombstone, Sequence, StoreId};

pub const STORE: StoreId = *b"a store of tests";
pub const TABLE: u64 = 17;

/// Of a store that is not encrypted.
pub fn plain() -> Keyring {
    Keyring::plain(STORE)
}

/// Of an encrypted store; key 3 is the current one. Without randomness, so tables are the same in every run.
pub fn encrypted() -> Keyring {
    Keyring::new(STORE, vec![(1, [1; 32]), (3, [3; 32])], [5; 16]).unwrap()
}

/// Encrypted in a third of the cases.
pub fn any_keyring() -> impl Strategy<Value = Keyring> {
    prop_oneof![2 => Just(()).prop_map(|()| plain()), 1 => Just(()).prop_map(|()| encrypted())]
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    pub key: Vec<u8>,
    pub sequence: Sequence,
    pub kind: Kind,
    pub expires: Option<u64>,
    pub value: Vec<u8>,
}

/// Entries in the order of a table.
pub fn model_of(entries: Vec<ModelEntry>) -> Vec<ModelEntry> {
    let sorted: BTreeMap<_, _> =
        entries.into_iter().map(|entry| ((entry.key.clone(), Reverse(entry.sequence)), entry)).collect();
    sorted.into_values().collect()
}

pub fn build(
    keyring: &Keyring,
    model: &[ModelEntry],
    tombstones: &[RangeTombstone],
    options: &TableOptions,
) -> (TableMeta, Vec<u8>) {
    let mut builder = TableBuilder::new(keyring, TABLE, options.clone());
    let mut file = Vec::new();
    for (index, entry) in model.iter().enumerate() {
        builder.add(&entry.key, entry.sequence, entry.kind, entry.expires, &entry.value);
        if index.is_multiple_of(3) {
            file.append(&mut builder.take());
        }
    }
    for tombstone in tombstones {
        builder.add_range_tombstone(tombstone);
    }
    let meta = builder.finish();
    file.append(&mut builder.take());
    assert_eq!(meta.size, file.len() as u64);
    (meta, file)
}

pub fn open(meta: &TableMeta, blocks: &MemoryBlocks) -> Result<Rc<Table>> {
    blocks.run(|| Table::open(blocks.keyring(), meta, blocks)).map(Rc::new)
}

/// The newest version of `key` at or below `snapshot`.
pub fn model_get<'a>(model: &'a [ModelEntry], key: &[u8], snapshot: Sequence) -> Option<&'a ModelEntry> {
    model.iter().find(|entry| entry.key == key && entry.sequence <= snapshot)
}

pub fn table_get(
    table: &Table,
    blocks: &MemoryBlocks,
    key: &[u8],
    snapshot: Sequence,
) -> Result<Option<ModelEntry>> {
    let found = blocks.run(|| table.get(key, snapshot, blocks))?;
    Ok(found.map(|found| ModelEntry {
        key: key.to_vec(),
        sequence: found.sequence,
        kind: found.kind,
        expires: found.expires,
        value: found.value().to_vec(),
    }))
}

/// The entry that a cursor stands on.
pub fn current(cursor: &TableCursor) -> Option<ModelEntry> {
    cursor.valid().then(|| ModelEntry {
        key: cursor.key().to_vec(),
        sequence: cursor.sequence(),
        kind: cursor.kind(),
        expires: cursor.expires(),
        value: cursor.value().to_vec(),
    })
}

/// All entries, walked forward.
pub fn scan(table: &Rc<Table>, blocks: &MemoryBlocks) -> Result<Vec<ModelEntry>> {
    let mut cursor = table.cursor();
    let mut entries = Vec::new();
    blocks.run(|| cursor.seek_first(blocks))?;
    while let Some(entry) = current(&cursor) {
        entries.push(entry);
        blocks.run(|| cursor.next(blocks))?;
    }
    Ok(entries)
}

/// All entries, walked backward.
pub fn scan_back(table: &Rc<Table>, blocks: &MemoryBlocks) -> Result<Vec<ModelEntry>> {
    let mut cursor = table.cursor();
    let mut entries = Vec::new();
    blocks.run(|| cursor.seek_last(blocks))?;
    while let Some(entry) = current(&cursor) {
        entries.push(entry);
        blocks.run(|| cursor.prev(blocks))?;
    }
    Ok(entries)
}

/// Keys of few letters (many that are fronts of others), keys like tuples with a long common front, and any.
pub fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(prop::sample::select(vec![0u8, b'a', b'b', 0xff]), 0..7),
        2 => (0u32..60, 0u32..4).prop_map(|(user, item)| format!("user:{user:012}:{item}").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (100usize..400, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
    ]
}

pub fn any_entry() -> impl Strategy<Value = ModelEntry> {
    let sequence = prop_oneof![1u64..40, 1u64..100_000, Just((1u64 << 56) - 1)];
    let value = prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..30),
        2 => (0usize..300, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => prop::collection::vec(any::<u8>(), 120..140),
    ];
    let expires = prop_oneof![4 => Just(None), 1 => any::<u64>().prop_map(Some)];
    (any_key(), sequence, any::<bool>(), expires, value).prop_map(
        |(key, sequence, is_set, expires, value)| {
            let kind = if is_set { Kind::Set } else { Kind::Delete };
            ModelEntry { key, sequence, kind, expires, value: if is_set { value } else { Vec::new() } }
        },
    )
}

/// A table's entries in order; some have runs of many versions of one key.
pub fn any_model(entries_max: usize) -> impl Strategy<Value = Vec<ModelEntry>> {
    let versions = (any_key(), 1u64..60).prop_map(|(key, count)| {
        let entry = |sequence: u64| ModelEntry {
            key: key.clone(),
            sequence: sequence * 3,
            kind: Kind::Set,
            expires: None,
            value: sequence.to_string().into_bytes(),
        };
        (1..=count).map(entry).collect::<Vec<_>>()
    });
    (prop::collection::vec(any_entry(), 0..entries_max), prop::collection::vec(versions, 0..3)).prop_map(
        |(entries, versions)| model_of(entries.into_iter().chain(versions.into_iter().flatten()).collect()),
    )
}

pub fn any_options() -> impl Strategy<Value = TableOptions> {
    let block_bytes = prop_oneof![Just(1usize), 64usize..256, Just(4096)];
    let restart_interval = prop_oneof![Just(1usize), 2usize..20];
    (block_bytes, restart_interval, any::<bool>()).prop_map(|(block_bytes, restart_interval, compress)| {
        TableOptions { block_bytes, restart_interval, compress, ..TableOptions::default() }
    })
}

pub fn any_tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
    let tombstone = (any_key(), any_key(), 1u64..50).prop_map(|(start, end, sequence)| RangeTombstone {
        start,
        end,
        sequence,
    });
    prop::collection::vec(tombstone, 0..25)
}
