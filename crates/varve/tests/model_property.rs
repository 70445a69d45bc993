//! A store answers like a `BTreeMap`, with any writes, flushes, merges and reopenings in between.
//!
//! The simulator tests crashes and full disks; here the disk is RAM and never fails.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Op, Options, Store};

/// Values and when they expire; expired entries stay in here, to see that the store does not bring them back.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;
type Slots = SlotPool<MemorySlots>;

#[derive(Debug, Clone)]
enum Change {
    /// With a time to live, in milliseconds.
    Set(Vec<u8>, Vec<u8>, Option<u64>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

#[derive(Debug, Clone)]
enum Step {
    Write(Change),
    Batch(Vec<Change>),
    Commit(Durability),
    Wait(u64),
    Get(Vec<u8>),
    Scan { lower: Vec<u8>, upper: Option<Vec<u8>>, reverse: bool, limit: Option<u64>, batch_bytes: usize },
    Flush,
    Compact,
    Slice(usize),
    Close,
    Drop,
}

/// Keys that share prefixes, begin one another, and contain the lowest and highest bytes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(vec![0, 1, b'a', b'b', 0x7f, 0x80, 0xfe]), 1..5)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), 0..40), 1 => (any::<u8>(), 1000..9000_usize).prop_map(|(byte, len)| vec![byte; len])]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (key(), value(), prop::option::of(1..100_u64)).prop_map(|(key, value, ttl)| Change::Set(key, value, ttl)),
        2 => key().prop_map(Change::Delete),
        1 => (key(), key()).prop_map(|(a, b)| if a < b { Change::DeleteRange(a, b) } else { Change::DeleteRange(b, a) }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let level = prop::sample::select(vec![Durability::Memory, Durability::Relaxed, Durability::Strict]);
    let range = (
        key(),
        prop::option::of(key()),
        any::<bool>(),
        prop::option::of(0..9_u64),
        prop::sample::select(vec![1, 64, 1 << 16]),
    );
    prop_oneof![
        12 => change().prop_map(Step::Write),
        3 => vec(change(), 1..20).prop_map(Step::Batch),
        3 => level.prop_map(Step::Commit),
        2 => (1..60_u64).prop_map(Step::Wait),
        6 => key().prop_map(Step::Get),
        4 => range.prop_map(|(lower, upper, reverse, limit, batch_bytes)| Step::Scan { lower, upper, reverse, limit, batch_bytes }),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        2 => (1..200_usize).prop_map(Step::Slice),
        1 => Just(Step::Close),
        1 => Just(Step::Drop),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let sizes = (
        prop::sample::select(vec![600, 5000]),
        prop::sample::select(vec![64, 512, 4096]),
        prop::sample::select(vec![1, 2, 16]),
    );
    (sizes, 1..4_usize, any::<bool>()).prop_map(
        |((memtable, block_bytes, restart_interval), l0_trigger, compress)| Options {
            memory_bytes: 64 << 10,
            memtable_bytes_min: memtable,
            memtable_bytes_max: memtable * 2,
            block_bytes,
            restart_interval,
            table_bytes: 2000,
            l0_trigger,
            l0_stall: l0_trigger + 2,
            compress,
            ..Options::default()
        },
    )
}

fn op(change: &Change, now_ms: u64) -> Op<'_> {
    match change {
        Change::Set(key, value, ttl) => Op::Set { key, value, expires: ttl.map(|ms| now_ms + ms) },
        Change::Delete(key) => Op::Delete { key },
        Change::DeleteRange(start, end) => Op::DeleteRange { start, end },
    }
}

fn apply(change: &Change, now_ms: u64, model: &mut Model) {
    match change {
        Change::Set(key, value, ttl) => {
            model.insert(key.clone(), (value.clone(), ttl.map(|ms| now_ms + ms)));
        }
        Change::Delete(key) => {
            model.remove(key);
        }
        Change::DeleteRange(start, end) => model.retain(|key, _| key < start || key >= end),
    }
}

/// The entries that are alive at a time.
fn alive(entry: &(Vec<u8>, Option<u64>), now_ms: u64) -> bool {
    entry.1.is_none_or(|at| at > now_ms)
}

/// Opens with a clock that has gone back to 0: the time is then the one in the last edit of the manifest.
fn open(slots: MemorySlots, options: &Options, opening: u64) -> Store<Slots> {
    let storage = SlotPool::open(slots).expect("slots");
    let host = Host { now_ms: 0, entropy: opening, store_id: [9; 16] };
    Store::open(storage, options.clone(), host).expect("a store").0
}

/// All entries of a scan, out of the bytes of its batches.
fn scan(store: &Store<Slots>, options: ScanOptions, batch_bytes: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = store.scan(options).expect("a scan");
    let mut entries = Vec::new();
    loop {
        let mut batch = Batch::new(true, true);
        let progress = store.scan_next(&mut cursor, batch_bytes, &mut batch).expect("a batch");
        entries.extend(crate::scan_common::entries(&batch));
        if progress == Progress::Finished {
            return entries;
        }
    }
}

fn expected(model: &Model, options: &ScanOptions, now_ms: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside =
        |key: &Vec<u8>| *key >= options.lower && options.upper.as_ref().is_none_or(|upper| key < upper);
    let mut entries: Vec<_> = model
        .iter()
        .filter(|(key, entry)| inside(key) && alive(entry, now_ms))
        .map(|(key, entry)| (key.clone(), entry.0.clone()))
        .collect();
    if options.reverse {
        entries.reverse();
    }
    entries.truncate(options.limit.map_or(usize::MAX, |limit| limit as usize));
    entries
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_store_answers_like_a_map(options in options(), steps in vec(step(), 1..120)) {
        let mut model = Model::new();
        let mut store = open(MemorySlots::new(60), &options, 0);
        for (opening, step) in (1..).zip(&steps) {
            let now = store.now_ms();
            match step {
                Step::Wait(ms) => store.set_now(now + ms),
                Step::Write(change) => {
                    store.stage(&[op(change, now)]).expect("staged");
                    apply(change, now, &mut model);
                }
                Step::Batch(changes) => {
                    let ops: Vec<_> = changes.iter().map(|change| op(change, now)).collect();
                    store.stage(&ops).expect("staged");
                    changes.iter().for_each(|change| apply(change, now, &mut model));
                }
                Step::Commit(level) => {
                    let receipt = store.commit(*level).expect("committed");
                    prop_assert_eq!(receipt.sequence, store.last_sequence());
                }
                Step::Get(key) => {
                    let wanted = model.get(key).filter(|entry| alive(entry, now)).map(|entry| entry.0.clone());
                    prop_assert_eq!(store.get(key).expect("read"), wanted);
                }
                Step::Scan { lower, upper, reverse, limit, batch_bytes } => {
                    let (lower, upper) = (lower.clone(), upper.clone());
                    let range = ScanOptions { lower, upper, reverse: *reverse, limit: *limit };
                    prop_assert_eq!(scan(&store, range.clone(), *batch_bytes), expected(&model, &range, now));
                }
                Step::Flush => store.flush().expect("flushed"),
                Step::Compact => store.compact().expect("compacted"),
                Step::Slice(budget) => {
                    store.run_slice(*budget).expect("a slice");
                }
                Step::Close => {
                    store.close().expect("closed");
                    store = open(store.into_storage().into_device(), &options, opening);
                }
                Step::Drop => {
                    // As when the process dies: committed data is there, data that was only staged is not.
                    store.commit(Durability::Relaxed).expect("committed");
                    store = open(store.into_storage().into_device(), &options, opening);
                }
            }
        }
        let all = ScanOptions::default();
        prop_assert_eq!(scan(&store, all.clone(), 1 << 16), expected(&model, &all, store.now_ms()));
    }
}
