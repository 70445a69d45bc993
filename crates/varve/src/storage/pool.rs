//! A storage made of slot files: which slot contains which files, and where there is room.
//!
//! ```text
//!            create / create_from_reserve              lend
//!   spare -------------------------------> has files <-------> lent (its handle is with the compactor, its file is alone in it)
//!     ^  <--------------------------------             reclaim
//!     |               delete                                  quarantined (never used again)
//!     +--> set aside (really written, for deletes on a full storage; see `reserve`)
//! ```
//!
//! Several files share a slot, one after another, so a turn that creates many files needs no new slots meanwhile. A
//! compactor writes through a handle of its own, so a lent file has a slot to itself.
//!
//! Invariants:
//! - A claim is durable with the first flush of its file (see `slot_header`).
//! - WAL segments and manifests are grown by written zeros before a record goes into them. So when there is no more
//!   room, writing the zeros fails: no part of the record is on disk. A recycled slot keeps its length.
//! - A slot has no holes: a file that begins after the slot's end first makes the slot that long.
//! - Deleting a file changes only memory. Its claim stays until the header is written again, at the latest when the log is sealed. So after
//!   a crash the file may be listed once more; the engine knows which files it needs.
//! - Lengths are tracked here. Asking the host costs tens of microseconds in Firefox.

use super::Storage;
use super::name_map::{NameMap, Place, is_file};
use super::slot_header::{Claim, Found, HALF_BYTES, SLOT_HEADER_BYTES, SlotHeader};
use super::slots::{SlotError, Slots};
use super::space::pages;
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, PAGE_BYTES, StoreId};

/// Spare slots to keep open, so that one synchronous turn can flush and merge without waiting for the host.
const FREE_SLOTS_MIN: u32 = 4;

/// See [`SlotPool::set_spare`].
const SPARE_BYTES: u64 = 1 << 20;

/// Generations skipped when a slot could not be read at open: every claim in it is then older than any later claim.
const UNREAD_GENERATIONS: u64 = 1 << 32;

/// The use of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Not open; nothing is known about it.
    Closed,
    /// Open: spare, or with files.
    Open,
    /// Holds one file, which a compactor writes through a handle of its own.
    Lent,
    /// Must not be used.
    Quarantined,
}

/// The pool's knowledge about a slot.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) state: Use,
    /// Bytes written, header page included.
    pub(super) size: u64,
    /// The greatest length that it had before it was cut.
    pub(super) reached: u64,
    /// How many files it contains.
    pub(super) files: usize,
    /// Whether something may have been written since the last flush.
    pub(super) dirty: bool,
    /// The kind of the file that it contains, or contained last.
    pub(super) kind: Option<FileKind>,
    /// Where the half of the page that was written last begins.
    half: u64,
    /// Nothing of its page was lost when it was read.
    pub(super) is_intact: bool,
    /// The page claims files that were deleted since.
    pub(super) is_stale: bool,
    /// A flush failed: it is unknown which of its bytes are durable.
    pub(super) is_lost: bool,
}

impl Slot {
    /// Open and empty, and no flush of it has failed.
    pub(super) fn is_free(&self) -> bool {
        self.state == Use::Open && self.files == 0 && !self.is_lost
    }

    pub(super) fn is_of_manifest(&self) -> bool {
        self.kind == Some(FileKind::Manifest) && self.files > 0
    }
}

/// Slot files as a [`Storage`](super::Storage).
#[derive(Debug)]
pub struct SlotPool<D> {
    pub(super) device: D,
    pub(super) slots: Vec<Slot>,
    pub(super) files: NameMap,
    pub(super) store: Option<StoreId>,
    /// The highest generation seen or written.
    pub(super) generation: u64,
    /// The last attempt to make a slot longer was refused.
    pub(super) full: bool,
    /// The total length of all slots when that happened last; 0 if it never did.
    pub(super) full_bytes: u64,
    /// How many bytes all slots together may still grow by, as the host estimates.
    pub(super) room_bytes: Option<u64>,
    /// Spare slots may contain this many bytes even if the store is small.
    pub(super) spare_bytes_max: u64,
    /// See [`leave_table_room`](Self::leave_table_room).
    pub(super) host_keeps_table_room: bool,
    /// See [`Storage::set_wiping`](super::Storage::set_wiping).
    pub(super) is_wiping: bool,
}

