//! The change feed: the changes committed after a sequence, read from the log.
//!
//! ```text
//! kept | kept | frozen | frozen | active          all of them records, in the order of their sequences
//!    ^ since  ..................^ through          one answer; the next one begins where it ended
//! ```
//!
//! A call remembers only where it ended, so a reader that never comes back costs nothing. A reader that comes back late gets the result
//! that history was cut.
//!
//! Invariants:
//! - Successive results, each asked with `since` at the last one's `through`, are the committed history: every record once,
//!   whole, in order. A record counts only directly after the record with the sequence before it. Where a record is missing,
//!   history begins anew.
//! - A result whose `through` is `since` means that there is nothing more to report: the reader can only wait.
//! - A reported change is in the log, if the store has one: it is there after the death of the process, as the reader
//!   is.

use super::history::{Place, Span};
use super::{Frozen, Store};
use crate::codec::bytes::compare;
use crate::codec::frame::{Frame, record_from};
use crate::codec::room;
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::types::{FileName, Kind, Sequence};
use crate::view::SharedMemtable;
use crate::wal::{
    Entry, Record, Records, SEGMENT_HEADER_BYTES, SegmentHeader, decrypt_segment, decrypt_span,
};

/// Bytes of records that one call examines, approximately, once it is past `since`.
const LOOKED_BYTES_MAX: usize = 1 << 20;
/// Bytes of a kept segment that are read at once, unless a record is longer.
const WINDOW_BYTES: usize = 256 << 10;
/// Bytes that a change counts in addition to its key and value.
const CHANGE_BYTES: usize = 32;
/// Keys that begin with this byte are the store's own.
const RESERVED: u8 = 0xff;

/// Which changes a caller wants.
#[derive(Debug, Clone, Copy)]
pub struct ChangesWanted<'a> {
    /// The changes after this sequence; `u64::MAX` asks only for the last sequence.
    pub since: Sequence,
    /// Target size of the result in bytes: no new record is started once it is reached.
    pub bytes_max: usize,
    /// First key of the range to report.
    pub start: &'a [u8],
    /// First key after that range.
    pub end: &'a [u8],
}

/// The result of a call for changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesFound {
    /// Everything up to this sequence was examined. It is lower than `since` when the store has no sequence that high: a
    /// crash lost writes that the reader has seen.
    pub through: Sequence,
    /// History begins after this sequence, as far as is known. When it is above `since`, nothing was reported, because
    /// history was cut.
    pub floor: Sequence,
}

/// Receives a change: its sequence and its entry.
pub(crate) type Report<'a> = &'a mut dyn FnMut(Sequence, &Entry<'_>);

/// Why a walk over records ended.
enum Stop {
    /// The result is large enough.
    Full,
    /// There is no further record in these bytes.
    Bytes,
    /// A record does not follow the last one: the records before it are missing, up to this sequence.
    Gap(Sequence),
}

/// Where records are read from.
enum Source {
    Memory(SharedMemtable, usize),
    File(Span),
}

/// A call in progress.
struct Walk<'a> {
    wanted: &'a ChangesWanted<'a>,
    through: Sequence,
    reported_bytes: usize,
    looked_bytes: usize,
    segment: u64,
    offset: usize,
}

impl ChangesWanted<'_> {
    fn contains(&self, entry: &Entry<'_>) -> bool {
        let is_before = |key: &[u8], end: &[u8]| compare(key, end).is_lt();
        let is_reported = entry.key.first() != Some(&RESERVED) && is_before(self.start, self.end);
        if !is_reported || !is_before(entry.key, self.end) {
            return false;
        }
        if entry.kind == Kind::RangeDelete {
            return is_before(self.start, entry.value) && is_before(entry.key, entry.value);
        }
        !is_before(entry.key, self.start)
    }
}

