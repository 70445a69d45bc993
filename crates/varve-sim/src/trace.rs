//! A trace: a configuration and a list of operations, enough to repeat a run without the generator.
//!
//! Invariant: every operation is complete in itself (its keys, values and the manner of a crash are spelled
//! out), so that the shrinker can drop any of them without changing what the others do. An operation
//! that refers to something that is missing (a snapshot, a cursor, a job) does nothing.

use std::fmt;

use varve::options::{Durability, Options};

use crate::change::{Change, show};
use crate::disk::{FlushKind, FullStyle};
use crate::slot::PowerLoss;

/// A range to scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub lower: Vec<u8>,
    /// The first key after the range; `None` for no end.
    pub upper: Option<Vec<u8>>,
    /// From the highest key down.
    pub reverse: bool,
    /// The maximum number of entries to deliver.
    pub limit: Option<u64>,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process dies, the machine goes on.
    Process,
    /// The power goes.
    Power(PowerLoss),
}

/// A sequence that a condition asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guess {
    /// The sequence that the key has, or none.
    Right,
    /// None.
    Absent,
    /// The one after that.
    TooHigh,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Stage changes, as a batch or one by one; then commit, if a level is given.
    Write {
        /// The changes.
        changes: Vec<Change>,
        /// All of them as one atomic batch.
        batch: bool,
        /// The level of the commit that follows at once.
        commit: Option<Durability>,
    },
    /// Send changes and reads of them as a frame, as a page does.
    Frame {
        /// The changes.
        changes: Vec<Change>,
        /// All of them as one atomic batch.
        batch: bool,
        /// The level each asks for.
        level: Durability,
    },
    /// Commit what is staged.
    Commit(Durability),
    /// Read one key.
    Get(Vec<u8>),
    /// Scan a range, this many bytes to a batch.
    Scan(Range, usize),
    /// Open a cursor, this many bytes to a batch.
    OpenCursor(Range, usize),
    /// Read one batch from one of the cursors.
    StepCursor(usize),
    /// Close one of the cursors.
    DropCursor(usize),
    /// Take a snapshot and keep it open.
    OpenSnapshot,
    /// Read a key of an open snapshot; scan and count a range of it, this many bytes to a batch.
    ReadSnapshot(usize, Vec<u8>, Range, usize),
    /// Close one of the snapshots.
    DropSnapshot(usize),
    /// Take a snapshot for a transaction to read.
    Begin,
    /// Commit a transaction that read keys and ranges of an open snapshot; the snapshot is closed.
    Transact {
        /// Which of the snapshots.
        snapshot: usize,
        /// The keys that it read.
        keys: Vec<Vec<u8>>,
        /// The ranges that it read.
        ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        /// The writes.
        changes: Vec<Change>,
        /// The level of its commit.
        level: Durability,
        /// As a frame, as a page does.
        framed: bool,
    },
    /// Set a key if it has the sequence that is guessed.
    SetIf(Vec<u8>, Vec<u8>, Guess, Durability),
    /// Flush the WAL.
    Sync,
    /// Seal the WAL, as an idle store does.
    Seal,
    /// Move the memtable to a table, inline.
    Flush,
    /// Merge everything, inline.
    Compact,
    /// Freeze the memtable, so that a job can flush it.
    Freeze,
    /// Work on a due job in the engine itself, for so many entries.
    Slice(usize),
    /// Release files that only wait for an edit.
    Release,
    /// Return spare files to the host, down to this many bytes.
    Shrink(u64),
    /// Encrypt new files under a new data key.
    ChangeKeys,
    /// Ask the compactor to merge everything.
    AskForCompaction,
    /// Hand a job to the compactor.
    TakeJob,
    /// The compactor makes this many steps of so many entries.
    StepJob(u32, usize),
    /// The compactor forgets its job.
    AbortJob,
    /// Close properly and open again.
    Reopen,
    /// Die now; then recover, dying in the middle of each attempt after so many writes and flushes.
    Crash(Crash, Vec<(u64, Crash)>),
    /// Die in the middle of a write or flush, this many from now.
    Fuse(u64, Crash),
    /// Limit the disk to what it contains and this much more.
    Quota(u64),
    /// Lift the limit.
    Unlimit,
    /// Let a write be short, this many from now.
    ShortWrite(u64),
    /// Let a flush fail, this many from now.
    FlushFailure(u64),
    /// Delete keys in one batch and commit it, in the reserve when the disk is full.
    CommitDeletes(Vec<Vec<u8>>, Durability),
    /// Delete everything in the reserve of a full disk, flush, merge, and set a key.
    FreeRoom,
    /// From the next opening on, the store has a log if it had none, and none if it had one.
    SwitchLog,
    /// The host creates more slot files.
    AddSlots(u32),
    /// Time passes, in milliseconds.
    Wait(u64),
    /// The host's clock goes back: a store that is opened after a crash may find itself in the past.
    ClockBack(u64),
}

/// A run, spelled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The seed it was generated from; also seeds what the disk decides.
    pub seed: u64,
    /// Options of the store.
    pub options: Options,
    /// Slot files at the start.
    pub slots: u32,
    /// How the disk reports that it is full.
    pub full_style: FullStyle,
    /// Flushes that the disk only pretends to make.
    pub lie: Option<FlushKind>,
    /// Reads wait: bytes that are not in memory come later, and calls are made again.
    pub waits: bool,
    /// Deaths while the store is made, each after so many writes and flushes.
    pub births: Vec<(u64, Crash)>,
    /// The operation.
    pub ops: Vec<Op>,
}

