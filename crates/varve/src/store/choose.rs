//! Which job comes next, and the steps that need no job: tables that an edit alone moves or drops.
//!
//! The order: a flush; tables that a range tombstone deletes as a whole; the sweep of a `compact()`, unless level 0 fills
//! up meanwhile; the choice of [`Situation::pick`].
//!
//! Invariant: edits are made here only while no compaction is handed out, so the inputs of a compaction do not change
//! while it runs.

use std::cell::Cell;

use super::Store;
use super::jobs::Offer;
use crate::compact::{Merge, Pick, Situation, covered};
use crate::error::{Error, Result};
use crate::manifest::Edit;
use crate::storage::Storage;
use crate::types::Sequence;

/// Most range tombstones that are examined to find tables that they delete as a whole.
const RANGES_MAX: usize = 1000;

/// A `compact()` in progress.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    /// All writes up to this sequence become one run.
    until: Sequence,
    /// Bytes to read, known once the first job is picked.
    planned_bytes: u64,
    /// Bytes that its jobs have read.
    done_bytes: u64,
}

/// The sweep that a caller wants, or the last one.
#[derive(Debug, Default)]
pub(super) struct Sweeping {
    /// Set while a caller wants all tables merged.
    now: Option<Sweep>,
    /// For the last sweep: bytes done, and bytes planned.
    last: (u64, u64),
}

impl Sweeping {
    pub(super) fn is_running(&self) -> bool {
        self.now.is_some()
    }

    fn begin(&mut self, until: Sequence) {
        *self = Self { now: Some(Sweep { until, planned_bytes: 0, done_bytes: 0 }), last: (0, 0) };
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
    pub(super) fn progress(&self) -> (u64, u64) {
        self.now.map_or(self.last, |sweep| (sweep.done_bytes, sweep.planned_bytes))
    }
}

/// Rewriting tables on a full storage, to free the room of deleted entries.
#[derive(Debug, Default)]
pub(super) struct Purge {
    /// A write was refused since the last round began.
    pub(super) is_wanted: bool,
    /// The last write of what is frozen for a job to flush before the round begins.
    flushing: Option<Sequence>,
    /// The last write that the rounds so far have seen.
    seen: Sequence,
    /// Tables from this number on were written since the round began; 0 when no round is in progress.
    before: u64,
    /// Tables of the round that were tried.
    done: Vec<u64>,
    /// Those of them that a compactor gave up. There may be room for them here, between the files.
    retried: Vec<u64>,
    /// The longest piece of room at the time when one of the round's jobs found no piece that was long enough.
    lacking: Option<u64>,
}

impl Purge {
    /// A table that could not be written elsewhere is tried here, once.
    pub(super) fn retry(&mut self, table: u64) {
        if !self.retried.contains(&table) {
            self.retried.push(table);
            self.put_back(table);
        }
    }

    /// A table counts as not tried in this round.
    pub(super) fn put_back(&mut self, table: u64) {
        self.done.retain(|done| *done != table);
    }
}

impl<S: Storage> Store<S> {
    pub(super) fn next_job(&mut self) -> Result<Option<Offer>> {
        self.fit_history()?;
        let is_flushing = self.jobs.is_flushing();
        // A batch larger than a memtable gets a memtable of its own; nothing may be added to that.
        let active = self.active.borrow();
        let is_oversized = !active.is_empty() && active.bytes() > self.memtable_bytes;
        drop(active);
        if is_oversized && self.frozen.is_empty() && !self.log.in_reserve && !self.is_staged() {
            self.freeze();
        }
        if self.jobs.purge.is_wanted && !is_flushing && !self.jobs.is_compacting() {
            self.begin_purge()?;
        }
        // Where a flush found no room, a purge has to free some first.
        if self.is_flush_refused()
            && !self.jobs.is_compacting()
            && self.jobs.purge.before > 0
            && let Some(job) = self.next_purge()
        {
            return Ok(Some(job));
        }
        if !is_flushing && let Some(job) = self.flush_job()? {
            return Ok(Some(job));
        }
        if self.jobs.is_compacting() {
            return Ok(None);
        }
        self.next_compaction()
    }

