//! Flushes and compactions: handed to a compactor, run inline, or run in slices.
//!
//! Invariant: results are installed in the order of history: a flush only if its memtable is still the
//! oldest, a compaction only if all its inputs are still there. Anything else is stale and its outputs go.

use super::Store;
use crate::compact::{Job, JobInput, JobKind, JobResult, JobSpec, Pick, Step, pick};
use crate::error::{Error, Result};
use crate::manifest::Edit;
use crate::storage::Storage;
use crate::table::TableMeta;
use crate::types::FileName;

/// Filter bits per key in levels 0 and 1, where most lookups pass.
const BITS_PER_KEY: u32 = 14;
/// Entries handled between two looks at the clock by an inline job.
const INLINE_BUDGET: usize = 4096;

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

/// A job that was handed out.
#[derive(Debug)]
pub(super) struct Running {
    id: u32,
    kind: JobKind,
    /// The memtable that is flushed.
    segment: u64,
    /// The tables that are merged.
    pub(super) inputs: Vec<u64>,
    level: u8,
}

/// A job that this store runs itself.
pub(super) struct Inline {
    id: u32,
    job: Job,
    bytes_hint: u64,
    created: Vec<u64>,
}

impl std::fmt::Debug for Inline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inline").field("id", &self.id).field("created", &self.created).finish_non_exhaustive()
    }
}

impl<S: Storage> Store<S> {
    /// The next job to run, if one is due: at most one flush and one compaction at a time.
    pub fn take_job(&mut self) -> Option<JobTicket> {
        if self.poisoned || self.closed {
            return None;
        }
        let (spec, running, bytes_hint) = self.next_job()?;
        let ticket = JobTicket {
            id: running.id,
            kind: running.kind,
            first_output: spec.first_output,
            outputs_max: spec.outputs_max,
            spec: spec.encode(),
            bytes_hint,
        };
        self.running.push(running);
        Some(ticket)
    }

    fn next_job(&mut self) -> Option<(JobSpec, Running, u64)> {
        let runs = |kind| self.running.iter().any(|running| running.kind == kind);
        let (flushing, compacting) = (runs(JobKind::Flush), runs(JobKind::Compaction));
        if !flushing && let Some(job) = self.flush_job() {
            return Some(job);
        }
        if compacting {
            return None;
        }
        // A merge that was asked for waits until all memtables are tables.
        let forced = self.compaction_asked && self.frozen.is_empty();
        self.compaction_asked &= !forced;
        let pick = pick(&self.version, &self.options, forced)?;
        Some(self.compaction_job(&pick))
    }

