//! Deletes on a full storage: they use a segment in the reserve, space that was really written before.
//!
//! Invariants: while the reserve is in use, a batch that sets anything is refused until the reserve could be made whole
//! again, so sets never eat what deletes need. And history stays in order: promised records that no segment holds yet
//! (the memory level) move into the reserve ahead of the deletes, and take of its room.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Op, Store};
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::options::{Durability, Receipt};
use crate::storage::Storage;
use crate::types::FileName;
use crate::wal::Records;

impl<S: Storage> Store<S> {
    /// Moves to a segment in the reserve, and what waits for the log with it.
    fn enter_reserve(&mut self) -> Result<()> {
        self.check_writable()?;
        if self.log.created {
            self.freeze_logged()?;
        }
        match self.ensure_segment(true) {
            Err(error) if !matches!(error, Error::StorageFull | Error::Busy) => Err(self.poison(error)),
            result => result,
        }
    }

    /// Freezes what the active segment's file holds. Records of the memory level that it does not hold yet become the
    /// first of the next segment: what is deleted there must not overtake them.
    fn freeze_logged(&mut self) -> Result<()> {
        let whole = self.active.clone();
        let whole = whole.borrow();
        let (header, logged) = (*whole.header(), self.log.written);
        if whole.image().len() > logged || whole.is_empty() {
            // Replaced, not cut: open scans go on reading the memtable as it was.
            let image = whole.image()[..logged].to_vec();
            let cut = Memtable::from_segment(image, header, logged, FileName::wal(header.segment))?;
            self.active = Rc::new(RefCell::new(cut));
        }
        self.freeze();
        if self.frozen.pop_back_if(|frozen| frozen.memtable.borrow().is_empty()).is_some() {
            // Only a header and seals: a link of the chain with nothing to flush.
            self.refresh_view();
        }
        let mut next = self.active.borrow_mut();
        for record in Records::new(whole.image(), header.salt).flatten() {
            if record.offset >= logged {
                next.begin(record.client, record.request, record.first_sequence, record.count as u32);
                for entry in record.entries.flatten() {
                    next.push(entry.kind, entry.expires, entry.key, entry.value);
                }
                next.end(0);
            }
        }
        drop(next);
        self.promise();
        Ok(())
    }

    /// Commits deletes on a storage that refused a commit: plainly if there is room, else in the reserve.
    ///
    /// # Errors
    /// `StorageFull` when the reserve is used up as well; nothing was kept.
    pub fn commit_deletes(&mut self, ops: &[Op<'_>], durability: Durability) -> Result<Receipt> {
        let plainly = self.stage(ops).and_then(|_| self.commit(durability));
        // Without a log there is no segment to put into the reserve: what was refused is a flush that makes room.
        if plainly != Err(Error::StorageFull) || !self.options.log {
            return plainly;
        }
        self.enter_reserve()?;
        self.stage(ops)?;
        self.commit(durability)
    }

    /// Completes the reserve again before a set is admitted to a segment that lies in it.
    pub(super) fn leave_reserve(&mut self) -> Result<()> {
        self.storage.ensure_reserve()?;
        self.log.in_reserve = false;
        Ok(())
    }

    /// Completes the reserve as far as there is room now; for open and for idle moments.
    ///
    /// # Errors
    /// `Io` when the storage failed otherwise than for want of room.
    pub fn refill_reserve(&mut self) -> Result<()> {
        if self.log.in_reserve || self.storage.reserve_intact() {
            return Ok(());
        }
        match self.storage.ensure_reserve() {
            Err(Error::StorageFull | Error::Busy) => Ok(()),
            result => result,
        }
    }
}