    /// Whether a flush failed and none has succeeded since.
    pub(super) fn is_flush_refused(&self) -> bool {
        self.jobs.is_flush_refused(self.version.floors.log_floor)
    }

    /// Begins a round on a full storage. It does nothing if no more is in tables than the last round saw, and a job that found no room then
    /// would find no more now. Deletes must lie in tables to hide anything, and no delete may come between the memtable and its table. So
    /// this flushes here and now, or waits for the flush.
    fn begin_purge(&mut self) -> Result<()> {
        let is_longer = |lacking| self.longest_piece().is_some_and(|longest| longest > lacking);
        let is_longer = self.jobs.purge.lacking.is_some_and(is_longer);
        let reach =
            if self.is_flush_refused() { self.version.floors.last_sequence } else { self.acknowledged };
        if (self.jobs.purge.seen == reach && !is_longer) || self.is_staged() {
            self.jobs.purge.is_wanted = false;
            return Ok(());
        }
        let seen = self.jobs.purge.flushing.unwrap_or(self.acknowledged);
        let flushed = if self.options.flush_when_full {
            // If no flush finds room, later writes are not frozen: each additional memtable would take more room.
            let fresh = if self.is_flush_refused() { Ok(()) } else { self.freeze_active() };
            fresh.and_then(|()| self.flush_frozen()).and_then(|()| self.release())
        } else if self.jobs.purge.flushing.is_none() && !self.is_flush_refused() {
            self.freeze_active()
        } else {
            Ok(())
        };
        match flushed {
            Err(error) if error.is_lack() => {}
            flushed => flushed?,
        }
        if !self.options.flush_when_full && !self.frozen.is_empty() && !self.is_flush_refused() {
            self.jobs.purge.flushing = Some(seen);
            return Ok(());
        }
        let is_flushed = self.frozen.is_empty() && self.active.borrow().is_empty();
        let seen = if is_flushed { seen } else { self.version.floors.last_sequence };
        self.jobs.purge.flushing = None;
        if self.jobs.purge.seen == seen && !is_longer {
            self.jobs.purge.is_wanted = false;
            return Ok(());
        }
        self.jobs.purge = Purge { seen, before: self.fresh.next_table, ..Purge::default() };
        Ok(())
    }

    /// A purge found no room: it is tried again when there is a longer piece.
    pub(super) fn purge_failed(&mut self) {
        let longest = self.longest_piece().unwrap_or(u64::MAX);
        self.jobs.purge.lacking =
            Some(self.jobs.purge.lacking.map_or(longest, |lacking| lacking.min(longest)));
    }

    /// Requests a purge: a write was refused before it reached the store, so tables must be rewritten without the
    /// entries that newer tables hide.
    pub fn want_room(&mut self) {
        self.jobs.purge.is_wanted = true;
    }

    /// The next table of the round. A table that a scan or a snapshot reads would keep its room: the round stays open
    /// until the read ends.
    fn next_purge(&mut self) -> Option<Offer> {
        let Purge { before, done, .. } = &self.jobs.purge;
        let is_waiting = Cell::new(false);
        let is_done = |id| {
            let is_done = id >= *before || done.contains(&id);
            let is_pinned = !is_done && self.is_pinned(id);
            is_waiting.set(is_waiting.get() || is_pinned);
            is_done || is_pinned
        };
        let Some(merge) = self.situation().purge(is_done) else {
            if !is_waiting.get() {
                let Purge { seen, is_wanted, lacking, .. } = self.jobs.purge;
                self.jobs.purge = Purge { seen, is_wanted, lacking, ..Purge::default() };
            }
            return None;
        };
        self.jobs.purge.done.extend(merge.runs.iter().flatten().map(|table| table.id));
        Some(self.compaction_job(merge))
    }

