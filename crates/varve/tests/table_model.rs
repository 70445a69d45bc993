//! A table gives the same answers as one sorted list of its entries, for any layout, whether its blocks are
//! present or must be asked for.

use proptest::prelude::*;
use varve::codec::reader::Reader;
use varve::table::{MemoryBlocks, TableBuilder, TableMeta, TableOptions};
use varve::types::{Kind, RangeTombstone, SEQUENCE_MAX};

use crate::table_common::*;

#[derive(Debug, Clone)]
enum Step {
    Seek(Vec<u8>),
    SeekVersion(Vec<u8>, u64),
    SeekBefore(Vec<u8>),
    SeekFirst,
    SeekLast,
    Next,
    Prev,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => any_key().prop_map(Step::Seek),
        1 => (any_key(), 0u64..60).prop_map(|(key, sequence)| Step::SeekVersion(key, sequence)),
        2 => any_key().prop_map(Step::SeekBefore),
        1 => Just(Step::SeekFirst),
        1 => Just(Step::SeekLast),
        9 => Just(Step::Next),
        9 => Just(Step::Prev),
    ]
}

/// Where a step leads from entry `at` of the model.
fn model_step(model: &[ModelEntry], at: Option<usize>, step: &Step) -> Option<usize> {
    let found =
        match step {
            Step::Seek(key) => Some(model.partition_point(|entry| entry.key < *key)),
            Step::SeekVersion(key, sequence) => Some(model.partition_point(|entry| {
                entry.key < *key || (entry.key == *key && entry.sequence > *sequence)
            })),
            Step::SeekBefore(key) => model.partition_point(|entry| entry.key < *key).checked_sub(1),
            Step::SeekFirst => Some(0),
            Step::SeekLast => model.len().checked_sub(1),
            Step::Next => at.map(|at| at + 1),
            Step::Prev => at.and_then(|at| at.checked_sub(1)),
        };
    found.filter(|&at| at < model.len())
}

