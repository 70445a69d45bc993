//! A storage made of slot files: which slot holds which file, and which are spare.
//!
//! ```text
//!            create / create_from_reserve             lend
//!   free  ------------------------------->  holds   <------->  lent (its handle is with the compactor)
//!     ^  <-------------------------------             reclaim
//!     |                delete                                  quarantined (never used again)
//!     +--> reserved (really written, for deletes on a full storage; see `reserve`)
//! ```
//!
//! Invariants:
//! - A slot's header is durable with the first flush of its file (see `slot_header`).
//! - WAL segments and manifests are grown by written zeros before a record goes into them. So when the room
//!   ends, it ends in the zeros: nothing of the record is on disk. A recycled slot starts as long as it was.
//! - Deleting a file is a change in memory alone. Its header stays until the slot is used again, so after a
//!   crash the file may be listed once more; the engine knows which files it needs.
//! - Lengths are tracked here. Asking the host costs tens of microseconds in Firefox.

use super::Storage;
use super::name_map::NameMap;
use super::slot_header::{SLOT_HEADER_BYTES, SlotHeader};
use super::slots::{SlotError, Slots};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, StoreId};

/// Spare slots to keep open, so that one synchronous turn can flush and merge without waiting for the host.
const FREE_SLOTS_MIN: u32 = 4;

/// See [`SlotPool::set_spare`].
const SPARE_BYTES: u64 = 8 << 20;

/// Generations skipped when a slot could not be read at open: whatever it claims is older than what comes.
const UNREAD_GENERATIONS: u64 = 1 << 32;

/// What a slot is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Not open; nothing is known of it.
    Closed,
    /// Open and spare.
    Free,
    /// Open, spare, written to [`RESERVE_BYTES`](super::RESERVE_BYTES), and kept for a file of this kind.
    Reserved(FileKind),
    /// Open and holding a file.
    Holds(FileName),
    /// Claimed for a file that someone else writes through a handle of their own.
    Lent(FileName),
    /// Not to be touched.
    Quarantined,
}

/// What the pool knows of a slot.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) state: Use,
    /// Bytes written, header page included.
    pub(super) size: u64,
    /// Whether something may have been written since the last flush.
    pub(super) dirty: bool,
    /// What kind of file it holds, or held last.
    pub(super) kind: Option<FileKind>,
}

/// Slot files as a [`Storage`].
#[derive(Debug)]
pub struct SlotPool<D> {
    pub(super) device: D,
    pub(super) slots: Vec<Slot>,
    pub(super) files: NameMap,
    pub(super) store: Option<StoreId>,
    /// The highest generation seen or written.
    generation: u64,
    /// The last attempt to make a slot longer was refused.
    pub(super) full: bool,
    /// What the host believes that its slots may still grow by, all together.
    pub(super) room_bytes: Option<u64>,
    /// Spare slots may hold this much, however small the store.
    pub(super) spare_bytes: u64,
}

