//! Jobs that the store runs itself: completely inside one synchronous turn, or in slices between turns.
//!
//! Invariant: an inline job that fails leaves no files: its outputs are deleted, and it is offered again. If only bytes are missing, nothing
//! else remembers the failure, and a job in slices stays where it was.
//!
//! The stall rules, which `stats` shows: a writer waits while `frozen_max` memtables wait for their flush and the active one is half full,
//! while level 0 is full, or on a full storage while any memtable waits. Level 0 is full with `l0_stall` tables, or once it is long and the
//! last merge of it dropped many entries. Otherwise a store whose entries are all overwritten again and again, as fast as possible, would
//! take many times the size of its data. A load of new keys waits only for the number of tables. Where nothing can wait,
//! [`Store::thin_level_zero`] and [`Store::flush_oldest`] do the work.

use super::running::Offer;
use crate::compact::{Job, Levels, Step};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::store::Store;
use crate::types::{FileKind, FileName};

/// A closing store with at least this many segments flushes them, so that none must be replayed.
const SEGMENTS_FOLDED: usize = 8;

/// This many jobs take more from level 0 than a flush adds.
const THINNING_JOBS: usize = 2;

/// Where much of level 0 is overwritten, it may be this many times as long as the size at which it is merged.
const OVERWRITTEN_MAX: u64 = 4;

/// Tables count as small if they take at most one part in this many of a memtable.
const SMALL_SHARE: u64 = 16;

/// Entries processed by one step of an inline job.
const INLINE_BUDGET: usize = 4096;

/// A job that this store runs itself.
pub(in crate::store) struct Inline {
    id: u32,
    job: Job,
    bytes_hint: u64,
    created: Vec<u64>,
    /// A flush or a purge frees as much room as it takes, so it may use the room that is set aside.
    gives_room: bool,
}

impl std::fmt::Debug for Inline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inline").field("id", &self.id).field("created", &self.created).finish_non_exhaustive()
    }
}

impl<S: Storage> Store<S> {
    /// Whether a writer should wait for a job before it writes more: the queue of frozen memtables is full and the active
    /// one is half full as well, or level 0 is full.
    pub fn is_stalled(&self) -> bool {
        let queued = self.frozen.len() >= self.options.frozen_max;
        queued && self.active.borrow().bytes() > self.memtable_bytes / 2
            || self.jobs.level_zero_full
            || !self.frozen.is_empty() && self.storage.room_when_full().is_some()
    }

    /// Checks whether level 0 is as large as writers may make it.
    pub(in crate::store) fn weigh_level_zero(&mut self) {
        let tables = self.version.level(0);
        // Tables that a merge has begun to read keep their files until it ends.
        let bytes: u64 = tables.iter().map(|table| table.size).sum();
        let target_bytes = Levels::of(&self.version, &self.options, false).target_bytes[0];
        let is_long = self.jobs.overwrites && bytes > OVERWRITTEN_MAX * target_bytes;
        self.jobs.level_zero_full = is_long | (tables.len() >= self.options.l0_stall);
    }

    /// Merges some of level 0 inside a synchronous turn when it is full, or the store is small. It has priority over a compactor's job. A
    /// merge may fail, for example because of a damaged block: then level 0 stays as it is.
    pub(in crate::store) fn thin_level_zero(&mut self) -> Result<()> {
        for _ in 0..THINNING_JOBS {
            let is_small = !self.version.level(0).is_empty() && self.is_small();
            if !self.options.flush_when_full || !(self.jobs.level_zero_full || is_small) {
                break;
            }
            let next = if is_small || self.jobs.is_compacting() {
                let merge = self.situation().level_zero();
                merge.map(|merge| self.compaction_job(merge))
            } else {
                self.next_compaction()?
            };
            let Some(job) = next else { break };
            match self.run_to_end(job) {
                Err(error) if !self.poisoned && !matches!(error, Error::Retry | Error::Pending) => break,
                done => done?,
            }
        }
        Ok(())
    }