/// Keys in the table and beside those in it.
fn probes(model: &[ModelEntry], others: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut keys = others;
    for entry in model {
        keys.push(entry.key.clone());
        keys.push([&entry.key[..], &[0]].concat());
        keys.push(entry.key[..entry.key.len() / 2].to_vec());
    }
    keys.dedup();
    keys
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gets_find_the_newest_version_that_a_snapshot_sees(
        model in any_model(120),
        keyring in any_keyring(),
        options in any_options(),
        others in prop::collection::vec(any_key(), 0..20),
        snapshots in prop::collection::vec(0u64..200, 3),
        asks in any::<bool>(),
    ) {
        let (meta, file) = build(&keyring, &model, &[], &options);
        let mut blocks = if asks { MemoryBlocks::asking(keyring) } else { MemoryBlocks::new(keyring) };
        blocks.insert(TABLE, file);
        let table = open(&meta, &blocks).unwrap();
        for key in probes(&model, others) {
            for snapshot in snapshots.iter().copied().chain([0, SEQUENCE_MAX]) {
                let expected = model_get(&model, &key, snapshot).cloned();
                prop_assert_eq!(table_get(&table, &blocks, &key, snapshot).unwrap(), expected);
            }
        }
    }

    #[test]
    fn cursors_step_like_an_index_into_the_list(
        model in any_model(120),
        keyring in any_keyring(),
        options in any_options(),
        mut steps in prop::collection::vec(any_step(), 0..300),
        probes in prop::collection::vec(any::<prop::sample::Index>(), 20),
        asks in any::<bool>(),
    ) {
        let (meta, file) = build(&keyring, &model, &[], &options);
        let mut blocks = if asks { MemoryBlocks::asking(keyring) } else { MemoryBlocks::new(keyring) };
        blocks.insert(TABLE, file);
        let table = open(&meta, &blocks).unwrap();
        if !model.is_empty() {
            let keys = probes.iter().map(|probe| probe.get(&model).key.clone());
            for (at, key) in keys.enumerate() {
                let at = (at * 15).min(steps.len());
                steps.insert(at, if at % 2 == 0 { Step::Seek(key) } else { Step::SeekBefore(key) });
            }
        }
        let mut cursor = table.cursor();
        let mut at = None;
        for step in &steps {
            at = model_step(&model, at, step);
            let before = current(&cursor);
            blocks.run(|| {
                if asks {
                    assert_eq!(current(&cursor), before, "a step that needs a block changed the cursor");
                }
                match step {
                    Step::Seek(key) => cursor.seek(key, &blocks),
                    Step::SeekVersion(key, sequence) => cursor.seek_version(key, *sequence, &blocks),
                    Step::SeekBefore(key) => cursor.seek_before(key, &blocks),
                    Step::SeekFirst => cursor.seek_first(&blocks),
                    Step::SeekLast => cursor.seek_last(&blocks),
                    Step::Next => cursor.next(&blocks),
                    Step::Prev => cursor.prev(&blocks),
                }
            }).unwrap();
            prop_assert_eq!(current(&cursor), at.map(|at| model[at].clone()), "after {:?}", step);
        }
    }

    #[test]
    fn scans_give_all_entries_in_both_directions(model in any_model(200), keyring in any_keyring(), options in any_options()) {
        let (meta, file) = build(&keyring, &model, &[], &options);
        let mut blocks = MemoryBlocks::new(keyring);
        blocks.insert(TABLE, file);
        let table = open(&meta, &blocks).unwrap();
        let mut backward = scan_back(&table, &blocks).unwrap();
        backward.reverse();
        prop_assert_eq!(&scan(&table, &blocks).unwrap(), &model);
        prop_assert_eq!(&backward, &model);
    }

    #[test]
    fn range_tombstones_cover_what_the_list_says(
        model in any_model(20),
        tombstones in any_tombstones(),
        keyring in any_keyring(),
        keys in prop::collection::vec(any_key(), 1..30),
    ) {
        let (meta, file) = build(&keyring, &model, &tombstones, &Default::default());
        let mut blocks = MemoryBlocks::asking(keyring);
        blocks.insert(TABLE, file);
        let table = open(&meta, &blocks).unwrap();
        let bounds = tombstones.iter().flat_map(|tombstone| [&tombstone.start, &tombstone.end]);
        for key in keys.iter().chain(bounds) {
            for snapshot in [0, 7, 25, SEQUENCE_MAX] {
                let seen = |tombstone: &&RangeTombstone| {
                    (&tombstone.start..&tombstone.end).contains(&key) && tombstone.sequence <= snapshot
                };
                let expected = tombstones.iter().filter(seen).map(|tombstone| tombstone.sequence).max();
                prop_assert_eq!(table.tombstone_over(key, snapshot), expected.unwrap_or(0));
            }
        }
    }

    #[test]
    fn meta_describes_the_table_and_survives_encoding(
        model in any_model(40),
        tombstones in any_tombstones(),
        keyring in any_keyring(),
        options in any_options(),
    ) {
        let (meta, file) = build(&keyring, &model, &tombstones, &options);
        let tombstones: Vec<_> = tombstones.iter().filter(|item| item.start < item.end).collect();
        let keys = || model.iter().map(|entry| &entry.key);
        let sequences = || model.iter().map(|entry| entry.sequence).chain(tombstones.iter().map(|item| item.sequence));
        let min_key = keys().chain(tombstones.iter().map(|item| &item.start)).min().cloned();
        let max_key = keys().chain(tombstones.iter().map(|item| &item.end)).max().cloned();
        let mut expiries: Vec<u64> = model.iter().filter_map(|entry| entry.expires).map(|at| at.max(1)).collect();
        expiries.sort_unstable();
        let deleted = model.iter().filter(|entry| entry.kind == varve::types::Kind::Delete).count();
        let half = model.len().div_ceil(2).saturating_sub(deleted).max(1) - 1;
        let expected = TableMeta {
            id: TABLE,
            size: file.len() as u64,
            key: keyring.current(),
            footer_hash: u64::from_le_bytes(*file.last_chunk().unwrap()),
            entries: model.len() as u64,
            tombstones: deleted as u64,
            range_tombstones: tombstones.len() as u64,
            min_sequence: sequences().min().unwrap_or(0),
            max_sequence: sequences().max().unwrap_or(0),
            min_key: min_key.unwrap_or_default(),
            max_key: max_key.unwrap_or_default(),
            raw_bytes: model.iter().map(|entry| (entry.key.len() + entry.value.len()) as u64).sum(),
            skipped_bytes: 0,
            first_expiry: expiries.first().copied().unwrap_or(0),
            half_expiry: expiries.get(half).copied().unwrap_or(0),
        };
        prop_assert_eq!(&meta, &expected);
        let mut bytes = Vec::new();
        meta.encode(&mut bytes);
        prop_assert_eq!(TableMeta::decode(&mut Reader::new(&bytes)).unwrap(), meta.clone());
        for cut in 0..bytes.len() {
            prop_assert!(TableMeta::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
}

#[test]
fn compression_is_tried_again_behind_data_that_does_not_compress() {
    let mut builder =
        TableBuilder::new(&plain(), 1, TableOptions { compress: true, ..TableOptions::default() });
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) + 1;
        (state >> 32) as u8
    };
    for number in 0..400_u32 {
        let value: Vec<u8> = (0..4096).map(|_| if number < 200 { random() } else { 0 }).collect();
        builder.add(&number.to_be_bytes(), 1, Kind::Set, None, &value);
    }
    let size = builder.finish().size;
    // Of the second half at most seven blocks are not tried.
    assert!((200 * 4096..212 * 4096).contains(&size), "{size}");
}
