//! Which job comes next, and the steps that need no job: tables that an edit alone moves or drops.
//!
//! The order: a flush; tables that a range tombstone deletes as a whole; the sweep of a `compact()`, unless level 0 fills
//! up meanwhile; the choice of [`Situation::pick`].
//!
//! Invariant: edits are made here only while no compaction is handed out, so the inputs of a compaction do not change
//! while it runs.

use super::running::Offer;
use crate::compact::{Pick, Situation, covered};
use crate::error::{Error, Result};
use crate::manifest::Edit;
use crate::storage::Storage;
use crate::store::Store;

/// Most range tombstones that are examined to find tables that they delete as a whole.
const RANGES_MAX: usize = 1000;

impl<S: Storage> Store<S> {
    /// The next job to run, if one is due. Edits that need no job are made here.
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
            && self.jobs.purge.is_in_progress()
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

    /// The next merge, if one is due. Tables that need only a move or a drop get it here.
    pub(super) fn next_compaction(&mut self) -> Result<Option<Offer>> {
        if self.jobs.purge.is_in_progress()
            && let Some(job) = self.next_purge()
        {
            return Ok(Some(job));
        }
        if let Some(merge) = self.next_of_sweep() {
            return Ok(Some(self.compaction_job(merge)));
        }
        // Nothing was due for these tables when they were looked at last.
        while !self.jobs.is_none_due(self.obsolete.edits(), self.clock.now_ms) {
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
                        let until = self.situation().dense_at().unwrap_or(u64::MAX);
                        self.jobs.none_due = Some((self.obsolete.edits(), until));
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

    /// The state of the store that a pick depends on.
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
            damaged: &self.jobs.damaged,
            now_ms: self.clock.now_ms,
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
}