impl<D: Slots> SlotPool<D> {
    /// Reads the header page of every open slot. The files of the store whose manifest slot was claimed last are
    /// listed; slots of any other store are free.
    ///
    /// # Errors
    /// [`Error::Version`] when a slot was written by a newer format. [`Error::Io`] when a slot cannot be read: it may hold the end of the
    /// log, which nothing would miss.
    pub fn open(device: D) -> Result<Self> {
        let count = device.count();
        let mut pool = Self {
            device,
            slots: Vec::new(),
            files: NameMap::default(),
            store: None,
            generation: 0,
            full: false,
            full_bytes: 0,
            room_bytes: None,
            spare_bytes_max: SPARE_BYTES,
            host_keeps_table_room: false,
            is_wiping: false,
        };
        let mut headers = Vec::new();
        for slot in 0..count {
            headers.push(pool.admit(slot)?);
        }
        let known = || headers.iter().flatten();
        pool.generation = known().map(|header| header.generation).max().unwrap_or(0);
        if pool.slots.iter().any(|slot| slot.state == Use::Closed) {
            pool.generation = pool.generation.saturating_add(UNREAD_GENERATIONS);
        }
        let newest = known().max_by_key(|header| (header.is_of_manifest(), header.generation));
        pool.store = newest.map(|header| header.store);
        pool.assign(&headers);
        Ok(pool)
    }

    /// The slots of the host.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The slots of the host, to open or add some; call [`added`](Self::added) afterwards.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the slots of the host.
    pub fn into_device(self) -> D {
        self.device
    }

    /// The slot that contains `file`.
    #[must_use]
    pub fn slot_of(&self, file: FileName) -> Option<u32> {
        self.files.get(file).map(|place| place.slot)
    }

    /// Where `file` is stored.
    #[must_use]
    pub fn place_of(&self, file: FileName) -> Option<Place> {
        self.files.get(file)
    }

    /// How many slots [`lend`](Self::lend) can use now.
    #[must_use]
    pub fn free_slots(&self) -> u32 {
        self.slots.iter().filter(|slot| slot.is_free()).count() as u32
    }

    /// How many slots the host should create or open in advance, so that four are free.
    #[must_use]
    pub fn wanted_slots(&self) -> u32 {
        FREE_SLOTS_MIN.saturating_sub(self.free_slots())
    }

    /// Sets by how many bytes all slots together may still grow, which the host knows from its quota.
    pub fn set_room(&mut self, bytes: Option<u64>) {
        self.room_bytes = bytes;
    }

    /// Sets how many bytes spare slots may contain when a file is deleted: this many, or a sixteenth of all bytes if that is more. The rest is
    /// returned to the host. Default: 1 MiB, because growing a file costs more than writing into one. Nothing is returned unless
    /// [`set_room`](Self::set_room) has reported more room than the store takes.
    pub fn set_spare(&mut self, bytes: u64) {
        self.spare_bytes_max = bytes;
    }

    /// Leaves the room for tables on a full storage to the host: for a host that runs all jobs itself, in lent slots, and keeps room for
    /// them. Room that is set aside here would stay empty. Call this before a store is opened.
    pub fn leave_table_room(&mut self) {
        self.host_keeps_table_room = true;
    }

    /// Adds slots that the host has added or opened since. The files that they claim are not listed, because the store
    /// was opened without them.
    ///
    /// # Errors
    /// [`Error::Version`] when a slot was written by a newer format; it stays closed to the pool.
    pub fn added(&mut self) -> Result<()> {
        for slot in 0..self.device.count() {
            let unknown = self.slots.get(slot as usize).is_none_or(|known| known.state == Use::Closed);
            if unknown {
                let header = match self.admit(slot) {
                    // The store was opened without it, so it holds nothing that is needed.
                    Err(Error::Io(_)) => continue,
                    header => header?,
                };
                self.generation = self.generation.max(header.map_or(0, |header| header.generation));
                // A job that was aborted may have written there.
                self.zero_unused(slot);
            }
        }
        Ok(())
    }

    /// Claims a spare slot for `file` alone, and returns its number. The caller closes the slot and passes it to the writer, which writes
    /// the file from [`SLOT_HEADER_BYTES`] on and flushes it. `None` when no slot is spare: then the host adds one, or lets the job run
    /// here.
    ///
    /// # Errors
    /// As [`create`](super::Storage::create).
    pub fn lend(&mut self, file: FileName, bytes_hint: u64) -> Result<Option<u32>> {
        let Some(slot) = self.choose(file, bytes_hint) else { return Ok(None) };
        self.claim(file, self.whole(slot))?;
        self.slots[slot as usize].state = Use::Lent;
        Ok(Some(slot))
    }

