//! Reads: points, many points, scans. They take `&self` (except a cursor) and change only caches.
//!
//! While bytes are missing they return `Error::Pending`: fetch the bytes and make the same call again, from its beginning. This is safe
//! because tables never change and a read remembers nothing of a failed attempt.

use super::blocks::StoreBlocks;
use super::{Name, Store};
use crate::codec::room;
use crate::error::{Error, Result};
use crate::scan::{Batch, Cursor, Known, Progress, ScanOptions, ScanRequest};
use crate::storage::Storage;
use crate::types::{FileName, Sequence};
use crate::view::Entry;

impl<S: Storage> Store<S> {
    /// Finds the newest version of `key` and passes it to `then` without copying; `None` when it is absent.
    ///
    /// # Errors
    /// `Pending` when bytes are missing; `Corrupt` when a block is damaged.
    pub fn find<R>(&self, key: &[u8], then: impl FnOnce(Option<Entry<'_>>) -> R) -> Result<R> {
        self.find_in(Name::from(0), key, then)
    }

    /// As [`Store::find`], in a snapshot; number 0 is the store as it is now.
    ///
    /// # Errors
    /// As [`Store::find`]; `InvalidArgument` when there is no such snapshot.
    pub fn find_in<R>(
        &self,
        name: impl Into<Name>,
        key: &[u8],
        then: impl FnOnce(Option<Entry<'_>>) -> R,
    ) -> Result<R> {
        self.check_open()?;
        let name = name.into();
        let (view, snapshot, now_ms) = match name.number {
            0 => (&self.view, self.last_sequence, self.clock.now_ms),
            _ => {
                let snapshot = self.snapshots.get(name)?;
                (&snapshot.view, snapshot.snapshot(), snapshot.now_ms)
            }
        };
        view.find(self.manifest.keyring(), &self.blocks(), key, snapshot, now_ms, then)
    }

    /// The value of `key`, copied.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.find(key, |entry| entry.map(|entry| entry.value.to_vec()))
    }

    /// Whether `key` is present.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn has(&self, key: &[u8]) -> Result<bool> {
        Ok(self.sequence_of(key)? > 0)
    }

    /// Starts a scan of the store as it is now; the scan does not see later writes.
    ///
    /// # Errors
    /// `Closed`.
    pub fn scan(&self, options: ScanOptions) -> Result<Cursor> {
        self.check_open()?;
        Ok(Cursor::new(self.view.clone(), self.last_sequence, self.clock.now_ms, options))
    }

    /// Adds entries of a scan to `batch` until it contains `bytes_max` bytes or the scan ends.
    ///
    /// # Errors
    /// As [`Store::find`]. The scan then stays where it was. Reset `batch` before calling again.
    pub fn scan_next(&self, cursor: &mut Cursor, bytes_max: usize, batch: &mut Batch) -> Result<Progress> {
        self.check_open()?;
        let present = cursor.is_of(&self.view).then_some(self.last_sequence);
        let known = Known { gaps: &self.gaps, present };
        batch.ahead_ms = self.clock.ahead_ms;
        cursor.fill(self.manifest.keyring(), &self.blocks(), known, bytes_max, batch)
    }

    /// Opens a scan of a snapshot, or of the store as it is now (number 0), and keeps it for a caller in this realm.
    /// Returns the number of the scan.
    ///
    /// # Errors
    /// As [`Store::open_cursor_as`].
    pub fn open_cursor(&mut self, scan: ScanRequest) -> Result<u32> {
        let number = self.cursors.next_number();
        self.open_cursor_as(number.into(), scan)?;
        self.cursors.gave(number);
        Ok(number)
    }

    /// Opens a scan and keeps it under a name. It replaces a scan that has this name. Its snapshot must belong to the
    /// same client.
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` when there is no such snapshot, or the number is 0.
    pub fn open_cursor_as(&mut self, name: Name, mut scan: ScanRequest) -> Result<()> {
        self.check_open()?;
        self.close_cursor(name);
        if name.number == 0 {
            return Err(Error::InvalidArgument("An iterator needs a number above 0."));
        }
        let options = std::mem::take(&mut scan.options);
        let cursor = match scan.snapshot {
            0 => self.scan(options)?,
            number => self.snapshots.get(Name { number, ..name })?.again(options),
        };
        self.cursors.open(name, cursor, &scan);
        Ok(())
    }

    /// The read point of a scan: its sequence, and the time in milliseconds since 1970 that decides which entries have
    /// expired.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such scan.
    pub(crate) fn read_point_of_cursor(&self, name: impl Into<Name>) -> Result<(Sequence, u64)> {
        let cursor = self.cursors.get(name.into())?;
        Ok((cursor.snapshot(), cursor.now_ms))
    }

    /// Advances a numbered scan; a finished one is closed.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such scan; else as [`Store::find`].
    pub fn next_of_cursor(&mut self, name: impl Into<Name>, bytes_max: usize) -> Result<(Progress, &Batch)> {
        let (mut scan, mut batch) = self.cursors.take(name.into())?;
        let progress = self.scan_next(&mut scan.cursor, bytes_max, &mut batch);
        let is_over = matches!(progress, Ok(Progress::Finished));
        self.cursors.put_back((!is_over).then_some(scan), batch);
        progress.map(|progress| (progress, &self.cursors.batch))
    }

    /// Closes a numbered scan; its files may then be deleted.
    pub fn close_cursor(&mut self, name: impl Into<Name>) {
        self.cursors.close(name.into());
    }

    /// Reads a range of an input table for a job. A table that the storage cannot read counts as damaged.
    ///
    /// # Errors
    /// `Corrupt` beyond the end of the file; `Pending` when bytes are missing.
    pub fn read_input(&mut self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>> {
        let mut bytes = room::zeros(len as usize)?;
        let read = self.storage.read(FileName::table(table), offset, &mut bytes);
        if matches!(read, Err(Error::Io(_) | Error::Corrupt(_))) {
            self.note_damage(table);
        }
        read.map(|()| bytes)
    }

    pub(super) fn blocks(&self) -> StoreBlocks<'_, S> {
        StoreBlocks {
            storage: &self.storage,
            cache: &self.cache,
            keyring: self.manifest.keyring(),
            filters: &self.counters.filters,
        }
    }
}
