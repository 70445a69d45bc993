//! Deletes on a full storage: they use a segment in the reserve, which is space that was really written before.
//!
//! Invariants: while the reserve is in use, a batch that sets anything is refused until the reserve is complete again,
//! so sets never use the room that deletes need. And history stays in order: promised records that no segment contains yet
//! (the memory level) move into the reserve before the deletes, and take some of its room.

use super::Store;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::storage::Storage;
use crate::types::{FileName, Kind};
use crate::view::{share, writable};
use crate::wal::Records;

impl<S: Storage> Store<S> {
    /// Whether all staged operations are deletes. If nothing is staged, `only_deletes` decides: whether the next batch
    /// has only deletes.
    pub(super) fn may_use_reserve(&self, only_deletes: bool) -> bool {
        let active = self.active.borrow();
        let staged =
            Records::new(active.image(), active.header().salt).starting_at(self.log.acknowledged_end);
        let mut deletes = only_deletes;
        for record in staged.flatten() {
            for entry in record.entries.flatten() {
                if entry.kind == Kind::Set {
                    return false;
                }
                deletes = true;
            }
        }
        deletes
    }

    /// Moves to a segment in the reserve, together with the records that wait for the log.
    pub(super) fn enter_reserve(&mut self) -> Result<()> {
        if self.log.created {
            self.freeze_logged()?;
        }
        self.ensure_segment(true, 0)
    }

    /// Freezes the records that the active segment's file contains. The records that it does not contain yet become the
    /// beginning of the next segment: first records of the memory level, which deletes must not overtake, then the staged
    /// ones.
    fn freeze_logged(&mut self) -> Result<()> {
        let whole = self.active.clone();
        let whole = whole.borrow();
        let (header, logged, promised_end) = (*whole.header(), self.log.written, self.log.acknowledged_end);
        if whole.image().len() > logged || whole.is_empty() {
            // Replaced, not cut: open scans go on reading the memtable as it was.
            let mut image = Vec::new();
            room::reserve_exact(&mut image, logged)?;
            image.extend_from_slice(&whole.image()[..logged]);
            let cut = Memtable::from_segment(image, header, logged, FileName::wal(header.segment))?;
            self.active = share(cut);
        }
        self.freeze();
        if self.frozen.pop_back_if(|frozen| frozen.memtable.borrow().is_empty()).is_some() {
            // Only a header and seals: a link of the chain with nothing to flush.
            self.refresh_view();
        }
        let mut shared = self.active.borrow_mut();
        let next = writable(&mut shared);
        for record in Records::new(whole.image(), header.salt).starting_at(logged).flatten() {
            next.begin(record.client, record.request, record.first_sequence, record.count as u32);
            for entry in record.entries.flatten() {
                next.push(entry.kind, entry.expires, entry.key, entry.value);
            }
            next.end(0);
            if record.offset < promised_end {
                self.log.acknowledged_end = next.image().len();
            }
        }
        Ok(())
    }

    /// Completes the reserve again before a set is accepted.
    pub(super) fn leave_reserve(&mut self) -> Result<()> {
        self.complete_reserve()?;
        if self.is_short() && self.cut_for_room()? {
            self.complete_reserve()?;
        }
        if self.is_short() {
            return Err(Error::StorageFull);
        }
        self.log.in_reserve = false;
        Ok(())
    }

    /// Whether the storage is full and flushes have used up what is set aside for them, so that sets must leave the rest alone.
    pub(super) fn is_short(&self) -> bool {
        self.storage.room_when_full() == Some(0)
    }

    fn complete_reserve(&mut self) -> Result<()> {
        match self.storage.ensure_reserve() {
            Err(Error::StorageFull) if self.make_way()? => self.storage.ensure_reserve(),
            result => result,
        }
    }

    /// Completes the reserve as far as there is room now; for opening a store and for idle times.
    ///
    /// # Errors
    /// `Io` when the storage failed for a reason other than a lack of room.
    pub fn refill_reserve(&mut self) -> Result<()> {
        if self.log.in_reserve {
            return Ok(());
        }
        match self.complete_reserve() {
            Err(Error::StorageFull) => Ok(()),
            result => result,
        }
    }
}
