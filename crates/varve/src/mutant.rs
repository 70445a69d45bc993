//! Bugs on purpose, one at a time, for tests that prove that the simulator finds them: the feature `mutants`, which only
//! those tests turn on. Without it [`has`] is a constant `false`, and nothing of a bug is compiled in.
//!
//! Invariant: a bug is of the thread that asked for it, so that tests beside it have the engine as it is.

#[cfg(feature = "mutants")]
use std::cell::Cell;

/// A bug that the engine can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A transaction commits whatever was written since its snapshot.
    ConflictsIgnored,
    /// What a transaction read is not looked for in tables.
    ConflictsInTablesIgnored,
    /// A deleted range is no write to a transaction that read keys of it.
    DeletedRangesIgnored,
    /// Merges drop tombstones that a transaction may still ask for.
    TombstonesForgotten,
    /// A condition on a sequence always holds.
    ConditionsIgnored,
    /// Merges keep entries past their expiry.
    ExpiredEntriesKept,
    /// Merges go by a clock that is ahead: they drop entries before their expiry.
    MergeClockAhead,
    /// A snapshot is opened again whatever was dropped of what it saw.
    LostVersionsIgnored,
    /// What was done for clients is not in the edits of the manifest.
    OutcomesNotCarried,
    /// What was done for clients is not taken from the log.
    OutcomesNotReplayed,
    /// What was refused after it was staged is told as done when it is asked for again.
    OutcomesOfRefusedKept,
    /// What is asked for again is done again.
    OutcomesIgnored,
    /// A read that is asked for again sees what its client wrote after it.
    ReadsOfThePresent,
    /// Nothing is forgotten of what was done for clients.
    OutcomesKeptForever,
    /// Edits do not keep the time: a store that is opened later goes by the host's clock, however far it had come.
    ClockNotKept,
    /// A key that is set where everything was dead stays hidden from scans.
    GapsNotCut,
    /// A scan of an earlier moment passes over what died later.
    GapsOfTheFuture,
    /// What a scan of an earlier moment found dead is taken for dead now.
    GapsOfThePast,
    /// A scan that comes to a gap passes over the first key behind it as well.
    GapsTooLong,
    /// A scan of a memtable sees of each key the newest version, whoever reads.
    NewestVersionsSeen,
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
