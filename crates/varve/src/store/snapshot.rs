//! Snapshots: the store as it was at one read point, for reads by number.
//!
//! A snapshot is a scan that is never advanced: a view, a sequence, a time. Its view keeps the memtables and the files of
//! the tables that it reads, so merges need not keep old versions for it; a snapshot costs only that room. But merges keep
//! tombstones that are newer than the oldest snapshot, so that every write since can be reported to a transaction that read
//! the snapshot.
//!
//! A snapshot whose process died can be opened again by its sequence and its time, if no version that it saw was dropped since: a job that
//! drops a version raises the manifest's `gc_sequence` above it. Nor may a job be running that drops newer tombstones.
//!
//! Invariant: a snapshot sees the writes that were staged when it was opened, except those that were refused later.

use std::rc::Rc;

use super::{Clock, Name, Store};
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::scan::{Cursor, ScanOptions};
use crate::storage::Storage;
use crate::types::{SEQUENCE_MAX, Sequence};
use crate::view::View;

/// Snapshots open at once, at most: frames give their numbers 16 bits.
const SNAPSHOTS_MAX: usize = u16::MAX as usize;
/// The first number of a snapshot of the host. Clients choose smaller ones; 2^16 is that of a read in the past.
const HOST_SNAPSHOTS: u32 = 1 << 17;

/// The open snapshots, sorted by name.
#[derive(Debug, Default)]
pub(super) struct Snapshots(Vec<(Name, Cursor)>);

impl Snapshots {
    fn find(&self, name: Name) -> core::result::Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(&name))
    }

    /// The snapshot of this name.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none; `Retry` for a client that must have opened it elsewhere.
    pub(super) fn get(&self, name: Name) -> Result<&Cursor> {
        match self.find(name) {
            Ok(at) if !self.0[at].1.is_finished() => Ok(&self.0[at].1),
            // A client uses only names that it has opened, so the leader that opened this one is gone.
            _ if name.client != 0 => Err(Error::Retry),
            _ => Err(Error::InvalidArgument("This snapshot is closed or unknown. Take a new one.")),
        }
    }

    /// The lowest number from `number` on that no caller in this realm uses.
    fn free_number(&self, mut number: u32) -> u32 {
        // They are sorted.
        for (name, _) in &self.0 {
            number += u32::from(*name == number.into());
        }
        number
    }

    fn keep(&mut self, name: Name, snapshot: Cursor) -> Result<()> {
        if name.number == 0 {
            return Err(Error::InvalidArgument("A snapshot needs a number above 0."));
        }
        match self.find(name) {
            Ok(at) => self.0[at].1 = snapshot.kept(),
            Err(at) => self.0.insert(at, (name, snapshot.kept())),
        }
        Ok(())
    }

    fn close(&mut self, name: Name) {
        if let Ok(at) = self.find(name) {
            self.0.remove(at);
        }
    }

    pub(super) fn close_all(&mut self) {
        self.0.clear();
    }

    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = &Cursor> {
        self.0.iter().map(|(_, snapshot)| snapshot)
    }

    /// Takes over the snapshots of another store. Those that cannot go on here read nothing, so they keep no file either.
    fn adopt(&mut self, former: &mut Self, can_go_on: impl Fn(&mut Cursor) -> bool) {
        let nothing = Rc::new(View { memtables: Vec::new(), levels: Vec::new() });
        self.0 = core::mem::take(&mut former.0);
        for (_, snapshot) in &mut self.0 {
            if !can_go_on(snapshot) {
                snapshot.lose(nothing.clone());
            }
        }
    }
}

impl<S: Storage> Store<S> {
    /// Takes a snapshot for a caller in this realm; returns its number, which is above 0. Close it with
    /// [`Store::close_snapshot`].
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` when 65,535 are open.
    pub fn open_snapshot(&mut self) -> Result<u32> {
        let number = self.snapshots.free_number(1);
        if number as usize > SNAPSHOTS_MAX {
            return Err(Error::InvalidArgument("65,535 snapshots are open. Close some."));
        }
        self.open_snapshot_as(number.into())?;
        Ok(number)
    }

    /// Takes a snapshot for the host itself; returns its number, which no client in this realm may choose.
    ///
    /// # Errors
    /// `Closed`.
    pub fn open_snapshot_of_host(&mut self) -> Result<u32> {
        let number = self.snapshots.free_number(HOST_SNAPSHOTS);
        self.open_snapshot_as(number.into())?;
        Ok(number)
    }

    /// Takes a snapshot under a name. It replaces a snapshot that has this name.
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` for a number that is 0.
    pub fn open_snapshot_as(&mut self, name: Name) -> Result<()> {
        let snapshot = self.scan(ScanOptions::default())?;
        self.snapshots.keep(name, snapshot)
    }

    /// Opens a snapshot again that was opened while another process had this store open. `sequence` and `now_ms`
    /// (milliseconds since 1970) are the values that [`Store::read_point_of_snapshot`] returned there.
    ///
    /// # Errors
    /// `Retry` when some of the versions that it saw are gone, or were never in the log, or when a job that runs may drop tombstones that
    /// are newer; else as [`Store::open_snapshot_as`].
    pub fn restore_snapshot(&mut self, name: Name, sequence: Sequence, now_ms: u64) -> Result<()> {
        self.check_open()?;
        if now_ms == 0 || sequence > self.recovered {
            return Err(Error::Retry);
        }
        self.keep_read_point(name, sequence, now_ms)
    }