impl<D: Slots> SlotPool<D> {
    /// Reads the header page of every open slot. The files belong to the store whose manifest slot was claimed
    /// last; slots of any other store are free.
    ///
    /// # Errors
    /// [`Error::Version`] when a slot was written by a newer format.
    pub fn open(device: D) -> Result<Self> {
        let count = device.count();
        let mut pool = Self {
            device,
            slots: Vec::new(),
            files: NameMap::default(),
            store: None,
            generation: 0,
            full: false,
            room_bytes: None,
            spare_bytes: SPARE_BYTES,
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
        let is_manifest =
            |header: &SlotHeader| header.file.is_some_and(|file| file.kind == FileKind::Manifest);
        let newest = known().max_by_key(|header| (is_manifest(header), header.generation));
        pool.store = newest.map(|header| header.store);
        pool.assign(&headers);
        Ok(pool)
    }

    /// The host's side.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The host's side, to open or add slots; call [`added`](Self::added) afterwards.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Gives the host's side back.
    pub fn into_device(self) -> D {
        self.device
    }

    /// The slot that holds `file`.
    #[must_use]
    pub fn slot_of(&self, file: FileName) -> Option<u32> {
        self.files.get(file)
    }

    /// How many slots [`create`](Storage::create) can use now.
    #[must_use]
    pub fn free_slots(&self) -> u32 {
        self.slots.iter().filter(|slot| slot.state == Use::Free).count() as u32
    }

    /// How many slots the host should create or open so that four are free.
    #[must_use]
    pub fn wanted_slots(&self) -> u32 {
        FREE_SLOTS_MIN.saturating_sub(self.free_slots())
    }

    /// Tells the pool by how much its slots may still grow, all together, as the host knows it from its quota.
    pub fn set_room(&mut self, bytes: Option<u64>) {
        self.room_bytes = bytes;
    }

    /// Lets spare slots hold this many bytes, or a sixteenth of all, when a table goes; what is more is given back. Default:
    /// 8 MiB, because growing a file costs more than writing into one. Nothing is given back unless [`set_room`](Self::set_room) has
    /// told of more room than the store takes.
    pub fn set_spare(&mut self, bytes: u64) {
        self.spare_bytes = bytes;
    }

    /// Takes in slots that the host has added or opened since. What they claim to hold is not listed: the store
    /// was opened without it.
    ///
    /// # Errors
    /// [`Error::Version`] when a slot was written by a newer format; it stays closed to the pool.
    pub fn added(&mut self) -> Result<()> {
        for slot in 0..self.device.count() {
            let unknown = self.slots.get(slot as usize).is_none_or(|known| known.state == Use::Closed);
            if unknown {
                let header = self.admit(slot)?;
                self.generation = self.generation.max(header.map_or(0, |header| header.generation));
            }
        }
        Ok(())
    }

    /// Claims a slot for `file`, on a full storage the reserved one, and answers its number; the caller closes it and hands it to whoever writes the
    /// file, from [`SLOT_HEADER_BYTES`] on, and flushes it.
    ///
    /// # Errors
    /// As [`create`](Storage::create).
    pub fn lend(&mut self, file: FileName, bytes_hint: u64) -> Result<u32> {
        match self.create(file, bytes_hint) {
            Err(Error::StorageFull) => self.create_from_reserve(file)?,
            created => created?,
        }
        let slot = self.slot(file)?;
        self.slots[slot as usize].state = Use::Lent(file);
        Ok(slot)
    }

    /// Takes a lent file back, written to `bytes` bytes, its slot open again.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the slot is shorter than that, [`Error::Io`] when it is not open; it stays lent.
    pub fn reclaim(&mut self, file: FileName, bytes: u64) -> Result<()> {
        let slot = self.slot(file)?;
        if !self.device.is_open(slot) {
            return Err(Error::Io("a lent slot was not opened again"));
        }
        let size = self.device.size(slot);
        if size < SLOT_HEADER_BYTES.saturating_add(bytes) {
            return Err(Error::corrupt(file, bytes, "a lent slot came back short"));
        }
        let known = &mut self.slots[slot as usize];
        *known = Slot { state: Use::Holds(file), size, dirty: true, kind: Some(file.kind) };
        let used = SLOT_HEADER_BYTES + bytes;
        if !self.full && size > used + used / 8 && self.device.truncate(slot, used).is_ok() {
            self.slots[slot as usize].size = used;
        }
        Ok(())
    }

    /// Gives a lent file up: its writer failed, in all likelihood for want of room. The slot is free as soon as it is
    /// open.
    pub fn abandon(&mut self, file: FileName) {
        self.full = true;
        if let Some(slot) = self.files.remove(file) {
            self.release(slot);
        }
    }

    /// Never uses `slot` again; a file that it holds is gone.
    pub fn quarantine(&mut self, slot: u32) {
        if let Some(known) = self.slots.get_mut(slot as usize) {
            known.state = Use::Quarantined;
            self.files.forget_slot(slot);
        }
    }

    /// Learns of a slot for the first time, or again after it was closed; answers its header.
    fn admit(&mut self, slot: u32) -> Result<Option<SlotHeader>> {
        let mut known = Slot { state: Use::Closed, size: 0, dirty: true, kind: None };
        let mut header = None;
        if self.device.is_open(slot) {
            let mut page = vec![0; SLOT_HEADER_BYTES as usize];
            match self.device.read(slot, 0, &mut page) {
                Ok(len) => {
                    header = SlotHeader::decode(page.get(..len).unwrap_or_default(), slot)?;
                    known.size = self.device.size(slot);
                    known.kind = header.as_ref().and_then(|header| header.file).map(|file| file.kind);
                    known.state = Use::Free;
                }
                Err(SlotError::Closed) => {}
                Err(SlotError::Io | SlotError::Full) => known.state = Use::Quarantined,
            }
        }
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = known,
            None => self.slots.push(known),
        }
        Ok(header)
    }