    /// Whether little is left of the writes so far, as in a store of counters. Merging it into one table whenever a memtable is full costs
    /// no more than the flush did; and each additional table would cost a scan as much as the few keys do.
    pub(in crate::store) fn is_small(&self) -> bool {
        let most = self.options.memtable_bytes_max as u64 / SMALL_SHARE;
        self.storage.room_when_full().is_none() && (1..=most).contains(&self.version.bytes())
    }

    pub(in crate::store) fn flush_oldest(&mut self) -> Result<()> {
        if !self.options.flush_when_full && self.is_flush_refused() {
            return Err(Error::StorageFull);
        }
        match self.flush_job()? {
            Some(job) => self.run_to_end(job),
            None => Ok(()),
        }
    }

    /// On a full storage, flushes the memtables that wait: a table goes to the room that is set aside, and the room of its segment becomes
    /// spare. Returns whether any memtable was flushed.
    pub(in crate::store) fn flush_for_room(&mut self) -> Result<bool> {
        // Its table would be one commit together with what it replaces, and such a storage has no room for that.
        if !self.options.flush_when_full {
            return Ok(false);
        }
        let before = self.frozen.len();
        while !self.frozen.is_empty() {
            let was_refused = self.is_flush_refused();
            match self.flush_oldest().and_then(|()| self.release()) {
                // The next attempt cuts its table to the pieces of room that there are.
                Err(error) if error.is_lack() && !was_refused && self.is_flush_refused() => {}
                Err(error) if error.is_lack() => break,
                flushed => flushed?,
            }
        }
        Ok(self.frozen.len() < before)
    }

    /// Flushes all memtables to tables, here and now.
    ///
    /// # Errors
    /// `StorageFull`, or another error of the storage; nothing is lost.
    pub fn flush(&mut self) -> Result<()> {
        self.check_writable()?;
        self.freeze_active()?;
        self.flush_frozen()?;
        self.keep_manifest()
    }

    pub(super) fn flush_frozen(&mut self) -> Result<()> {
        while !self.frozen.is_empty() {
            self.flush_oldest()?;
        }
        Ok(())
    }

    /// Flushes the writes that the next opening would have to replay, if they are more than a quarter of the first memtable's size, or many
    /// segments. For hosts that are about to close a store, as SQLite checkpoints when its last connection closes. Without a log, closing
    /// flushes anyway. It does nothing while a staged write is not in the log yet: a refusal would lose that write without an error to its
    /// caller.
    ///
    /// # Errors
    /// As [`Store::flush`]. Writes that are not flushed stay in the log.
    pub fn fold_log(&mut self) -> Result<()> {
        self.check_writable()?;
        let waiting: usize = self.frozen.iter().map(|frozen| frozen.memtable.borrow().bytes()).sum();
        let to_replay = waiting + self.active.borrow().bytes();
        let is_long =
            to_replay > self.options.memtable_bytes_min / 4 || self.segments.len() >= SEGMENTS_FOLDED;
        if self.options.log && is_long && self.pending_bytes() == 0 {
            self.freeze_active()?;
            self.fold()?;
        }
        Ok(())
    }

    /// Flushes all frozen memtables, and merges level 0 if it has become long. So sessions that end before a job does leave the next ones
    /// no more work than this.
    pub(in crate::store) fn fold(&mut self) -> Result<()> {
        while !self.frozen.is_empty() {
            self.thin_level_zero()?;
            self.flush_oldest()?;
        }
        Ok(())
    }

    /// Freezes the active memtable, so that the next job flushes it.
    ///
    /// # Errors
    /// The error of the commit of staged writes.
    pub fn freeze_active(&mut self) -> Result<()> {
        self.check_writable()?;
        if self.active.borrow().is_empty() {
            return Ok(());
        }
        self.log_staged(false)?;
        self.promise();
        self.freeze();
        Ok(())
    }

