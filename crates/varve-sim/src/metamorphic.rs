//! One trace under any options: its answers, and the contents of the store after it.
//!
//! Invariant under test: [`answers`] depends on the trace alone, not on the options, and not on whether the storage reads
//! at once or lets every call wait for its reads: points, scans, conditions, writes, jobs, closing and opening. No oracle takes part: runs
//! are compared with one another.

mod transactions;

use std::collections::VecDeque;

use varve::options::{Durability, Host, Options};
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::MemorySlots;
use varve::{Op as StoreOp, Result, Store};

use crate::change::{Change, store_op};
use crate::scan::decode;
use crate::trace::{Op, Range, Trace};
use crate::transactions::Read;
use crate::waiting::{Reads, Waiting, patiently};
use crate::workload::{START_MS, dense};

/// Slots that a run begins with; the host adds more when the store asks.
const SLOTS: u32 = 48;

/// How reads of tables are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// The storage answers at once.
    AtOnce,
    /// The storage answers no read of a range that was not fetched for the call: the call is made again.
    Waiting,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A point read: the value and its sequence.
    Point(Option<(Vec<u8>, u64)>),
    /// A scan: its entries in order.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// A transaction or a conditional write: the sequence that it was committed at.
    Committed(u64),
    /// One that was refused because of other writes. Of several conflicts the engine may report any: which one depends on
    /// where they lie.
    Conflict,
}

/// The result of a run of a trace.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Of every read, in order; the last is a scan of everything after the store was opened again.
    pub answers: Vec<Answer>,
    /// Calls that had to be made again.
    pub waited: u64,
    /// Levels with tables at the end.
    pub levels: usize,
}

/// The trace of a seed without its faults: only conflicts are refused, and every run can execute all of it. The clock goes
/// forward only: how far back the clock of a reopened store may be depends on the edits before it.
#[must_use]
pub fn calm_trace(seed: u64) -> Trace {
    let mut trace = dense(seed, usize::MAX, |op| {
        matches!(
            op,
            Op::Write { .. }
                | Op::Frame { .. }
                | Op::Commit(_)
                | Op::Get(_)
                | Op::Scan(..)
                | Op::OpenSnapshot
                | Op::ReadSnapshot(..)
                | Op::DropSnapshot(_)
                | Op::Sync
                | Op::Flush
                | Op::Compact
                | Op::Slice(_)
                | Op::Reopen
        )
    });
    trace.ops.retain(|op| !matches!(op, Op::ClockBack(_)));
    // Large values are a small part of a trace; half a megabyte of them in each run would only cost time.
    trace.ops.iter_mut().for_each(|op| op.cut_values(3000));
    trace
}

/// Carries out a calm trace.
///
/// # Panics
/// Where the store returns an error: on a storage in memory nothing can fail.
#[must_use]
pub fn answers(trace: &Trace, options: &Options, driver: Driver) -> Run {
    let mut runner = Runner {
        run: Run::default(),
        options,
        reads: Reads::waiting(if driver == Driver::Waiting { 100 } else { 0 }),
        store: None,
        openings: 0,
        now_ms: START_MS,
        snapshots: VecDeque::new(),
    };
    runner.open(MemorySlots::new(SLOTS));
    for op in &trace.ops {
        runner.perform(op);
    }
    runner.reopen();
    let everything = Range { lower: Vec::new(), upper: None, reverse: false, limit: None };
    runner.scan(&everything, 1 << 16);
    runner.scan(&Range { reverse: true, ..everything }, 100);
    let levels = runner.store().stats().levels;
    runner.run.levels = levels.iter().filter(|level| level.tables > 0).count();
    runner.run.waited = runner.reads.again();
    runner.run
}

struct Runner<'a> {
    run: Run,
    options: &'a Options,
    pub(super) reads: Reads,
    pub(super) store: Option<Store<Waiting>>,
    openings: u64,
    now_ms: u64,
    /// Numbers of the open snapshots, the oldest first.
    snapshots: VecDeque<u32>,
}