    /// Gives every file to the slot that claims it with the highest generation.
    fn assign(&mut self, headers: &[Option<SlotHeader>]) {
        for (slot, header) in (0u32..).zip(headers) {
            let Some(SlotHeader { store, file: Some(file), generation }) = *header else { continue };
            if Some(store) != self.store {
                continue;
            }
            let rival = self.files.get(file).and_then(|rival| headers.get(rival as usize).copied().flatten());
            if rival.is_none_or(|rival| generation > rival.generation) {
                if let Some(loser) = self.files.insert(file, slot) {
                    self.slots[loser as usize].state = Use::Free;
                }
                self.slots[slot as usize].state = Use::Holds(file);
            }
        }
    }

    /// The slot of a file that must exist.
    #[inline]
    pub(super) fn slot(&self, file: FileName) -> Result<u32> {
        self.files.get(file).ok_or_else(|| Error::corrupt(file, 0, "the file is missing"))
    }

    /// The slot of a file that must exist and must not be lent.
    #[inline]
    pub(super) fn held(&self, file: FileName) -> Result<u32> {
        let slot = self.slot(file)?;
        match self.slots[slot as usize].state {
            Use::Holds(_) => Ok(slot),
            _ => Err(Error::Io("the file is lent to its writer")),
        }
    }

    /// Writes the header of `slot`; from then on the slot holds `file`. It becomes durable with the file's first sync:
    /// until then nobody refers to the file, and after a crash the slot may as well hold what it held before.
    pub(super) fn claim(&mut self, slot: u32, file: FileName) -> Result<()> {
        let Some(store) = self.store else {
            return Err(Error::InvalidArgument("No store was adopted: open or create a manifest first."));
        };
        debug_assert!(self.files.get(file).is_none(), "{file} exists");
        self.generation += 1;
        let page = SlotHeader { store, file: Some(file), generation: self.generation }.encode(slot);
        match self.device.write(slot, 0, &page) {
            Ok(len) if len == page.len() => {}
            Ok(_) | Err(SlotError::Full) => {
                self.slots[slot as usize].size = self.device.size(slot);
                return Err(Error::StorageFull);
            }
            Err(error) => {
                self.quarantine(slot);
                return Err(failed(error));
            }
        }
        let known = &mut self.slots[slot as usize];
        let size = known.size.max(SLOT_HEADER_BYTES);
        *known = Slot { state: Use::Holds(file), size, dirty: true, kind: Some(file.kind) };
        self.files.insert(file, slot);
        Ok(())
    }

    /// Claims the slot that suits `file` best. A WAL segment gets its first bytes at once: should there be no room for them, the
    /// slot is spare again, and a longer one can be chosen.
    pub(super) fn claim_chosen(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        let slot = self.choose(file, bytes_hint).ok_or(Error::Busy)?;
        self.claim(slot, file)?;
        if file.kind != FileKind::Wal {
            return Ok(());
        }
        let grown = self.grow(slot, SLOT_HEADER_BYTES + 1);
        if grown.is_err() {
            self.files.remove(file);
            self.release(slot);
        }
        grown
    }

    /// Makes a slot that held or was lent to a file spare again.
    pub(super) fn release(&mut self, slot: u32) {
        let state = if self.device.is_open(slot) { Use::Free } else { Use::Closed };
        let known = &mut self.slots[slot as usize];
        if matches!(known.state, Use::Lent(_)) && state == Use::Free {
            known.size = self.device.size(slot);
        }
        known.state = state;
        self.refill_reserve(slot);
    }

    /// Which free slot a new file goes to: the shortest that it fits in, unless it would leave more than half of it empty; then
    /// the longest of those that it has to make longer. Short files in long slots would sooner or later make every slot as
    /// long as the longest file. A table leaves slots that held other kinds to those, unless there is no other slot, or no
    /// room to make one longer. (Segments take any that fits: on a disk that is nearly full they may find no other, seed
    /// 1795278553000819.)
    pub(super) fn choose(&self, file: FileName, bytes_hint: u64) -> Option<u32> {
        let need = SLOT_HEADER_BYTES.saturating_add(bytes_hint);
        let spare = || (0u32..).zip(&self.slots).filter(|(_, known)| known.state == Use::Free);
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

/// What the engine is told of a failed file operation.
pub(super) fn failed(error: SlotError) -> Error {
    match error {
        SlotError::Full => Error::StorageFull,
        SlotError::Io => Error::Io("a file operation failed"),
        SlotError::Closed => Error::Io("a file was closed from outside"),
    }
}
