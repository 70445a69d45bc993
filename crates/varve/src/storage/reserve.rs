//! Room kept for a full storage.
//!
//! When the quota is used up, a browser refuses even a write of 100 bytes at the end of a file, but overwriting still
//! works. So that deletes can still be logged, flushed and merged, some room is really written in advance:
//!
//! ```text
//! 252 KiB            for a WAL segment      the deletes are logged there
//! 252 KiB or more    for a table            their memtable is flushed there, and tables are written anew without what was
//!                                           deleted: in a large store a 16th of it, up to 5 MiB
//! manifest 0 and 1   >= 64 KiB, and as long as one another, so that either takes the other's snapshot
//! ```
//!
//! Room that is set aside is a file without a name of its own: no header contains it.
//!
//! When spare room is returned to the host, the header page stays. The numbers and generations that were used must be
//! found again: otherwise a header that a power cut brings back could name a newer file.
//!
//! Invariant: [`create`](super::Storage::create) never takes what is set aside; only
//! [`create_from_reserve`](SlotPool::create_from_reserve) does. Room that becomes free refills the reserve first.

use super::Pieces;
use super::name_map::{Place, is_file, reserve_of};
use super::pool::{Slot, SlotPool, Use};
use super::slot_header::SLOT_HEADER_BYTES;
use super::slots::{SlotError, Slots};
use super::space::pages;
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, PAGE_BYTES};

/// Length in bytes of the room that is set aside for a segment, header page of its slot included.
pub const RESERVE_BYTES: u64 = 256 << 10;

/// The bytes of them that a segment may use: all but the header page.
const ROOM_BYTES: u64 = RESERVE_BYTES - SLOT_HEADER_BYTES;

/// Length in bytes that a manifest slot is grown to in advance, header page included.
pub const MANIFEST_RESERVE_BYTES: u64 = 64 << 10;

/// The room that is set aside for a table is one part in this many of all bytes.
const TABLE_SHARE: u64 = 16;

/// A storage of fewer bytes than this is small.
const SMALL_BYTES: u64 = 64 << 20;

/// On any other storage the room is at least as long as a memtable, or one part in `UNTOLD_SHARE` of all bytes if that
/// is less.
const MEMTABLE_ROOM_BYTES: u64 = (2 << 20) + (256 << 10);
const UNTOLD_SHARE: u64 = 8;

/// The room is at most this many bytes.
const TABLE_ROOM_BYTES_MAX: u64 = 5 << 20;

/// How many zeros are written at once.
const ZEROS_BYTES: usize = 64 << 10;

/// Spare slots may contain one part in this many of all bytes.
const SPARE_SHARE: u64 = 16;

/// The kinds that room is set aside for, most important first.
const RESERVED: [FileKind; 2] = [FileKind::Wal, FileKind::Table];

impl<D: Slots> SlotPool<D> {
    /// Completes the reserve: sets aside room that was written before, or writes zeros.
    ///
    /// # Errors
    /// [`Error::StorageFull`] when there is no room for it now.
    pub fn ensure_reserve(&mut self) -> Result<()> {
        let bytes = self.manifest_reserve_bytes();
        for slot in self.manifest_slots().into_iter().flatten() {
            self.grow(slot, bytes)?;
        }
        for &kind in self.reserved_kinds() {
            match self.complete(kind) {
                // It is completed as far as there is room: with less, deletes still have their room.
                Err(Error::StorageFull) if self.reserved(kind).is_some() => {}
                completed => completed?,
            }
        }
        Ok(())
    }

    /// Makes the room that is set aside as long as it should be, where it is or elsewhere.
    fn complete(&mut self, kind: FileKind) -> Result<()> {
        let wanted = self.wanted_bytes(kind);
        let reserved = self.reserved(kind);
        let room = reserved.map_or(0, |place| place.room);
        if room >= wanted {
            return Ok(());
        }
        let at_end = reserved.filter(|place| self.used_end(place.slot) <= place.end());
        if at_end.is_none() && room > wanted / 2 {
            return Ok(());
        }
        // Some slot may be able to grow now, even if it was refused before: only the attempt shows.
        let was_full = core::mem::take(&mut self.full);
        let place = match at_end {
            Some(place) => Some(Place { room: wanted, ..place }),
            None => self.find_room(kind, wanted, wanted, None),
        };
        self.full = was_full;
        let place = place.ok_or(Error::StorageFull);
        let made =
            place.and_then(|place| self.grow(place.slot, place.end()).map(|()| self.set_aside(kind, place)));
        match made {
            Err(Error::StorageFull) if self.set_longest_aside(kind, wanted, room) => Ok(()),
            made => made,
        }
    }

