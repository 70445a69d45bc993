//! Where files of a pool are placed, and how they move when their place is too short.
//!
//! Invariant: a file that moves is copied, and its copy is durable, before any header refers to it.

use super::name_map::Place;
use super::pool::{Slot, SlotPool, Use, failed};
use super::slot_header::{CLAIMS_MAX, SLOT_HEADER_BYTES};
use super::slots::{SlotError, Slots};
use super::space::{Gap, gaps, pages};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, PAGE_BYTES};

/// While there are spare slots, a segment follows others in a slot only if it begins before this byte. So short
/// segments share a slot, and a long one leaves a whole slot spare when it is deleted.
pub(super) const SHARED_BYTES: u64 = 256 << 10;

/// A file that moves is copied in pieces of this length.
const COPY_BYTES: u64 = 256 << 10;

impl<D: Slots> SlotPool<D> {
    /// The place where `need` bytes of `file` can be written. For a segment, all of them were written before.
    #[inline]
    pub(super) fn place_for(&mut self, file: FileName, need: u64) -> Result<Place> {
        let mut place = self.open_place(file)?;
        if need > place.room {
            place = self.extend(file, need)?;
        }
        if file.kind == FileKind::Wal {
            match self.grow(place.slot, place.start + need) {
                Err(Error::StorageFull) => place = self.retreat(file, need)?,
                grown => grown?,
            }
        }
        Ok(place)
    }

    /// Makes room for `need` bytes of `file`, whose place is too short: where it is, or else in another place.
    pub(super) fn extend(&mut self, file: FileName, need: u64) -> Result<Place> {
        let old = self.open_place(file)?;
        let generous = pages(need.max(old.room.saturating_mul(2)));
        let others = self.files.iter().filter(|(_, place)| place.slot == old.slot && place.start > old.start);
        let limit = others.map(|(_, place)| place.start - old.start).min().unwrap_or(u64::MAX);
        if need <= limit {
            return self.resize(file, generous.min(limit));
        }
        let wanted = if self.full { pages(need) } else { generous };
        let place = self.find_room(file.kind, need, wanted, None).ok_or(Error::StorageFull)?;
        self.relocate(file, old, place)
    }

    /// Moves `file` into a gap that was written before, because its slot cannot grow to take `need` bytes.
    pub(super) fn retreat(&mut self, file: FileName, need: u64) -> Result<Place> {
        let old = self.open_place(file)?;
        let gaps = self.gaps().into_iter().filter(|(_, gap)| gap.written >= pages(need));
        let (slot, gap) = gaps.min_by_key(|(_, gap)| gap.written).ok_or(Error::StorageFull)?;
        let room = (gap.written / PAGE_BYTES * PAGE_BYTES).min(old.room.max(pages(need)));
        self.relocate(file, old, Place { slot, start: gap.start, room, generation: 0 })
    }

    /// Moves `file`. The copy is durable before any header refers to it. The new place grows only to the bytes written to the old one,
    /// because other files follow it.
    fn relocate(&mut self, file: FileName, old: Place, place: Place) -> Result<Place> {
        let bytes = old.room.min(self.behind(old)).min(place.room);
        self.grow(place.slot, place.start + bytes)?;
        self.copy(old, place, bytes)?;
        self.flush(place.slot)?;
        let was_empty = self.is_empty(place.slot);
        let place = Place { generation: self.generation + 1, ..place };
        self.files.insert(file, place);
        self.slots[place.slot as usize].files += 1;
        self.slots[old.slot as usize].files -= 1;
        if let Err(error) = self.write_header(place.slot, was_empty) {
            // The header may have been written anyway (Firefox counts wrong): the old place needs the newer claim.
            self.files.insert(file, Place { generation: self.generation + 1, ..old });
            self.slots[place.slot as usize].files -= 1;
            self.slots[old.slot as usize].files += 1;
            return match self.write_header(old.slot, false) {
                Err(Error::StorageFull) => Err(Error::Io("a file could not be moved")),
                claimed => claimed.and(Err(error)),
            };
        }
        self.flush(place.slot)?;
        Ok(place)
    }

    fn resize(&mut self, file: FileName, room: u64) -> Result<Place> {
        let old = self.place(file)?;
        let place = Place { room, ..old };
        self.files.insert(file, place);
        if let Err(error) = self.write_header(place.slot, false) {
            // A claim that is in no header would be lost, and the bytes written there with it.
            self.files.insert(file, old);
            return Err(error);
        }
        Ok(place)
    }

    fn copy(&mut self, from: Place, to: Place, bytes: u64) -> Result<()> {
        let mut at = 0;
        while at < bytes {
            let mut piece = vec![0; (bytes - at).min(COPY_BYTES) as usize];
            let read = match self.device.read(from.slot, from.start + at, &mut piece) {
                // Bytes that must be fetched first cannot be moved now, and stay where they are: there is no more room for them.
                Err(SlotError::Pending) => return Err(Error::StorageFull),
                read => read.map_err(failed)?,
            };
            let written = self.device.write(to.slot, to.start + at, &piece).map_err(failed)?;
            if read < piece.len() || written < piece.len() {
                return Err(Error::Io("a file could not be moved"));
            }
            at += piece.len() as u64;
        }
        self.slots[to.slot as usize].dirty = true;
        Ok(())
    }

