//! The sweep of a `compact()`: everything is merged into one run.

use crate::compact::{Merge, Situation};
use crate::error::Result;
use crate::storage::Storage;
use crate::store::Store;
use crate::types::Sequence;

/// A `compact()` in progress.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    /// All writes up to this sequence become one run.
    until: Sequence,
    /// Entries that have expired by this time are removed.
    expired_by: u64,
    /// Bytes to read, known once the first job is picked.
    planned_bytes: u64,
    /// Bytes that its jobs have read.
    done_bytes: u64,
}

/// The sweep that a caller wants, or the last one.
#[derive(Debug, Default)]
pub(in crate::store) struct Sweeping {
    /// Set while a caller wants all tables merged.
    now: Option<Sweep>,
    /// For the last sweep: bytes done, and bytes planned.
    last: (u64, u64),
}

impl Sweeping {
    pub(in crate::store) fn is_running(&self) -> bool {
        self.now.is_some()
    }

    fn begin(&mut self, until: Sequence, expired_by: u64) {
        *self =
            Self { now: Some(Sweep { until, expired_by, planned_bytes: 0, done_bytes: 0 }), last: (0, 0) };
    }

    /// A job of the sweep has read so many bytes.
    pub(super) fn has_read(&mut self, bytes: u64) {
        if let Some(sweep) = &mut self.now {
            sweep.done_bytes += bytes;
        }
    }

    /// Ends the sweep: keeps its numbers for `stats`, and makes way for other jobs.
    pub(super) fn end(&mut self) {
        if let Some(sweep) = self.now.take() {
            self.last = (sweep.planned_bytes, sweep.planned_bytes);
        }
    }

    /// Bytes done, and bytes planned.
    pub(in crate::store) fn progress(&self) -> (u64, u64) {
        self.now.map_or(self.last, |sweep| (sweep.done_bytes, sweep.planned_bytes))
    }
}

impl<S: Storage> Store<S> {
    /// Asks for everything to be flushed and merged into one run, by the jobs that [`Store::take_job`] offers from now on.
    ///
    /// # Errors
    /// The error of the commit of staged writes.
    pub fn ask_for_compaction(&mut self) -> Result<()> {
        self.freeze_active()?;
        let until = self.last_sequence;
        self.jobs.sweep.begin(until, self.clock.now_ms);
        Ok(())
    }

    /// Flushes and merges everything into one run, here and now.
    ///
    /// # Errors
    /// As [`Store::flush`].
    pub fn compact(&mut self) -> Result<()> {
        self.flush()?;
        self.ask_for_compaction()?;
        while let Some(merge) = self.next_of_sweep() {
            let job = self.compaction_job(merge);
            self.run_to_end(job)?;
        }
        self.release()
    }

    /// The next job of a sweep that was asked for, once all the writes that it covers are in tables.
    pub(super) fn next_of_sweep(&mut self) -> Option<Merge> {
        let sweep = self.jobs.sweep.now?;
        let is_flushed = self.frozen.is_empty() || self.version.floors.last_sequence >= sweep.until;
        // Writers that wait come first.
        let fresh = self.version.level(0).iter().take_while(|table| table.min_sequence > sweep.until).count();
        if !is_flushed || fresh >= self.options.l0_trigger {
            return None;
        }
        // Under steady writes a sweep might never find everything merged: twice the planned bytes are enough.
        let is_long = sweep.planned_bytes > 0 && sweep.done_bytes / 2 > sweep.planned_bytes;
        let situation = Situation { now_ms: sweep.expired_by, ..self.situation() };
        let merge = situation.whole(sweep.until).filter(|_| !is_long);
        match (&merge, &mut self.jobs.sweep.now) {
            (Some(merge), Some(sweep)) if sweep.planned_bytes == 0 => {
                sweep.planned_bytes = merge.picked_bytes
            }
            (Some(_), _) => {}
            (None, _) => self.jobs.sweep.end(),
        }
        merge
    }
}
