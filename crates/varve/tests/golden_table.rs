//! The table format, kept by files: `golden/table-v1.sst` is built again byte for byte, and read;
//! `golden/table-v1-lz4.sst`, whose bytes depend on the compressor, is read. `table-v2` is encrypted, under fixed keys and nonces.
//!
//! A change of the format is a new version with a new file beside these, and these are still read. For a new version they
//! are written anew by `VARVE_WRITE_GOLDEN=1 cargo test -p varve-engine --test engine golden_table`.

use std::path::PathBuf;

use varve::codec::cipher::Keyring;
use varve::codec::reader::Reader;
use varve::table::{MemoryBlocks, TableMeta, TableOptions};
use varve::types::{Kind, RangeTombstone};

use crate::table_common::*;

fn golden_model() -> Vec<ModelEntry> {
    let mut entries = Vec::new();
    for number in 0..300u64 {
        let kind = if number.is_multiple_of(11) { Kind::Delete } else { Kind::Set };
        let value =
            if kind == Kind::Set { format!("layer {number} of clay").into_bytes() } else { Vec::new() };
        entries.push(ModelEntry {
            key: format!("core:{:03}:{}", number / 3, number * 7919 % 1000).into_bytes(),
            sequence: number * 37 % 1009 + 1,
            kind,
            expires: number.is_multiple_of(13).then_some(1_700_000_000_000 + number),
            value,
        });
    }
    for sequence in 2000..2060 {
        let key = b"core:050:many versions".to_vec();
        entries.push(ModelEntry { key, sequence, kind: Kind::Set, expires: None, value: vec![b'v'; 40] });
    }
    entries.push(ModelEntry {
        key: b"large".to_vec(),
        sequence: 3000,
        kind: Kind::Set,
        expires: None,
        value: (0..5000u32).map(|index| ((index * index) >> 3) as u8).collect(),
    });
    model_of(entries)
}

fn golden_tombstones() -> Vec<RangeTombstone> {
    let tombstone = |start: &str, end: &str, sequence| RangeTombstone {
        start: start.as_bytes().to_vec(),
        end: end.as_bytes().to_vec(),
        sequence,
    };
    vec![tombstone("core:010", "core:020", 3001), tombstone("core:015", "m", 500), tombstone("z", "zz", 3002)]
}

fn golden(name: &str, built: &(TableMeta, Vec<u8>)) -> (TableMeta, Vec<u8>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (table, meta) = (folder.join(format!("{name}.sst")), folder.join(format!("{name}.meta")));
    if std::env::var_os("VARVE_WRITE_GOLDEN").is_some() {
        let mut bytes = Vec::new();
        built.0.encode(&mut bytes);
        std::fs::write(&table, &built.1).unwrap();
        std::fs::write(&meta, bytes).unwrap();
    }
    let meta = std::fs::read(meta).unwrap();
    (TableMeta::decode(&mut Reader::new(&meta)).unwrap(), std::fs::read(table).unwrap())
}

fn assert_reads(keyring: &Keyring, meta: &TableMeta, file: Vec<u8>) {
    let model = golden_model();
    let mut blocks = MemoryBlocks::new(keyring.clone());
    blocks.insert(TABLE, file);
    let table = open(meta, &blocks).unwrap();
    assert_eq!(scan(&table, &blocks).unwrap(), model);
    for entry in &model {
        let found = table_get(&table, &blocks, &entry.key, entry.sequence).unwrap();
        assert_eq!(found.as_ref(), Some(entry));
    }
    assert_eq!(table.range_tombstones(), golden_tombstones());
    assert_eq!(
        table.properties().expiring,
        model.iter().filter(|entry| entry.expires.is_some()).count() as u64
    );
    assert_eq!(table.properties().min_expires, 1_700_000_000_000);
    assert_eq!(table.properties().max_expires, 1_700_000_000_299);
}

#[test]
fn the_golden_table_is_built_and_read() {
    let options = TableOptions { block_bytes: 1024, ..TableOptions::default() };
    let built = build(&plain(), &golden_model(), &golden_tombstones(), &options);
    let (meta, file) = golden("table-v1", &built);
    assert_eq!(built.0, TableMeta { first_expiry: 1_700_000_000_000, ..meta.clone() });
    assert!(built.1 == file, "the same entries give other bytes than golden/table-v1.sst");
    assert_reads(&plain(), &meta, file);
}

#[test]
fn the_compressed_golden_table_is_read() {
    let options = TableOptions { block_bytes: 1024, compress: true, bits_per_key: 14, restart_interval: 4 };
    let (meta, file) =
        golden("table-v1-lz4", &build(&plain(), &golden_model(), &golden_tombstones(), &options));
    assert!(meta.size < meta.raw_bytes, "the table is compressed");
    assert_reads(&plain(), &meta, file);
}

#[test]
fn the_encrypted_golden_table_is_built_and_read() {
    let options = TableOptions { block_bytes: 1024, ..TableOptions::default() };
    let built = build(&encrypted(), &golden_model(), &golden_tombstones(), &options);
    let (meta, file) = golden("table-v2", &built);
    assert_eq!((&built.0, meta.key), (&TableMeta { first_expiry: 1_700_000_000_000, ..meta.clone() }, 3));
    assert!(built.1 == file, "the same entries give other bytes than golden/table-v2.sst");
    assert_reads(&encrypted(), &meta, file);
}
