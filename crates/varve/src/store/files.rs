//! Files that are no longer needed, and when they may be deleted.
//!
//! Invariant: a file is deleted only after the edit that follows the one that dropped it (if a torn tail cuts off the
//! dropping edit, its inputs are still there), and only when no view and no job reads it.

use std::rc::{Rc, Weak};

use super::Store;
#[cfg(unix)]
use super::reader::ReadPoint;
use crate::compact::{IDLE_SHARE, entry_bytes};
use crate::error::{Error, Result};
use crate::manifest::Edit;
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::types::{FileKind, FileName};
use crate::view::{TableHandle, View};

/// Files waiting to be deleted, and the views that may still read them.
#[derive(Debug, Default)]
pub(super) struct Obsolete {
    files: Vec<(FileName, u64)>,
    /// Edits committed in this session.
    edits: u64,
    /// Their number when files were last cut because of a lack of room.
    cut_at: Option<u64>,
    views: Vec<Weak<View>>,
    /// The tables that readers in other threads read, as views without memtables.
    #[cfg(unix)]
    pins: Vec<(std::sync::Weak<ReadPoint>, Rc<View>)>,
}

impl Obsolete {
    pub(super) fn drop_file(&mut self, file: FileName) {
        self.files.push((file, self.edits));
    }

    /// As [`Obsolete::drop_file`], for a file that an earlier edit made unnecessary.
    pub(super) fn drop_file_of(&mut self, file: FileName, edit: u64) {
        self.files.push((file, edit));
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Keeps the tables of a view as long as readers have the read point.
    #[cfg(unix)]
    pub(super) fn pin(&mut self, read_point: &std::sync::Arc<ReadPoint>, view: &View) {
        let pin = Rc::new(View { memtables: Vec::new(), levels: view.levels.clone() });
        self.views.retain(|view| view.strong_count() > 0);
        self.views.push(Rc::downgrade(&pin));
        self.pins.push((std::sync::Arc::downgrade(read_point), pin));
    }

    /// Ends all reads of readers.
    #[cfg(unix)]
    pub(super) fn end_readers(&self) {
        self.pins
            .iter()
            .filter_map(|(read_point, _)| read_point.upgrade())
            .for_each(|read_point| read_point.end());
    }

    /// Releases the tables that no reader has any more; returns whether there were any.
    #[cfg(unix)]
    fn unpin(&mut self) -> bool {
        let pins = self.pins.len();
        self.pins.retain(|(read_point, _)| read_point.strong_count() > 0);
        self.pins.len() < pins
    }

    /// Replaced views that a scan or a snapshot may still read.
    pub(super) fn views(&self) -> &[Weak<View>] {
        &self.views
    }

    /// Edits committed in this session.
    pub(super) fn edits(&self) -> u64 {
        self.edits
    }

    /// Whether an edit was committed since this was asked last.
    fn is_cut_due(&mut self) -> bool {
        self.cut_at.replace(self.edits) != Some(self.edits)
    }
}

impl<S: Storage> Store<S> {
    /// Builds the view of the current memtables and tables; handles of unchanged tables are kept open.
    pub(super) fn refresh_view(&mut self) {
        let known: Vec<_> = self.view.levels.iter().flat_map(|level| level.iter().cloned()).collect();
        let levels = (0..self.version.levels())
            .filter(|&level| level == 0 || !self.version.level(level).is_empty())
            .map(|level| {
                let is_lowest = level > 0 && level + 1 == self.version.levels();
                let handles = self.version.level(level).iter().map(|meta| {
                    let open = known.iter().find(|handle| handle.meta.id == meta.id);
                    match open {
                        Some(handle) if handle.is_same(meta, is_lowest) => handle.clone(),
                        Some(handle) => Rc::new(handle.moved(meta.clone(), is_lowest)),
                        None => Rc::new(TableHandle::new(meta.clone(), is_lowest)),
                    }
                });
                handles.collect::<Rc<[_]>>()
            })
            .collect();
        let frozen = self.frozen.iter().rev().map(|frozen| frozen.memtable.clone());
        let memtables = std::iter::once(self.active.clone()).chain(frozen).collect();
        let view = Rc::new(View { memtables, levels });
        let old = std::mem::replace(&mut self.view, view);
        self.obsolete.views.push(Rc::downgrade(&old));
        drop(old);
        self.fit_memory();
        self.weigh_level_zero();
    }

