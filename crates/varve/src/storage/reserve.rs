//! Room kept for a full storage.
//!
//! When the quota is used up, a browser refuses even a write of 100 bytes at the end of a file, but overwriting
//! still works. So that deletes can be logged, flushed and merged then, some slots are really written ahead:
//!
//! ```text
//! 1 slot of >= 256 KiB   for a WAL segment      the deletes are logged there
//! 1 slot of >= 256 KiB   for a table            their memtable is flushed there
//! manifest 0 and 1       >= 64 KiB, and as long as one another, so that either takes the other's snapshot
//! ```
//!
//! Spare room that is given back ends behind the header page, never before it: the numbers and generations that were used
//! must be found again, or a header that a power cut brings back could name a newer file.
//!
//! Invariant: [`create`](super::Storage::create) never takes a reserved slot; only
//! [`create_from_reserve`](SlotPool::create_from_reserve) does. A slot that is set free refills the reserve first.

use super::pool::{SlotPool, Use};
use super::slot_header::SLOT_HEADER_BYTES;
use super::slots::Slots;
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName};

/// Length of a reserved slot in bytes, header page included.
pub const RESERVE_BYTES: u64 = 256 << 10;

/// Length in bytes that a manifest slot is grown to ahead of need, header page included.
pub const MANIFEST_RESERVE_BYTES: u64 = 64 << 10;

/// Spare slots may hold this part of all bytes.
const SPARE_SHARE: u64 = 16;

/// What a slot is reserved for, most important first.
const RESERVED: [FileKind; 2] = [FileKind::Wal, FileKind::Table];

impl<D: Slots> SlotPool<D> {
    /// Completes the reserve: sets written slots aside, or writes zeros into spare ones.
    ///
    /// # Errors
    /// [`Error::StorageFull`] when there is no room for it now, [`Error::Busy`] when no slot is free.
    pub fn ensure_reserve(&mut self) -> Result<()> {
        let bytes = self.manifest_reserve_bytes();
        for slot in self.manifest_slots().into_iter().flatten() {
            self.grow(slot, bytes)?;
        }
        for kind in RESERVED {
            if self.reserved(kind).is_none() {
                let slot = self.candidate().ok_or(Error::Busy)?;
                self.grow(slot, RESERVE_BYTES)?;
                self.slots[slot as usize].state = Use::Reserved(kind);
            }
        }
        Ok(())
    }

    /// Whether the reserve is complete.
    #[must_use]
    pub fn reserve_intact(&self) -> bool {
        let bytes = self.manifest_reserve_bytes();
        let grown = |slot: u32| self.slots[slot as usize].size >= bytes;
        RESERVED.iter().all(|&kind| self.reserved(kind).is_some())
            && self.manifest_slots().into_iter().flatten().all(grown)
    }

    /// Like [`create`](super::Storage::create), but takes the slot reserved for the file's kind. For what must
    /// still work on a full storage: deletes, and the flush and merge that make room.
    ///
    /// # Errors
    /// [`Error::StorageFull`] when the reserve is used up.
    pub fn create_from_reserve(&mut self, file: FileName) -> Result<()> {
        let slot = self.reserved(file.kind).ok_or(Error::StorageFull)?;
        self.claim(slot, file)
    }

    /// Gives room back to the host: cuts free slots, the longest first, until at most `keep_bytes` are left in
    /// them. Reserved slots stay.
    ///
    /// # Errors
    /// [`Error::Io`] when a slot cannot be cut.
    pub fn shrink_idle(&mut self, keep_bytes: u64) -> Result<()> {
        loop {
            let free = || (0u32..).zip(&self.slots).filter(|(_, known)| known.state == Use::Free);
            if free().map(|(_, known)| known.size).sum::<u64>() <= keep_bytes {
                return Ok(());
            }
            let longest = free().max_by_key(|(_, known)| known.size);
            let Some((slot, _)) = longest.filter(|(_, known)| known.size > SLOT_HEADER_BYTES) else {
                return Ok(());
            };
            self.device
                .truncate(slot, SLOT_HEADER_BYTES)
                .map_err(|_| Error::Io("a spare file could not be cut"))?;
            self.slots[slot as usize].size = SLOT_HEADER_BYTES;
        }
    }

    /// Gives back the room of a spare slot while spare slots hold more than they should: a merge that let go of its inputs
    /// would else leave their room empty until the next one. Only where the host knows of more room than the store takes: on a
    /// storage that is nearly full, what is given back might not be had again (seed 1795278553000819).
    pub(super) fn cut_surplus(&mut self, slot: u32) {
        let (free, all) = self.slots.iter().fold((0, 0), |(free, all), known| {
            (free + if known.state == Use::Free { known.size } else { 0 }, all + known.size)
        });
        let known = &mut self.slots[slot as usize];
        let is_surplus = free > self.spare_bytes.max(all / SPARE_SHARE);
        let cut_bytes = known.size.saturating_sub(SLOT_HEADER_BYTES);
        let is_roomy = !self.full && self.room_bytes.is_some_and(|room| room > all);
        let may_cut = is_surplus && is_roomy && cut_bytes > 0 && known.state == Use::Free;
        if may_cut && self.device.truncate(slot, SLOT_HEADER_BYTES).is_ok() {
            self.room_bytes = self.room_bytes.map(|room| room.saturating_add(cut_bytes));
            known.size = SLOT_HEADER_BYTES;
        }
    }

    /// A slot was set free: keeps it for the reserve if it is long enough and one is missing.
    pub(super) fn refill_reserve(&mut self, slot: u32) {
        let known = &self.slots[slot as usize];
        if known.state != Use::Free || known.size < RESERVE_BYTES {
            return;
        }
        if let Some(kind) = RESERVED.into_iter().find(|&kind| self.reserved(kind).is_none()) {
            self.slots[slot as usize].state = Use::Reserved(kind);
        }
    }

    /// Whether a table of about `bytes_hint` bytes fits the slot that is reserved for one, and no free one.
    pub(super) fn only_reserve_fits(&self, bytes_hint: u64) -> bool {
        let need = SLOT_HEADER_BYTES.saturating_add(bytes_hint);
        let fits = |state| self.slots.iter().any(|known| known.state == state && known.size >= need);
        fits(Use::Reserved(FileKind::Table)) && !fits(Use::Free)
    }

    fn reserved(&self, kind: FileKind) -> Option<u32> {
        (0u32..).zip(&self.slots).find(|(_, known)| known.state == Use::Reserved(kind)).map(|(slot, _)| slot)
    }

    /// The free slot to reserve: the shortest that is long enough, else the one that needs the least zeros.
    fn candidate(&self) -> Option<u32> {
        let free = || (0u32..).zip(&self.slots).filter(|(_, known)| known.state == Use::Free);
        let written =
            free().filter(|(_, known)| known.size >= RESERVE_BYTES).min_by_key(|(_, known)| known.size);
        written.or_else(|| free().max_by_key(|(_, known)| known.size)).map(|(slot, _)| slot)
    }

    fn manifest_slots(&self) -> [Option<u32>; 2] {
        [0, 1].map(|id| self.slot_of(FileName::manifest(id)))
    }

    fn manifest_reserve_bytes(&self) -> u64 {
        let sizes = self.manifest_slots().into_iter().flatten().map(|slot| self.slots[slot as usize].size);
        sizes.max().unwrap_or(0).max(MANIFEST_RESERVE_BYTES)
    }
}
