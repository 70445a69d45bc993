//! Blocks of a table are found without index and footer, compressed or not, and behind damaged ones.

use varve::codec::cipher::Keyring;
use varve::table::{FOOTER_BYTES, Remains, TableBuilder, TableOptions, find_footers, salvage_table};
use varve::types::{Kind, RangeTombstone};

const STORE: [u8; 16] = [6; 16];
/// Whether the table is compressed, and whether it is encrypted.
const CASES: [(bool, bool); 3] = [(false, false), (true, false), (true, true)];
const TABLE: u64 = 31;

fn keyring(is_encrypted: bool) -> Keyring {
    let keys = if is_encrypted { vec![(2, [8; 32])] } else { Vec::new() };
    Keyring::new(STORE, keys, [5; 16]).expect("keys")
}

/// The bytes of a table, where its data ends, and how many blocks it has.
fn build((compress, is_encrypted): (bool, bool)) -> (Vec<u8>, usize, usize) {
    let options = TableOptions { block_bytes: 700, compress, ..TableOptions::default() };
    let mut builder = TableBuilder::new(&keyring(is_encrypted), TABLE, options);
    for number in 0..900u64 {
        let value = format!("{number} {}", "sediment ".repeat((number % 13) as usize));
        builder.add(format!("key {number:05}").as_bytes(), number + 1, Kind::Set, None, value.as_bytes());
    }
    builder.add_range_tombstone(&RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), sequence: 9 });
    builder.finish();
    let bytes = builder.take();
    let whole = salvage(&bytes, is_encrypted);
    let data_end = whole.index.as_ref().expect("an index").data_end() as usize;
    assert_eq!((whole.gaps.len(), whole.range_tombstones.map(|ranges| ranges.len())), (0, Some(1)));
    let blocks = whole.blocks.len();
    assert!(blocks > 30, "{blocks}");
    (bytes, data_end, blocks)
}

fn salvage(bytes: &[u8], is_encrypted: bool) -> Remains {
    salvage_table(bytes, &keyring(is_encrypted), TABLE, None, true).expect("of this format")
}

#[test]
fn every_block_is_found_without_index_and_footer() {
    for case in CASES {
        let (bytes, data_end, blocks) = build(case);
        let remains = salvage(&bytes[..data_end], case.1);
        assert!(remains.index.is_none() && remains.range_tombstones.is_none());
        assert_eq!(
            (remains.blocks.len(), remains.gaps.len()),
            (blocks, 0),
            "compressed and encrypted: {case:?}"
        );
    }
}

#[test]
fn without_a_footer_the_parts_behind_the_data_are_still_found() {
    for case in CASES {
        let (bytes, _, blocks) = build(case);
        let remains = salvage(&bytes[..bytes.len() - FOOTER_BYTES], case.1);
        assert!(remains.index.is_some());
        assert_eq!(remains.range_tombstones.map(|ranges| ranges.len()), Some(1));
        assert_eq!((remains.blocks.len(), remains.gaps.len()), (blocks, 0));
    }
}

#[test]
fn a_damaged_byte_costs_one_block_or_with_its_trailer_two() {
    for case in CASES {
        let (bytes, data_end, blocks) = build(case);
        for at in (0..data_end).step_by(41) {
            let mut damaged = bytes[..data_end].to_vec();
            damaged[at] ^= 0x20;
            let found = salvage(&damaged, case.1).blocks;
            assert!((blocks - 2..blocks).contains(&found.len()), "{} of {blocks}, byte {at}", found.len());
            assert!(
                found.iter().all(|block| at < block.offset as usize || block.end() as usize <= at),
                "byte {at}"
            );
        }
    }
}

#[test]
fn footers_are_found_wherever_a_table_lies_and_only_those_of_the_store() {
    let (bytes, ..) = build((true, true));
    let mut slot = [vec![9; 3000], bytes.clone(), vec![0; 100]].concat();
    slot.extend_from_slice(&bytes);
    slot.extend_from_slice(&[7; 5000]);
    slot.extend_from_slice(b"VRVS and more of another table");
    let found = find_footers(&slot, &STORE).map(|found| found.expect("of this format"));
    let found: Vec<_> = found.map(|(start, meta)| (start, meta.id, meta.size)).collect();
    let len = bytes.len() as u64;
    assert_eq!(found, [(3100 + len, TABLE, len), (3000, TABLE, len)]);
    assert_eq!(find_footers(&slot, &[1; 16]).count(), 0);
}

#[test]
fn nothing_is_taken_without_the_key_or_under_another_than_the_manifest_names() {
    let (bytes, ..) = build((true, true));
    for (keys, named) in [(false, None), (true, Some(0)), (true, Some(1))] {
        let remains = salvage_table(&bytes, &keyring(keys), TABLE, named, true).expect("of this format");
        assert!(remains.blocks.is_empty() && remains.range_tombstones.is_none(), "{named:?}");
    }
}

/// Small numbers look like trailers, so the ends that were tried were used up within the first bytes of a block: with a damaged index
/// every intact block was lost.
#[test]
fn blocks_of_small_numbers_are_found_without_an_index() {
    let numbers: [fn(u32) -> u32; 2] =
        [|n| n % 7, |n| if n.is_multiple_of(2) { 1 } else { 20_000 + n * 7919 % 300_000 }];
    for number in numbers {
        let mut builder = TableBuilder::new(&keyring(false), TABLE, TableOptions::default());
        for row in 0..600 {
            let value: Vec<u8> = (0..20).flat_map(|at| number(row * 20 + at).to_le_bytes()).collect();
            builder.add(format!("key {row:05}").as_bytes(), u64::from(row) + 1, Kind::Set, None, &value);
        }
        builder.finish();
        let bytes = builder.take();
        let whole = salvage(&bytes, false);
        let data_end = whole.index.expect("an index").data_end() as usize;
        let remains = salvage(&bytes[..data_end], false);
        assert!(whole.blocks.len() > 10, "{}", whole.blocks.len());
        assert_eq!((remains.blocks.len(), remains.gaps.len()), (whole.blocks.len(), 0));
    }
}
