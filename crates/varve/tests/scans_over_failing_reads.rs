//! Scans over a storage whose reads fail until their bytes were fetched, asked again until they succeed.
//!
//! The story behind it: where the bytes of tables come later (IndexedDB, Deno KV), a read fails, the host fetches the missing bytes and
//! asks for the same batch again. A cursor had counted the entries of the failed batch, so that a scan with a limit ended early, and one in
//! reverse had moved on past entries that no caller had received. Neither reported an error. At that time, a read that had to wait could
//! also give the entries found so far, and the tests knew only that way: no test saw a batch that fails with entries in it.
//!
//! Invariant tested: whatever fails on the way, a scan delivers exactly the entries of the model, each once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use varve::frame::{Operation, header};
use varve::scan::{Progress, ScanOptions, ScanRequest};
use varve::storage::{MemorySlots, SlotPool, Storage};
use varve::types::{FileKind, FileName, StoreId};
use varve::{Durability, Error, Host, Op, Options, Result, Store};

/// Attempts at one batch after which the test decides that it never succeeds.
const ATTEMPTS_MAX: u32 = 100_000;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;
/// Values and when they expire.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// How a read reports that its bytes are not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// It does not: every read succeeds.
    None,
    /// `Error::Pending`: the bytes have to be fetched first.
    Pending,
    /// `Error::Io`: the disk failed, this time.
    Io,
}

/// A pool in memory whose reads of tables fail, in a hundred `percent` times, until the place was fetched.
struct Failing {
    pool: SlotPool<MemorySlots>,
    failure: Cell<Failure>,
    percent: Cell<u32>,
    random: Cell<u64>,
    takes_no_writes: Cell<bool>,
    /// The bytes that were missing since the last success; they are here until the next one.
    fetched: RefCell<BTreeSet<(FileName, u64)>>,
}

impl Failing {
    fn new(slots: MemorySlots) -> Self {
        let pool = SlotPool::open(slots).expect("slots");
        let (failure, percent, random) = (Cell::new(Failure::None), Cell::new(100), Cell::new(1));
        Self {
            pool,
            failure,
            percent,
            random,
            takes_no_writes: Cell::new(false),
            fetched: RefCell::default(),
        }
    }

    fn fails(&self) -> bool {
        let random = self.random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random.set(random);
        (random >> 33) % 100 < u64::from(self.percent.get())
    }
}

impl Storage for Failing {
    fn list(&self) -> Vec<(FileName, u64)> {
        self.pool.list()
    }
    fn adopt(&mut self, store: StoreId) {
        self.pool.adopt(store);
    }
    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        self.pool.create(file, bytes_hint)
    }
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()> {
        let is_here = file.kind != FileKind::Table || self.fetched.borrow().contains(&(file, offset));
        let error = match self.failure.get() {
            Failure::Pending => Error::Pending,
            Failure::Io => Error::Io("the disk did not answer"),
            Failure::None => return self.pool.read(file, offset, into),
        };
        if is_here || !self.fails() {
            return self.pool.read(file, offset, into);
        }
        // The caller fetches it before its next attempt.
        self.fetched.borrow_mut().insert((file, offset));
        Err(error)
    }
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.takes_no_writes.get() {
            return Err(Error::Io("nothing can be written"));
        }
        self.pool.write(file, offset, bytes)
    }
    fn sync(&mut self, file: FileName) -> Result<()> {
        self.pool.sync(file)
    }
    fn delete(&mut self, file: FileName) -> Result<()> {
        self.pool.delete(file)
    }
    fn bytes_on_disk(&self) -> u64 {
        self.pool.bytes_on_disk()
    }
}

/// The next batch of a scan, asked for until it comes: its entries, and whether there may be more.
fn batch(
    store: &mut Store<Failing>,
    cursor: u32,
    batch_bytes: usize,
    failures: &mut u32,
) -> std::result::Result<(Entries, bool), TestCaseError> {
    for _ in 0..ATTEMPTS_MAX {
        let error = match store.next_of_cursor(cursor, batch_bytes) {
            Ok((progress, batch)) => {
                let answer = (crate::scan_common::entries(batch), progress == Progress::More);
                store.storage().fetched.borrow_mut().clear();
                return Ok(answer);
            }
            Err(error) => error,
        };
        *failures += 1;
        match error {
            Error::Pending | Error::Io(_) => {}
            error => return Err(TestCaseError::fail(error.to_string())),
        }
    }
    Err(TestCaseError::fail("the batch never comes"))
}

