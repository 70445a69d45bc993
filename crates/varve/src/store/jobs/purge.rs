//! Rewriting tables on a full storage, to free the room of deleted entries: one round after another, a table at a time.

use std::cell::Cell;

use super::running::Offer;
use crate::error::Result;
use crate::storage::Storage;
use crate::store::Store;
use crate::types::Sequence;

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
    /// Whether a round is in progress.
    pub(super) fn is_in_progress(&self) -> bool {
        self.before > 0
    }

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
    /// Begins a round on a full storage. It does nothing if no more is in tables than the last round saw, and a job that found no room then
    /// would find no more now. Deletes must lie in tables to hide anything, and no delete may come between the memtable and its table. So
    /// this flushes here and now, or waits for the flush.
    pub(super) fn begin_purge(&mut self) -> Result<()> {
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

    /// A purge found no room. Another is tried when a piece is longer than all pieces are now. Spare room goes back to the host first: the
    /// host's next refusal returns it anyway, and must not count as a longer piece. If that fails, the next write fails in the same way.
    pub(super) fn purge_failed(&mut self) {
        let _ = self.shrink(0);
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
    pub(super) fn next_purge(&mut self) -> Option<Offer> {
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
}
