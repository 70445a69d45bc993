//! Writes: staging into the active memtable, group commit into the WAL, rotation.
//!
//! Invariant: `acknowledged_end` of the active image is the end of the last record that was promised to a caller. A
//! refused append rolls back to it, never further.

use super::{Caller, Frozen, Store};
use crate::codec::cipher::Keyring;
use crate::codec::frame::encrypt_records;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::options::{Durability, Receipt};
use crate::storage::{RESERVE_BYTES, Storage};
use crate::types::{BATCH_BYTES_MAX, FileName, KEY_BYTES_MAX, Kind, SEQUENCE_MAX, Sequence, VALUE_BYTES_MAX};
use crate::view::writable;
use crate::wal::SEGMENT_HEADER_BYTES;

/// A storage has room for at least this many memtables, except when they have the smallest size.
const UNITS_MIN: u64 = 32;
/// A memtable above the smallest size takes at most one part in this many of the bytes of all tables.
const STORE_SHARE: u64 = 16;
/// Bytes that a record may take in addition to keys and values.
const RECORD_OVERHEAD: usize = 96;
/// Bytes that an entry may take in a record in addition to key and value.
const ENTRY_OVERHEAD: usize = 24;
/// When its segment finds no more room, a memtable is flushed if it has at least one part in this many of its maximum
/// bytes.
const FLUSHED_SHARE: usize = 4;

/// One operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op<'a> {
    /// Gives a key a value.
    Set {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// When the entry expires, in milliseconds since 1970.
        expires: Option<u64>,
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Removes all keys of a range.
    DeleteRange {
        /// First key of the range.
        start: &'a [u8],
        /// First key after the range.
        end: &'a [u8],
    },
}

impl Op<'_> {
    fn parts(&self) -> (Kind, Option<u64>, &[u8], &[u8]) {
        match *self {
            Self::Set { key, value, expires } => (Kind::Set, expires, key, value),
            Self::Delete { key } => (Kind::Delete, None, key, &[]),
            Self::DeleteRange { start, end } => (Kind::RangeDelete, None, start, end),
        }
    }

    fn check(&self) -> Result<()> {
        let (kind, _, key, value) = self.parts();
        if key.len() > KEY_BYTES_MAX || (kind == Kind::RangeDelete && value.len() > KEY_BYTES_MAX) {
            return Err(Error::InvalidKey("A key is longer than 64 KiB. Store the long part in the value."));
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::InvalidValue("A value is longer than 128 MiB. Split it over several keys."));
        }
        Ok(())
    }

    /// Whether this operation only removes.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        !matches!(self, Self::Set { .. })
    }
}

/// Where the active memtable's image stands in its WAL segment.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The segment's file exists and contains its header.
    pub(super) created: bool,
    /// Bytes of the image that are in the file.
    pub(super) written: usize,
    /// Bytes of the file that are flushed.
    pub(super) synced: usize,
    /// End of the last acknowledged record in the image.
    pub(super) acknowledged_end: usize,
    /// Bytes of the image whose room in the file is guaranteed, even if the storage becomes full.
    pub(super) sure: usize,
    /// The segment lies in the reserve, which sets must leave alone.
    pub(super) in_reserve: bool,
    /// The image ends with a seal.
    pub(super) sealed: bool,
    /// The segment before this one, while it is not flushed to its end.
    pub(super) unsynced_previous: Option<FileName>,
    /// The segment before this one has records and no seal: until this segment's header names its end, damage to its
    /// last record could go unnoticed.
    pub(super) open_previous: bool,
}

impl Log {
    pub(super) fn fresh(unsynced_previous: Option<FileName>, open_previous: bool) -> Self {
        Self { acknowledged_end: SEGMENT_HEADER_BYTES, unsynced_previous, open_previous, ..Self::default() }
    }
}