impl Walk<'_> {
    fn is_full(&self) -> bool {
        let has_enough = self.reported_bytes > 0 && self.reported_bytes >= self.wanted.bytes_max;
        // A reader that gets nothing new waits for the next write, so an empty result is allowed only at the end.
        has_enough || self.through > self.wanted.since && self.looked_bytes >= LOOKED_BYTES_MAX
    }

    /// Reports the records in `bytes`, which are a segment's bytes from `base` on, after the place that was reached.
    fn over(&mut self, bytes: &[u8], base: usize, salt: u64, report: Report<'_>) -> Stop {
        while !self.is_full() {
            let rest = bytes.get(self.offset - base..).unwrap_or_default();
            let Some(found) = record_from(rest, self.offset, salt) else { return Stop::Bytes };
            let here = Frame { offset: found.offset - base, end: found.end - base, ..found };
            let Ok(record) = Record::decode(bytes, &here) else { return Stop::Bytes };
            if let Some(record) =
                record.filter(|record| record.first_sequence + record.count > self.through + 1)
            {
                if record.first_sequence > self.through + 1 {
                    return Stop::Gap(record.first_sequence - 1);
                }
                if record.entries.clone().any(|entry| entry.is_err()) {
                    return Stop::Bytes;
                }
                for (sequence, entry) in (record.first_sequence..).zip(record.entries.flatten()) {
                    if sequence > self.through && self.wanted.contains(&entry) {
                        report(sequence, &entry);
                        self.reported_bytes += CHANGE_BYTES + entry.key.len() + entry.value.len();
                    }
                }
                self.through = record.first_sequence + record.count - 1;
            }
            self.looked_bytes += found.end - found.offset;
            self.offset = found.end;
        }
        Stop::Full
    }
}

impl<S: Storage> Store<S> {
    /// Reports the committed changes after a sequence, in order, each with its sequence. The changes of one batch are
    /// reported together. Keys that begin with `ff` are left out. A deleted range is reported if it overlaps the wanted one.
    ///
    /// # Errors
    /// `Closed`; `Pending` when bytes are missing; `Io` when a read failed. In both cases, ignore the changes that were
    /// reported; they come again with the next call. Damaged history is treated as history that was cut; it is not an error.
    ///
    /// # Example
    /// ```
    /// use varve::{Durability, Host, Options, Store, storage::{MemorySlots, SlotPool}, store::ChangesWanted};
    /// let storage = SlotPool::open(MemorySlots::new(8))?;
    /// let host = Host { now_ms: 0, entropy: 7, store_id: [1; 16] };
    /// let (mut store, _) = Store::open(storage, Options::default(), host)?;
    /// store.set(b"silt", b"fine")?;
    /// store.delete(b"sand")?;
    /// store.commit(Durability::Relaxed)?;
    /// let mut keys = Vec::new();
    /// let wanted = ChangesWanted { since: 0, bytes_max: 1 << 16, start: b"", end: b"\xff" };
    /// let found = store.changes(&wanted, &mut |sequence, entry| keys.push((sequence, entry.key.to_vec())))?;
    /// assert_eq!(keys, [(1, b"silt".to_vec()), (2, b"sand".to_vec())]);
    /// assert_eq!((found.through, found.floor), (2, 0));
    /// # Ok::<(), varve::Error>(())
    /// ```
    pub fn changes(&mut self, wanted: &ChangesWanted<'_>, report: Report<'_>) -> Result<ChangesFound> {
        self.check_open()?;
        self.history.is_read = true;
        self.log_for_readers()?;
        if wanted.since >= self.acknowledged {
            self.remember_end();
            return Ok(ChangesFound { through: self.acknowledged, floor: self.known_floor() });
        }
        let remembered =
            self.history.place(wanted.since).filter(|place| self.source(place.segment).is_some());
        if let Some(place) = remembered {
            let mut walk = Walk::at(wanted, place.segment, place.offset);
            self.walk(&mut walk, report)?;
            if walk.through > wanted.since {
                return Ok(self.ended(&walk));
            }
        }
        let Some(segment) = self.segment_after(wanted.since)? else {
            return Ok(ChangesFound { through: wanted.since, floor: self.known_floor() });
        };
        let mut walk = Walk::at(wanted, segment, SEGMENT_HEADER_BYTES);
        let cut = self.walk(&mut walk, report)?.filter(|_| walk.through == wanted.since);
        let found = self.ended(&walk);
        Ok(ChangesFound { floor: cut.unwrap_or(found.floor), ..found })
    }

