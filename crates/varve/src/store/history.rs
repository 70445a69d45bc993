//! The history: WAL segments that were flushed and are kept for the change feed.
//!
//! ```text
//! ... gone | history_floor | kept | kept | log_floor | frozen | frozen | active
//!                            only `changes` reads them    replayed at recovery
//! ```
//!
//! Invariants:
//! - A kept segment may be deleted at any time, and may be missing or damaged: only the change feed reads it, and it verifies what it reads
//!   as recovery would. So history costs a store only room, and that room is freed before any write is refused.
//! - Kept segments follow one another in the order of history. The records of an older one must end where the next one begins; otherwise
//!   the older one is ignored (see `changes`).

use super::Store;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::storage::Storage;
use crate::types::{FileKind, FileName, Sequence};
use crate::wal::{SEGMENT_HEADER_BYTES, SegmentHeader};

/// Without an option, history takes one part in this many of the bytes of the tables.
const TABLES_PER_HISTORY: u64 = 32;
/// And at most this many bytes.
const HISTORY_BYTES_MAX: u64 = 8 << 20;
/// Of the files that the storage can keep open, history has one in this many.
const FILES_PER_HISTORY_FILE: u64 = 16;
/// Of the room that is known to be free, history takes one part in this many.
const FREE_PER_HISTORY: u64 = 8;
/// How many places of readers are remembered.
const PLACES_MAX: usize = 8;

/// The known contents of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) header: SegmentHeader,
    /// Where its last record ends.
    pub(super) end: usize,
    pub(super) first: Sequence,
    pub(super) last: Sequence,
}

/// A flushed segment.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: u64,
    /// Readable bytes of its file; used while its span is not known.
    pub(super) file_bytes: u64,
    /// The edit of this session that flushed it; 0 if an earlier session did. Only after the next edit is it certain that recovery does not
    /// need the segment.
    pub(super) flushed_at: u64,
    /// Known from the memtable, or once the segment was read.
    pub(super) span: Option<Span>,
}

/// A place after a record, where a reader goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) sequence: Sequence,
    pub(super) segment: u64,
    pub(super) offset: usize,
}

/// The kept segments, and the places of their readers.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first.
    pub(super) kept: Vec<Kept>,
    /// A caller has asked for changes in this session.
    pub(super) is_read: bool,
    places: Vec<Place>,
}

impl History {
    /// The segments that recovery found between the floors.
    pub(super) fn found(files: &[(FileName, u64)], history_floor: u64, log_floor: u64) -> Self {
        let is_kept =
            |file: &FileName| file.kind == FileKind::Wal && file.id > history_floor && file.id <= log_floor;
        let found = files.iter().filter(|(file, _)| is_kept(file));
        let mut kept: Vec<_> = found
            .map(|&(file, file_bytes)| Kept { id: file.id, file_bytes, flushed_at: 0, span: None })
            .collect();
        // Inserted by hand: a sort is 10 KB of wasm.
        for at in 1..kept.len() {
            let mut to = at;
            while to > 0 && kept[to - 1].id > kept[to].id {
                kept.swap(to - 1, to);
                to -= 1;
            }
        }
        Self { kept, ..Self::default() }
    }

    /// Adds the segment of a memtable that the edit in progress flushes.
    pub(super) fn add(&mut self, memtable: &Memtable) {
        let header = memtable.header();
        let (first, last) = (memtable.min_sequence(), memtable.max_sequence());
        let span = Span { header: *header, end: memtable.image().len(), first, last };
        self.kept.push(Kept { id: header.segment, file_bytes: 0, flushed_at: 0, span: Some(span) });
    }

    /// Removes a segment again that the edit in progress would have flushed, because that edit failed.
    pub(super) fn take_back(&mut self, segment: u64) {
        self.kept.pop_if(|kept| kept.id == segment);
    }

    pub(super) fn contains(&self, segment: u64) -> bool {
        self.kept.iter().any(|kept| kept.id == segment)
    }

    /// The kept segments whose length is known, with their lengths.
    pub(super) fn lengths(&self) -> Vec<(u64, u64)> {
        let known = self.kept.iter().filter_map(|kept| Some((kept.id, kept.span?.end as u64)));
        known.collect()
    }

    /// Where a reader that has seen everything up to `sequence` may go on.
    pub(super) fn place(&self, sequence: Sequence) -> Option<Place> {
        self.places.iter().find(|place| place.sequence == sequence).copied()
    }