impl Op {
    /// The values that a write sets.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let changes: &[Change] = match self {
            Self::Write { changes, .. } | Self::Frame { changes, .. } => changes,
            _ => &[],
        };
        changes.iter().filter_map(|change| match change {
            Change::Set(_, value) | Change::SetUntil(_, value, _) => Some(value.as_slice()),
            _ => None,
        })
    }

    /// The changes that it asks for, without the value of a conditional write.
    pub fn changes_mut(&mut self) -> Option<&mut Vec<Change>> {
        match self {
            Self::Write { changes, .. } | Self::Frame { changes, .. } | Self::Transact { changes, .. } => {
                Some(changes)
            }
            _ => None,
        }
    }

    /// Cuts every value that it writes.
    pub fn cut_values(&mut self, bytes_max: usize) {
        if let Self::SetIf(_, value, ..) = self {
            value.truncate(bytes_max);
        }
        for change in self.changes_mut().into_iter().flatten() {
            if let Change::Set(_, value) | Change::SetUntil(_, value, _) = change {
                value.truncate(bytes_max);
            }
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upper = self.upper.as_deref().map_or_else(|| "the end".to_owned(), show);
        let direction = if self.reverse { ", reverse" } else { "" };
        write!(f, "{} to {upper}{direction}", show(&self.lower))?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit {limit}"))
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("process dies"),
            Self::Power(loss) => write!(
                f,
                "power goes, keeping {:?}{}{}",
                loss.keep,
                if loss.torn_sectors { ", torn sectors" } else { "" },
                if loss.garbage { ", garbage" } else { "" }
            ),
        }
    }
}

fn show_changes(f: &mut fmt::Formatter<'_>, changes: &[Change]) -> fmt::Result {
    changes.iter().try_for_each(|change| match change {
        Change::Set(key, value) => write!(f, " [set {} {} bytes]", show(key), value.len()),
        Change::SetUntil(key, value, at) => {
            write!(f, " [set {} {} bytes until {at}]", show(key), value.len())
        }
        Change::Delete(key) => write!(f, " [delete {}]", show(key)),
        Change::DeleteRange(start, end) => {
            let end = end.as_deref().map_or_else(|| "the end".to_owned(), show);
            write!(f, " [delete {} to {end}]", show(start))
        }
    })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { changes, batch, commit } => {
                f.write_str(if *batch { "batch" } else { "stage" })?;
                show_changes(f, changes)?;
                commit.map_or(Ok(()), |level| write!(f, ", commit {level:?}"))
            }
            Self::Frame { changes, batch, level } => {
                f.write_str(if *batch { "frame of a batch" } else { "frame" })?;
                show_changes(f, changes)?;
                write!(f, ", {level:?}")
            }
            Self::Get(key) => write!(f, "get {}", show(key)),
            Self::Transact { snapshot, keys, ranges, changes, level, framed } => {
                let how = if *framed { " in a frame" } else { "" };
                write!(f, "transaction{how} on snapshot {snapshot} that read")?;
                keys.iter().try_for_each(|key| write!(f, " [{}]", show(key)))?;
                for (start, end) in ranges {
                    let end = end.as_deref().map_or_else(|| "the end".to_owned(), show);
                    write!(f, " [{} to {end}]", show(start))?;
                }
                f.write_str(", writes")?;
                show_changes(f, changes)?;
                write!(f, ", {level:?}")
            }
            Self::SetIf(key, value, guess, level) => {
                write!(f, "set {} {} bytes if {guess:?}, {level:?}", show(key), value.len())
            }
            Self::CommitDeletes(keys, level) => {
                f.write_str("delete with reserve")?;
                keys.iter().try_for_each(|key| write!(f, " [{}]", show(key)))?;
                write!(f, ", commit {level:?}")
            }
            Self::Scan(range, bytes) => write!(f, "scan {range}, batches of {bytes} bytes"),
            Self::OpenCursor(range, bytes) => write!(f, "open cursor {range}, batches of {bytes} bytes"),
            Self::ReadSnapshot(which, key, range, bytes) => {
                write!(f, "snapshot {which}: get {}, scan {range}, batches of {bytes} bytes", show(key))
            }
            Self::Crash(crash, recoveries) => {
                write!(f, "{crash}")?;
                recoveries.iter().try_for_each(|(calls, crash)| {
                    write!(f, "; during recovery, after {calls} calls: {crash}")
                })
            }
            Self::Fuse(calls, crash) => write!(f, "in {calls} calls: {crash}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {} slots, full disk {:?}", self.seed, self.slots, self.full_style)?;
        writeln!(f, "{:?}", self.options)?;
        if let Some(kind) = self.lie {
            writeln!(f, "the disk lies about flushes of kind {kind:?}")?;
        }
        if self.waits {
            writeln!(f, "reads wait")?;
        }
        for (calls, crash) in &self.births {
            writeln!(f, "while the store is made, after {calls} calls: {crash}")?;
        }
        for (position, op) in self.ops.iter().enumerate() {
            writeln!(f, "{position:4}  {op}")?;
        }
        Ok(())
    }
}