    /// Commits an edit and switches to the version after it.
    pub(super) fn commit_edit(&mut self, mut edit: Edit) -> Result<()> {
        edit.floors.next_table = self.fresh.next_table;
        edit.floors.next_segment = self.fresh.next_segment;
        if !mutant::has(Mutant::ClockNotKept) {
            edit.floors.clock_ms = self.clock.now_ms;
            edit.floors.ahead_ms = self.clock.ahead_ms;
        }
        edit.floors.history_floor = edit.floors.history_floor.max(self.history_floor(edit.floors.log_floor));
        edit.clients = self.clients.states(edit.floors.last_sequence);
        let after = self.version.apply(&edit)?;
        if let Err(error) = self.manifest.commit(&mut self.storage, &after, &edit) {
            return Err(self.poison_unless_lack(error));
        }
        self.version = after;
        self.obsolete.edits += 1;
        for table in &edit.removed {
            // A table that moved, or was narrowed, is removed and added again: its file stays.
            if self.version.table(*table).is_none() {
                self.obsolete.drop_file(FileName::table(*table));
            }
        }
        let log_floor = self.version.floors.log_floor;
        self.release_segments();
        // Its records are in synced tables now: nothing is left to flush.
        self.log.unsynced_previous.take_if(|previous| previous.id <= log_floor);
        self.refresh_view();
        // The edit stays valid even if the files that it dropped cannot be deleted.
        self.delete_obsolete().map_err(|error| self.poison(error))
    }

    /// Whether a scan or a snapshot reads a table: then its file stays even after it is replaced.
    pub(super) fn is_pinned(&self, id: u64) -> bool {
        let is_shared = Rc::strong_count(&self.view) > 1;
        let former = || self.obsolete.views.iter().filter_map(Weak::upgrade);
        is_shared && self.view.has_table(id) || former().any(|view| view.has_table(id))
    }

    /// Releases the tables that no reader in another thread has any more.
    #[cfg(unix)]
    pub(super) fn unpin(&mut self) {
        if self.obsolete.unpin() {
            // A table that had to stay may be merged now.
            self.jobs.look_again();
        }
    }

    /// Deletes the files that may be deleted now.
    pub(super) fn delete_obsolete(&mut self) -> Result<()> {
        #[cfg(unix)]
        self.unpin();
        self.obsolete.views.retain(|view| view.strong_count() > 0);
        let (edits, views) = (self.obsolete.edits, self.obsolete.views.clone());
        let is_input = |id| self.jobs.read(id);
        let is_read = |file: &FileName| {
            file.kind == FileKind::Table
                && (is_input(file.id)
                    || views.iter().filter_map(Weak::upgrade).any(|view| view.has_table(file.id)))
        };
        let (go, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.obsolete.files)
            .into_iter()
            .partition(|(file, dropped_at)| *dropped_at < edits && !is_read(file));
        self.obsolete.files = stay;
        for (file, _) in go {
            if file.kind == FileKind::Table {
                self.cache.borrow_mut().remove_file(file);
            }
            self.storage.delete(file)?;
        }
        Ok(())
    }

    /// Commits an empty edit when files only wait for one, to free their space. For idle times.
    ///
    /// # Errors
    /// The error of the manifest's storage.
    pub fn release(&mut self) -> Result<()> {
        self.check_writable()?;
        let mut floors = self.version.floors;
        if self.wipes && self.frozen.is_empty() {
            // No flush drops segments that have nothing to flush, and their last page may show what was there before.
            let active = self.active.borrow().header().segment;
            floors.log_floor =
                self.segments.iter().rfind(|segment| **segment < active).copied().unwrap_or(floors.log_floor);
        }
        let waits = self.obsolete.files.iter().any(|(_, dropped_at)| *dropped_at == self.obsolete.edits);
        if waits || floors.log_floor > self.version.floors.log_floor {
            return self.commit_edit(Edit { floors, ..Edit::default() });
        }
        self.delete_obsolete()
    }