    /// Works on a due job for about `budget` entries; returns whether there is more to do. For hosts without a compactor.
    ///
    /// # Errors
    /// The error of the job; the job is dropped and offered again. After `Pending` it goes on with the next call.
    pub fn run_slice(&mut self, budget: usize) -> Result<bool> {
        self.check_writable()?;
        let mut inline = match self.jobs.inline.take() {
            Some(inline) => inline,
            None => match self.next_job()? {
                Some(job) => self.begin_inline(job)?,
                None => return Ok(false),
            },
        };
        match self.advance_inline(&mut inline, budget) {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.jobs.inline = Some(inline);
                Ok(true)
            }
            Err(Error::Pending) => {
                self.jobs.inline = Some(inline);
                Err(Error::Pending)
            }
            Err(error) => Err(self.drop_inline(&inline, error)),
        }
    }

    pub(super) fn run_to_end(&mut self, job: Offer) -> Result<()> {
        let mut inline = self.begin_inline(job)?;
        loop {
            match self.advance_inline(&mut inline, INLINE_BUDGET) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(self.drop_inline(&inline, error)),
            }
        }
    }

    fn begin_inline(&mut self, (spec, running, bytes_hint): Offer) -> Result<Inline> {
        let gives_room = running.gives_room();
        let inline =
            Inline { id: running.id, job: Job::new(spec)?, bytes_hint, created: Vec::new(), gives_room };
        self.jobs.running.push(running);
        Ok(inline)
    }

    /// Runs one step; returns whether the job has ended.
    fn advance_inline(&mut self, inline: &mut Inline, budget: usize) -> Result<bool> {
        match inline.job.step(budget)? {
            Step::Working => {}
            Step::Need(need) => {
                let bytes = self.read_input(need.file.id, need.offset, need.len)?;
                inline.job.feed(bytes);
            }
            Step::Write { table, offset } => {
                let file = FileName::table(table);
                let is_first = inline.created.last() != Some(&table);
                if is_first {
                    self.create_output(inline, file)?;
                }
                let output = inline.job.take_output();
                let mut written = self.storage.write(file, offset, &output);
                if matches!(written, Err(Error::StorageFull)) && self.make_way()? {
                    written = self.storage.write(file, offset, &output);
                }
                if matches!(written, Err(Error::StorageFull)) && is_first {
                    // Its place was expected to have room after it.
                    inline.created.pop();
                    self.storage.delete(file)?;
                    self.create_output(inline, file)?;
                    written = self.storage.write(file, offset, &output);
                }
                written?;
            }
            Step::Finished { table, size } => {
                let file = FileName::table(table);
                self.storage.sync(file)?;
                // It is rarely as long as expected.
                self.storage.trim(file, size);
            }
            Step::Done => {
                let result = inline.job.result();
                inline.created.clear();
                self.finish_job(inline.id, &result)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn create_output(&mut self, inline: &mut Inline, file: FileName) -> Result<()> {
        let mut created = Err(Error::StorageFull);
        let pieces = self.storage.pieces_when_full().filter(|_| inline.gives_room);
        if !pieces.is_some_and(|pieces| pieces.only_reserve_fits(inline.bytes_hint)) {
            created = self.create_file(file, inline.bytes_hint);
        }
        if matches!(created, Err(Error::StorageFull)) && inline.gives_room {
            created = self.storage.create_from_reserve(file);
        }
        created?;
        inline.created.push(file.id);
        Ok(())
    }

    fn drop_inline(&mut self, inline: &Inline, error: Error) -> Error {
        let deleted =
            inline.created.iter().try_for_each(|table| self.storage.delete(FileName::table(*table)));
        // After the deletion, so that the room that the job took counts: another attempt would find it. A missing slot is not a lack of
        // room: the host adds slots.
        let is_full = error == Error::StorageFull && self.storage.pieces_when_full().is_some();
        if let Error::Corrupt(damage) = &error
            && let Some(FileName { kind: FileKind::Table, id }) = damage.file
        {
            self.note_damage(id);
        }
        if error == Error::Pending {
            self.jobs.put_back(inline.id);
        } else {
            self.remove_job(inline.id, is_full);
        }
        deleted.err().unwrap_or(error)
    }
}
