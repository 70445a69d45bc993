//! Results of jobs: an edit of the manifest puts the outputs in the place of what the job read.
//!
//! Invariant: results are installed in the order of history: a flush only if its memtable is still the oldest, a
//! compaction only if all its inputs are still what they were. Any other result is stale, and its outputs are deleted.

use super::running::Running;
use crate::compact::{JOB_SHARE_SMALL, JobKind, JobResult};
use crate::error::{Error, Result};
use crate::manifest::{Edit, Floors};
use crate::storage::Storage;
use crate::store::{Frozen, Store};
use crate::table::TableMeta;
use crate::types::{FileName, Sequence};

/// A merge counts as one of overwrites if it drops more than one entry for this many entries that it keeps.
const OVERWRITTEN_SHARE: u64 = 8;

impl<S: Storage> Store<S> {
    /// Installs the result of a compactor. Its tables must be flushed. A stale result is dropped and its tables are
    /// deleted.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown job; or the error of the manifest's storage.
    pub fn finish_job(&mut self, id: u32, result: &[u8]) -> Result<()> {
        self.check_writable()?;
        let result = JobResult::decode(result)?;
        let Some(running) = self.jobs.take(id) else {
            return Err(Error::InvalidArgument("There is no such job."));
        };
        let read = result.bytes_read;
        let outputs: Vec<u64> = result.tables.iter().map(|table| table.id).collect();
        let installed = match running.kind {
            JobKind::Flush => self.install_flush(&running, result),
            JobKind::Compaction => self.install_compaction(&running, result),
        };
        match installed {
            Ok(true) if self.is_much(read) => {
                // So much room is freed now and not with the next edit, which may come much later.
                match self.release() {
                    Err(Error::StorageFull) => Ok(()),
                    released => released,
                }
            }
            Ok(true) => Ok(()),
            other => {
                // If an edit could not be flushed, it is unknown whether it survives a crash: its tables have to stay.
                for table in outputs.into_iter().filter(|_| !self.poisoned) {
                    self.storage.delete(FileName::table(table))?;
                }
                other.map(|_| ())
            }
        }
    }

    /// Whether inputs of `read` bytes are much for this store, on a storage with room. On a full storage an edit itself
    /// takes room, and room that is freed early goes to the next table rather than to the log.
    fn is_much(&self, read: u64) -> bool {
        let bytes = self.version.bytes();
        let is_roomy = self.storage.free_bytes().is_some_and(|free| free > bytes);
        is_roomy && read > bytes / 16 && read >= self.options.job_bytes_max / JOB_SHARE_SMALL / 2
    }

    /// Forgets a job that failed because of a lack of room (`is_full`) or for another reason. The job will be offered again; a purge is
    /// offered again only once in the same round. If the job was part of a sweep, the sweep ends, and this is reported to the caller that
    /// asked for it.
    pub fn fail_job(&mut self, id: u32, is_full: bool) {
        let failed = self.remove_job(id, is_full);
        if let Some(running) = failed.filter(Running::is_purge) {
            self.jobs.purge.retry(running.inputs[0].id);
        }
    }

    /// Notes that a running job cannot read a table. Other tables are merged around it, until the store is opened again.
    pub fn note_damage(&mut self, table: u64) {
        if self.jobs.read(table) && !self.jobs.damaged.contains(&table) {
            self.jobs.damaged.push(table);
            self.jobs.look_again();
        }
    }

    /// Whether the store has a table that a job of this session could not read.
    #[must_use]
    pub fn has_damage(&self) -> bool {
        self.jobs.damaged.iter().any(|&table| self.version.table(table).is_some())
    }

    /// Whether a flush failed and none has succeeded since.
    pub(super) fn is_flush_refused(&self) -> bool {
        self.jobs.flush_refused == Some(self.version.floors.log_floor)
    }

    pub(super) fn remove_job(&mut self, id: u32, is_full: bool) -> Option<Running> {
        let failed = self.jobs.take(id)?;
        if failed.is_purge() {
            self.purge_failed();
        }
        if failed.swept {
            self.jobs.sweep.end();
        }
        // Unless its memtable was flushed meanwhile.
        let waits = || self.frozen.front().is_some_and(|oldest| oldest.segment == failed.segments.0);
        if failed.kind == JobKind::Flush && is_full && waits() {
            self.jobs.flush_refused = Some(self.version.floors.log_floor);
        }
        Some(failed)
    }