    /// Asks for everything to be flushed and merged into one run, by the jobs that [`Store::take_job`] offers from now on.
    ///
    /// # Errors
    /// What the commit of staged writes answered.
    pub fn ask_for_compaction(&mut self) -> Result<()> {
        self.freeze_active()?;
        self.compaction_asked = true;
        Ok(())
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
            snapshots: Vec::new(),
            input: JobInput::Runs(Vec::new()),
        }
    }

    fn running(&mut self, kind: JobKind, segment: u64, inputs: Vec<u64>, level: u8) -> Running {
        self.next_job += 1;
        Running { id: self.next_job, kind, segment, inputs, level }
    }

    fn flush_job(&mut self) -> Option<(JobSpec, Running, u64)> {
        let oldest = self.frozen.front()?;
        let segment = oldest.segment;
        let (image, order) = {
            let memtable = oldest.memtable.borrow();
            (memtable.image().to_vec(), memtable.freeze_order())
        };
        let bytes_hint = image.len() as u64 + image.len() as u64 / 8 + (16 << 10);
        let bottom = self.version.tables().next().is_none();
        let mut spec = self.job_spec(1, u64::MAX, 0, bottom);
        spec.input = JobInput::Memtable { image, order };
        let running = self.running(JobKind::Flush, segment, Vec::new(), 0);
        Some((spec, running, bytes_hint))
    }

    fn compaction_job(&mut self, pick: &Pick) -> (JobSpec, Running, u64) {
        let tables = || pick.runs.iter().flatten();
        let input_bytes: u64 = tables().map(|table| table.size).sum();
        let inputs = tables().map(|table| table.id).collect();
        // Uncompressed outputs may be larger than their inputs.
        let outputs_max =
            tables().map(|table| table.raw_bytes.max(table.size)).sum::<u64>() / pick.table_bytes + 2;
        let mut spec = self.job_spec(outputs_max, pick.table_bytes, pick.level, pick.bottom);
        let owned =
            |run: &Vec<std::rc::Rc<TableMeta>>| run.iter().map(|table| TableMeta::clone(table)).collect();
        spec.input = JobInput::Runs(pick.runs.iter().map(owned).collect());
        let running = self.running(JobKind::Compaction, 0, inputs, pick.level);
        (spec, running, pick.table_bytes.min(input_bytes) + (256 << 10))
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
        let outputs: Vec<u64> = result.tables.iter().map(|table| table.id).collect();
        let installed = match running.kind {
            JobKind::Flush => self.install_flush(&running, result),
            JobKind::Compaction => self.install_compaction(&running, result),
        };
        match installed {
            Ok(true) => Ok(()),
            other => {
                for table in outputs {
                    self.storage.delete(FileName::table(table))?;
                }
                other.map(|_| ())
            }
        }
    }

    /// Forgets a job that did not come to an end; it will be offered again.
    pub fn fail_job(&mut self, id: u32) {
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
        floors.history_floor = floors.log_floor;
        self.counters.count_flush(&result, self.now_ms);
        let added = result.tables.into_iter().map(|table| (0, table)).collect();
        // The view that the edit makes must not hold the memtable any more: its table takes its place.
        let flushed = self.frozen.pop_front();
        let committed = self.commit_edit(Edit { added, floors, ..Edit::default() });
        if committed.is_err()
            && let Some(flushed) = flushed
        {
            self.frozen.push_front(flushed);
        }
        committed.map(|()| true)
    }

    fn install_compaction(&mut self, running: &Running, result: JobResult) -> Result<bool> {
        if !running.inputs.iter().all(|input| self.version.table(*input).is_some()) {
            return Ok(false);
        }
        let mut floors = self.version.floors;
        floors.gc_sequence = floors.last_sequence;
        self.counters.count_compaction(&result, self.now_ms);
        let added = result.tables.into_iter().map(|table| (running.level, table)).collect();
        self.commit_edit(Edit { added, removed: running.inputs.clone(), floors, ..Edit::default() })?;
        Ok(true)
    }

    /// Whether a writer should wait for a job before it writes more: the queue of frozen memtables is full and the active
    /// one is half full as well, or level 0 has grown to its limit.
    pub fn is_stalled(&self) -> bool {
        let queued = self.frozen.len() >= self.options.frozen_max;
        queued && self.active.borrow().bytes() > self.memtable_bytes / 2
            || self.version.level(0).len() >= self.options.l0_stall
    }

    /// Makes room for one more frozen memtable inside a synchronous turn.
    pub(super) fn relieve(&mut self) -> Result<()> {
        // Asked first: preparing a flush only to find no file for it would cost every writer milliseconds.
        if !self.storage.has_spare() {
            self.release()?;
            if !self.storage.has_spare() && self.storage.reserve_intact() {
                return Err(Error::Busy);
            }
        }
        // Only what is due: the pause is that of level 0 and what it overlaps, not of the whole store.
        if self.version.level(0).len() >= self.options.l0_stall
            && let Some(pick) = pick(&self.version, &self.options, false)
        {
            let job = self.compaction_job(&pick);
            self.run_to_end(job)?;
        }
        self.flush_oldest()
    }

    fn flush_oldest(&mut self) -> Result<()> {
        match self.flush_job() {
            Some(job) => self.run_to_end(job),
            None => Ok(()),
        }
    }

    /// Flushes all memtables to tables, here and now.
    ///
    /// # Errors
    /// `Busy` when no file is spare, `StorageFull`, or what the storage answered; nothing is lost.
    pub fn flush(&mut self) -> Result<()> {
        self.check_writable()?;
        self.freeze_active()?;
        while !self.frozen.is_empty() {
            self.flush_oldest()?;
        }
        Ok(())
    }

    /// Freezes the active memtable, so that the next job flushes it.
    ///
    /// # Errors
    /// What the commit of staged writes answered.
    pub fn freeze_active(&mut self) -> Result<()> {
        self.check_writable()?;
        if self.active.borrow().is_empty() {
            return Ok(());
        }
        if self.options.log {
            self.log_staged()?;
        }
        self.promise();
        self.freeze();
        Ok(())
    }

    /// Flushes and merges everything into one run, here and now.
    ///
    /// # Errors
    /// As [`Store::flush`].
    pub fn compact(&mut self) -> Result<()> {
        self.flush()?;
        if let Some(pick) = pick(&self.version, &self.options, true) {
            let job = self.compaction_job(&pick);
            self.run_to_end(job)?;
        }
        self.release()
    }

    /// Works on a due job for about `budget` entries; answers whether there is more to do. For hosts without a compactor.
    ///
    /// # Errors
    /// What the job met; it is dropped and offered again.
    pub fn run_slice(&mut self, budget: usize) -> Result<bool> {
        self.check_writable()?;
        let mut inline = match self.inline.take() {
            Some(inline) => inline,
            None => match self.next_job() {
                Some(job) => self.begin_inline(job)?,
                None => return Ok(false),
            },
        };
        match self.advance_inline(&mut inline, budget) {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.inline = Some(inline);
                Ok(true)
            }
            Err(error) => Err(self.drop_inline(&inline, error)),
        }
    }

    fn run_to_end(&mut self, job: (JobSpec, Running, u64)) -> Result<()> {
        let mut inline = self.begin_inline(job)?;
        loop {
            match self.advance_inline(&mut inline, INLINE_BUDGET) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(self.drop_inline(&inline, error)),
            }
        }
    }

    fn begin_inline(&mut self, (spec, running, bytes_hint): (JobSpec, Running, u64)) -> Result<Inline> {
        let inline = Inline { id: running.id, job: Job::new(spec)?, bytes_hint, created: Vec::new() };
        self.running.push(running);
        Ok(inline)
    }

    /// One step; answers whether the job is over.
    fn advance_inline(&mut self, inline: &mut Inline, budget: usize) -> Result<bool> {
        match inline.job.step(budget)? {
            Step::Working => {}
            Step::Need(need) => {
                let bytes = self.read_input(need.file.id, need.offset, need.len)?;
                inline.job.feed(bytes);
            }
            Step::Write { table, offset } => {
                let file = FileName::table(table);
                if inline.created.last() != Some(&table) {
                    self.create_file(file, inline.bytes_hint)?;
                    inline.created.push(table);
                }
                self.storage.write(file, offset, &inline.job.take_output())?;
            }
            Step::Finished { table, .. } => self.storage.sync(FileName::table(table))?,
            Step::Done => {
                let result = inline.job.result();
                inline.created.clear();
                self.finish_job(inline.id, &result)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn drop_inline(&mut self, inline: &Inline, error: Error) -> Error {
        self.fail_job(inline.id);
        for table in &inline.created {
            if let Err(second) = self.storage.delete(FileName::table(*table)) {
                return second;
            }
        }
        error
    }
}