    /// The next merge, if one is due. Tables that need only a move or a drop get it here.
    pub(super) fn next_compaction(&mut self) -> Result<Option<Offer>> {
        if self.jobs.purge.before > 0
            && let Some(job) = self.next_purge()
        {
            return Ok(Some(job));
        }
        if let Some(merge) = self.next_of_sweep() {
            return Ok(Some(self.compaction_job(merge)));
        }
        // Nothing was due for these tables when they were looked at last.
        while !self.jobs.is_none_due(self.obsolete.edits()) {
            let edit = match self.edit_for_deleted()? {
                Some(edit) => edit,
                None => match self.merge_of_small().or_else(|| self.situation().pick()) {
                    Some(Pick::Merge(merge)) => return Ok(Some(self.compaction_job(merge))),
                    Some(Pick::Move(table, level)) => Edit {
                        removed: vec![table.id],
                        added: vec![(level as u8, (*table).clone())],
                        floors: self.version.floors,
                        ..Edit::default()
                    },
                    None => {
                        self.jobs.note_none_due(self.obsolete.edits());
                        break;
                    }
                },
            };
            let (removed, added) = (edit.removed.len() as u64, edit.added.len() as u64);
            match self.commit_edit(edit) {
                // No room for an edit: this can wait.
                Err(Error::StorageFull) => break,
                done => done?,
            }
            self.counters.moves += added;
            self.counters.drops += removed - added;
        }
        Ok(None)
    }

    /// A small store stays at two tables, as `thin_level_zero` keeps it at one where merges run in the writer's turn.
    fn merge_of_small(&self) -> Option<Pick> {
        let is_due = !self.options.flush_when_full && self.version.level(0).len() > 1 && self.is_small();
        if is_due { self.situation().level_zero().map(Pick::Merge) } else { None }
    }

    pub(super) fn situation(&self) -> Situation<'_> {
        let Self { version, options, storage, manifest, .. } = self;
        Situation {
            key: manifest.keyring().current(),
            version,
            options,
            places: storage.places(),
            free_bytes: storage.free_bytes(),
            unit_bytes_max: self.unit_bytes_max(),
            tombstones_until: self.oldest_snapshot(),
            is_idle: self.jobs.is_idle(),
        }
    }

    /// An edit that drops the tables that range tombstones in other tables delete as a whole. Range tombstones in memtables do not
    /// count: they may not be durable. A damaged table has none that count.
    fn edit_for_deleted(&self) -> Result<Option<Edit>> {
        let mut removed: Vec<u64> = Vec::new();
        let handles = self.view.levels.iter().flat_map(|level| level.iter());
        let mut left = RANGES_MAX;
        for handle in handles.filter(|handle| handle.meta.range_tombstones > 0) {
            let table = match handle.open(self.manifest.keyring(), &self.blocks()) {
                Err(Error::Pending) => return Err(Error::Pending),
                Err(_) => continue,
                Ok(table) => table,
            };
            for range in table.range_tombstones().iter().take(left) {
                left -= 1;
                for id in covered(&self.version, range) {
                    if !removed.contains(&id) {
                        removed.push(id);
                    }
                }
            }
        }
        let mut floors = self.version.floors;
        floors.gc_sequence = floors.gc_sequence.max(floors.last_sequence);
        Ok((!removed.is_empty()).then(|| Edit { removed, floors, ..Edit::default() }))
    }

    /// Asks for everything to be flushed and merged into one run, by the jobs that [`Store::take_job`] offers from now on.
    ///
    /// # Errors
    /// The error of the commit of staged writes.
    pub fn ask_for_compaction(&mut self) -> Result<()> {
        self.freeze_active()?;
        let until = self.last_sequence;
        self.jobs.sweep.begin(until);
        Ok(())
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
        let merge = self.situation().whole(sweep.until).filter(|_| !is_long);
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