    /// Keeps the store as it was at an earlier sequence, with the current time, as a snapshot.
    ///
    /// # Errors
    /// As [`Store::restore_snapshot`].
    pub(crate) fn open_snapshot_at(&mut self, name: Name, sequence: Sequence) -> Result<()> {
        self.check_open()?;
        self.keep_read_point(name, sequence, self.clock.now_ms)
    }

    /// Keeps an earlier read point as a snapshot: every version that it saw must still be there, and so must the tombstones since, after
    /// the jobs that run now.
    fn keep_read_point(&mut self, name: Name, sequence: Sequence, now_ms: u64) -> Result<()> {
        let is_lost = sequence < self.version.floors.gc_sequence && !mutant::has(Mutant::LostVersionsIgnored);
        if is_lost || self.jobs.may_forget(sequence) && !mutant::has(Mutant::RunningJobsIgnored) {
            return Err(Error::Retry);
        }
        let snapshot = Cursor::new(self.view.clone(), sequence, now_ms, ScanOptions::default());
        self.snapshots.keep(name, snapshot)
    }

    /// The sequence that a snapshot sees.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such snapshot.
    pub fn snapshot_sequence(&self, name: impl Into<Name>) -> Result<Sequence> {
        Ok(self.read_point_of_snapshot(name)?.0)
    }

    /// The read point of a snapshot: its sequence, and the time in milliseconds since 1970 that decides which entries
    /// have expired.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such snapshot.
    pub fn read_point_of_snapshot(&self, name: impl Into<Name>) -> Result<(Sequence, u64)> {
        let snapshot = self.snapshots.get(name.into())?;
        Ok((snapshot.snapshot(), snapshot.now_ms))
    }

    /// Closes a snapshot; its files may then be deleted. Its number may be used for another snapshot.
    pub fn close_snapshot(&mut self, name: impl Into<Name>) {
        self.snapshots.close(name.into());
        // Some tombstones that had to stay may be dropped now.
        self.jobs.look_again();
    }

    /// The sequence of the oldest snapshot. A job that starts now has no newer inputs than a snapshot that is opened later, and one that is
    /// opened again must not be older than the tombstones that the job may drop.
    pub(super) fn oldest_snapshot(&self) -> Sequence {
        if mutant::has(Mutant::TombstonesForgotten) {
            return SEQUENCE_MAX;
        }
        let readable = self.snapshots.all().filter(|snapshot| !snapshot.is_finished());
        readable.map(Cursor::snapshot).min().unwrap_or(SEQUENCE_MAX)
    }

    /// Takes over the snapshots and numbered scans of the store that was open here before this one. That store has ended:
    /// its storage went back to the state that it had kept, and this store was opened on that state.
    ///
    /// The ones that saw the last tables and memtables of that store go on: writes that were refused since then at most added to those. For
    /// the others, a merge, or a flush by this opening, may have dropped versions. They are lost, and nobody else gets their numbers while
    /// their owners may still use them.
    pub fn adopt(&mut self, former: &mut Self) {
        let (last, view, seen) = (self.last_sequence, self.view.clone(), former.view.clone());
        let (dropped, known) = (self.version.floors.gc_sequence, former.version.floors.gc_sequence);
        let moved = |cursor: &mut Cursor| {
            cursor.is_of(&seen) && cursor.snapshot() <= last && dropped <= known.max(cursor.snapshot()) && {
                cursor.move_to(view.clone());
                true
            }
        };
        self.snapshots.adopt(&mut former.snapshots, moved);
        self.cursors.adopt(&mut former.cursors, moved);
        self.clients.adopt(&former.clients);
        // Readers have seen that store's time, of which the manifest may know nothing: what had expired for them must not come back.
        let clock = former.clock.at(self.clock.to_host(self.clock.now_ms));
        self.clock = Clock { now_ms: clock.now_ms.max(self.clock.now_ms), ..clock };
    }

    /// Releases everything that is kept for a client that is gone: its open scans and snapshots, and the outcomes of its writes.
    pub fn remove_client(&mut self, client: u64) {
        self.release_client(client);
        self.clients.remove(client);
    }

    /// Closes the scans and snapshots of a client that seems to be gone. If it comes back, it can still ask for the outcomes of its writes.
    pub fn release_client(&mut self, client: u64) {
        self.cursors.release_client(client);
        self.snapshots.0.retain(|(name, _)| name.client != client);
        self.jobs.look_again();
    }

    /// Undoes the sequences after `last` in client outcomes, open scans and snapshots: other writes will get these
    /// numbers.
    pub(super) fn undo_refused(&mut self, last: Sequence) {
        self.clients.roll_back(last);
        self.cursors.see_at_most(last);
        self.snapshots.0.iter_mut().for_each(|(_, snapshot)| snapshot.see_at_most(last));
    }
}
