//! Short traces, and every crash of them: before and after each call to the disk, everything that a power loss may leave.
//!
//! ```text
//! operation -> crash points, one before each write, flush, change of size and creation of slots, and one after the last
//! crash point -> images, one for each combination of unsynced sectors and lengths that may survive
//! image     -> open, compare with the history; write, lose the power, open, compare
//!           -> open, die at some call, lose the power, open, compare
//! ```
//! Invariants under test: an image opens. It contains a prefix of the history, with all that was promised when its crash came.
//! Data that was recovered once is there after every later crash, and data that was cut stays cut. A transaction is there
//! as a whole or not at all. An entry expires at the time that its write set, whatever time the clock of the host shows at
//! each opening: it may show the beginning of the trace, the time of the crash, or a time after every expiry.
//!
//! Images of equal bytes and equal promises are tried once. Of a crash point with few images, all are tried. Of a crash point with
//! more, all subsets of up to [`SECTORS_MAX`] sectors are tried, and a seeded sample of the rest.

mod recovery;
mod search;

use varve::options::Options;

use self::search::Search;
use crate::run::Observed;
use crate::session::Session;
use crate::trace::{Op, Trace};
use crate::workload::dense;

/// Operations of a trace.
pub const OPS_MAX: usize = 40;
/// The part of them that is drawn, before transactions and expiries are inserted.
const DRAWN_MAX: usize = 24;
/// If there are more images than that: all subsets of this many unsynced sectors are tried.
pub const SECTORS_MAX: usize = 6;

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Up to this many images of one crash point, all are tried.
    pub images_max: u64,
    /// Images drawn where not all are tried.
    pub samples: usize,
    /// One image of so many is opened again with a death in the middle.
    pub second_crash_every: u64,
    /// One image of so many is opened again with a death at each call.
    pub every_call_every: u64,
}

impl Effort {
    /// For the test suite.
    pub const BRIEF: Self = Self { images_max: 64, samples: 8, second_crash_every: 4, every_call_every: 160 };
    /// For the command line.
    pub const THOROUGH: Self =
        Self { images_max: 256, samples: 24, second_crash_every: 1, every_call_every: 40 };
}

/// Counts of what was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Crash points that were tried.
    pub crash_points: u64,
    /// Crash points of which not every image was tried.
    pub sampled: u64,
    /// Different images that were recovered.
    pub images: u64,
    /// Images that contained less than the last crash point before the crash did.
    pub shorter: u64,
    /// Recoveries during which the machine died.
    pub second_crashes: u64,
    /// Images in which entries had expired when they were opened.
    pub expired: u64,
    /// Transactions that were committed.
    pub transactions: u64,
    /// Transactions and conditional writes that were refused because of another write.
    pub conflicts: u64,
}

impl Tried {
    /// Adds the numbers of another trace.
    pub fn add(&mut self, other: &Self) {
        self.crash_points += other.crash_points;
        self.sampled += other.sampled;
        self.images += other.images;
        self.shorter += other.shorter;
        self.second_crashes += other.second_crashes;
        self.expired += other.expired;
        self.transactions += other.transactions;
        self.conflicts += other.conflicts;
    }
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} crash points ({} of them sampled), {} images recovered ({} without the last writes, {} with expired \
             entries), {} crashes during recovery, {} transactions, {} conflicts",
            self.crash_points,
            self.sampled,
            self.images,
            self.shorter,
            self.expired,
            self.second_crashes,
            self.transactions,
            self.conflicts
        )
    }
}

/// The short trace of a seed, from the generator, without faults, reads and large values.
#[must_use]
pub fn short_trace(seed: u64) -> Trace {
    let mut trace = dense(seed, DRAWN_MAX, is_calm);
    trace.slots = 10 + (seed % 5) as u32;
    let options = &mut trace.options;
    options.memtable_bytes_min = options.memtable_bytes_min.min(2048);
    options.memtable_bytes_max = options.memtable_bytes_max.min(4096);
    trace.ops.truncate(OPS_MAX);
    for op in &mut trace.ops {
        op.cut_values(700);
        // Groups stay below the number that the oracle remembers.
        if let Op::Write { changes, batch, .. } | Op::Frame { changes, batch, .. } = op {
            changes.truncate(if *batch { 4 } else { 1 });
        }
    }
    trace
}

fn is_calm(op: &Op) -> bool {
    matches!(
        op,
        Op::Write { .. }
            | Op::Frame { .. }
            | Op::Commit(_)
            | Op::Sync
            | Op::Seal
            | Op::Flush
            | Op::Compact
            | Op::Freeze
            | Op::Slice(_)
            | Op::Release
            | Op::Shrink(_)
            | Op::AskForCompaction
            | Op::TakeJob
            | Op::StepJob(..)
            | Op::AbortJob
            | Op::Reopen
            | Op::SwitchLog
            | Op::AddSlots(_)
    )
}

/// Carries a trace out and crashes it everywhere.
///
/// # Errors
/// The error, its place, and the crash that it came after.
pub fn crash_everywhere(trace: &Trace, effort: Effort) -> Result<Tried, String> {
    let mut observed = Observed::new();
    let bare = Trace { ops: Vec::new(), ..trace.clone() };
    let mut session = Session::start(&bare, &mut observed)?;
    session.disk.take_crash_points();
    let mut search = Search::new(trace.seed, effort);
    let mut before = session.model.clone();
    for (position, op) in trace.ops.iter().enumerate() {
        let place = |what: String| format!("seed {}, operation {position} ({op}): {what}", trace.seed);
        session.perform(op).map_err(place)?;
        let after = session.model.clone();
        let options = Options { log: session.log, ..trace.options.clone() };
        search.clock_ms = session.store()?.now_ms();
        search.crash_between(&before, &after, &options, &session.disk.take_crash_points()).map_err(place)?;
        let now = [session.disk.crash_point()];
        search.crash_between(&after, &after, &options, &now).map_err(place)?;
        before = after;
    }
    drop(session);
    search.tried.transactions += observed.totals.transactions;
    search.tried.conflicts += observed.totals.conflicts;
    Ok(search.tried)
}