fn scan(
    store: &mut Store<Failing>,
    snapshot: u32,
    options: &ScanOptions,
    batch_bytes: usize,
    failures: &mut u32,
) -> std::result::Result<Entries, TestCaseError> {
    let (options, want_expiries) = (options.clone(), false);
    let request =
        ScanRequest { options, want_keys: true, want_values: true, want_expiries, snapshot, batch_bytes };
    let cursor = store.open_cursor(request).expect("a cursor");
    let mut entries = Vec::new();
    loop {
        let (found, more) = batch(store, cursor, batch_bytes, failures)?;
        entries.extend(found);
        if !more {
            return Ok(entries);
        }
    }
}

fn expected(model: &Model, options: &ScanOptions, now_ms: u64) -> Entries {
    let ends = |key: &Vec<u8>| options.upper.as_ref().is_some_and(|upper| key >= upper);
    let is_alive = |expires: &Option<u64>| expires.is_none_or(|at| at > now_ms);
    let inside = model.iter().filter(|(key, _)| **key >= options.lower && !ends(key));
    let alive = inside.filter(|(_, (_, expires))| is_alive(expires));
    let mut entries: Entries = alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
    if options.reverse {
        entries.reverse();
    }
    entries.truncate(options.limit.map_or(usize::MAX, |limit| limit as usize));
    entries
}

#[derive(Debug, Clone)]
enum Step {
    /// A key, bytes of its value, and its time to live in milliseconds.
    Set(u16, usize, Option<u64>),
    Delete(u16),
    DeleteRange(u16, u16),
    Flush,
    Slice,
    Compact,
    Wait(u64),
    Snapshot,
}

#[derive(Debug, Clone)]
struct Asked {
    options: ScanOptions,
    batch_bytes: usize,
    failure: Failure,
    percent: u32,
    /// The read point, counted back from the present.
    back: usize,
}

const KEYS: u16 = 400;

