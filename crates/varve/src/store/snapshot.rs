//! Snapshots: the store as it was at one moment, for reads by number.
//!
//! A snapshot is a scan that is never advanced: a view, a sequence, a time. Its view keeps the memtables and the files of
//! the tables that it reads, so merges need not keep old versions for it; what it costs is that room. But they keep
//! tombstones that are newer than the oldest snapshot, so that a transaction that read it can be told of every write since.
//!
//! Invariant: a snapshot sees what was staged when it was taken, and of that nothing that was refused later.

use super::Store;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::scan::{Cursor, ScanOptions};
use crate::storage::Storage;
use crate::types::{SEQUENCE_MAX, Sequence};

/// Snapshots open at once, at most: frames give their numbers 16 bits.
const SNAPSHOTS_MAX: usize = u16::MAX as usize;

impl<S: Storage> Store<S> {
    /// Takes a snapshot; answers its number, above 0. To be closed by [`Store::close_snapshot`].
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` when 65,535 are open.
    pub fn open_snapshot(&mut self) -> Result<u32> {
        let taken = self.scan(ScanOptions::default())?;
        let at = self.snapshots.iter().position(Option::is_none).unwrap_or(self.snapshots.len());
        if at == SNAPSHOTS_MAX {
            return Err(Error::InvalidArgument("65,535 snapshots are open. Close some."));
        }
        if at == self.snapshots.len() {
            self.snapshots.push(None);
        }
        self.snapshots[at] = Some(taken);
        Ok(at as u32 + 1)
    }

    /// The sequence that a snapshot sees.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such snapshot.
    pub fn snapshot_sequence(&self, number: u32) -> Result<Sequence> {
        Ok(self.snapshot(number)?.snapshot())
    }

    /// Lets a snapshot go; its files may then go. Its number may be given to another one.
    pub fn close_snapshot(&mut self, number: u32) {
        if let Some(taken) = self.snapshots.get_mut((number as usize).wrapping_sub(1)) {
            *taken = None;
        }
        // Tombstones may go now that had to stay.
        self.settled_at = None;
    }

    /// The sequence of the oldest snapshot. A job that starts now has no newer inputs than a snapshot that is taken later.
    pub(super) fn oldest_snapshot(&self) -> Sequence {
        if mutant::has(Mutant::TombstonesForgotten) {
            return SEQUENCE_MAX;
        }
        let held = self.snapshots.iter().flatten().filter(|taken| !taken.is_finished());
        held.map(Cursor::snapshot).min().unwrap_or(SEQUENCE_MAX)
    }

    pub(super) fn snapshot(&self, number: u32) -> Result<&Cursor> {
        match self.snapshots.get((number as usize).wrapping_sub(1)) {
            Some(Some(taken)) if !taken.is_finished() => Ok(taken),
            _ => Err(Error::InvalidArgument("This snapshot is closed or unknown. Take a new one.")),
        }
    }

    /// Takes the snapshots and numbered scans of the store that was open here before this one, which is over: its storage
    /// went back to what it had kept, and this one was opened on that.
    ///
    /// Those that saw the tables and memtables as they were in the end go on: what was refused since added to them at most. Of
    /// the others a merge may have taken versions. They are lost, and their numbers are given to nobody else while their
    /// owners may still name them.
    pub fn adopt(&mut self, former: &mut Self) {
        let (last, view, seen) = (self.last_sequence, self.view.clone(), former.view.clone());
        let moved = |cursor: &mut Cursor| {
            cursor.is_of(&seen) && cursor.snapshot() <= last && {
                cursor.move_to(view.clone());
                true
            }
        };
        self.snapshots = core::mem::take(&mut former.snapshots);
        for taken in self.snapshots.iter_mut().flatten() {
            if !moved(taken) {
                taken.lose(view.clone());
            }
        }
        self.cursors = core::mem::take(&mut former.cursors);
        self.cursors.retain_mut(|scan| moved(&mut scan.cursor));
        self.next_cursor = former.next_cursor;
    }

    /// The sequences after `last` never happened: their numbers will be given to other writes.
    pub(super) fn forget_refused(&mut self, last: Sequence) {
        let held = self.cursors.iter_mut().map(|scan| &mut scan.cursor);
        held.chain(self.snapshots.iter_mut().flatten()).for_each(|cursor| cursor.see_at_most(last));
    }
}
