//! The pool as the engine sees it: files by name.
//!
//! Invariant: every call finds its slot by the file's name. Only a write moves a file: one that outgrows its place.

use super::name_map::{Place, is_file};
use super::pool::{Slot, SlotPool, Use, failed};
use super::slot_header::CLAIMS_MAX;
use super::slots::{SlotError, Slots};
use super::space::pages;
use super::{Pieces, Storage, StrayVisitor};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, StoreId};

impl<D: Slots> Storage for SlotPool<D> {
    /// The room that the host has reported, plus the spare room that was written before. Once a slot could not grow,
    /// only the latter.
    fn free_bytes(&self) -> Option<u64> {
        let room = if self.full { Some(0) } else { self.room_bytes };
        room.map(|room| room.saturating_add(self.spare_bytes()))
    }

    fn room_when_full(&self) -> Option<u64> {
        Self::room_when_full(self)
    }

    fn pieces_when_full(&self) -> Option<Pieces> {
        Self::pieces_when_full(self)
    }

    fn places(&self) -> u64 {
        let of_slot = |known: &Slot| {
            if known.state == Use::Open && known.kind != Some(FileKind::Manifest) { CLAIMS_MAX } else { 1 }
        };
        self.slots.iter().map(of_slot).sum::<usize>() as u64
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
        let files = self.files.iter().filter(|(file, _)| is_file(*file) && self.open_place(*file).is_ok());
        files.map(|(file, place)| (file, place.room.min(self.behind(place)))).collect()
    }

    fn adopt(&mut self, store: StoreId) {
        if self.store != Some(store) {
            self.store = Some(store);
            let all: Vec<_> = self.files.iter().map(|(file, _)| file).collect();
            for file in all {
                self.remove(file);
            }
        }
    }

    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        let was_full = self.full;
        match self.claim_room(file, bytes_hint) {
            // The slot could not grow for the file: now only room that was written before can be used. If there was no place at all, this
            // retry would not help.
            Err(Error::StorageFull) if !was_full && self.full => self.claim_room(file, bytes_hint),
            claimed => claimed,
        }
    }

    #[inline]
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()> {
        let place = self.open_place(file)?;
        let short = || Error::corrupt(file, offset, "short read");
        let end = offset.saturating_add(into.len() as u64);
        if end > place.room.min(self.behind(place)) {
            return Err(short());
        }
        match self.device.read(place.slot, place.start + offset, into) {
            Ok(len) if len == into.len() => Ok(()),
            Ok(_) => Err(short()),
            Err(error) => Err(failed(error)),
        }
    }

    /// A host that keeps the room for tables commits all slots together, and can lose no page alone.
    fn visit_strays(&self, needed: &[(FileName, u64)], visit: &mut StrayVisitor<'_>) -> Result<()> {
        if self.host_keeps_table_room { Ok(()) } else { self.read_strays(needed, visit) }
    }

    fn make_sure(&mut self, file: FileName, bytes: u64) -> Result<u64> {
        let place = self.place_for(file, bytes)?;
        Ok(place.room.min(self.behind(place)))
    }

    #[inline]
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        let need = offset.saturating_add(bytes.len() as u64);
        let Place { slot, start, .. } = self.place_for(file, need)?;
        let (start, end) = (start + offset, start + need);
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
                if end > self.slots[slot as usize].size {
                    self.lengthened(slot, end);
                }
                Ok(())
            }
            Ok(_) | Err(SlotError::Full) => Err(self.cut_short(slot, end)),
            Err(error) => Err(failed(error)),
        }
    }

    fn sync(&mut self, file: FileName) -> Result<()> {
        let slot = self.open_place(file)?.slot;
        self.flush(slot)
    }

    fn delete(&mut self, file: FileName) -> Result<()> {
        let place = self.place(file)?;
        let slot = place.slot;
        self.remove(file);
        if self.is_wiping {
            self.wipe_place(place);
        } else if self.host_keeps_table_room {
            self.hollow(place);
        }
        self.cut_surplus(slot);
        Ok(())
    }

    fn drop_claims(&mut self) {
        for slot in 0..self.slots.len() {
            let Slot { state, is_stale, .. } = self.slots[slot];
            // A full storage that refuses commits needs its reserve for deletes.
            if state == Use::Open && is_stale && !self.full {
                // Otherwise the files are listed once more.
                let _ = self.write_header(slot as u32, self.is_empty(slot as u32));
            }
        }
    }

    fn trim(&mut self, file: FileName, bytes: u64) {
        if let Some(place) = self.files.get_mut(file) {
            let (slot, room) = (place.slot, place.room.min(pages(bytes.max(1))));
            let rest = Place { start: place.start + room, room: place.room - room, ..*place };
            place.room = room;
            if self.is_wiping && rest.room > 0 {
                self.wipe_place(rest);
            }
            if self.full {
                self.refill_reserve(slot);
            }
        }
    }

    fn shrink(&mut self, keep_bytes: u64) -> Result<()> {
        self.shrink_idle(keep_bytes)
    }

    fn set_wiping(&mut self, is_wiping: bool) {
        self.is_wiping = is_wiping;
    }

    fn wipe_unused(&mut self) {
        (0..self.slots.len() as u32).for_each(|slot| self.zero_unused(slot));
    }

    fn bytes_on_disk(&self) -> u64 {
        self.all_bytes()
    }
}