    /// Sets aside the longest piece that was written before, if it is longer than `reserved`.
    fn set_longest_aside(&mut self, kind: FileKind, wanted: u64, reserved: u64) -> bool {
        let longest = self.gaps().into_iter().max_by_key(|(_, gap)| gap.written.min(wanted));
        let Some((slot, gap)) =
            longest.filter(|(_, gap)| gap.written.min(wanted) > reserved.max(ROOM_BYTES - 1))
        else {
            return false;
        };
        let room = gap.written.min(wanted) / PAGE_BYTES * PAGE_BYTES;
        self.set_aside(kind, Place { slot, start: gap.start, room, generation: 0 });
        true
    }

    /// How much is set aside for a table on a full storage; 0 if that is too little to free more room, even together with other spare
    /// pieces that are long enough for a table. `None` while the storage gives room, and has given more than when it was full.
    pub(super) fn room_when_full(&self) -> Option<u64> {
        if !self.is_tight() {
            return None;
        }
        let wanted = self.wanted_bytes(FileKind::Table);
        if self.host_keeps_table_room {
            return Some(wanted);
        }
        let room = self.reserved(FileKind::Table).map_or(0, |place| place.room);
        let is_enough = room > wanted / 2 || room >= ROOM_BYTES && room + self.useful_bytes() > wanted;
        Some(if is_enough { room } else { 0 })
    }

