//! The block cache keeps within its weight, keeps what is read, and forgets files.

use std::rc::Rc;

use proptest::prelude::*;
use varve::cache::Cache;
use varve::table::{Block, BlockKind};
use varve::types::FileName;

fn block(mark: u64, bytes: usize) -> Rc<Block> {
    let mut raw = mark.to_le_bytes().to_vec();
    raw.resize(bytes.max(8), 0);
    raw.shrink_to_fit();
    Rc::new(Block::parse(BlockKind::Filter, raw).unwrap())
}

fn mark_of(block: &Block) -> u64 {
    u64::from_le_bytes(*block.first_chunk().unwrap())
}

#[derive(Debug, Clone)]
enum Step {
    Get(u64, u64),
    Insert(u64, u64, usize),
    RemoveFile(u64),
    SetCapacity(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u64..4, 0u64..30).prop_map(|(file, offset)| Step::Get(file, offset)),
        20 => (0u64..4, 0u64..30, 8usize..600).prop_map(|(file, offset, bytes)| Step::Insert(file, offset, bytes)),
        1 => (0u64..4).prop_map(Step::RemoveFile),
        1 => (0usize..6000).prop_map(Step::SetCapacity),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_get_finds_what_was_inserted_or_nothing_and_the_weight_is_bounded(
        capacity in 0usize..6000,
        steps in prop::collection::vec(any_step(), 0..400),
    ) {
        let mut cache = Cache::new(capacity);
        let (mut gets, mut inserted) = (0, std::collections::BTreeSet::new());
        for step in steps {
            match step {
                Step::Get(file, offset) => {
                    gets += 1;
                    if let Some(found) = cache.get((FileName::table(file), offset)) {
                        prop_assert_eq!(mark_of(&found), file * 1000 + offset);
                        prop_assert!(inserted.contains(&(file, offset)));
                    }
                }
                Step::Insert(file, offset, bytes) => {
                    let block = block(file * 1000 + offset, bytes);
                    let fits = block.weight() + 200 < cache.capacity();
                    cache.insert((FileName::table(file), offset), block);
                    inserted.insert((file, offset));
                    let hits = cache.hits();
                    if fits {
                        let found = cache.get((FileName::table(file), offset));
                        prop_assert!(found.is_some(), "a block that was just inserted is cached");
                        gets += cache.hits() - hits;
                    }
                }
                Step::RemoveFile(file) => {
                    cache.remove_file(FileName::table(file));
                    inserted.retain(|&(id, _)| id != file);
                }
                Step::SetCapacity(capacity) => cache.set_capacity(capacity),
            }
            prop_assert!(cache.bytes() <= cache.capacity());
            prop_assert_eq!(cache.is_empty(), cache.bytes() == 0);
            prop_assert_eq!(cache.hits() + cache.misses(), gets);
            prop_assert!(cache.len() <= inserted.len());
        }
    }
}

/// Reads through the cache.
fn read(cache: &mut Cache, offset: u64) {
    let key = (FileName::table(1), offset);
    if cache.get(key).is_none() {
        cache.insert(key, block(offset, 1000));
    }
}

#[test]
fn blocks_that_are_read_often_survive_a_scan() {
    let mut cache = Cache::new(100_000);
    for _ in 0..4 {
        (0..40).for_each(|offset| read(&mut cache, offset));
    }
    for scanned in 1000..5000 {
        read(&mut cache, scanned);
    }
    let cached = (0..40).filter(|&offset| cache.get((FileName::table(1), offset)).is_some()).count();
    assert_eq!(cached, 40, "hot blocks left after a scan of 40 times the cache");
    assert!(cache.bytes() > 90_000, "the cache is full");
}

#[test]
fn a_block_that_comes_back_soon_is_held_longer() {
    let mut cache = Cache::new(20_000);
    (0..30).for_each(|offset| read(&mut cache, offset));
    let key = (FileName::table(1), 8);
    assert!(cache.get(key).is_none(), "it passed through once");
    read(&mut cache, 8);
    for scanned in 1000..1012 {
        read(&mut cache, scanned);
        read(&mut cache, scanned + 100);
    }
    assert!(cache.get(key).is_some(), "the second time it stays");
}

#[test]
fn a_removed_file_gives_its_weight_back() {
    let mut cache = Cache::new(100_000);
    for offset in 0..30 {
        cache.insert((FileName::table(1), offset), block(offset, 1000));
        cache.insert((FileName::table(2), offset), block(offset, 1000));
    }
    let before = cache.bytes();
    cache.remove_file(FileName::table(1));
    assert_eq!((cache.bytes(), cache.len()), (before / 2, 30));
    assert!((0..30).all(|offset| cache.get((FileName::table(1), offset)).is_none()));
    assert!((0..30).all(|offset| cache.get((FileName::table(2), offset)).is_some()));
    for offset in 0..200 {
        cache.insert((FileName::table(3), offset), block(offset, 1000));
    }
    assert!(cache.bytes() <= 100_000);
}
