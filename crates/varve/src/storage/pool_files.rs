//! The pool as the engine sees it: files by name.
//!
//! Invariant: every call finds its slot by the file's name, and none of them moves a file to another slot.

use super::pool::{SlotPool, Use, failed};
use super::slot_header::SLOT_HEADER_BYTES;
use super::slots::{SlotError, Slots};
use super::{Fetch, Storage};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, StoreId};

impl<D: Slots> Storage for SlotPool<D> {
    fn has_spare(&self) -> bool {
        self.free_slots() > 0
    }

    /// What the host said, and what spare slots were grown to before. Once a slot was refused to grow, only the latter.
    fn free_bytes(&self) -> Option<u64> {
        let room = if self.full { Some(0) } else { self.room_bytes };
        let spare = self.slots.iter().filter(|slot| slot.state == Use::Free).map(|slot| slot.size);
        room.map(|room| room.saturating_add(spare.sum()))
    }

    fn reserve_intact(&self) -> bool {
        Self::reserve_intact(self)
    }

    fn ensure_reserve(&mut self) -> Result<()> {
        Self::ensure_reserve(self)
    }

    fn create_from_reserve(&mut self, file: FileName) -> Result<()> {
        Self::create_from_reserve(self, file)
    }

    fn list(&self) -> Vec<(FileName, u64)> {
        let held = self.slots.iter().filter_map(|known| match known.state {
            Use::Holds(file) => Some((file, known.size.saturating_sub(SLOT_HEADER_BYTES))),
            _ => None,
        });
        held.collect()
    }

    fn adopt(&mut self, store: StoreId) {
        if self.store != Some(store) {
            self.store = Some(store);
            self.files.clear();
            for slot in 0..self.slots.len() as u32 {
                if matches!(self.slots[slot as usize].state, Use::Holds(_) | Use::Lent(_)) {
                    self.release(slot);
                }
            }
        }
    }

    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        if file.kind == FileKind::Table && self.full && self.only_reserve_fits(bytes_hint) {
            return Err(Error::StorageFull);
        }
        let was_full = self.full;
        match self.claim_chosen(file, bytes_hint) {
            Err(Error::StorageFull) if !was_full => {
                // It could not begin there: from now on only slots that were written before will do.
                self.full = true;
                self.claim_chosen(file, bytes_hint)
            }
            claimed => claimed,
        }
    }

    #[inline]
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<Fetch> {
        let slot = self.held(file)?;
        let short = || Error::corrupt(file, offset, "short read");
        let start = offset.saturating_add(SLOT_HEADER_BYTES);
        // A slot torn inside its header page is shorter than the page, and its file is empty.
        let end = self.slots[slot as usize].size.max(SLOT_HEADER_BYTES);
        if start.saturating_add(into.len() as u64) > end {
            return Err(short());
        }
        match self.device.read(slot, start, into) {
            Ok(len) if len == into.len() => Ok(Fetch::Ready),
            Ok(_) => Err(short()),
            Err(error) => Err(failed(error)),
        }
    }

    #[inline]
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        let slot = self.held(file)?;
        let start = offset.saturating_add(SLOT_HEADER_BYTES);
        let end = start.saturating_add(bytes.len() as u64);
        if end > self.slots[slot as usize].size {
            if file.kind != FileKind::Table {
                self.grow(slot, end)?;
            } else if start > self.slots[slot as usize].size {
                return Err(Error::InvalidArgument(
                    "A table is written from its start to its end, without gaps.",
                ));
            }
        }
        self.slots[slot as usize].dirty = true;
        match self.device.write(slot, start, bytes) {
            Ok(len) if len == bytes.len() => {
                let known = &mut self.slots[slot as usize];
                if end > known.size {
                    known.size = end;
                    self.full = false;
                }
                Ok(())
            }
            Ok(_) | Err(SlotError::Full) => Err(self.cut_short(slot, end)),
            Err(error) => Err(failed(error)),
        }
    }

    fn sync(&mut self, file: FileName) -> Result<()> {
        let slot = self.held(file)?;
        if self.slots[slot as usize].dirty {
            self.device.flush(slot).map_err(failed)?;
            self.slots[slot as usize].dirty = false;
        }
        Ok(())
    }

    fn delete(&mut self, file: FileName) -> Result<()> {
        let slot = self.slot(file)?;
        self.files.remove(file);
        self.release(slot);
        if file.kind == FileKind::Table {
            self.cut_surplus(slot);
        }
        Ok(())
    }

    fn trim(&mut self, file: FileName, bytes: u64) -> Result<()> {
        let slot = self.held(file)?;
        let end = SLOT_HEADER_BYTES + bytes;
        if self.slots[slot as usize].size > end {
            self.device.truncate(slot, end).map_err(failed)?;
            self.slots[slot as usize].size = end;
        }
        Ok(())
    }

    fn shrink(&mut self, keep_bytes: u64) -> Result<()> {
        self.shrink_idle(keep_bytes)
    }

    fn bytes_on_disk(&self) -> u64 {
        self.slots.iter().map(|known| known.size).sum()
    }
}
