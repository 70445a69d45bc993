//! A storage made of slot files: which slot holds which files, and where there is room.
//!
//! ```text
//!            create / create_from_reserve              lend
//!   spare -------------------------------> holds files <----> lent (its handle is with the compactor, its file is alone in it)
//!     ^  <--------------------------------             reclaim
//!     |               delete                                  quarantined (never used again)
//!     +--> set aside (really written, for deletes on a full storage; see `reserve`)
//! ```
//!
//! Several files share a slot, one behind another: a turn that makes many files needs no slots made in between. A compactor
//! writes through a handle of its own, so what is lent has a slot to itself.
//!
//! Invariants:
//! - A claim is durable with the first flush of its file (see `slot_header`).
//! - WAL segments and manifests are grown by written zeros before a record goes into them. So when the room
//!   ends, it ends in the zeros: nothing of the record is on disk. A recycled slot starts as long as it was.
//! - A slot has no holes: a file that begins behind its end makes it as long first.
//! - Deleting a file is a change in memory alone. Its claim stays until the header is written again, so after a
//!   crash the file may be listed once more; the engine knows which files it needs.
//! - Lengths are tracked here. Asking the host costs tens of microseconds in Firefox.

use super::name_map::{NameMap, Place};
use super::reserve::is_file;
use super::slot_header::{CLAIMS_MAX, Claim, HALF_BYTES, PAGE_BYTES, SLOT_HEADER_BYTES, SlotHeader};
use super::slots::{SlotError, Slots};
use super::space::{Gap, gaps, pages};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, StoreId};

/// Spare slots to keep open, so that one synchronous turn can flush and merge without waiting for the host.
const FREE_SLOTS_MIN: u32 = 4;

/// See [`SlotPool::set_spare`].
const SPARE_BYTES: u64 = 3 << 20;

/// A segment begins behind others up to here while there are spare slots: short ones share a slot, and a long one
/// leaves a slot of its own spare when it goes.
const SHARED_BYTES: u64 = 256 << 10;

/// A file that moves is copied in pieces of this length.
const COPY_BYTES: u64 = 256 << 10;

/// Generations skipped when a slot could not be read at open: whatever it claims is older than what comes.
const UNREAD_GENERATIONS: u64 = 1 << 32;

/// What a slot is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Not open; nothing is known of it.
    Closed,
    /// Open: spare, or holding files.
    Open,
    /// Holds one file, which someone else writes through a handle of their own.
    Lent,
    /// Not to be touched.
    Quarantined,
}

/// What the pool knows of a slot.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) state: Use,
    /// Bytes written, header page included.
    pub(super) size: u64,
    /// The longest that it was before it was cut.
    pub(super) reached: u64,
    /// How many files it holds.
    pub(super) files: usize,
    /// Whether something may have been written since the last flush.
    pub(super) dirty: bool,
    /// What kind of file it holds, or held last.
    pub(super) kind: Option<FileKind>,
    /// Where the half of the page begins that was written last.
    half: u64,
    /// A flush failed: nobody knows what of it is durable.
    is_lost: bool,
}

impl Slot {
    /// Open and holding nothing.
    pub(super) fn is_free(&self) -> bool {
        self.state == Use::Open && self.files == 0
    }