    /// Takes back a lent file that has `bytes` bytes; its slot must be open again.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the slot is shorter than that, [`Error::Io`] when it is not open. In both cases it stays
    /// lent.
    pub fn reclaim(&mut self, file: FileName, bytes: u64) -> Result<()> {
        let slot = self.place(file)?.slot;
        if !self.device.is_open(slot) {
            return Err(Error::Io("a lent slot was not opened again"));
        }
        let size = self.device.size(slot);
        let used = SLOT_HEADER_BYTES.saturating_add(bytes);
        if size < used {
            return Err(Error::corrupt(file, bytes, "a lent slot came back short"));
        }
        if size > self.slots[slot as usize].size {
            self.lengthened(slot, size);
        }
        let known = &mut self.slots[slot as usize];
        (known.state, known.size, known.dirty) = (Use::Open, size, true);
        self.trim(file, bytes);
        if !self.full && size > used + used / 8 {
            // Bytes that could not be cut stay spare.
            let _ = self.cut(slot, used);
        }
        Ok(())
    }

    /// Aborts a lent file: its writer failed, probably because of a lack of room. The slot is free as soon as it is
    /// open.
    pub fn abort_lent(&mut self, file: FileName) {
        self.ran_out();
        self.remove(file);
    }

    /// Never uses `slot` again; the files that it contains are lost.
    pub fn quarantine(&mut self, slot: u32) {
        if let Some(known) = self.slots.get_mut(slot as usize) {
            (known.state, known.files) = (Use::Quarantined, 0);
            self.files.remove_slot(slot);
        }
    }