    /// Frees room that the store does not use: after the ends of its files, and in spare files. For longer idle times:
    /// growing a file again costs more than writing into one.
    ///
    /// # Errors
    /// `Io` when the storage cannot cut a file.
    pub fn shrink(&mut self, keep_bytes: u64) -> Result<()> {
        self.release()?;
        self.trim_tables();
        for (segment, bytes) in self.history.lengths() {
            self.storage.trim(FileName::wal(segment), bytes);
        }
        // The rest of a segment in the reserve is the room for the next deletes.
        if self.log.created && !self.log.in_reserve {
            let (segment, staged) = {
                let active = self.active.borrow();
                (FileName::wal(active.header().segment), active.image().len())
            };
            // Staged records keep the room that was made for them.
            let end = self.log.written.max(staged.min(self.log.sure));
            self.log.sure = self.log.sure.min(end);
            self.storage.trim(segment, end as u64);
        }
        self.storage.shrink(keep_bytes)
    }

    /// Notes that there are no writes for a while; the next memtable ends that state. While the store is idle, levels are merged sooner, so
    /// that fewer overwritten and deleted entries are kept. A memtable that is a quarter full is frozen, so that its part of the log is given
    /// back, or one with so many entries that what they replace may be a 16th of the store; not so where the storage is full.
    ///
    /// # Errors
    /// The error of the commit of staged writes.
    pub fn begin_idle(&mut self) -> Result<()> {
        let (bytes, entries) = (self.active.borrow().bytes(), self.active.borrow().entries() as u64);
        let replaced_bytes = entries.saturating_mul(entry_bytes(&self.version));
        let is_long = |bytes: u64| bytes > self.memtable_bytes as u64 / 4;
        let is_due = is_long(bytes as u64)
            || (is_long(replaced_bytes) && replaced_bytes > self.version.bytes() / IDLE_SHARE);
        if is_due && self.storage.room_when_full().is_none() {
            self.freeze_active()?;
        }
        self.jobs.begin_idle();
        Ok(())
    }

    /// Releases the room that tables were expected to need but do not use. The slot headers still include it until they
    /// are written again.
    pub(super) fn trim_tables(&mut self) {
        for (file, size) in self.version.files() {
            self.storage.trim(file, size);
        }
    }

    /// On a full storage, cuts all files after their contents, so that others may become longer. Returns whether it did: it does so only if
    /// an edit was committed since the last time.
    pub(super) fn cut_for_room(&mut self) -> Result<bool> {
        self.release()?;
        let is_due = self.obsolete.is_cut_due();
        if is_due {
            self.shrink(0)?;
        }
        Ok(is_due)
    }

    /// Frees what is not needed: history, and files that only wait for an edit. Returns whether there was any.
    pub(super) fn make_way(&mut self) -> Result<bool> {
        let is_freed = self.drop_history()? || self.obsolete.len() > 0;
        match self.release() {
            Err(Error::StorageFull) => {}
            released => released?,
        }
        Ok(is_freed)
    }

    /// Runs `attempt`. If there is no room for it, frees what is not needed, then flushes the memtables that wait, then cuts files, and
    /// tries again after each step.
    pub(super) fn making_way(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        for make_way in [Self::make_way, Self::flush_for_room, Self::cut_for_room] {
            match attempt(self) {
                Err(Error::StorageFull) => {}
                done => return done,
            }
            make_way(self)?;
        }
        attempt(self)
    }

    /// Creates a file; if there is no room, frees some and tries again.
    pub(super) fn create_file(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        let mut created = self.storage.create(file, bytes_hint);
        if matches!(created, Err(Error::StorageFull)) && self.make_way()? {
            created = self.storage.create(file, bytes_hint);
        }
        created
    }
}
