//! Flushes and compactions: handed out as tickets, and installed when they are done.
//!
//! Invariant: results are installed in the order of history: a flush only if its memtable is still the
//! oldest, a compaction only if all its inputs are still what they were. Anything else is stale and its outputs go.

use super::Store;
use crate::compact::{JobInput, JobKind, JobResult, JobSpec, Merge};
use crate::error::{Error, Result};
use crate::manifest::{Edit, Floors};
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::table::TableMeta;
use crate::types::FileName;

/// Filter bits per key in levels 0 and 1, where most lookups pass.
const BITS_PER_KEY: u32 = 14;
/// What an output may be larger than its target by.
const OUTPUT_SLACK_BYTES: u64 = 256 << 10;
/// Bytes of a flush's specification beside the memtable, about.
const SPEC_BYTES: usize = 256;

/// A job that is about to start: what it is told, what is remembered of it, and how long an output will be.
pub(super) type Offer = (JobSpec, Running, u64);

/// A job for a compactor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTicket {
    /// Number of the job in this session.
    pub id: u32,
    /// Flush or compaction.
    pub kind: JobKind,
    /// What [`Job::decode`] takes.
    pub spec: Vec<u8>,
    /// Number of the first output table.
    pub first_output: u64,
    /// Table numbers set aside, from `first_output` on.
    pub outputs_max: u64,
    /// Bytes that each output will need, about.
    pub bytes_hint: u64,
}

/// An input table as it was when its job was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Input {
    id: u64,
    level: usize,
    skipped_bytes: u64,
}

/// A job that was handed out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: u32,
    pub(super) kind: JobKind,
    /// The memtable that is flushed.
    segment: u64,
    /// The tables that are merged.
    inputs: Vec<Input>,
    level: u8,
    /// It is part of a sweep.
    swept: bool,
}

impl Running {
    /// Whether the job reads this table.
    pub(super) fn reads(&self, id: u64) -> bool {
        self.inputs.iter().any(|input| input.id == id)
    }
}

impl<S: Storage> Store<S> {
    /// The next job to run, if one is due: at most one flush and one compaction at a time. Tables that only move or go
    /// do so here.
    ///
    /// # Errors
    /// What the manifest's storage answered to such an edit.
    pub fn take_job(&mut self) -> Result<Option<JobTicket>> {
        if self.poisoned || self.closed {
            return Ok(None);
        }
        let Some((spec, running, bytes_hint)) = self.next_job()? else { return Ok(None) };
        let ticket = JobTicket {
            id: running.id,
            kind: running.kind,
            first_output: spec.first_output,
            outputs_max: spec.outputs_max,
            bytes_hint,
            spec: spec.encode(),
        };
        self.begin(running);
        Ok(Some(ticket))
    }

    /// Remembers a job as handed out.
    pub(super) fn begin(&mut self, running: Running) {
        self.running.push(running);
    }

    fn job_spec(&mut self, outputs_max: u64, table_bytes: u64, level: u8, bottom: bool) -> JobSpec {
        let first_output = self.next_table;
        self.next_table += outputs_max;
        JobSpec {
            store: self.id,
            level,
            bottom,
            compress: self.options.compress && level > 0,
            block_bytes: self.options.block_bytes as u32,
            restart_interval: self.options.restart_interval as u32,
            bits_per_key: BITS_PER_KEY,
            table_bytes,
            first_output,
            outputs_max,
            raw_bytes_max: u64::MAX,
            end: None,
            now_ms: self.now_ms + if mutant::has(Mutant::MergeClockAhead) { 1000 } else { 0 },
            tombstones_until: self.oldest_snapshot(),
            below: Vec::new(),
            input: JobInput::Runs(Vec::new()),
        }
    }

    fn running(&mut self, kind: JobKind, segment: u64, inputs: Vec<Input>, level: u8) -> Running {
        self.next_job += 1;
        Running { id: self.next_job, kind, segment, inputs, level, swept: false }
    }

    pub(super) fn flush_job(&mut self) -> Option<Offer> {
        let oldest = self.frozen.front()?;
        let segment = oldest.segment;
        let (image, order) = {
            let memtable = oldest.memtable.borrow();
            let order = memtable.freeze_order();
            // With room for the rest of the specification, so that the copy is the only one.
            let mut image = Vec::with_capacity(memtable.image().len() + order.len() + SPEC_BYTES);
            image.extend_from_slice(memtable.image());
            (image, order)
        };
        let bytes_hint = image.len() as u64 + image.len() as u64 / 8 + (16 << 10);
        let bottom = self.version.tables().next().is_none();
        let mut spec = self.job_spec(1, u64::MAX, 0, bottom);
        spec.input = JobInput::Memtable { image, order };
        let running = self.running(JobKind::Flush, segment, Vec::new(), 0);
        Some((spec, running, bytes_hint))
    }