impl<S: Storage> Store<S> {
    /// Stages a set. It is readable at once, and the next [`Store::commit`] logs it. Its room in the log is reserved here. So a full
    /// storage refuses this write here and no other write with it, and a storage that becomes full later does not affect it.
    ///
    /// # Errors
    /// `InvalidKey`, `InvalidValue`, `Closed`, `Poisoned`; `StorageFull` when there is no room in the log, or when room had
    /// to be freed and this failed (nothing was staged).
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<Sequence> {
        self.stage(&[Op::Set { key, value, expires: None }])
    }

    /// Stages a delete.
    ///
    /// # Errors
    /// As [`Store::set`].
    pub fn delete(&mut self, key: &[u8]) -> Result<Sequence> {
        self.stage(&[Op::Delete { key }])
    }

    /// Stages the removal of all keys in `start..end`: one tombstone, however many keys it covers.
    ///
    /// # Errors
    /// As [`Store::set`].
    pub fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<Sequence> {
        self.stage(&[Op::DeleteRange { start, end }])
    }

    /// Stages a batch: it is one record, so all of it or none of it survives. Returns the last operation's sequence.
    ///
    /// # Errors
    /// As [`Store::set`].
    #[inline]
    pub fn stage(&mut self, ops: &[Op<'_>]) -> Result<Sequence> {
        self.stage_as(Caller::default(), ops, true)
    }

    /// As [`Store::stage`], for a client that may send the write again and gets its response when the write is logged. This call does not
    /// reserve room in the log, so the commit may be refused.
    ///
    /// # Errors
    /// As [`Store::set`].
    #[inline]
    pub fn stage_for(&mut self, caller: Caller, ops: &[Op<'_>]) -> Result<Sequence> {
        self.stage_as(caller, ops, false)
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn stage_as(&mut self, caller: Caller, ops: &[Op<'_>], is_sure: bool) -> Result<Sequence> {
        self.check_writable()?;
        let mut bytes = RECORD_OVERHEAD + Keyring::room(self.manifest.keyring().current());
        let mut only_deletes = true;
        for op in ops {
            op.check()?;
            let (_, _, key, value) = op.parts();
            bytes += key.len() + value.len() + ENTRY_OVERHEAD;
            only_deletes &= op.is_delete();
        }
        if bytes > BATCH_BYTES_MAX || self.last_sequence + ops.len() as u64 > SEQUENCE_MAX {
            return Err(Error::InvalidArgument("A batch is larger than 256 MiB. Split it."));
        }
        self.make_room(bytes, only_deletes)?;
        if is_sure && self.options.log && self.active.borrow().image().len() + bytes > self.log.sure {
            self.make_sure(bytes, only_deletes)?;
        }
        let synced = self.log.synced as u32;
        let mut shared = self.active.borrow_mut();
        let active = writable(&mut shared);
        active.reserve(bytes, ops.len())?;
        if !ops.is_empty() {
            active.begin(caller.client, caller.logged(), self.last_sequence + 1, ops.len() as u32);
            for (op, sequence) in ops.iter().zip(self.last_sequence + 1..) {
                let (kind, expires, key, value) = op.parts();
                active.push(kind, expires, key, value);
                match kind {
                    Kind::Set => self.gaps.get_mut().cut(key),
                    Kind::Delete => {}
                    Kind::RangeDelete => self.gaps.get_mut().delete(key, value, sequence),
                }
            }
            if mutant::has(Mutant::DeletedRangesLast) {
                for (op, sequence) in ops.iter().zip(self.last_sequence + 1..) {
                    if let (Kind::RangeDelete, _, start, end) = op.parts() {
                        self.gaps.get_mut().delete(start, end, sequence);
                    }
                }
            }
            active.end(synced);
            self.log.sealed = false;
        }
        let is_oversized = active.bytes() > self.memtable_bytes;
        drop(shared);
        if is_oversized {
            self.fit_memory();
        }
        if caller.client != 0 && !ops.is_empty() {
            self.clients.note(caller, self.last_sequence + 1, self.last_sequence + ops.len() as u64);
        }
        self.last_sequence += ops.len() as u64;
        self.counters.writes += ops.len() as u64;
        Ok(self.last_sequence)
    }

    /// Bytes that are staged but not yet in the WAL.
    pub fn pending_bytes(&self) -> usize {
        // A failed flush rolls back records that are already in the file.
        self.active.borrow().image().len().saturating_sub(self.log.written.max(SEGMENT_HEADER_BYTES))
    }

    /// Whether a write is staged but not promised to a caller, or promised but not logged.
    pub(super) fn is_staged(&self) -> bool {
        let end = self.active.borrow().image().len();
        end > self.log.acknowledged_end || (self.options.log && self.pending_bytes() > 0)
    }

    /// Bytes of the active WAL segment that are not flushed.
    fn unsynced_bytes(&self) -> usize {
        if self.log.created { self.log.written - self.log.synced } else { 0 }
    }

    /// Whether anything in the WAL is not flushed.
    pub fn is_unsynced(&self) -> bool {
        self.unsynced_bytes() > 0 || self.log.unsynced_previous.is_some()
    }

    /// Makes everything staged as durable as asked: one append, and one flush for `Strict`.
    ///
    /// # Errors
    /// `StorageFull` when the WAL cannot grow for the writes that [`Store::stage_for`] staged: everything staged since the last commit is
    /// rolled back, and the store stays usable. (If all of them are deletes, this happens only when the reserve is used up as well.) `Io`:
    /// everything is rolled back as well, and the store is poisoned.
    pub fn commit(&mut self, durability: Durability) -> Result<Receipt> {
        self.check_writable()?;
        let mut reached = durability;
        if !self.options.log {
            reached = Durability::Memory;
        } else if durability > Durability::Memory {
            self.log_staged(false)?;
            if durability == Durability::Strict {
                self.sync()?;
            }
        }
        self.promise();
        Ok(Receipt { sequence: self.last_sequence, durability: reached })
    }

    /// Promises all staged writes: from now on no refusal rolls them back.
    pub(super) fn promise(&mut self) {
        self.log.acknowledged_end = self.active.borrow().image().len();
        self.acknowledged = self.last_sequence;
    }

    /// Appends the records that are not in the WAL yet. Deletes may use the reserve: the staged ones or, with `only_deletes`, those of the
    /// next batch.
    pub(super) fn log_staged(&mut self, only_deletes: bool) -> Result<()> {
        if self.pending_bytes() == 0 {
            return Ok(());
        }
        let mut appended = self.making_way(Self::append_staged);
        if matches!(appended, Err(Error::StorageFull)) && self.may_use_reserve(only_deletes) {
            appended = self.enter_reserve().and_then(|()| self.append_staged());
        }
        let Err(error) = appended else { return Ok(()) };
        self.roll_back();
        self.jobs.purge.is_wanted |= matches!(error, Error::StorageFull);
        Err(self.poison_unless_lack(error))
    }

    /// Logs the writes that were promised at the memory level.
    ///
    /// # Errors
    /// As [`Store::commit`]; promised writes stay.
    pub(crate) fn log_promised(&mut self) -> Result<()> {
        if self.options.log { self.log_staged(false) } else { Ok(()) }
    }

    /// Reserves room in the log for a record of `bytes` after all staged records.
    #[cold]
    fn make_sure(&mut self, bytes: usize, only_deletes: bool) -> Result<()> {
        let mut sure = self.making_way(|store| store.grow_log(bytes, only_deletes));
        if matches!(sure, Err(Error::StorageFull)) && only_deletes {
            // Deletes must not overtake the staged writes. These go where they have room, or else to the reserve with
            // the deletes.
            if self.active.borrow().image().len() <= self.log.sure {
                self.log_staged(false)?;
                self.promise();
            }
            sure = self.enter_reserve().and_then(|()| self.grow_log(bytes, true));
        }
        if matches!(sure, Err(Error::StorageFull)) && self.is_worth_a_flush() {
            // Its table goes to the room that is set aside, and another segment goes where this one was.
            self.log_staged(false)?;
            self.promise();
            self.freeze();
            self.flush_for_room()?;
            sure = self.grow_log(bytes, only_deletes);
        }
        // Nothing of this batch is staged yet; if the failure persists, the next commit reports it again.
        self.jobs.purge.is_wanted |= matches!(sure, Err(Error::StorageFull));
        sure
    }

    /// Whether, on a full storage, a flush of the active memtable would free enough room.
    fn is_worth_a_flush(&self) -> bool {
        let active = self.active.borrow();
        self.options.flush_when_full
            && self.frozen.is_empty()
            && !self.log.in_reserve
            && !active.is_empty()
            && active.bytes() >= self.segment_bytes() / FLUSHED_SHARE
    }

    /// Makes sure that the log has room for `bytes` more. A flush may just have used what was set aside for it: of what it freed, that is
    /// completed first, because a set that could not be flushed would keep its room for ever.
    fn grow_log(&mut self, bytes: usize, only_deletes: bool) -> Result<()> {
        if !only_deletes && self.is_short() {
            self.leave_reserve()?;
        }
        self.ensure_segment(false, bytes)?;
        let (file, end) = {
            let active = self.active.borrow();
            (FileName::wal(active.header().segment), active.image().len() + bytes)
        };
        self.log.sure = usize::try_from(self.storage.make_sure(file, end as u64)?).unwrap_or(usize::MAX);
        Ok(())
    }

    /// Runs `attempt`. If there is no room for it, frees what is not needed, then flushes the memtables that wait, then cuts files, and
    /// tries again after each step.
    fn making_way(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        for make_way in [Self::make_way, Self::flush_for_room, Self::cut_for_room] {
            match attempt(self) {
                Err(Error::StorageFull) => {}
                done => return done,
            }
            make_way(self)?;
        }
        attempt(self)
    }

    fn append_staged(&mut self) -> Result<()> {
        self.ensure_segment(false, 0)?;
        let active = self.active.borrow();
        let image = active.image();
        let (header, from) = (active.header(), self.log.written);
        let file = FileName::wal(header.segment);
        if header.key == 0 {
            self.storage.write(file, from as u64, &image[from..])?;
        } else {
            let mut records = room::copy(&image[from..])?;
            let keyring = self.manifest.keyring();
            encrypt_records(keyring, header.key, file, from as u64, header.salt, &mut records);
            self.storage.write(file, from as u64, &records)?;
        }
        self.counters.wal_bytes += (image.len() - self.log.written) as u64;
        self.log.written = image.len();
        Ok(())
    }

    /// Drops the writes that are staged and not committed.
    pub fn discard_staged(&mut self) {
        self.roll_back();
    }

    /// Drops every record that was not promised to a caller.
    fn roll_back(&mut self) {
        let mut active = self.active.borrow_mut();
        if active.image().len() > self.log.acknowledged_end {
            writable(&mut active).rollback(self.log.acknowledged_end);
        }
        drop(active);
        self.last_sequence = self.acknowledged;
        self.gaps.get_mut().remove_after(self.acknowledged);
        self.undo_refused(self.acknowledged);
    }

    /// Creates the active segment's file at its first use, with room for the staged records and `more` bytes. The header is flushed before
    /// any record follows.
    pub(super) fn ensure_segment(&mut self, from_reserve: bool, more: usize) -> Result<()> {
        if self.log.created {
            return Ok(());
        }
        self.manifest.keep(&mut self.storage)?;
        if let Some(previous) = self.log.unsynced_previous {
            self.storage.sync(previous)?;
            self.log.unsynced_previous = None;
        }
        let file = FileName::wal(self.active.borrow().header().segment);
        if from_reserve {
            self.storage.create_from_reserve(file)?;
        } else {
            let staged = self.active.borrow().image().len() + more;
            self.create_file(file, self.segment_bytes().max(staged) as u64)?;
        }
        let header = self.active.borrow().image()[..SEGMENT_HEADER_BYTES].to_vec();
        let written = self.storage.write(file, 0, &header).and_then(|()| self.storage.sync(file));
        if let Err(error) = written {
            self.storage.delete(file)?;
            return Err(error);
        }
        self.segments.push(file.id);
        self.log.in_reserve = from_reserve;
        self.log.created = true;
        self.log.written = SEGMENT_HEADER_BYTES;
        self.log.synced = SEGMENT_HEADER_BYTES;
        Ok(())
    }

    /// Flushes the WAL: committed writes then survive the loss of power, those of earlier sessions too.
    ///
    /// # Errors
    /// `Io`: the store is poisoned, and writes that are not acknowledged yet are rolled back.
    pub fn sync(&mut self) -> Result<()> {
        self.check_writable()?;
        let kept = self.keep_manifest();
        kept.and_then(|()| self.sync_log()).inspect_err(|_| self.roll_back())
    }

    /// Flushes the manifest of an earlier session that died: its last edit may exist only in the operating system's memory, and what the
    /// edit put into tables is not replayed from the WAL.
    pub(super) fn keep_manifest(&mut self) -> Result<()> {
        self.manifest.keep(&mut self.storage).map_err(|error| self.poison(error))
    }

    /// Flushes what this session or its opening found in the WAL.
    pub(super) fn sync_log(&mut self) -> Result<()> {
        let active = FileName::wal(self.active.borrow().header().segment);
        let active = (self.unsynced_bytes() > 0).then_some(active);
        for file in self.log.unsynced_previous.into_iter().chain(active) {
            self.storage.sync(file).map_err(|error| self.poison(error))?;
            self.counters.syncs += 1;
        }
        self.log.unsynced_previous = None;
        self.log.synced = self.log.written;
        Ok(())
    }

    /// Flushes the WAL and appends a flushed seal, so that any later damage is detected. For idle times.
    ///
    /// # Errors
    /// As [`Store::sync`]; if there is no room for the seal, the WAL stays unsealed, and this is no error.
    pub fn seal(&mut self) -> Result<()> {
        if !self.options.log {
            return self.check_writable();
        }
        self.log_staged(false)?;
        self.promise();
        if !self.log.created
            && self.log.open_previous
            && self.previous_of_active().0 > self.version.floors.log_floor
        {
            match self.ensure_segment(false, 0) {
                Ok(()) | Err(Error::StorageFull) => {}
                Err(error) => return Err(self.poison(error)),
            }
        }
        self.sync()?;
        // An opening that finds deleted files flushes the manifest before it deletes them again.
        self.storage.drop_claims();
        if !self.log.created || self.log.sealed {
            return Ok(());
        }
        writable(&mut self.active.borrow_mut()).seal();
        let logged = self.log_staged(false);
        self.log.acknowledged_end = self.active.borrow().image().len();
        match logged {
            Ok(()) => {
                self.log.sealed = true;
                self.sync()
            }
            Err(Error::StorageFull) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Rotates when `bytes` more would not fit the active memtable.
    pub(super) fn make_room(&mut self, bytes: usize, only_deletes: bool) -> Result<()> {
        if !only_deletes && (self.log.in_reserve || self.is_short()) {
            let left = self.leave_reserve();
            self.jobs.purge.is_wanted |= matches!(left, Err(Error::StorageFull));
            left?;
        }
        self.catch_up(only_deletes)?;
        if self.has_room(bytes) {
            return Ok(());
        }
        if self.options.log {
            self.log_staged(only_deletes)?;
        }
        self.promise();
        if self.has_room(bytes) {
            // Its records found no room, and went to the reserve.
            return Ok(());
        }
        let is_full = self.frozen.len() >= self.options.frozen_max;
        // New keys are merged later, by jobs, as long as flushes keep up.
        if is_full || self.jobs.overwrites {
            self.thin_level_zero()?;
        }
        if is_full {
            match self.making_way(Self::flush_oldest) {
                // There is no room for a flush. Deletes may use the reserve, and one more memtable for that.
                Err(error) if only_deletes && self.options.log && error.is_lack() => {}
                relieved => {
                    self.jobs.purge.is_wanted |= matches!(relieved, Err(Error::StorageFull));
                    relieved?;
                }
            }
        }
        self.freeze();
        if self.is_small() && self.flush_for_room()? {
            self.thin_level_zero()?;
        }
        self.catch_up(only_deletes)
    }

    /// On a full storage, flushes what waits for it before a set follows. A memtable that cannot be flushed keeps its room, and its deletes
    /// free none.
    fn catch_up(&mut self, only_deletes: bool) -> Result<()> {
        if !only_deletes && self.options.flush_when_full && self.is_behind() {
            self.flush_for_room()?;
            if self.is_behind() {
                self.jobs.purge.is_wanted = true;
                return Err(Error::StorageFull);
            }
        }
        Ok(())
    }

    /// Whether a memtable waits for its flush on a full storage.
    fn is_behind(&self) -> bool {
        !self.frozen.is_empty() && self.storage.room_when_full().is_some()
    }

    /// Most bytes of a memtable or a small table: if a storage has little room in total, only little of it may contain data that will be
    /// written a second time.
    pub(super) fn unit_bytes_max(&self) -> u64 {
        let capacity = self.storage.free_bytes().map(|free| free + self.storage.bytes_on_disk());
        capacity.map_or(u64::MAX, |bytes| (bytes / UNITS_MIN).max(RESERVE_BYTES / 4 * 3))
    }

    fn has_room(&self, bytes: usize) -> bool {
        let active = self.active.borrow();
        // A segment in the reserve ends where the reserve ends: the next one would find no room.
        let reserve = if self.log.in_reserve { RESERVE_BYTES as usize } else { 0 };
        let bytes_max = self.segment_bytes().max(reserve);
        active.is_empty() || active.bytes() + bytes <= bytes_max
    }

    /// Bytes of a memtable now: on a full storage its table must fit the room that is set aside, because a memtable that cannot be flushed
    /// keeps its room for ever.
    fn segment_bytes(&self) -> usize {
        match self.storage.room_when_full() {
            Some(room) if room > 0 => self.memtable_bytes.min(room as usize / 8 * 7),
            _ => self.memtable_bytes,
        }
    }

    /// Freezes the active memtable and starts a new one with a segment of its own.
    pub(super) fn freeze(&mut self) {
        self.jobs.end_idle();
        let (segment, end) = {
            let active = self.active.borrow();
            (active.header().segment, active.image().len() as u64)
        };
        let (previous, previous_end) =
            if self.log.created { (segment, end) } else { self.previous_of_active() };
        let unsynced = if self.log.created && self.unsynced_bytes() > 0 {
            Some(FileName::wal(segment))
        } else {
            self.log.unsynced_previous.take()
        };
        let open_previous = if self.log.created { !self.log.sealed } else { self.log.open_previous };
        let memtable = self.new_memtable(previous, previous_end);
        let full = std::mem::replace(&mut self.active, memtable);
        if self.log.created {
            self.storage.trim(FileName::wal(segment), end);
        }
        self.frozen.push_back(Frozen { memtable: full, segment });
        self.log = Log::fresh(unsynced, open_previous);
        // Small stores stay small on disk: the log may take only a part of the room that the tables take.
        let in_log = (self.version.bytes() / STORE_SHARE).max(self.options.memtable_bytes_min as u64);
        let bytes_max = usize::try_from(self.unit_bytes_max().min(in_log)).unwrap_or(usize::MAX);
        self.memtable_bytes = (self.memtable_bytes * 2).min(self.options.memtable_bytes_max).min(bytes_max);
        self.refresh_view();
    }

    fn previous_of_active(&self) -> (u64, u64) {
        let active = self.active.borrow();
        (active.header().previous, active.header().previous_end)
    }
}
