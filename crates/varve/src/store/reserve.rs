//! Deletes on a full storage: they use a segment in the reserve, space that was really written before.
//!
//! Invariant: while the reserve is in use, a batch that sets anything is refused until the reserve
//! could be made whole again; so sets never eat what deletes need.

use super::{Op, Store};
use crate::error::{Error, Result};
use crate::options::{Durability, Receipt};
use crate::storage::Storage;

impl<S: Storage> Store<S> {
    /// Moves to a segment in the reserve.
    fn enter_reserve(&mut self) -> Result<()> {
        self.check_writable()?;
        if !self.log.created {
            return self.ensure_segment(true);
        }
        // Records of the memory level that wait for this segment must not be overtaken by the next one.
        if self.active.borrow().is_empty() || self.pending_bytes() > 0 {
            return Err(Error::StorageFull);
        }
        self.freeze();
        self.ensure_segment(true)
    }

    /// Commits deletes on a storage that refused a commit: plainly if there is room, else in the reserve.
    ///
    /// # Errors
    /// `StorageFull` when the reserve is used up as well; nothing was kept.
    pub fn commit_deletes(&mut self, ops: &[Op<'_>], durability: Durability) -> Result<Receipt> {
        let plainly = self.stage(ops).and_then(|_| self.commit(durability));
        if plainly != Err(Error::StorageFull) {
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