    pub(super) fn compaction_job(&mut self, merge: Merge) -> Offer {
        let tables = || merge.runs.iter().flatten();
        let stored: u64 = merge.bytes();
        let raw: u64 = tables().map(|table| table.raw_bytes).sum();
        let level_of = |id| self.version.table(id).map_or(0, |(level, _)| level);
        let input = |table: &std::rc::Rc<TableMeta>| {
            let TableMeta { id, skipped_bytes, .. } = **table;
            Input { id, level: level_of(id), skipped_bytes }
        };
        let inputs = tables().map(input).collect();
        let next_level: u64 = merge.below.first().into_iter().flatten().map(|table| table.live_bytes()).sum();
        // Uncompressed outputs may be larger than their inputs; some are cut for what they overlap.
        let outputs_max = (raw.max(stored) + next_level) / (merge.table_bytes / 8 * 7).max(1) + 2;
        let mut spec = self.job_spec(outputs_max, merge.table_bytes, merge.level as u8, true);
        spec.input = JobInput::Runs(merge.runs);
        spec.below = merge.below;
        spec.raw_bytes_max = merge.raw_bytes_max;
        spec.end = merge.end;
        let mut running = self.running(JobKind::Compaction, 0, inputs, merge.level as u8);
        running.swept = self.sweep.is_some();
        (spec, running, merge.table_bytes.min(stored) + OUTPUT_SLACK_BYTES)
    }

    /// Installs what a compactor made. Its tables must be flushed. A stale result is dropped with its tables.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown job; what the manifest's storage answered.
    pub fn finish_job(&mut self, id: u32, result: &[u8]) -> Result<()> {
        self.check_writable()?;
        let result = JobResult::decode(result)?;
        let Some(at) = self.running.iter().position(|running| running.id == id) else {
            return Err(Error::InvalidArgument("There is no such job."));
        };
        let running = self.running.remove(at);
        let read = result.bytes_read;
        let outputs: Vec<u64> = result.tables.iter().map(|table| table.id).collect();
        let installed = match running.kind {
            JobKind::Flush => self.install_flush(&running, result),
            JobKind::Compaction => self.install_compaction(&running, result),
        };
        match installed {
            Ok(true) if self.is_much(read) => {
                // So much room is not left to the next edit, which may be far.
                match self.release() {
                    Err(Error::StorageFull) => Ok(()),
                    released => released,
                }
            }
            Ok(true) => Ok(()),
            other => {
                // Of an edit that could not be flushed nobody knows whether a crash leaves it: its tables have to stay.
                for table in outputs.into_iter().filter(|_| !self.poisoned) {
                    self.storage.delete(FileName::table(table))?;
                }
                other.map(|_| ())
            }
        }
    }

    /// Whether inputs of so many bytes are much for this store, on a storage with room. On a full one an edit takes
    /// room of its own, and what is freed early goes to the next table rather than to the log.
    fn is_much(&self, read: u64) -> bool {
        let bytes = self.version.bytes();
        let is_roomy = self.storage.free_bytes().is_some_and(|free| free > bytes);
        is_roomy && read > bytes / 16 && read >= self.options.job_bytes_max / 8
    }

    /// Forgets a job that did not come to an end; it will be offered again. A sweep ends with it: whoever asked for one
    /// is told.
    pub fn fail_job(&mut self, id: u32) {
        if self.running.iter().any(|running| running.id == id && running.swept) {
            self.end_sweep();
        }
        self.running.retain(|running| running.id != id);
    }

    fn install_flush(&mut self, running: &Running, result: JobResult) -> Result<bool> {
        let Some(oldest) = self.frozen.front().filter(|oldest| oldest.segment == running.segment) else {
            return Ok(false);
        };
        let mut floors = self.version.floors;
        // Also without a log: the memtable may have been recovered from one, and must not be again.
        floors.log_floor = running.segment;
        floors.last_sequence = floors.last_sequence.max(oldest.memtable.borrow().max_sequence());
        raise_gc(&mut floors, &result);
        if self.segments.contains(&running.segment) {
            self.history.add(&oldest.memtable.borrow());
        }
        self.counters.count_flush(&result, self.now_ms);
        let added = result.tables.into_iter().map(|table| (0, table)).collect();
        // The view that the edit makes must not hold the memtable any more: its table takes its place.
        let flushed = self.frozen.pop_front();
        let committed = self.commit_edit(Edit { added, floors, ..Edit::default() });
        if committed.is_err()
            && let Some(flushed) = flushed
        {
            self.history.take_back(flushed.segment);
            self.frozen.push_front(flushed);
        }
        committed.map(|()| true)
    }

    fn install_compaction(&mut self, running: &Running, result: JobResult) -> Result<bool> {
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
        raise_gc(&mut edit.floors, &result);
        self.counters.count_compaction(&result, self.now_ms);
        if let Some(sweep) = self.sweep.as_mut().filter(|_| running.swept) {
            sweep.done_bytes += result.bytes_read;
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

    /// Whether the outputs overlap none but inputs: an inline job may have put a table into a gap between them.
    fn fits(&self, running: &Running, result: &JobResult) -> bool {
        result.tables.iter().all(|table| {
            let mut there =
                self.version.overlapping(usize::from(running.level), &table.min_key, &table.max_key);
            there.all(|there| {
                running.reads(there.id) || there.max_key == table.min_key || there.min_key == table.max_key
            })
        })
    }
}

/// What a job dropped, no snapshot from before its newest input may read any more. An entry that expired was there also for
/// snapshots that are as new as it, if their time is older.
fn raise_gc(floors: &mut Floors, result: &JobResult) {
    if result.entries_dropped + result.entries_expired > 0 {
        let lost = floors.last_sequence + u64::from(result.entries_expired > 0);
        floors.gc_sequence = floors.gc_sequence.max(lost);
    }
}
