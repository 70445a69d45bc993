//! The WAL segment of the active memtable: records are appended, flushed and sealed.
//!
//! Invariant: `acknowledged_end` of the active image is the end of the last record that was promised to a caller. A
//! refused append rolls back to it, never further.

use super::Store;
use crate::codec::frame::encrypt_records;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::types::FileName;
use crate::view::writable;
use crate::wal::SEGMENT_HEADER_BYTES;

/// When its segment finds no more room, a memtable is flushed if it has at least one part in this many of its maximum
/// bytes.
const FLUSHED_SHARE: usize = 4;

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
    pub(super) fn unsynced_bytes(&self) -> usize {
        if self.log.created { self.log.written - self.log.synced } else { 0 }
    }

    /// Whether anything in the WAL is not flushed.
    pub fn is_unsynced(&self) -> bool {
        self.unsynced_bytes() > 0 || self.log.unsynced_previous.is_some()
    }

    /// Appends the records that are not in the WAL yet. Deletes may use the reserve: the staged ones or, with `only_deletes`, those of the
    /// next batch. Without a log, it does nothing.
    pub(crate) fn log_staged(&mut self, only_deletes: bool) -> Result<()> {
        if !self.options.log || self.pending_bytes() == 0 {
            return Ok(());
        }
        let mut appended = self.making_way(Self::append_staged);
        if matches!(appended, Err(Error::StorageFull)) && self.may_use_reserve(only_deletes) {
            appended = self.enter_reserve().and_then(|()| self.append_staged());
        }
        let Err(error) = self.jobs.note_refusal(appended) else { return Ok(()) };
        self.roll_back();
        Err(self.poison_unless_lack(error))
    }

    /// Promises all staged writes: from now on no refusal rolls them back.
    pub(super) fn promise(&mut self) {
        self.log.acknowledged_end = self.active.borrow().image().len();
        self.acknowledged = self.last_sequence;
    }

    /// Drops every record that was not promised to a caller.
    pub(super) fn roll_back(&mut self) {
        let mut active = self.active.borrow_mut();
        if active.image().len() > self.log.acknowledged_end {
            writable(&mut active).rollback(self.log.acknowledged_end);
        }
        drop(active);
        self.last_sequence = self.acknowledged;
        self.gaps.get_mut().remove_after(self.acknowledged);
        self.undo_refused(self.acknowledged);
    }

    /// Reserves room in the log for a record of `bytes` after all staged records.
    #[cold]
    pub(super) fn make_sure(&mut self, bytes: usize, only_deletes: bool) -> Result<()> {
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
        self.jobs.note_refusal(sure)
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
        let mut written = self.storage.write(file, 0, &header);
        if !mutant::has(Mutant::HeaderNotFlushedFirst) {
            written = written.and_then(|()| self.storage.sync(file));
        }
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
    pub(super) fn previous_of_active(&self) -> (u64, u64) {
        let active = self.active.borrow();
        (active.header().previous, active.header().previous_end)
    }
}
