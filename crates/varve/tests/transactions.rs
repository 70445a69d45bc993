//! Optimistic transactions are serializable, for keys and for ranges: one that commits could have run as a whole at the time
//! of its commit, and a conflict is reported exactly when something that it read was written since its snapshot.
//!
//! Transactions interleave with each other and with other writes, while memtables are flushed and tables merged in slices,
//! so that jobs start before and end after snapshots.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SlotPool};
use varve::store::Dependency;
use varve::{Durability, Error, Host, Op, Options, Store};

type Slots = SlotPool<MemorySlots>;
/// Values with their expiry; expired entries stay, for transactions that read by an earlier time.
type State = BTreeMap<u8, (u8, Option<u64>)>;

#[derive(Debug, Clone, Copy)]
enum Change {
    Set(u8, u8, Option<u64>),
    Delete(u8),
    DeleteRange(u8, u8),
}

#[derive(Debug, Clone)]
enum Step {
    Begin(usize),
    Get(usize, u8),
    Scan(usize, u8, u8),
    Write(usize, Change),
    Commit(usize),
    Direct(Vec<Change>),
    Flush,
    Compact,
    Slice(usize),
    Wait(u64),
}

/// A transaction under way, with the answers that it got.
#[derive(Debug)]
struct Transaction {
    snapshot: u32,
    sequence: u64,
    now_ms: u64,
    gets: Vec<(u8, Option<u8>)>,
    scans: Vec<(u8, u8, Vec<u8>)>,
    changes: Vec<Change>,
}

const TRANSACTIONS: usize = 3;
const KEYS: u8 = 12;