    /// A reader that waits at the end goes on there.
    fn remember_end(&mut self) {
        let segment = self.active.borrow().header().segment;
        let place = Place { sequence: self.acknowledged, segment, offset: self.active_end() };
        self.history.remember(place);
    }

    fn ended(&mut self, walk: &Walk<'_>) -> ChangesFound {
        let Walk { through: sequence, segment, offset, .. } = *walk;
        self.history.remember(Place { sequence, segment, offset });
        ChangesFound { through: sequence, floor: self.known_floor().min(walk.wanted.since) }
    }

    /// Logs the writes that were promised at the memory level, so that they may be reported. If there is no room, they
    /// are reported later.
    fn log_for_readers(&mut self) -> Result<()> {
        let is_promised = self.active.borrow().image().len() == self.log.acknowledged_end;
        if self.poisoned || !is_promised {
            return Ok(());
        }
        match self.log_staged(false) {
            Err(Error::StorageFull) => Ok(()),
            result => result,
        }
    }

    /// Reports records until the result is large enough or there are no more. If history is missing, returns the
    /// sequence up to which it is.
    fn walk(&mut self, walk: &mut Walk<'_>, report: Report<'_>) -> Result<Option<Sequence>> {
        loop {
            let stop = match self.source(walk.segment) {
                None => Stop::Bytes,
                Some(Source::Memory(memtable, end)) => {
                    let memtable = memtable.borrow();
                    walk.over(&memtable.image()[..end.max(walk.offset)], 0, memtable.header().salt, report)
                }
                Some(Source::File(span)) => match self.walk_file(walk, &span, report)? {
                    Stop::Bytes if walk.offset < span.end => {
                        self.remove_history(walk.segment);
                        return Ok(Some(span.last));
                    }
                    stop => stop,
                },
            };
            match stop {
                Stop::Full => return Ok(None),
                Stop::Gap(floor) => return Ok(Some(floor)),
                Stop::Bytes => {
                    let Some(next) = self.segment_behind(walk.segment) else { return Ok(None) };
                    (walk.segment, walk.offset) = (next, SEGMENT_HEADER_BYTES);
                }
            }
        }
    }

    fn walk_file(&self, walk: &mut Walk<'_>, span: &Span, report: Report<'_>) -> Result<Stop> {
        let mut bytes_max = WINDOW_BYTES;
        while walk.offset < span.end {
            let base = walk.offset;
            let bytes = bytes_max.min(span.end - base);
            let Some(mut window) = self.read_segment(walk.segment, base, bytes)? else {
                return Ok(Stop::Bytes);
            };
            if decrypt_span(self.manifest.keyring(), &span.header, base, &mut window).is_err() {
                return Ok(Stop::Bytes);
            }
            match walk.over(&window, base, span.header.salt, report) {
                // A record that is longer than the window, or damaged.
                Stop::Bytes if walk.offset == base && bytes == span.end - base => return Ok(Stop::Bytes),
                Stop::Bytes if walk.offset == base => bytes_max = span.end - base,
                Stop::Bytes => {}
                stop => return Ok(stop),
            }
        }
        Ok(Stop::Bytes)
    }