    fn install_flush(&mut self, running: &Running, result: JobResult) -> Result<bool> {
        let (first, last) = running.segments;
        let is_oldest = self.frozen.front().is_some_and(|oldest| oldest.segment == first);
        let Some(end) = self.frozen.iter().position(|frozen| frozen.segment == last).filter(|_| is_oldest)
        else {
            return Ok(false);
        };
        let mut floors = self.version.floors;
        // Also without a log: the memtable may have been recovered from a log, and must not be recovered again.
        floors.log_floor = last;
        floors.last_sequence = floors.last_sequence.max(self.frozen[end].memtable.borrow().max_sequence());
        raise_gc(&mut floors, &result, self.last_sequence);
        // The view after the edit must not contain the memtables any more: the table takes their place. One by one:
        // `drain` would add a kilobyte of wasm.
        let flushed: Vec<Frozen> = (0..=end).filter_map(|_| self.frozen.pop_front()).collect();
        for frozen in flushed.iter().filter(|frozen| self.segments.contains(&frozen.segment)) {
            self.history.add(&frozen.memtable.borrow());
        }
        self.counters.count_flush(&result, self.clock.now_ms);
        let added = result.tables.into_iter().map(|table| (0, table)).collect();
        let committed = self.commit_edit(Edit { added, floors, ..Edit::default() });
        if committed.is_err() {
            for frozen in flushed.into_iter().rev() {
                self.history.take_back(frozen.segment);
                self.frozen.push_front(frozen);
            }
        }
        committed.map(|()| true)
    }

    fn install_compaction(&mut self, running: &Running, result: JobResult) -> Result<bool> {
        let is_whole = running.inputs.iter().all(|input| input.skipped_bytes == 0);
        if running.is_purge() && is_whole && result.entries_dropped + result.entries_expired == 0 {
            // It frees nothing, and the existing table lies in one piece.
            return Ok(false);
        }
        let mut edit = Edit { floors: self.version.floors, ..Edit::default() };
        for input in &running.inputs {
            let known = self.version.table(input.id);
            let Some((level, table)) = known
                .filter(|(level, table)| *level == input.level && table.skipped_bytes == input.skipped_bytes)
            else {
                return Ok(false);
            };
            match &result.until {
                // The job ended before this table, or inside it.
                Some(until) if table.min_key >= *until => continue,
                Some(until) if table.max_key >= *until && !self.ends_at(level, table, until) => {
                    let skipped = result.skipped.iter().find(|(id, _)| *id == input.id);
                    let rest = table.rest(until, skipped.map_or(1, |(_, bytes)| *bytes));
                    edit.added.push((level as u8, rest));
                }
                _ => {}
            }
            edit.removed.push(input.id);
        }
        if !self.fits(running, &result) {
            return Ok(false);
        }
        raise_gc(&mut edit.floors, &result, self.last_sequence);
        self.counters.count_compaction(&result, self.clock.now_ms);
        if running.inputs.first().is_some_and(|newest| newest.level == 0) {
            let kept: u64 = result.tables.iter().map(|table| table.entries).sum();
            self.jobs.overwrites = result.entries_dropped > kept / OVERWRITTEN_SHARE;
        }
        if running.swept {
            self.jobs.sweep.has_read(result.bytes_read);
        }
        edit.added.extend(result.tables.into_iter().map(|table| (running.level, table)));
        self.commit_edit(edit)?;
        Ok(true)
    }

    /// Whether a table of a sorted level only ends at `key`, the exclusive end of a range tombstone, because the next one
    /// begins there.
    fn ends_at(&self, level: usize, table: &TableMeta, key: &[u8]) -> bool {
        let mut there = self.version.overlapping(level, key, key);
        level > 0 && table.max_key == key && there.any(|next| next.id != table.id && next.min_key == key)
    }

    /// Whether the outputs overlap only inputs: an inline job may have put a table into a gap between them.
    fn fits(&self, running: &Running, result: &JobResult) -> bool {
        running.level == 0
            || result.tables.iter().all(|table| {
                let mut there =
                    self.version.overlapping(usize::from(running.level), &table.min_key, &table.max_key);
                there.all(|there| {
                    running.reads(there.id)
                        || there.max_key == table.min_key
                        || there.min_key == table.max_key
                })
            })
    }
}

/// No snapshot from before a job's newest input may be opened again, because the job dropped entries that it might read. An
/// expired entry was also visible to newer snapshots, up to the store's `last` sequence, if their time is older.
fn raise_gc(floors: &mut Floors, result: &JobResult, last: Sequence) {
    let dropped = if result.entries_dropped > 0 { floors.last_sequence } else { 0 };
    let expired = if result.entries_expired > 0 { last + 1 } else { 0 };
    floors.gc_sequence = floors.gc_sequence.max(dropped).max(expired);
}