    fn reserved_kinds(&self) -> &'static [FileKind] {
        if self.host_keeps_table_room { &RESERVED[..1] } else { &RESERVED }
    }

    /// How long the room for a file of this kind should be.
    fn wanted_bytes(&self, kind: FileKind) -> u64 {
        if kind != FileKind::Table {
            return ROOM_BYTES;
        }
        let all = self.all_bytes();
        // If the storage is not known to be small, memtables are not small, and each must fit.
        let is_small = self.room_bytes.is_some_and(|room| room.saturating_add(all) < SMALL_BYTES);
        let memtable = if is_small { 0 } else { (all / UNTOLD_SHARE).min(MEMTABLE_ROOM_BYTES) };
        pages((all / TABLE_SHARE).max(memtable).clamp(ROOM_BYTES, TABLE_ROOM_BYTES_MAX))
    }

    fn set_aside(&mut self, kind: FileKind, place: Place) {
        if let Some(former) = self.files.insert(reserve_of(kind), place) {
            self.slots[former.slot as usize].files -= 1;
        }
        self.slots[place.slot as usize].files += 1;
    }

    /// Whether the reserve is complete.
    #[must_use]
    pub fn reserve_intact(&self) -> bool {
        let bytes = self.manifest_reserve_bytes();
        let grown = |slot: u32| self.slots[slot as usize].size >= bytes;
        self.reserved_kinds().iter().all(|&kind| self.reserved(kind).is_some())
            && self.manifest_slots().into_iter().flatten().all(grown)
    }

    /// Like [`create`](super::Storage::create), but takes the room set aside for the file's kind. For the operations
    /// that must still work on a full storage: deletes, and the flush and merge that free room.
    ///
    /// # Errors
    /// [`Error::StorageFull`] when the reserve is used up.
    pub fn create_from_reserve(&mut self, file: FileName) -> Result<()> {
        let place = self.reserved(file.kind).ok_or(Error::StorageFull)?;
        self.files.remove(reserve_of(file.kind));
        self.slots[place.slot as usize].files -= 1;
        self.claim(file, place)
    }

    /// Returns room to the host: everything after the last file of a slot, and free slots, the longest first, until at most `keep_bytes`
    /// are left in them. Room that is set aside stays, but moves to the front of its slot.
    ///
    /// # Errors
    /// [`Error::Io`] when a slot cannot be cut.
    pub fn shrink_idle(&mut self, keep_bytes: u64) -> Result<()> {
        let could_not = |_| Error::Io("a spare file could not be cut");
        for &kind in self.reserved_kinds() {
            self.move_ahead(kind);
        }
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].files > 0 {
                self.cut(slot, self.used_end(slot)).map_err(could_not)?;
            }
        }
        loop {
            let free = || (0u32..).zip(&self.slots).filter(|(_, known)| known.is_free());
            if free().map(|(_, known)| known.size).sum::<u64>() <= keep_bytes {
                return Ok(());
            }
            let longest = free().max_by_key(|(_, known)| known.size);
            let Some((slot, _)) = longest.filter(|(_, known)| known.size > SLOT_HEADER_BYTES) else {
                return Ok(());
            };
            self.cut(slot, SLOT_HEADER_BYTES).map_err(could_not)?;
        }
    }

    /// Moves the room that is set aside to the end of the file before it. It contains nothing, and a slot is cut only behind its last file:
    /// the room of a file that was deleted in front of it would stay in the slot.
    fn move_ahead(&mut self, kind: FileKind) {
        let Some(place) = self.reserved(kind) else { return };
        let before = |other: &Place| other.slot == place.slot && other.start < place.start;
        let ends = self.files.iter().filter(|(_, other)| before(other)).map(|(_, other)| other.end());
        let start = ends.max().unwrap_or(SLOT_HEADER_BYTES);
        self.set_aside(kind, Place { start, ..place });
    }

    /// Returns the room after the last file of a slot to the host while there is more spare room than there should be. Otherwise a merge
    /// that released its inputs would leave their room empty until the next merge. This is done only if the host knows of more room than
    /// the store takes: on a storage that is nearly full, returned room might not be available again (seed 1795278553000819).
    pub(super) fn cut_surplus(&mut self, slot: u32) {
        let all = self.all_bytes();
        let is_surplus = self.spare_bytes() > self.spare_bytes_max.max(all / SPARE_SHARE);
        let is_roomy = !self.full && self.room_bytes.is_some_and(|room| room > all);
        if is_surplus && is_roomy && self.slots[slot as usize].state == Use::Open {
            // Bytes that could not be cut stay spare.
            let _ = self.cut(slot, self.used_end(slot));
        }
    }

    /// Bytes of slots that were written and contain nothing now. Slots without files count including their header page.
    pub(super) fn spare_bytes(&self) -> u64 {
        let open = self.slots.iter().filter(|known| known.state == Use::Open).map(|known| known.size);
        let files = self.files.iter().filter(|(_, place)| self.slots[place.slot as usize].state == Use::Open);
        let used: u64 = files.map(|(_, place)| place.room.min(self.behind(place))).sum();
        let pages = self.slots.iter().filter(|known| known.state == Use::Open && known.files > 0).count();
        open.sum::<u64>().saturating_sub(used + pages as u64 * SLOT_HEADER_BYTES)
    }

    /// Written bytes from the start of a place to the end of its slot. A slot torn inside its header page has none.
    #[inline]
    pub(super) fn behind(&self, place: Place) -> u64 {
        self.slots[place.slot as usize].size.saturating_sub(place.start)
    }

    /// Where the last file of a slot ends.
    fn used_end(&self, slot: u32) -> u64 {
        let files = self.files.iter().filter(|(_, place)| place.slot == slot);
        files.map(|(_, place)| place.end()).max().unwrap_or(SLOT_HEADER_BYTES)
    }

    /// Writes zeros where a file was, if other files follow it. A host that keeps the room for tables counts zeros as room, and no cut can
    /// return these bytes.
    pub(super) fn hollow(&mut self, place: Place) {
        let is_inner = self.used_end(place.slot) > place.end();
        if is_inner {
            self.zero_place(place);
        }
    }

    /// Writes zeros into all of a place.
    pub(super) fn zero_place(&mut self, place: Place) {
        if self.slots[place.slot as usize].state == Use::Open {
            self.zero(place.slot, place.start, place.start + place.room.min(self.behind(place)));
        }
    }

    /// Writes zeros into all of a place, and flushes them: otherwise a power loss brings the old bytes back, into room that no file
    /// has (seed 1795855549000051). A flush that fails is reported by the next one of the slot.
    pub(super) fn wipe_place(&mut self, place: Place) {
        self.zero_place(place);
        if self.slots[place.slot as usize].state == Use::Open {
            let _ = self.flush(place.slot);
        }
    }

    /// If this is wanted, writes zeros wherever a slot has bytes that no file contains, also where room is set aside, and flushes them.
    pub(super) fn zero_unused(&mut self, slot: u32) {
        let Slot { state, size, .. } = self.slots[slot as usize];
        if !self.is_wiping || state != Use::Open {
            return;
        }
        let mut at = SLOT_HEADER_BYTES;
        while at < size {
            let files = self
                .files
                .iter()
                .filter(|(file, place)| is_file(*file) && place.slot == slot && place.end() > at);
            let next = files.map(|(_, place)| (place.start, place.end())).min();
            let (start, end) = next.unwrap_or((size, size));
            self.zero(slot, at, start.min(size));
            at = end;
        }
        let _ = self.flush(slot);
    }

    /// Writes zeros into a slot. A refusal does not matter: the room is freed when the slot is cut.
    fn zero(&mut self, slot: u32, from: u64, to: u64) {
        self.slots[slot as usize].dirty |= from < to;
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = from;
        while at < to {
            let piece = &zeros[..zeros.len().min((to - at) as usize)];
            if self.device.write(slot, at, piece) != Ok(piece.len()) {
                return;
            }
            at += piece.len() as u64;
        }
    }

    pub(super) fn cut(&mut self, slot: u32, end: u64) -> core::result::Result<(), SlotError> {
        let size = self.slots[slot as usize].size;
        if size > end {
            self.device.truncate(slot, end)?;
            let known = &mut self.slots[slot as usize];
            (known.size, known.reached) = (end, known.reached.max(size));
            self.room_bytes = self.room_bytes.map(|room| room.saturating_add(size - end));
            // The slot may grow again. (Chromium keeps the size that it once granted an open file.)
            self.full = false;
        }
        Ok(())
    }

    /// Room in a slot became free: keeps it for the reserve if a part of that is missing, or if the room set aside for a table is too short
    /// and this piece is longer. So after a flush that used the reserve, its segment's room refills it before other writes find that room.
    pub(super) fn refill_reserve(&mut self, slot: u32) {
        for &kind in self.reserved_kinds() {
            let wanted = self.wanted_bytes(kind);
            let reserved = self.reserved(kind).map_or(ROOM_BYTES - 1, |place| place.room);
            if reserved >= wanted {
                continue;
            }
            let longest = self.gaps_of(slot).into_iter().max_by_key(|gap| gap.written.min(wanted));
            let Some(gap) = longest.filter(|gap| gap.written.min(wanted) > reserved) else { continue };
            let room = gap.written.min(wanted) / PAGE_BYTES * PAGE_BYTES;
            self.set_aside(kind, Place { slot, start: gap.start, room, generation: 0 });
        }
    }

    /// The pieces of room on a full storage: those that were written before, and what was returned to the host, because a slot may grow by
    /// so much.
    pub(super) fn pieces_when_full(&self) -> Option<Pieces> {
        let returned = self.returned_when_full()?;
        let mut free: Vec<u64> = self.gaps().into_iter().map(|(_, gap)| gap.written).collect();
        free.push(returned);
        Some(Pieces { free, set_aside: self.reserved(FileKind::Table).map_or(0, |place| place.room) })
    }

    /// Bytes that were written before, contain nothing, and lie in pieces that are long enough for segments and tables.
    fn useful_bytes(&self) -> u64 {
        self.gaps().into_iter().map(|(_, gap)| gap.written).filter(|bytes| *bytes >= ROOM_BYTES).sum()
    }

    fn reserved(&self, kind: FileKind) -> Option<Place> {
        self.files.get(reserve_of(kind))
    }

    pub(super) fn manifest_slots(&self) -> [Option<u32>; 2] {
        [0, 1].map(|id| self.slot_of(FileName::manifest(id)))
    }

    pub(super) fn manifest_reserve_bytes(&self) -> u64 {
        let sizes = self.manifest_slots().into_iter().flatten().map(|slot| self.slots[slot as usize].size);
        sizes.max().unwrap_or(0).max(MANIFEST_RESERVE_BYTES)
    }
}