    /// Bytes of a kept segment; `None` when the segment does not contain them.
    fn read_segment(&self, segment: u64, offset: usize, bytes: usize) -> Result<Option<Vec<u8>>> {
        let mut window = room::zeros(bytes)?;
        match self.storage.read(FileName::wal(segment), offset as u64, &mut window) {
            Ok(()) => Ok(Some(window)),
            // It is not known yet what is there: no change is skipped.
            Err(error @ (Error::Pending | Error::Io(_))) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn source(&self, segment: u64) -> Option<Source> {
        if let Some(kept) = self.history.kept.iter().find(|kept| kept.id == segment) {
            return kept.span.map(Source::File);
        }
        let frozen = self.frozen.iter().find(|frozen| frozen.segment == segment);
        if let Some(frozen) = frozen {
            return Some(Source::Memory(frozen.memtable.clone(), frozen.memtable.borrow().image().len()));
        }
        let is_active = self.active.borrow().header().segment == segment;
        is_active.then(|| Source::Memory(self.active.clone(), self.active_end()))
    }

    /// The offset up to which records of the active memtable may be reported.
    fn active_end(&self) -> usize {
        let logged = if self.options.log { self.log.written } else { usize::MAX };
        self.log.acknowledged_end.min(logged).max(SEGMENT_HEADER_BYTES)
    }

    /// The segment whose records come next.
    fn segment_behind(&self, segment: u64) -> Option<u64> {
        let kept = self.history.kept.iter().find(|kept| kept.id > segment).map(|kept| kept.id);
        let frozen =
            || self.frozen.iter().find(|frozen| frozen.segment > segment).map(|frozen| frozen.segment);
        let active = self.active.borrow().header().segment;
        kept.or_else(frozen).or_else(|| (active > segment).then_some(active))
    }

    /// The segment that contains the record after a sequence; `None` when it is gone.
    fn segment_after(&mut self, since: Sequence) -> Result<Option<u64>> {
        let flushed = self.version.floors.last_sequence;
        if since >= flushed {
            let holds = |frozen: &&Frozen| frozen.memtable.borrow().max_sequence() > since;
            let frozen = self.frozen.iter().find(holds).map(|frozen| frozen.segment);
            return Ok(frozen.or_else(|| Some(self.active.borrow().header().segment)));
        }
        let mut last = flushed;
        for at in (0..self.history.kept.len()).rev() {
            let segment = self.history.kept[at].id;
            match self.span_of(at)? {
                // The segment was created and never written to; or it is damaged, and then the older segments are not
                // connected to history.
                None => self.remove_segment(at),
                Some(span) if span.last != last => {
                    self.remove_history(segment);
                    return Ok(None);
                }
                Some(span) if span.first <= since + 1 => return Ok(Some(segment)),
                Some(span) => last = span.first - 1,
            }
        }
        Ok(None)
    }

    /// The content of a kept segment, as far as its records verify; `None` when it has no valid record.
    fn span_of(&mut self, at: usize) -> Result<Option<Span>> {
        let kept = &self.history.kept[at];
        if kept.span.is_some() {
            return Ok(kept.span);
        }
        let Some(mut bytes) = self.read_segment(kept.id, 0, kept.file_bytes as usize)? else {
            return Ok(None);
        };
        let Some(header) = SegmentHeader::decode(&bytes).ok().filter(|header| header.segment == kept.id)
        else {
            return Ok(None);
        };
        if decrypt_segment(self.manifest.keyring(), &header, &mut bytes).is_err() {
            return Ok(None);
        }
        let mut records = Records::new(&bytes, header.salt);
        let mut span: Option<Span> = None;
        while let Some(Ok(record)) = records.next() {
            let last = record.first_sequence + record.count - 1;
            let known = span.get_or_insert(Span { header, end: 0, first: record.first_sequence, last: 0 });
            (known.end, known.last) = (records.position(), last);
        }
        self.history.kept[at].span = span;
        Ok(span)
    }

    /// The sequence after which history begins, as far as it was examined in this session.
    fn known_floor(&self) -> Sequence {
        let mut floor = self.version.floors.last_sequence.min(self.acknowledged);
        for kept in self.history.kept.iter().rev() {
            match kept.span {
                Some(span) if span.last == floor => floor = span.first - 1,
                _ => break,
            }
        }
        floor
    }

    fn remove_segment(&mut self, at: usize) {
        let kept = self.history.kept.remove(at);
        self.obsolete.drop_file_of(FileName::wal(kept.id), kept.flushed_at);
    }

    /// Forgets all kept segments up to this one: they are not read any more.
    pub(super) fn remove_history(&mut self, segment: u64) {
        while self.history.kept.first().is_some_and(|kept| kept.id <= segment) {
            self.remove_segment(0);
        }
    }
}

impl<'a> Walk<'a> {
    fn at(wanted: &'a ChangesWanted<'a>, segment: u64, offset: usize) -> Self {
        Self { wanted, through: wanted.since, reported_bytes: 0, looked_bytes: 0, segment, offset }
    }
}