    pub(super) fn remember(&mut self, place: Place) {
        self.places.retain(|other| other.sequence != place.sequence);
        if self.places.len() >= PLACES_MAX {
            self.places.remove(0);
        }
        self.places.push(place);
    }
}

impl<S: Storage> Store<S> {
    /// How many bytes kept segments may take.
    fn history_bytes_max(&self) -> u64 {
        let bytes = match self.options.history_bytes {
            Some(bytes) => bytes,
            None => (self.version.bytes() / TABLES_PER_HISTORY).min(HISTORY_BYTES_MAX),
        };
        self.storage.free_bytes().map_or(bytes, |free| bytes.min(free / FREE_PER_HISTORY))
    }

    /// The segment up to which history is no longer kept, once the segments up to `log_floor` are flushed.
    pub(super) fn history_floor(&self, log_floor: u64) -> u64 {
        let bytes_max = self.history_bytes_max();
        let files_max = (self.options.files_max / FILES_PER_HISTORY_FILE).max(1) as usize;
        // Readers that will soon read history find at least the segment that was flushed last.
        let one_stays = self.options.history_bytes.is_none() && self.history.is_read;
        let (mut floor, mut bytes) = (log_floor, 0);
        for (at, kept) in self.history.kept.iter().enumerate().rev().take(files_max) {
            bytes += self.kept_bytes(at);
            let is_newest = at + 1 == self.history.kept.len();
            if bytes > bytes_max && !(is_newest && one_stays) {
                break;
            }
            floor = kept.id - 1;
        }
        floor
    }

    /// Bytes of a kept segment. For a file that was not read yet, the header of the next segment gives them. If that header cannot be read
    /// now, the length of the file does: it is never too short, and an edit need not wait for a better one.
    fn kept_bytes(&self, at: usize) -> u64 {
        let kept = &self.history.kept[at];
        if let Some(span) = kept.span {
            return span.end as u64;
        }
        let named = |header: &SegmentHeader| (header.previous == kept.id).then_some(header.previous_end);
        let Some(next) = self.history.kept.get(at + 1).map(|next| next.id) else {
            let memtable = self.frozen.front().map_or(&self.active, |frozen| &frozen.memtable);
            return named(memtable.borrow().header()).unwrap_or(kept.file_bytes);
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        if self.storage.read(FileName::wal(next), 0, &mut bytes).is_ok()
            && let Ok(header) = SegmentHeader::decode(&bytes)
            && header.segment == next
        {
            return named(&header).unwrap_or(kept.file_bytes);
        }
        kept.file_bytes
    }

    /// After an edit: releases the segments at or below the floors.
    pub(super) fn release_segments(&mut self) {
        let floors = self.version.floors;
        let edits = self.obsolete.edits();
        for segment in self.segments.extract_if(.., |segment| *segment <= floors.log_floor) {
            match self.history.kept.iter_mut().find(|kept| kept.id == segment) {
                Some(kept) => kept.flushed_at = edits,
                None => self.obsolete.drop_file(FileName::wal(segment)),
            }
        }
        self.remove_history(floors.history_floor.max(self.old_history()));
    }

    /// Drops history when it takes too much of the room that is left.
    pub(super) fn fit_history(&mut self) -> Result<()> {
        let Some(free) = self.storage.free_bytes().filter(|_| !self.history.kept.is_empty()) else {
            return Ok(());
        };
        let bytes: u64 = (0..self.history.kept.len()).map(|at| self.kept_bytes(at)).sum();
        if bytes > free / FREE_PER_HISTORY * 2 {
            self.drop_history()?;
        }
        Ok(())
    }

    /// Drops the history to free room; returns whether there was any. Readers that are behind get the result that
    /// history was cut.
    ///
    /// # Errors
    /// The error of the storage when it deletes a file.
    pub fn drop_history(&mut self) -> Result<bool> {
        let kept = std::mem::take(&mut self.history.kept);
        let (had_some, mut waits) = (!kept.is_empty(), false);
        for kept in kept {
            let file = FileName::wal(kept.id);
            if kept.flushed_at < self.obsolete.edits() {
                self.storage.delete(file)?;
            } else {
                // If the manifest loses its last edit, recovery needs the segment again.
                self.obsolete.drop_file_of(file, kept.flushed_at);
                waits = true;
            }
        }
        if waits {
            match self.release() {
                Err(Error::StorageFull) => {}
                released => released?,
            }
        }
        Ok(had_some)
    }
}