    pub(super) fn is_of_manifest(&self) -> bool {
        self.kind == Some(FileKind::Manifest) && self.files > 0
    }
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
    /// How long all slots were when that happened last; 0 before.
    pub(super) full_bytes: u64,
    /// What the host believes that its slots may still grow by, all together.
    pub(super) room_bytes: Option<u64>,
    /// Spare slots may hold this much, however small the store.
    pub(super) spare_bytes_max: u64,
    /// See [`leave_table_room`](Self::leave_table_room).
    pub(super) host_keeps_table_room: bool,
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
            full_bytes: 0,
            room_bytes: None,
            spare_bytes_max: SPARE_BYTES,
            host_keeps_table_room: false,
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
        self.files.get(file).map(|place| place.slot)
    }

    /// Where `file` lies.
    #[must_use]
    pub fn place_of(&self, file: FileName) -> Option<Place> {
        self.files.get(file)
    }

    /// How many slots [`lend`](Self::lend) can use now.
    #[must_use]
    pub fn free_slots(&self) -> u32 {
        self.slots.iter().filter(|slot| slot.is_free()).count() as u32
    }

    /// How many slots the host should create or open so that four are free, ahead of need.
    #[must_use]
    pub fn wanted_slots(&self) -> u32 {
        FREE_SLOTS_MIN.saturating_sub(self.free_slots())
    }

    /// Tells the pool by how much its slots may still grow, all together, as the host knows it from its quota.
    pub fn set_room(&mut self, bytes: Option<u64>) {
        self.room_bytes = bytes;
    }

    /// Lets spare slots hold this many bytes, or a sixteenth of all, when a file goes; what is more is given back. Default:
    /// 3 MiB, because growing a file costs more than writing into one. Nothing is given back unless [`set_room`](Self::set_room) has
    /// told of more room than the store takes.
    pub fn set_spare(&mut self, bytes: u64) {
        self.spare_bytes_max = bytes;
    }

    /// Leaves the room for tables on a full storage to a host that runs all jobs itself, in slots that are lent, and keeps room for them. What
    /// was set aside here would lie empty. To be called before a store is opened.
    pub fn leave_table_room(&mut self) {
        self.host_keeps_table_room = true;
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

    /// Claims a spare slot for `file` alone, and answers its number; the caller closes it and hands
    /// it to whoever writes the file, from [`SLOT_HEADER_BYTES`] on, and flushes it. `None` when no slot is spare: the host adds one, or has
    /// the job run here.
    ///
    /// # Errors
    /// As [`create`](super::Storage::create).
    pub fn lend(&mut self, file: FileName, bytes_hint: u64) -> Result<Option<u32>> {
        let Some(slot) = self.choose(file, bytes_hint) else { return Ok(None) };
        self.claim(file, self.whole(slot))?;
        self.slots[slot as usize].state = Use::Lent;
        Ok(Some(slot))
    }

    /// Takes a lent file back, written to `bytes` bytes, its slot open again.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the slot is shorter than that, [`Error::Io`] when it is not open; it stays lent.
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
        if let Some(place) = self.files.get_mut(file) {
            place.room = pages(bytes);
        }
        if !self.full && size > used + used / 8 {
            // What could not be cut stays spare.
            let _ = self.cut(slot, used);
        }
        Ok(())
    }

    /// Gives a lent file up: its writer failed, in all likelihood for want of room. The slot is free as soon as it is
    /// open.
    pub fn abandon(&mut self, file: FileName) {
        self.ran_out();
        self.remove(file);
    }

    /// Never uses `slot` again; the files that it holds are gone.
    pub fn quarantine(&mut self, slot: u32) {
        if let Some(known) = self.slots.get_mut(slot as usize) {
            (known.state, known.files) = (Use::Quarantined, 0);
            self.files.forget_slot(slot);
        }
    }

    /// Learns of a slot for the first time, or again after it was closed; answers its header.
    fn admit(&mut self, slot: u32) -> Result<Option<SlotHeader>> {
        let mut known = Slot {
            state: Use::Closed,
            size: 0,
            reached: 0,
            files: 0,
            dirty: true,
            kind: None,
            half: 0,
            is_lost: false,
        };
        let mut header = None;
        if self.device.is_open(slot) {
            let mut page = vec![0; SLOT_HEADER_BYTES as usize];
            match self.device.read(slot, 0, &mut page) {
                Ok(len) => {
                    let found = SlotHeader::decode_at(page.get(..len).unwrap_or_default(), slot)?;
                    known.size = self.device.size(slot);
                    known.state = Use::Open;
                    if let Some((at, found)) = found {
                        known.half = at / HALF_BYTES as u64 * HALF_BYTES as u64;
                        known.kind = found.claims.first().map(|claim| claim.file.kind);
                        header = Some(found);
                    }
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

    /// Gives every file to the claim with the highest generation.
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
    pub(super) fn held(&self, file: FileName) -> Result<Place> {
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

    /// Gives `file` a place that is free. The claim becomes durable with the file's first sync: until then nobody refers to the file,
    /// and after a crash the slot may as well hold what it held before.
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

    /// Writes what `slot` holds into its first page. Where it is `fresh`, nobody needs what the page said before; else the half that
    /// is durable stays as it is.
    pub(super) fn write_header(&mut self, slot: u32, fresh: bool) -> Result<()> {
        let Some(store) = self.store else {
            return Err(Error::InvalidArgument("No store was adopted: open or create a manifest first."));
        };
        debug_assert!(self.is_disjoint(slot), "files of slot {slot} overlap");
        if !fresh {
            self.flush(slot)?;
        }
        let held = self.files.iter().filter(|(file, place)| place.slot == slot && is_file(*file));
        let claims =
            held.map(|(file, Place { start, room, generation, .. })| Claim { file, generation, start, room });
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

    /// Makes all that was written to `slot` durable.
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
        match known.state {
            Use::Lent if is_open => (known.state, known.size) = (Use::Open, self.device.size(slot)),
            Use::Lent => known.state = Use::Closed,
            _ => {}
        }
        self.refill_reserve(slot);
    }

    /// Where `need` bytes of `file` can be written: of a segment, all of them were written before.
    #[inline]
    pub(super) fn place_for(&mut self, file: FileName, need: u64) -> Result<Place> {
        let mut place = self.held(file)?;
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

    /// Makes room for `need` bytes of `file`, which has less: where it is, or else elsewhere.
    pub(super) fn extend(&mut self, file: FileName, need: u64) -> Result<Place> {
        let old = self.held(file)?;
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

    /// Moves `file`, for whose `need` bytes its slot cannot be made longer, into a gap that was written before.
    pub(super) fn retreat(&mut self, file: FileName, need: u64) -> Result<Place> {
        let old = self.held(file)?;
        let gaps = self.gaps().into_iter().filter(|(_, gap)| gap.written >= pages(need));
        let (slot, gap) = gaps.min_by_key(|(_, gap)| gap.written).ok_or(Error::StorageFull)?;
        let room = (gap.written / PAGE_BYTES * PAGE_BYTES).min(old.room.max(pages(need)));
        self.relocate(file, old, Place { slot, start: gap.start, room, generation: 0 })
    }

    /// Copied and durable before anything says that it is there. The new place is as long as what was written to the old one: behind it
    /// lie others.
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
            // It may have landed all the same (Firefox counts wrong): the old place needs the newer claim.
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
            // A claim that no header makes would be forgotten, and what was written there with it.
            self.files.insert(file, old);
            return Err(error);
        }
        Ok(place)
    }

    fn copy(&mut self, from: Place, to: Place, bytes: u64) -> Result<()> {
        let mut at = 0;
        while at < bytes {
            let mut piece = vec![0; (bytes - at).min(COPY_BYTES) as usize];
            // What has yet to be fetched cannot be moved now, and stays where it is: there is no more room for it.
            let read =
                self.device.read(from.slot, from.start + at, &mut piece).map_err(|_| Error::StorageFull)?;
            let written = self.device.write(to.slot, to.start + at, &piece).map_err(failed)?;
            if read < piece.len() || written < piece.len() {
                return Err(Error::Io("a file could not be moved"));
            }
            at += piece.len() as u64;
        }
        self.slots[to.slot as usize].dirty = true;
        Ok(())
    }

    fn is_disjoint(&self, slot: u32) -> bool {
        let mut spans = self.spans(slot);
        spans.sort_unstable();
        spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
    }

    /// Whether a slot holds no file, whatever is set aside there.
    fn is_empty(&self, slot: u32) -> bool {
        !self.files.iter().any(|(file, place)| place.slot == slot && is_file(file))
    }

    /// What of every slot files take, as first byte and first byte behind.
    fn spans(&self, slot: u32) -> Vec<(u64, u64)> {
        let held = self.files.iter().filter(|(_, place)| place.slot == slot);
        held.map(|(_, place)| (place.start, place.end())).collect()
    }

    /// A place for a file, if there is one: `need` bytes, or on a full storage `least` and whatever has most of them written. Where a gap was
    /// written before it is taken, the smallest that will do; else a slot becomes longer, the one that stays shortest. Segments keep to
    /// slots that have segments, so that tables come and go beside one another; `only` leaves others alone.
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

    /// Where files can go, with the slot. A list: as an iterator it would be compiled anew wherever it is walked.
    #[inline(never)]
    pub(super) fn gaps(&self) -> Vec<(u32, Gap)> {
        let mut found = Vec::new();
        for slot in 0..self.slots.len() as u32 {
            found.extend(self.gaps_of(slot).into_iter().map(|gap| (slot, gap)));
        }
        found
    }

    /// Where in a slot files can go.
    pub(super) fn gaps_of(&self, slot: u32) -> Vec<Gap> {
        let known = &self.slots[slot as usize];
        let is_open = known.state == Use::Open && (known.files > 0 || self.device.is_open(slot));
        if !is_open || known.files >= CLAIMS_MAX || known.is_lost || known.is_of_manifest() {
            return Vec::new();
        }
        gaps(self.spans(slot), known.size)
    }

    /// Gives `file` a place. Manifests have a slot of their own. Others take a spare slot while there is one, but a segment goes
    /// behind short ones first.
    pub(super) fn claim_room(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        let need = pages(bytes_hint.max(1));
        let bounded = |slot| Place { room: need, ..self.whole(slot) };
        let place = match file.kind {
            FileKind::Manifest => self.choose(file, bytes_hint).map(|slot| self.whole(slot)),
            // Only what was written before is sure.
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

    /// Which free slot a new file goes to: the shortest that it fits in, unless it would leave more than half of it empty; then
    /// the longest of those that it has to make longer. Short files in long slots would sooner or later make every slot as
    /// long as the longest file. A table leaves slots that held other kinds to those, unless there is no other slot, or no
    /// room to make one longer. (Segments take any that fits: on a disk that is nearly full they may find no other, seed
    /// 1795278553000819.)
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

/// What the engine is told of a failed file operation.
pub(super) fn failed(error: SlotError) -> Error {
    match error {
        SlotError::Full => Error::StorageFull,
        SlotError::Io => Error::Io("a file operation failed"),
        SlotError::Closed => Error::Io("a file was closed from outside"),
    }
}