impl Runner<'_> {
    fn store(&mut self) -> &mut Store<Waiting> {
        self.store.as_mut().expect("a store is open")
    }

    fn open(&mut self, slots: MemorySlots) {
        self.openings += 1;
        let host = Host { now_ms: self.now_ms, entropy: self.openings, store_id: [3; 16] };
        // An opening writes before it has read everything: a host undoes what an attempt wrote that had to wait.
        let opened = patiently(&self.reads, || {
            let storage = Waiting::new(slots.clone(), &self.reads);
            Store::open(storage, self.options.clone(), host)
        });
        self.store = Some(opened.expect("a store opens").0);
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.store().close().expect("closing reads nothing, so it never waits");
        let storage = self.store.take().expect("a store is open").into_storage();
        self.open(storage.into_slots());
    }

    fn perform(&mut self, op: &Op) {
        match op {
            Op::Write { changes, batch, commit } => {
                self.write(changes, *batch);
                if let Some(level) = commit {
                    self.commit(*level);
                }
            }
            Op::Frame { changes, batch, level } => {
                self.write(changes, *batch);
                self.commit(*level);
            }
            Op::Commit(level) => self.commit(*level),
            Op::Get(key) => {
                let found = self.act(|store| {
                    store.find(key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
                });
                self.run.answers.push(Answer::Point(found));
            }
            Op::Scan(range, bytes) => self.scan(range, *bytes),
            Op::Sync => self.act(Store::sync),
            Op::Flush => self.act(Store::flush),
            Op::Compact => self.act(Store::compact),
            Op::Slice(budget) => {
                self.act(|store| store.run_slice(*budget));
            }
            Op::Reopen => self.reopen(),
            Op::Begin | Op::OpenSnapshot => self.open_snapshot(),
            Op::ReadSnapshot(which, key, range, bytes) => self.read_snapshot(*which, key, range, *bytes),
            Op::DropSnapshot(which) => {
                if let Some(number) = self.snapshots.remove(*which) {
                    self.store().close_snapshot(number);
                }
            }
            Op::Transact { snapshot, keys, ranges, changes, level, .. } => {
                self.transact(*snapshot, &Read { keys, ranges }, changes, *level);
            }
            Op::SetIf(key, value, guess, level) => self.set_if(key, value, *guess, *level),
            Op::Wait(ms) => {
                self.now_ms += ms;
                let now_ms = self.now_ms;
                self.store().set_now(now_ms);
            }
            other => panic!("{other} is not calm"),
        }
    }

    fn commit(&mut self, level: Durability) {
        self.act(|store| store.commit(level));
    }

    fn write(&mut self, changes: &[Change], batch: bool) {
        let ops: Vec<StoreOp<'_>> = changes.iter().map(store_op).collect();
        for ops in ops.chunks(if batch { ops.len().max(1) } else { 1 }) {
            self.act(|store| store.stage(ops));
        }
    }

    /// Makes a call until no bytes are missing.
    fn make<T>(&mut self, mut call: impl FnMut(&mut Store<Waiting>) -> Result<T>) -> Result<T> {
        let store = self.store.as_mut().expect("a store is open");
        patiently(&self.reads, || call(store))
    }

    /// Makes a call that cannot fail.
    fn act<T>(&mut self, call: impl FnMut(&mut Store<Waiting>) -> Result<T>) -> T {
        self.make(call).unwrap_or_else(|error| panic!("{error}"))
    }

    fn scan(&mut self, range: &Range, batch_bytes: usize) {
        let Range { lower, upper, reverse, limit } = range.clone();
        let cursor = self.store().scan(ScanOptions { lower, upper, reverse, limit });
        let mut cursor = cursor.expect("a cursor opens");
        let mut entries = Vec::new();
        loop {
            let (progress, batch) = self.act(|store| {
                let mut batch = Batch::new(true, true);
                Ok((store.scan_next(&mut cursor, batch_bytes, &mut batch)?, batch))
            });
            entries.extend(decode(&batch).expect("a batch decodes"));
            if progress == Progress::Finished {
                break;
            }
        }
        self.run.answers.push(Answer::Entries(entries));
    }
}