fn key(number: u16) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn step() -> impl Strategy<Value = Step> {
    let ttl = prop::option::weighted(0.2, 1..100_u64);
    prop_oneof![
        60 => (0..KEYS, 0..120_usize, ttl).prop_map(|(key, bytes, ttl)| Step::Set(key, bytes, ttl)),
        10 => (0..KEYS).prop_map(Step::Delete),
        1 => (0..KEYS, 1..60_u16).prop_map(|(from, keys)| Step::DeleteRange(from, from + keys)),
        3 => Just(Step::Flush),
        3 => Just(Step::Slice),
        1 => Just(Step::Compact),
        2 => (1..40_u64).prop_map(Step::Wait),
        1 => Just(Step::Snapshot),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let bound = || prop::option::weighted(0.3, 0..KEYS);
    let limit = prop::option::of(prop_oneof![0..9_u64, 0..400_u64]);
    let batch_bytes = prop::sample::select(vec![1, 64, 700, 5000, 1 << 20]);
    let failing = (
        prop::sample::select(vec![Failure::Pending, Failure::Io]),
        prop::sample::select(vec![10, 50, 100]),
        0..4_usize,
    );
    (bound(), bound(), any::<bool>(), limit, batch_bytes, failing).prop_map(
        |(lower, upper, reverse, limit, batch_bytes, (failure, percent, back))| {
            let (lower, upper) = (lower.map(key).unwrap_or_default(), upper.map(key));
            Asked {
                options: ScanOptions { lower, upper, reverse, limit },
                batch_bytes,
                failure,
                percent,
                back,
            }
        },
    )
}

fn new_store() -> Store<Failing> {
    // As good as no cache: each batch has to ask again for the blocks that the one before it fetched.
    let options = Options {
        memory_bytes: 1,
        memtable_bytes_min: 4096,
        memtable_bytes_max: 4096,
        block_bytes: 256,
        table_bytes: 4096,
        l0_trigger: 3,
        ..Options::default()
    };
    let host = Host { now_ms: 0, entropy: 4, store_id: [4; 16] };
    Store::open(Failing::new(MemorySlots::new(200)), options, host).expect("a store").0
}

fn run(store: &mut Store<Failing>, step: &Step, model: &mut Model) {
    let now_ms = store.now_ms();
    match step {
        Step::Set(number, bytes, ttl) => {
            let (key, value) = (key(*number), store.last_sequence().to_le_bytes().repeat(bytes / 8 + 1));
            let expires = ttl.map(|ms| now_ms + ms);
            store.stage(&[Op::Set { key: &key, value: &value, expires }]).expect("staged");
            model.insert(key, (value, expires));
        }
        Step::Delete(number) => {
            store.delete(&key(*number)).expect("staged");
            model.remove(&key(*number));
        }
        Step::DeleteRange(from, to) => {
            let (from, to) = (key(*from), key(*to));
            store.delete_range(&from, &to).expect("staged");
            model.retain(|key, _| *key < from || *key >= to);
        }
        Step::Flush => store.flush().expect("flushed"),
        Step::Slice => drop(store.run_slice(1 << 20).expect("a slice")),
        Step::Compact => store.compact().expect("compacted"),
        Step::Wait(ms) => store.set_now(now_ms + ms),
        Step::Snapshot => {}
    }
    store.commit(Durability::Memory).expect("committed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_scan_delivers_what_the_model_has(steps in vec(step(), 300..900), asks in vec(asked(), 8..24)) {
        let (mut store, mut model, mut read_points) = (new_store(), Model::new(), Vec::new());
        for step in &steps {
            run(&mut store, step, &mut model);
            if matches!(step, Step::Snapshot) {
                read_points.push((store.open_snapshot().expect("a snapshot"), model.clone(), store.now_ms()));
            }
        }
        read_points.push((0, model, store.now_ms()));
        for (seed, Asked { options, batch_bytes, failure, percent, back }) in (7..).zip(&asks) {
            let (snapshot, model, now_ms) = &read_points[read_points.len() - 1 - back % read_points.len()];
            store.storage().failure.set(*failure);
            store.storage().percent.set(*percent);
            store.storage().random.set(seed);
            let found = scan(&mut store, *snapshot, options, *batch_bytes, &mut 0)?;
            prop_assert_eq!(found, expected(model, options, *now_ms), "{:?} of snapshot {}", failure, snapshot);
        }
    }
}

#[test]
fn limits_are_kept_and_nothing_is_lost_in_reverse_when_reads_of_a_batch_fail() {
    for failure in [Failure::Pending, Failure::Io] {
        let (mut store, mut model) = (new_store(), Model::new());
        for number in 0..KEYS {
            run(&mut store, &Step::Set(number, 100, None), &mut model);
        }
        store.compact().expect("compacted");
        store.storage().failure.set(failure);
        for (reverse, limit) in [(false, None), (false, Some(100)), (true, None), (true, Some(100))] {
            let (options, mut failures) = (ScanOptions { reverse, limit, ..ScanOptions::default() }, 0);
            let found = scan(&mut store, 0, &options, 1 << 20, &mut failures).expect("a scan");
            assert_eq!(found, expected(&model, &options, 0), "{failure:?}, {options:?}");
            assert!(failures > 20, "{failure:?}: only {failures} reads failed");
        }
    }
}

/// Where a scan does not open, the response has no read point for it. When the data that it would have seen could not be logged
/// either, the answer before it was marked as one that cannot be opened again, over bytes of its value.
#[test]
fn a_scan_that_does_not_open_leaves_the_answer_before_it_alone() {
    let (mut store, mut model) = (new_store(), Model::new());
    for number in 0..KEYS {
        run(&mut store, &Step::Set(number, 100, None), &mut model);
    }
    store.compact().expect("compacted");
    // Of the memory level: to be logged before the read point of a scan can be promised to a client.
    store.set(b"new", &[7; 32]).expect("staged");
    store.commit(Durability::Memory).expect("committed");
    store.storage().failure.set(Failure::Io);
    store.storage().takes_no_writes.set(true);
    let everything = [&[6, 0, 0, 0][..], &u32::MAX.to_le_bytes(), &4096_u32.to_le_bytes(), &[0; 8]].concat();
    let mut frame = header(9, 0, 2).to_vec();
    for (number, operation, key, value) in [
        (0_u32, Operation::Get, &b"new\0"[..3], &[][..]),
        (1, Operation::ScanOpen, &[1, 0, 0, 0], &everything),
    ] {
        frame.extend_from_slice(&number.to_le_bytes());
        frame.extend_from_slice(&[operation as u8, 0, 0, 0]);
        frame.extend_from_slice(&(key.len() as u32).to_le_bytes());
        frame.extend_from_slice(&(value.len() as u32).to_le_bytes());
        frame.extend_from_slice(key);
        frame.extend_from_slice(value);
        frame.resize(frame.len().next_multiple_of(4), 0);
    }
    let mut response = Vec::new();
    varve::frame::run(&mut store, &frame, &mut response).expect("a frame runs");
    let (got, opened) = (&response[8..], &response[8 + 16 + 32..]);
    assert_eq!((got[4], &got[16..48]), (0, &[7; 32][..]), "the value as it is");
    assert_eq!(opened[4], 2, "an error");
}
