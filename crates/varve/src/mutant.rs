//! Bugs on purpose, one at a time, for tests that prove that the simulator finds them: the feature `mutants`, which only
//! those tests turn on. Without it [`has`] is a constant `false`, and nothing of a bug is compiled in.
//!
//! Invariant: a bug is of the thread that asked for it, so that tests beside it have the engine as it is.

#[cfg(feature = "mutants")]
use std::cell::Cell;

/// A bug that the engine can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A transaction commits even if its reads were written since its snapshot.
    ConflictsIgnored,
    /// The reads of a transaction are not compared with tables.
    ConflictsInTablesIgnored,
    /// A deleted range is no write to a transaction that read keys of it.
    DeletedRangesIgnored,
    /// Merges drop tombstones that a transaction may still ask for.
    TombstonesForgotten,
    /// A condition on a sequence always holds.
    ConditionsIgnored,
    /// A delete that asks whether its key was there always finds it.
    AbsentKeysFound,
    /// Merges keep entries past their expiry.
    ExpiredEntriesKept,
    /// Merges go by a clock that is ahead: they drop entries before their expiry.
    MergeClockAhead,
    /// A snapshot is opened again although versions that it saw were dropped.
    LostVersionsIgnored,
    /// A snapshot is opened again although a job that runs drops newer tombstones.
    RunningJobsIgnored,
    /// Edits of the manifest do not carry the outcomes of writes.
    OutcomesNotCarried,
    /// Outcomes of writes are not replayed from the log.
    OutcomesNotReplayed,
    /// A write that was refused after it was staged is reported as done when it is sent again.
    OutcomesOfRefusedKept,
    /// A write that is sent again is done again.
    OutcomesIgnored,
    /// A read that is asked for again sees what its client wrote after it.
    ReadsOfThePresent,
    /// Outcomes of writes are never deleted.
    OutcomesKeptForever,
    /// A manifest that was read at opening is not synced before its store is written to.
    ManifestNotKept,
    /// Edits do not keep the time: a store that is opened later goes by the host's clock, however far it had come.
    ClockNotKept,
    /// A key that is set in a gap stays hidden from scans.
    GapsNotCut,
    /// A scan at an earlier read point skips a gap of a later one.
    GapsOfTheFuture,
    /// A gap that a scan found at an earlier read point counts for the present.
    GapsOfThePast,
    /// A deleted range is a gap also for readers from before the deletion.
    DeletedRangesAtOnce,
    /// A deleted range becomes a gap after the whole batch: the sets behind it in the batch do not cut it.
    DeletedRangesLast,
    /// A scan that skips a gap also skips the first key behind it.
    GapsTooLong,
    /// The keyring of a job begins with the seed of the keyring that it comes from.
    ForksKeepSeeds,
    /// A scan of a memtable sees the newest version of each key at every read point.
    NewestVersionsSeen,
    /// A scan does not see the last write before its read point.
    OlderVersionsSeen,
    /// A scan that seeks over the old versions of a key in a memtable also skips the key behind them.
    OldVersionsTooLong,
    /// An opening does not look for segments that are in no slot's page.
    StraysIgnored,
    /// The header of a segment is not flushed before its first record.
    HeaderNotFlushedFirst,
    /// The salt of a segment does not show its store.
    StoreNotInSalt,
}

#[cfg(feature = "mutants")]
thread_local! {
    static PRESENT: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Gives the engine a bug on this thread, or takes it away.
#[cfg(feature = "mutants")]
pub fn inject(bug: Option<Mutant>) {
    PRESENT.set(bug);
}

/// Whether the engine is to have this bug.
#[cfg(feature = "mutants")]
pub(crate) fn has(bug: Mutant) -> bool {
    PRESENT.get() == Some(bug)
}

/// Whether the engine is to have this bug: no.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn has(_bug: Mutant) -> bool {
    false
}