fn change() -> impl Strategy<Value = Change> {
    let key = || 0..KEYS;
    prop_oneof![
        5 => (key(), any::<u8>(), prop::option::of(1..40_u64)).prop_map(|(key, value, ttl)| Change::Set(key, value, ttl)),
        3 => key().prop_map(Change::Delete),
        1 => (key(), 0..5_u8).prop_map(|(start, keys)| Change::DeleteRange(start, start + keys)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0..TRANSACTIONS;
    prop_oneof![
        4 => which().prop_map(Step::Begin),
        4 => (which(), 0..KEYS).prop_map(|(which, key)| Step::Get(which, key)),
        3 => (which(), 0..KEYS, 0..4_u8).prop_map(|(which, start, keys)| Step::Scan(which, start, start + keys)),
        4 => (which(), change()).prop_map(|(which, change)| Step::Write(which, change)),
        4 => which().prop_map(Step::Commit),
        4 => vec(change(), 1..3).prop_map(Step::Direct),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        3 => (1..9_usize).prop_map(Step::Slice),
        1 => (1..30_u64).prop_map(Step::Wait),
    ]
}

fn open(options: Options) -> Store<Slots> {
    let storage = SlotPool::open(MemorySlots::new(60)).expect("slots");
    let host = Host { now_ms: 1000, entropy: 5, store_id: [9; 16] };
    Store::open(storage, options, host).expect("a store").0
}

fn options() -> impl Strategy<Value = Options> {
    (1..4_usize, prop::sample::select(vec![600, 5000])).prop_map(|(l0_trigger, memtable)| Options {
        memory_bytes: 64 << 10,
        memtable_bytes_min: memtable,
        memtable_bytes_max: memtable * 2,
        block_bytes: 64,
        restart_interval: 2,
        table_bytes: 1000,
        level_base_bytes: 1000,
        level_factor: 2,
        job_bytes_max: 4000,
        l0_trigger,
        l0_stall: l0_trigger + 2,
        ..Options::default()
    })
}

/// One byte of key; the value is long, so that tables are many.
fn write(store: &mut Store<Slots>, changes: &[Change]) {
    let now_ms = store.now_ms();
    let bytes: Vec<_> = changes
        .iter()
        .map(|change| match *change {
            Change::Set(key, value, _) => ([key], vec![value; 50]),
            Change::Delete(key) => ([key], Vec::new()),
            Change::DeleteRange(start, end) => ([start], vec![end]),
        })
        .collect();
    let ops: Vec<_> = changes
        .iter()
        .zip(&bytes)
        .map(|(change, (key, value))| match change {
            Change::Set(_, _, ttl) => Op::Set { key, value, expires: ttl.map(|ms| now_ms + ms) },
            Change::Delete(_) => Op::Delete { key },
            Change::DeleteRange(..) => Op::DeleteRange { start: key, end: value },
        })
        .collect();
    store.stage(&ops).expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
}

fn apply(changes: &[Change], now_ms: u64, state: &mut State) {
    for change in changes {
        match *change {
            Change::Set(key, value, ttl) => {
                state.insert(key, (value, ttl.map(|ms| now_ms + ms)));
            }
            Change::Delete(key) => {
                state.remove(&key);
            }
            Change::DeleteRange(start, end) => state.retain(|&key, _| key < start || key >= end),
        }
    }
}

/// The keys that a change writes, as a range.
fn written(change: Change) -> (u8, u8) {
    match change {
        Change::Set(key, ..) | Change::Delete(key) => (key, key + 1),
        Change::DeleteRange(start, end) => (start, end),
    }
}

fn at(state: &State, key: u8, now_ms: u64) -> Option<u8> {
    state.get(&key).filter(|(_, expires)| expires.is_none_or(|at| at > now_ms)).map(|(value, _)| *value)
}

fn present(state: &State, start: u8, end: u8, now_ms: u64) -> Vec<u8> {
    (start..end).filter(|&key| at(state, key, now_ms).is_some()).collect()
}

fn scan(store: &mut Store<Slots>, snapshot: u32, start: u8, end: u8) -> Vec<u8> {
    let options = ScanOptions { lower: vec![start], upper: Some(vec![end]), ..ScanOptions::default() };
    let request = varve::scan::ScanRequest {
        options,
        want_keys: true,
        want_values: false,
        want_expiries: false,
        snapshot,
        batch_bytes: 1,
    };
    let cursor = store.open_cursor(request).expect("a scan");
    let mut keys = Vec::new();
    loop {
        let (progress, batch) = store.next_of_cursor(cursor, 3).expect("a batch");
        let mut bytes = Vec::new();
        Batch::encode(batch, 0, &mut bytes);
        let count = batch.count() as usize;
        keys.extend_from_slice(&bytes[16 + 4 * count..][..count]);
        if progress == Progress::Finished {
            return keys;
        }
    }
}

/// Commits a transaction; returns the result of the store. Nothing was written if it was a conflict.
fn commit(store: &mut Store<Slots>, transaction: &Transaction) -> Result<(), Error> {
    let ends: Vec<_> = transaction.scans.iter().map(|(start, end, _)| ([*start], [*end])).collect();
    let keys: Vec<_> = transaction.gets.iter().map(|(key, _)| [*key]).collect();
    let points = keys.iter().map(|key| Dependency { start: key, end: None });
    let ranges = ends.iter().map(|(start, end)| Dependency { start, end: Some(end) });
    let read: Vec<_> = points.chain(ranges).collect();
    let checked = store.check_unchanged(transaction.snapshot, &read);
    if checked.is_ok() {
        write(store, &transaction.changes);
    }
    checked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn transactions_are_serializable(options in options(), steps in vec(step(), 1..160)) {
        let mut store = open(options);
        let mut state = State::new();
        // Every write that happened, in order: change `i` has sequence `i + 1`.
        let mut history: Vec<Change> = Vec::new();
        let mut open: [Option<Transaction>; TRANSACTIONS] = Default::default();
        for step in &steps {
            match step {
                Step::Begin(which) => {
                    if let Some(given_up) = open[*which].take() {
                        store.close_snapshot(given_up.snapshot);
                    }
                    let snapshot = store.open_snapshot().expect("a snapshot");
                    let (sequence, now_ms) = (history.len() as u64, store.now_ms());
                    let (gets, scans, changes) = Default::default();
                    open[*which] = Some(Transaction { snapshot, sequence, now_ms, gets, scans, changes });
                }
                Step::Get(which, key) => {
                    let Some(transaction) = &mut open[*which] else { continue };
                    let read = |entry: Option<varve::store::Entry<'_>>| entry.map(|entry| entry.value[0]);
                    let value = store.find_in(transaction.snapshot, &[*key], read).expect("read");
                    transaction.gets.push((*key, value));
                }
                Step::Scan(which, start, end) => {
                    let Some(transaction) = &mut open[*which] else { continue };
                    let keys = scan(&mut store, transaction.snapshot, *start, *end);
                    transaction.scans.push((*start, *end, keys));
                }
                Step::Write(which, change) => {
                    if let Some(transaction) = &mut open[*which] {
                        transaction.changes.push(*change);
                    }
                }
                Step::Commit(which) => {
                    let Some(transaction) = open[*which].take() else { continue };
                    let before = state.clone();
                    let committed = commit(&mut store, &transaction);
                    store.close_snapshot(transaction.snapshot);
                    let since = &history[transaction.sequence as usize..];
                    let points = transaction.gets.iter().map(|(key, _)| (*key, key + 1));
                    let ranges = transaction.scans.iter().map(|(start, end, _)| (*start, *end));
                    let read: Vec<_> = points.chain(ranges).collect();
                    let was_written = |key: u8, change: &Change| (written(*change).0..written(*change).1).contains(&key);
                    match committed {
                        Ok(()) => {
                            // Everything that it read is the same in the state just before its commit.
                            for (key, value) in &transaction.gets {
                                prop_assert_eq!(*value, at(&before, *key, transaction.now_ms));
                            }
                            for (start, end, keys) in &transaction.scans {
                                prop_assert_eq!(keys, &present(&before, *start, *end, transaction.now_ms));
                            }
                            let touched = read.iter().any(|&(start, end)| {
                                (start..end).any(|key| since.iter().any(|change| was_written(key, change)))
                            });
                            prop_assert!(!touched, "a write since the snapshot was overlooked");
                            apply(&transaction.changes, store.now_ms(), &mut state);
                            history.extend(&transaction.changes);
                        }
                        Err(Error::Conflict(conflict)) => {
                            let (key, found) = (conflict.key[0], conflict.found);
                            prop_assert!(read.iter().any(|&(start, end)| start <= key && key < end));
                            prop_assert!(since.iter().any(|change| was_written(key, change)), "key {} was not written", key);
                            let newest = history.iter().rposition(|change| was_written(key, change)).expect("written");
                            if found > 0 {
                                prop_assert!(matches!(history[found as usize - 1], Change::Set(..)));
                                prop_assert!(found as usize <= newest + 1);
                            }
                        }
                        Err(error) => prop_assert!(false, "{:?}", error),
                    }
                }
                Step::Direct(changes) => {
                    write(&mut store, changes);
                    apply(changes, store.now_ms(), &mut state);
                    history.extend(changes);
                }
                Step::Flush => store.flush().expect("flushed"),
                Step::Compact => store.compact().expect("compacted"),
                Step::Slice(budget) => {
                    store.run_slice(*budget).expect("a slice");
                }
                Step::Wait(ms) => store.set_now(store.now_ms() + ms),
            }
        }
    }
}

/// The tombstones of a key and of a range that were written while a snapshot was open stay at the bottom, where nothing lies
/// below them; they are dropped once it is closed.
#[test]
fn tombstones_outlive_merges_while_a_snapshot_is_open() {
    let mut store = open(Options { l0_trigger: 2, ..Options::default() });
    write(&mut store, &[Change::Set(1, 1, None), Change::Set(2, 1, None), Change::Set(3, 1, Some(10))]);
    store.flush().expect("flushed");
    let snapshot = store.open_snapshot().expect("a snapshot");
    write(&mut store, &[Change::Delete(1), Change::DeleteRange(2, 3), Change::Set(4, 1, Some(10))]);
    store.set_now(5000);
    store.compact().expect("compacted");
    let read = |key: u8| {
        let key = [key];
        let checked = store.check_unchanged(snapshot, &[Dependency { start: &key, end: None }]);
        checked.map_err(|error| error == Error::conflict(&key, 0))
    };
    assert_eq!([1, 2, 4].map(read), [Err(true); 3], "deleted, deleted with a range, expired");
    assert_eq!(read(3), Ok(()), "an entry that expires is no write");
    let whole = Dependency { start: &[], end: Some(&[0xff]) };
    assert!(matches!(store.check_unchanged(snapshot, &[whole]), Err(Error::Conflict(_))));
    // No table is merged over and over for tombstones that have to stay.
    while store.run_slice(1000).expect("a slice") {}
    store.close_snapshot(snapshot);
    store.compact().expect("compacted");
    let entries: u64 = store.stats().levels.iter().map(|level| level.entries).sum();
    assert_eq!(entries, 0);
}

#[test]
fn a_snapshot_that_is_not_there_is_refused() {
    let mut store = open(Options::default());
    let read = [Dependency { start: b"k", end: None }];
    assert!(matches!(store.check_unchanged(1, &read), Err(Error::InvalidArgument(_))));
    let snapshot = store.open_snapshot().expect("a snapshot");
    assert_eq!(store.check_unchanged(snapshot, &read), Ok(()));
}