    /// Reads a slot for the first time, or again after it was closed; returns its header. A slot that cannot be read is quarantined, and
    /// the error returned.
    fn admit(&mut self, slot: u32) -> Result<Option<SlotHeader>> {
        let mut known = Slot {
            state: Use::Closed,
            size: 0,
            reached: 0,
            files: 0,
            dirty: true,
            kind: None,
            half: 0,
            is_intact: false,
            is_stale: false,
            is_lost: false,
        };
        let mut header = Ok(None);
        if self.device.is_open(slot) {
            let mut page = vec![0; SLOT_HEADER_BYTES as usize];
            match self.device.read(slot, 0, &mut page) {
                Ok(len) => {
                    let found = SlotHeader::find(page.get(..len).unwrap_or_default(), slot)?;
                    known.size = self.device.size(slot);
                    known.state = Use::Open;
                    if let Some(Found { header: found, at, is_intact }) = found {
                        known.half = at / HALF_BYTES as u64 * HALF_BYTES as u64;
                        known.is_intact = is_intact;
                        known.kind = found.claims.first().map(|claim| claim.file.kind);
                        header = Ok(Some(found));
                    }
                }
                Err(SlotError::Closed) => {}
                Err(SlotError::Pending) => return Err(Error::Pending),
                Err(error) => {
                    known.state = Use::Quarantined;
                    header = Err(failed(error));
                }
            }
        }
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = known,
            None => self.slots.push(known),
        }
        header
    }

    /// Assigns every file to the claim with the highest generation.
    fn assign(&mut self, headers: &[Option<SlotHeader>]) {
        for (slot, header) in (0u32..).zip(headers) {
            let Some(header) = header.as_ref().filter(|header| Some(header.store) == self.store) else {
                continue;
            };
            for claim in &header.claims {
                if self.files.get(claim.file).is_some_and(|rival| rival.generation >= claim.generation) {
                    continue;
                }
                let Claim { file, generation, start, mut room } = *claim;
                if room == u64::MAX && file.kind != FileKind::Manifest {
                    room = pages(self.slots[slot as usize].size.saturating_sub(start)).max(PAGE_BYTES);
                }
                let place = Place { slot, start, room, generation };
                self.slots[slot as usize].files += 1;
                if let Some(loser) = self.files.insert(file, place) {
                    self.slots[loser.slot as usize].files -= 1;
                }
            }
        }
    }

    /// The place of a file that must exist.
    #[inline]
    pub(super) fn place(&self, file: FileName) -> Result<Place> {
        self.files.get(file).ok_or_else(|| Error::corrupt(file, 0, "the file is missing"))
    }

    /// The place of a file that must exist and must not be lent.
    #[inline]
    pub(super) fn open_place(&self, file: FileName) -> Result<Place> {
        let place = self.place(file)?;
        match self.slots[place.slot as usize].state {
            Use::Open => Ok(place),
            _ => Err(Error::Io("the file is lent to its writer")),
        }
    }

    /// All of a slot.
    pub(super) fn whole(&self, slot: u32) -> Place {
        Place { slot, start: SLOT_HEADER_BYTES, room: u64::MAX, generation: 0 }
    }

    /// Gives `file` a place that is free. The claim becomes durable with the file's first sync. Until then nothing refers to the file, so
    /// it does not matter if the slot has its old content after a crash.
    pub(super) fn claim(&mut self, file: FileName, place: Place) -> Result<()> {
        debug_assert!(self.files.get(file).is_none(), "{file} exists");
        let Place { slot, start, .. } = place;
        let was_empty = self.is_empty(slot);
        self.files.insert(file, Place { generation: self.generation + 1, ..place });
        let known = &mut self.slots[slot as usize];
        known.files += 1;
        known.state = Use::Open;
        known.kind = Some(file.kind);
        let written = self.write_header(slot, was_empty);
        let claimed = written.and_then(|()| {
            let bytes_first = u64::from(file.kind == FileKind::Wal);
            self.grow(slot, start + bytes_first)
        });
        if let Err(error) = claimed {
            self.remove(file);
            if was_empty && matches!(error, Error::Io(_)) {
                self.quarantine(slot);
            }
            return Err(error);
        }
        Ok(())
    }

    /// Writes the claims of `slot` into its first page. If it is `fresh`, the old page is not needed; otherwise the durable half stays as
    /// it is.
    pub(super) fn write_header(&mut self, slot: u32, fresh: bool) -> Result<()> {
        let Some(store) = self.store else {
            return Err(Error::InvalidArgument("No store was adopted: open or create a manifest first."));
        };
        debug_assert!(self.is_disjoint(slot), "files of slot {slot} overlap");
        if !fresh {
            self.flush(slot)?;
        }
        let files = self.files.iter().filter(|(file, place)| place.slot == slot && is_file(*file));
        let claims = files.map(|(file, Place { start, room, generation, .. })| Claim {
            file,
            generation,
            start,
            room,
        });
        let claims = claims.collect();
        self.generation += 1;
        let header = SlotHeader { store, generation: self.generation, claims };
        let known = &mut self.slots[slot as usize];
        let half = if fresh { 0 } else { HALF_BYTES as u64 - known.half };
        let page = if fresh { header.encode(slot) } else { header.encode_half(slot) };
        known.dirty = true;
        match self.device.write(slot, half, &page) {
            Ok(len) if len == page.len() => {
                known.half = half;
                known.is_stale = false;
                known.size = known.size.max(SLOT_HEADER_BYTES);
                Ok(())
            }
            Ok(_) | Err(SlotError::Full) => {
                known.size = self.device.size(slot);
                self.was_refused();
                Err(Error::StorageFull)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes everything written to `slot` durable.
    pub(super) fn flush(&mut self, slot: u32) -> Result<()> {
        let known = &mut self.slots[slot as usize];
        if known.is_lost {
            return Err(Error::Io("an earlier flush of the file failed"));
        }
        if known.dirty {
            if let Err(error) = self.device.flush(slot) {
                known.is_lost = true;
                return Err(failed(error));
            }
            known.dirty = false;
        }
        Ok(())
    }

    /// Forgets `file` and makes its room spare.
    pub(super) fn remove(&mut self, file: FileName) {
        let Some(Place { slot, .. }) = self.files.remove(file) else { return };
        let is_open = self.device.is_open(slot);
        let known = &mut self.slots[slot as usize];
        known.files -= 1;
        known.is_stale = true;
        match known.state {
            Use::Lent if is_open => {
                (known.state, known.size) = (Use::Open, self.device.size(slot));
                self.zero_unused(slot);
            }
            Use::Lent => known.state = Use::Closed,
            _ => {}
        }
        self.refill_reserve(slot);
    }

    fn is_disjoint(&self, slot: u32) -> bool {
        let mut spans = self.spans(slot);
        spans.sort_unstable();
        spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
    }

    /// Whether a slot contains no file; room that is set aside there does not count.
    pub(super) fn is_empty(&self, slot: u32) -> bool {
        !self.files.iter().any(|(file, place)| place.slot == slot && is_file(file))
    }

    /// The parts of a slot that are in use, each as its first byte and the first byte after it.
    pub(super) fn spans(&self, slot: u32) -> Vec<(u64, u64)> {
        let files = self.files.iter().filter(|(_, place)| place.slot == slot);
        files.map(|(_, place)| (place.start, place.end())).collect()
    }
}

/// The error that the engine gets for a failed file operation.
pub(super) fn failed(error: SlotError) -> Error {
    match error {
        SlotError::Full => Error::StorageFull,
        SlotError::Io => Error::Io("a file operation failed"),
        SlotError::Closed => Error::Io("a file was closed from outside"),
        SlotError::Pending => Error::Pending,
    }
}
