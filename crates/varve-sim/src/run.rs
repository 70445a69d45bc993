//! One run of a trace: the store and the oracle do the same, and every answer is compared.
//!
//! Invariant: what a run observes (answers, errors, calls to the disk) depends on the trace alone; all of it goes
//! into the hash of the outcome.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use varve::codec::hash::Xxh3;

use crate::session::Session;
use crate::trace::Trace;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Position of the operation that showed it.
    pub op: usize,
    /// The fault, in words.
    pub what: String,
}

/// Counts of what happened in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations carried out.
    pub ops: u64,
    /// Commits acknowledged.
    pub commits: u64,
    /// Writes or commits refused for lack of room.
    pub refused: u64,
    /// Crashes, those during recovery included.
    pub crashes: u64,
    /// Crashes in the middle of opening a store.
    pub recovery_crashes: u64,
    /// Groups that crashes took away.
    pub groups_lost: u64,
    /// Torn tails that recovery cut.
    pub torn: u64,
    /// Stores poisoned by a fault.
    pub poisoned: u64,
    /// Jobs that a compactor finished.
    pub jobs: u64,
    /// Deletes that went through a full disk ahead of writes of the memory level.
    pub saved: u64,
    /// Times that a set was accepted again after everything was deleted on a full disk.
    pub freed: u64,
    /// Tables that moved a level down, or that a deleted range dropped, only by an edit.
    pub edits: u64,
    /// Transactions that were committed.
    pub transactions: u64,
    /// Transactions and conditional writes that conflicted with another write.
    pub conflicts: u64,
    /// Changes that the feed returned.
    pub changes: u64,
    /// Times that the feed reported that history was cut.
    pub cuts: u64,
    /// Calls that were made again because bytes were missing.
    pub again: u64,
    /// Most levels with tables that one store had at a time.
    pub levels: u64,
}

impl Totals {
    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.commits += other.commits;
        self.refused += other.refused;
        self.crashes += other.crashes;
        self.recovery_crashes += other.recovery_crashes;
        self.groups_lost += other.groups_lost;
        self.torn += other.torn;
        self.poisoned += other.poisoned;
        self.jobs += other.jobs;
        self.saved += other.saved;
        self.freed += other.freed;
        self.edits += other.edits;
        self.transactions += other.transactions;
        self.conflicts += other.conflicts;
        self.changes += other.changes;
        self.cuts += other.cuts;
        self.again += other.again;
        self.levels = self.levels.max(other.levels);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations, {} commits, {} refused, {} crashes ({} during recovery), {} groups lost, \
             {} torn tails, {} poisoned, {} jobs, {} deletes on a full disk with writes waiting, {} times freed, \
             {} tables moved or dropped, {} transactions, {} conflicts, {} changes reported, {} cuts, {} calls made again, {} levels at most",
            self.ops,
            self.commits,
            self.refused,
            self.crashes,
            self.recovery_crashes,
            self.groups_lost,
            self.torn,
            self.poisoned,
            self.jobs,
            self.saved,
            self.freed,
            self.edits,
            self.transactions,
            self.conflicts,
            self.changes,
            self.cuts,
            self.again,
            self.levels
        )
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Over everything that was observed.
    pub hash: u64,
    /// The first thing that was wrong.
    pub failure: Option<Failure>,
    /// The run in numbers.
    pub totals: Totals,
}

/// Runs a trace to its end or to the first failure. A panic of the engine is a failure.
#[must_use]
pub fn run(trace: &Trace) -> Outcome {
    run_from(trace, |trace, observed| Session::start(trace, observed))
}

/// As [`run`], with a session that is started otherwise.
pub(crate) fn run_from(
    trace: &Trace,
    start: impl for<'a> FnOnce(&'a Trace, &'a mut Observed) -> Result<Session<'a>, String>,
) -> Outcome {
    let mut observed = Observed::new();
    let mut at = 0;
    varve::nonces::watch(true);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut session = start(trace, &mut observed)?;
        for (position, op) in trace.ops.iter().enumerate() {
            at = position;
            session.perform(op)?;
        }
        at = trace.ops.len();
        session.finish()
    }));
    varve::nonces::watch(false);
    let failure = match result {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some(what),
        Err(panic) => Some(format!("panic: {}", panic_text(panic.as_ref()))),
    };
    let failure = failure.map(|what| Failure { op: at, what });
    Outcome { hash: observed.hash.digest(), failure, totals: observed.totals }
}

/// The findings of a run so far.
pub struct Observed {
    hash: Xxh3,
    /// The run in numbers.
    pub totals: Totals,
}

impl Observed {
    pub(crate) fn new() -> Self {
        Self { hash: Xxh3::new(0), totals: Totals::default() }
    }

    /// Adds bytes to the hash.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.hash.update(bytes);
    }

    /// Adds a number to the hash.
    pub fn number(&mut self, number: u64) {
        self.hash.update(&number.to_le_bytes());
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
