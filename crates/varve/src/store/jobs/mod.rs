//! Flushes and compactions: handed out as tickets, and installed when they are done.
//!
//! `choose` picks the next job, `offer` describes it, a compactor or `inline` runs it, and `install` takes its result. `purge` and `sweep`
//! are what a full storage and a `compact()` add to the choice.

mod choose;
mod inline;
mod install;
mod offer;
mod purge;
mod running;
mod sweep;

use self::inline::Inline;
use self::purge::Purge;
use self::running::{Input, Running};
use self::sweep::Sweeping;
use crate::compact::JobKind;
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::store::Store;
use crate::types::Sequence;

/// A job for a compactor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTicket {
    /// Number of the job in this session.
    pub id: u32,
    /// Flush or compaction.
    pub kind: JobKind,
    /// The job frees as much room as it takes: on a full storage it may use the room that is set aside.
    pub gives_room: bool,
    /// The specification that [`Job::decode`](crate::compact::Job::decode) takes.
    pub spec: Vec<u8>,
    /// Number of the first output table.
    pub first_output: u64,
    /// How many table numbers are reserved for outputs, from `first_output` on.
    pub outputs_max: u64,
    /// Approximate bytes that each output will need.
    pub bytes_hint: u64,
}

/// The jobs of a store: those that were handed out, and what decides about the next ones.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    running: Vec<Running>,
    /// The one that this store runs itself, in slices.
    inline: Option<Inline>,
    last_number: u32,
    pub(super) sweep: Sweeping,
    purge: Purge,
    /// The log's floor when a flush failed last. While the floor is the same, no flush has succeeded since.
    flush_refused: Option<u64>,
    /// The last merge of level 0 dropped many entries.
    pub(super) overwrites: bool,
    /// Level 0 is as large as writers may make it.
    pub(super) level_zero_full: bool,
    /// Tables that a merge found damaged in this session. Other tables are merged around them.
    damaged: Vec<u64>,
    /// No compaction was due after this many edits, and none is before this time.
    none_due: Option<(u64, u64)>,
    /// See [`Store::begin_idle`].
    is_idle: bool,
}

impl Jobs {
    pub(super) fn is_any_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Forgets a job, and returns what was known of it.
    fn take(&mut self, id: u32) -> Option<Running> {
        let at = self.running.iter().position(|running| running.id == id)?;
        Some(self.running.remove(at))
    }

    /// Forgets a job for which only bytes are missing, as if it had not been offered.
    fn put_back(&mut self, id: u32) {
        for input in self.take(id).filter(Running::is_purge).into_iter().flat_map(|running| running.inputs) {
            self.purge.put_back(input.id);
        }
    }

    fn is_flushing(&self) -> bool {
        self.running.iter().any(|running| running.kind == JobKind::Flush)
    }

    fn is_compacting(&self) -> bool {
        self.running.iter().any(|running| running.kind == JobKind::Compaction)
    }

    /// Whether a job may drop a tombstone that is newer than this.
    pub(super) fn may_forget(&self, since: Sequence) -> bool {
        self.running.iter().any(|running| running.forgets_until > since)
    }

    /// Whether a job reads this table.
    pub(super) fn read(&self, table: u64) -> bool {
        self.running.iter().any(|running| running.reads(table))
    }

    fn new_running(&mut self, kind: JobKind, segments: (u64, u64), inputs: Vec<Input>, level: u8) -> Running {
        self.last_number += 1;
        let (id, newer) = (self.last_number, Vec::new());
        Running { id, kind, segments, inputs, newer, level, forgets_until: 0, swept: false }
    }

    /// A write that found no room makes a purge due. Returns the result of the write.
    pub(super) fn note_refusal(&mut self, written: Result<()>) -> Result<()> {
        self.purge.is_wanted |= matches!(written, Err(Error::StorageFull));
        written
    }

    /// Something other than an edit may have made a compaction due.
    pub(super) fn look_again(&mut self) {
        self.none_due = None;
    }

    /// Whether no compaction was due when tables were looked at last, and none has become due.
    fn is_none_due(&self, edits: u64, now_ms: u64) -> bool {
        self.none_due.is_some_and(|(at, until)| at == edits && now_ms < until)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Nothing is written for a while.
    pub(super) fn begin_idle(&mut self) {
        self.is_idle = true;
        self.look_again();
    }

    /// Something is written again. Levels may be larger now, so nothing more is due.
    pub(super) fn end_idle(&mut self) {
        self.is_idle = false;
    }
}

impl<S: Storage> Store<S> {
    /// The next job to run, if one is due: at most one flush and one compaction at a time. Tables that need only a move
    /// or a drop get it here.
    ///
    /// # Errors
    /// The error of the manifest's storage for such an edit.
    pub fn take_job(&mut self) -> Result<Option<JobTicket>> {
        if self.poisoned || self.closed {
            return Ok(None);
        }
        let Some((spec, running, bytes_hint)) = self.next_job()? else { return Ok(None) };
        let ticket = JobTicket {
            id: running.id,
            kind: running.kind,
            gives_room: running.gives_room(),
            first_output: spec.first_output,
            outputs_max: spec.outputs_max,
            bytes_hint,
            spec: spec.encode(),
        };
        self.jobs.running.push(running);
        Ok(Some(ticket))
    }
}