    /// A place for a file, if there is one: of `need` bytes, or on a full storage of at least `least`, and the one that needs the least
    /// growth. A gap that was written before is preferred, the smallest that is long enough. Otherwise a slot grows, the one that stays
    /// shortest. Segments prefer slots that have segments, so that tables are next to other tables; `only` excludes slots of other kinds.
    pub(super) fn find_room(
        &self,
        kind: FileKind,
        least: u64,
        need: u64,
        only: Option<FileKind>,
    ) -> Option<Place> {
        let mut best: Option<((u64, bool, u64), Place)> = None;
        for (slot, Gap { start, room, written }) in self.gaps() {
            let known = &self.slots[slot as usize];
            if room < if self.full { least } else { need } || only.is_some() && only != known.kind {
                continue;
            }
            let growth = need.saturating_sub(written);
            let is_foreign = known.files > 0 && known.kind != Some(kind);
            let length = if growth == 0 { written - need } else { start + need };
            let cost = (if self.full { growth } else { 0 }, is_foreign, length);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, Place { slot, start, room: need.min(room), generation: 0 }));
            }
        }
        best.map(|(_, place)| place)
    }

    /// The gaps that files can use, each with its slot. It is a list because an iterator would be compiled again at
    /// each use.
    #[inline(never)]
    pub(super) fn gaps(&self) -> Vec<(u32, Gap)> {
        let mut found = Vec::new();
        for slot in 0..self.slots.len() as u32 {
            found.extend(self.gaps_of(slot).into_iter().map(|gap| (slot, gap)));
        }
        found
    }

    /// The gaps in a slot that files can use.
    pub(super) fn gaps_of(&self, slot: u32) -> Vec<Gap> {
        let known = &self.slots[slot as usize];
        let is_open = known.state == Use::Open && (known.files > 0 || self.device.is_open(slot));
        if !is_open || known.files >= CLAIMS_MAX || known.is_lost || known.is_of_manifest() {
            return Vec::new();
        }
        gaps(self.spans(slot), known.size)
    }

    /// Gives `file` a place. Manifests have a slot of their own. Other files take a spare slot while there is one, but a segment first
    /// tries to follow short ones.
    pub(super) fn claim_room(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        let need = pages(bytes_hint.max(1));
        let bounded = |slot| Place { room: need, ..self.whole(slot) };
        let place = match file.kind {
            FileKind::Manifest => self.choose(file, bytes_hint).map(|slot| self.whole(slot)),
            // Only room that was written before is certain.
            _ if self.full => None,
            FileKind::Table => self.choose(file, bytes_hint).map(bounded),
            FileKind::Wal => self
                .find_room(file.kind, 0, need, Some(FileKind::Wal))
                .filter(|place| place.start < SHARED_BYTES)
                .or_else(|| self.choose(file, bytes_hint).map(bounded)),
        };
        let elsewhere =
            || self.find_room(file.kind, 0, need, None).filter(|_| file.kind != FileKind::Manifest);
        let place = place.or_else(elsewhere).ok_or(Error::StorageFull)?;
        self.claim(file, place)
    }

    /// Which free slot a new file goes to: the shortest that it fits in, unless it would leave more than half of it empty; then the longest
    /// of those that must grow for it. Short files in long slots would sooner or later make every slot as long as the longest file. A table
    /// leaves slots that contained other kinds to those kinds, unless there is no other slot, or no room to make one longer. (Segments take any
    /// that fits: on a disk that is nearly full they may find no other, seed 1795278553000819.)
    pub(super) fn choose(&self, file: FileName, bytes_hint: u64) -> Option<u32> {
        let need = SLOT_HEADER_BYTES.saturating_add(bytes_hint);
        let is_spare = |(slot, known): &(u32, &Slot)| known.is_free() && self.device.is_open(*slot);
        let spare = || (0u32..).zip(&self.slots).filter(is_spare);
        let suits =
            |known: &Slot| known.size <= SLOT_HEADER_BYTES || known.kind.is_none_or(|kind| kind == file.kind);
        let any = self.full || file.kind != FileKind::Table || !spare().any(|(_, known)| suits(known));
        let free = || spare().filter(|(_, known)| any || suits(known));
        let fitting = free().filter(|(_, known)| known.size >= need).min_by_key(|(_, known)| known.size);
        let shorter = free()
            .filter(|(_, known)| known.size < need)
            .max_by_key(|&(slot, known)| (known.size, u32::MAX - slot));
        let snug = fitting.filter(|(_, known)| self.full || known.size <= need.saturating_mul(2));
        snug.or(shorter).or(fitting).map(|(slot, _)| slot)
    }
}
