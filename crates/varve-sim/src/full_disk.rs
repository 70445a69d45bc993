//! Calls that a full disk must still accept: deletes, and then sets in the room that the deletes freed.
//!
//! Invariant: while the reserve is whole and little waits in memory, a delete commits even on a completely full disk.

use varve::Error;
use varve::options::Durability;
use varve::storage::Storage;
use varve::types::{FileKind, FileName};

use crate::change::{Change, Group, store_op};
use crate::compactor::SimStore;
use crate::session::{Outcome, Session};
use crate::trace::Op;

/// Bytes of the memory level that fit the reserve along with a few deletes, and bytes of memtables that fit its table.
const PENDING_BYTES_MAX: usize = 128 << 10;
const FREED_BYTES_MAX: u64 = 64 << 10;
/// Steps of jobs until none is due: some dozens are normal.
const SLICES_MAX: u64 = 1_000_000;
/// A file of this length makes a segment when it is free.
const FREED_BYTES_MIN: u64 = 60 << 10;

impl Session<'_> {
    /// Deletes that may go through the reserve. Data that is staged before them is committed first, because a refusal of the
    /// deletes may roll it back.
    pub(crate) fn commit_deletes(&mut self, op: &Op, keys: &[Vec<u8>], level: Durability) -> Outcome {
        if !self.commit_staged()? {
            return Ok(());
        }
        let changes = keys.iter().cloned().map(Change::Delete).collect();
        self.commit_in_reserve(op, changes, level)
    }

    /// Deletes everything on a full disk, flushes and merges: the room that this frees must be enough for a set.
    pub(crate) fn free_room(&mut self, op: &Op) -> Outcome {
        self.abort_job()?;
        self.cursors.clear();
        while !self.snapshots.is_empty() {
            self.drop_snapshot(0)?;
        }
        if !self.commit_staged()? {
            return Ok(());
        }
        let stats = self.store()?.stats();
        let frees =
            |&(file, bytes): &(FileName, u64)| file.kind != FileKind::Manifest && bytes >= FREED_BYTES_MIN;
        // When the maximum number of memtables already waits, the delete's own memtable has to be flushed to make room, and it
        // uses the table that is reserved. Its segment takes the slot which that frees, and the next flush may find none (seed
        // 1795272426010295). Where only jobs flush, the room comes when they do.
        let must_free = self.has_reserve()?
            && self.trace.options.flush_when_full
            && stats.frozen < stats.frozen_max
            && stats.frozen_bytes + stats.memtable_bytes < FREED_BYTES_MAX
            && self.store()?.storage().list().iter().any(frees);
        let refused = self.observed.totals.refused;
        self.commit_in_reserve(op, vec![Change::DeleteRange(Vec::new(), None)], Durability::Strict)?;
        // It may have to wait for a slot.
        let must_free = must_free && self.observed.totals.refused == refused;
        // A job that found no room is tried again, and slices run to their end, as hosts do.
        let slices = |store: &mut SimStore| {
            let mut slices = 0_u64;
            while store.run_slice(usize::MAX)? {
                slices += 1;
                // Work that never ends must be reported, and not be waited for (seed 1795393515000373).
                assert!(slices < SLICES_MAX, "jobs never end: {:?}", store.stats().levels);
            }
            Ok(())
        };
        for work in [SimStore::compact, SimStore::compact, slices, SimStore::release, SimStore::release] {
            if self.is_in_doubt()? {
                return Ok(());
            }
            self.attempt(op, work)?;
        }
        if self.is_in_doubt()? {
            return Ok(());
        }
        let refused = self.observed.totals.refused;
        let set = Change::Set(b"room".to_vec(), b"there is".to_vec());
        self.write(&[set], true, Some(Durability::Relaxed))?;
        if must_free && self.observed.totals.refused > refused && !self.is_in_doubt()? {
            return Err(format!("{op}: a set was refused after everything was deleted"));
        }
        self.observed.totals.freed += u64::from(must_free);
        Ok(())
    }

    /// Whether a few deletes must commit, even on a completely full disk.
    pub(crate) fn has_reserve(&mut self) -> Outcome<bool> {
        let is_faulty = self.is_faulty || !self.disk.is_limited();
        let store = self.store()?;
        Ok(!is_faulty
            && store.is_logged()
            && store.storage().reserve_intact()
            && store.pending_bytes() < PENDING_BYTES_MAX)
    }

    /// Commits changes that only delete, after all data that was staged before them is committed.
    fn commit_in_reserve(&mut self, op: &Op, changes: Vec<Change>, level: Durability) -> Outcome {
        let must_commit = self.has_reserve()?;
        let had_pending = self.store()?.pending_bytes() > 0;
        let ops: Vec<_> = changes.iter().map(store_op).collect();
        let result = self.make(|store| store.stage(&ops).and_then(|_| store.commit(level)))?;
        let first_sequence = self.model.last_sequence() + 1;
        self.model.stage(Group { changes: changes.clone(), first_sequence });
        if result == Err(Error::StorageFull) && must_commit && !self.disk.is_dead() {
            return Err(format!("{op}: a delete was refused though its reserve is whole"));
        }
        let Some(receipt) = self.excused(op, result)? else {
            return Ok(());
        };
        self.observed.totals.saved += u64::from(must_commit && had_pending);
        if receipt.sequence != self.model.last_sequence() {
            return Err(format!(
                "{op}: answered with {receipt:?}, not sequence {}",
                self.model.last_sequence()
            ));
        }
        let reached = self.reached(level)?;
        self.acknowledge(reached);
        Ok(())
    }
}
