//! Writes: staging into the active memtable, commit, rotation.

use super::log::Log;
use super::{Caller, Frozen, Store};
use crate::codec::cipher::Keyring;
use crate::error::{Error, Result};
use crate::manifest::Edit;
use crate::mutant::{self, Mutant};
use crate::options::{Durability, Receipt};
use crate::storage::{RESERVE_BYTES, Storage};
use crate::types::{BATCH_BYTES_MAX, FileName, KEY_BYTES_MAX, Kind, SEQUENCE_MAX, Sequence, VALUE_BYTES_MAX};
use crate::view::writable;

/// A storage has room for at least this many memtables, except when they have the smallest size.
const UNITS_MIN: u64 = 32;

/// A memtable above the smallest size takes at most one part in this many of the bytes of all tables.
const STORE_SHARE: u64 = 16;

/// Bytes that a record may take in addition to keys and values.
const RECORD_OVERHEAD: usize = 96;

/// Bytes that an entry may take in a record in addition to key and value.
const ENTRY_OVERHEAD: usize = 24;

/// One operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op<'a> {
    /// Gives a key a value.
    Set {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// When the entry expires, in the store's time: see [`Clock::of_host`](crate::store::Clock::of_host).
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
        if !only_deletes && self.clock.ahead_ms != self.version.floors.ahead_ms {
            // The log has no clock. After a crash, or a close without a flush, an entry would expire as if the host's clock had never been
            // ahead: a code for a minute two hours later.
            self.commit_edit(Edit { floors: self.version.floors, ..Edit::default() })?;
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

    /// Drops the writes that are staged and not committed.
    pub fn discard_staged(&mut self) {
        self.roll_back();
    }

    /// Rotates when `bytes` more would not fit the active memtable.
    pub(super) fn make_room(&mut self, bytes: usize, only_deletes: bool) -> Result<()> {
        if !only_deletes && (self.log.in_reserve || self.is_short()) {
            let left = self.leave_reserve();
            self.jobs.note_refusal(left)?;
        }
        self.catch_up(only_deletes)?;
        if self.has_room(bytes) {
            return Ok(());
        }
        self.log_staged(only_deletes)?;
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
                relieved => self.jobs.note_refusal(relieved)?,
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
                return self.jobs.note_refusal(Err(Error::StorageFull));
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
        let capacity =
            self.storage.free_bytes().map(|free| free.saturating_add(self.storage.bytes_on_disk()));
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
    pub(super) fn segment_bytes(&self) -> usize {
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
}
