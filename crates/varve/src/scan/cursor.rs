//! A scan: a range of keys at one snapshot, read in batches.
//!
//! Invariant: between batches, a cursor keeps only its view, its snapshot and the last key it looked at; each batch
//! seeks again. So a cursor never pins a position inside a memtable that others write. A batch that failed, or for which bytes are
//! missing, can be run again from its start.

use std::cell::RefCell;
use std::rc::Rc;

use super::batch::Batch;
use super::gaps::{Gaps, ReadPoint};
use super::merge::{Merge, Start};
use super::source::{LevelCursor, Source};
use crate::codec::bytes::{append, compare, equal};
use crate::codec::cipher::Keyring;
use crate::codec::room;
use crate::error::Result;
use crate::memtable::Memtable;
use crate::mutant::{self, Mutant};
use crate::table::{Blocks, Table};
use crate::types::{Kind, SEQUENCE_MAX, Sequence};
use crate::view::{TableHandle, View};

/// The most entries that one batch looks at before it returns, found or not: this limits the time of a call.
const STEPS_MAX: u32 = 20_000;
/// Among dead entries, a scan looks once in this many steps for a gap that others have found.
const STEPS_TO_LOOK: u32 = 8;

/// The options of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// First key of the range.
    pub lower: Vec<u8>,
    /// First key after the range; `None` for no end.
    pub upper: Option<Vec<u8>>,
    /// From the highest key down.
    pub reverse: bool,
    /// Most entries to deliver.
    pub limit: Option<u64>,
}

/// The request of a caller outside the engine for a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRequest {
    /// The range, direction and limit.
    pub options: ScanOptions,
    /// Deliver keys.
    pub want_keys: bool,
    /// Deliver values.
    pub want_values: bool,
    /// Deliver expiries, before the values; only for a forward scan.
    pub want_expiries: bool,
    /// The snapshot to scan; 0 for the current state of the store.
    pub snapshot: u32,
    /// Target size of the first batch in bytes (in entries, when neither keys nor values are wanted).
    pub batch_bytes: usize,
}

/// Whether a scan has more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Ask for another batch.
    More,
    /// The range is exhausted or the limit reached.
    Finished,
}

/// A scan in progress.
#[derive(Debug)]
pub struct Cursor {
    pub(crate) view: Rc<View>,
    snapshot: Sequence,
    pub(crate) now_ms: u64,
    options: ScanOptions,
    /// The last key looked at: the next batch starts after it (before it, in reverse).
    position: Option<Vec<u8>>,
    left: u64,
    finished: bool,
    /// Gaps found at this read point. For a snapshot, all its scans share them.
    gaps: Option<Rc<RefCell<Gaps>>>,
}

/// The known gaps of a store, for its scans.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) gaps: &'a RefCell<Gaps>,
    /// The sequence of the last write, if the scan reads the current view.
    pub(crate) present: Option<Sequence>,
}

/// A source that can hide entries of others by range tombstones.
enum Deleting<'a> {
    Memtable(&'a Memtable),
    Table(Rc<Table>),
}

impl Deleting<'_> {
    fn over(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        match self {
            Self::Memtable(memtable) => memtable.tombstone_over(key, snapshot),
            Self::Table(table) => table.tombstone_over(key, snapshot),
        }
    }
}

/// The dead entries that a scan walks over: how many in a row, and between which keys.
struct Run<'a> {
    known: Known<'a>,
    own: Option<Rc<RefCell<Gaps>>>,
    reader: ReadPoint,
    deaths: u32,
    /// The run may contain a key whose newest version is a value that the reader does not see: then the scan reads the past.
    is_past: bool,
}

impl Run<'_> {
    /// Whether it is worth looking for a gap again, at the dead entry that was counted last.
    #[inline]
    fn is_due(&self) -> bool {
        self.deaths % STEPS_TO_LOOK == 1
    }

    /// Where the walk continues after a gap that contains `key`, or for `below` the last key below it.
    #[inline(never)]
    fn over(&mut self, key: &[u8], below: bool, backward: bool) -> Option<Vec<u8>> {
        let mut found = self.known.gaps.borrow().over(key, below, backward, self.reader).map(<[u8]>::to_vec);
        if let (None, Some(own)) = (&found, &self.own) {
            found = own.borrow().over(key, below, backward, self.reader).map(<[u8]>::to_vec);
            self.is_past |= found.is_some();
        }
        if mutant::has(Mutant::GapsTooLong)
            && let (Some(end), false) = (&mut found, backward)
        {
            end.push(0);
        }
        found
    }

    /// Ends the run: nothing is alive from `start` up to `end`.
    #[inline]
    fn end(&mut self, start: &[u8], end: &[u8], merge: &Merge<'_>) {
        if self.deaths > 0 {
            self.note(start, end, merge);
        }
    }

    #[inline(never)]
    fn note(&mut self, start: &[u8], end: &[u8], merge: &Merge<'_>) {
        self.is_past |= merge.passed_newer();
        self.is_past &= !mutant::has(Mutant::GapsOfThePast);
        if let Some(own) = &self.own {
            own.borrow_mut().note(start, end, self.reader, self.deaths);
        }
        if let Some(sequence) = self.known.present.filter(|_| !self.is_past) {
            let since = ReadPoint { sequence, ..self.reader };
            self.known.gaps.borrow_mut().note(start, end, since, self.deaths);
        }
        self.deaths = 0;
    }
}

impl Cursor {
    pub(crate) fn new(view: Rc<View>, snapshot: Sequence, now_ms: u64, options: ScanOptions) -> Self {
        let left = options.limit.unwrap_or(u64::MAX);
        let empty = options.upper.as_ref().is_some_and(|upper| *upper <= options.lower);
        let finished = empty || left == 0;
        Self { view, snapshot, now_ms, options, position: None, left, finished, gaps: None }
    }

    /// Its read point, to be kept and scanned many times.
    pub(crate) fn kept(self) -> Self {
        Self { gaps: Some(Rc::default()), ..self }
    }

    /// The sequence that this scan sees.
    #[must_use]
    pub fn snapshot(&self) -> Sequence {
        self.snapshot
    }

    /// The same read point, for another range.
    pub(crate) fn again(&self, options: ScanOptions) -> Self {
        Self { gaps: self.gaps.clone(), ..Self::new(self.view.clone(), self.snapshot, self.now_ms, options) }
    }

    /// Whether it reads this view.
    pub(crate) fn is_of(&self, view: &Rc<View>) -> bool {
        Rc::ptr_eq(&self.view, view)
    }

    /// Reads another view from here on. The new view has every version that the previous one had.
    pub(crate) fn move_to(&mut self, view: Rc<View>) {
        self.view = view;
    }

    /// Ends the scan: there is nothing left to read.
    pub(crate) fn lose(&mut self, view: Rc<View>) {
        self.view = view;
        self.finished = true;
    }

    /// Whether there is nothing left to read.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Forgets that sequences after `last` were seen.
    pub(crate) fn see_at_most(&mut self, last: Sequence) {
        self.snapshot = self.snapshot.min(last);
        if let Some(gaps) = &self.gaps {
            gaps.borrow_mut().remove_after(last);
        }
    }

    /// Adds live entries to `batch` until it has `bytes_max` bytes or the scan ends.
    pub(crate) fn fill(
        &mut self,
        keyring: &Keyring,
        blocks: &dyn Blocks,
        known: Known<'_>,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<Progress> {
        if self.finished {
            return Ok(Progress::Finished);
        }
        let view = self.view.clone();
        let borrows: Vec<_> = view.memtables.iter().map(|memtable| memtable.borrow()).collect();
        let mut sources: Vec<Source<'_>> = Vec::with_capacity(borrows.len() + 8);
        let mut deleting: Vec<Deleting<'_>> = Vec::new();
        let seen = match self.snapshot {
            _ if mutant::has(Mutant::NewestVersionsSeen) => SEQUENCE_MAX,
            last if mutant::has(Mutant::OlderVersionsSeen) => last.saturating_sub(1),
            last => last,
        };
        for memtable in &borrows {
            if memtable.range_tombstones().next().is_some() {
                deleting.push(Deleting::Memtable(memtable));
            }
            if !memtable.is_empty() {
                sources.push(Source::Memtable(memtable.cursor(seen)));
            }
        }
        let is_opened = |level, handle: &TableHandle| {
            (level == 0 || handle.meta.range_tombstones > 0)
                && self.overlaps(&handle.meta.min_key, &handle.meta.max_key)
        };
        for (level, tables) in view.levels.iter().enumerate() {
            for handle in tables.iter().filter(|handle| is_opened(level, handle)) {
                let opened = handle.open(keyring, blocks);
                let table = opened.map_err(|failure| view.come_upon(keyring, blocks, failure, is_opened))?;
                if level == 0 {
                    sources.push(if handle.meta.is_narrowed() {
                        Source::Level(LevelCursor::new(keyring.clone(), Rc::new([handle.clone()])))
                    } else {
                        Source::Table(table.cursor())
                    });
                }
                if !table.range_tombstones().is_empty() {
                    deleting.push(Deleting::Table(table));
                }
            }
            if level > 0 && !tables.is_empty() {
                sources.push(Source::Level(LevelCursor::new(keyring.clone(), tables.clone())));
            }
        }
        let reader = ReadPoint { sequence: self.snapshot, now_ms: self.now_ms };
        let run = Run { known, own: self.gaps.clone(), reader, deaths: 0, is_past: false };
        let (position, left) = (self.position.clone(), self.left);
        let progress = if self.options.reverse {
            self.fill_backward(sources, &deleting, run, blocks, bytes_max, batch)
        } else {
            self.fill_forward(sources, &deleting, run, blocks, bytes_max, batch)
        };
        if progress.is_err() {
            // Nothing of this batch is returned. The caller asks again when the bytes are there, and then the batch
            // starts from the same position.
            (self.position, self.left) = (position, left);
        }
        progress
    }

    fn overlaps(&self, min_key: &[u8], max_key: &[u8]) -> bool {
        max_key >= self.options.lower.as_slice()
            && self.options.upper.as_ref().is_none_or(|upper| min_key < upper.as_slice())
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn fill_forward(
        &mut self,
        sources: Vec<Source<'_>>,
        deleting: &[Deleting<'_>],
        mut run: Run<'_>,
        blocks: &dyn Blocks,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<Progress> {
        // The first key after `position` in byte order is `position` with a zero byte.
        let from = match &self.position {
            Some(position) => behind(position),
            None => self.options.lower.clone(),
        };
        // Where the current run of dead entries began: after the last live key.
        let mut run_start = from.clone();
        let start = run.over(&from, false, false).unwrap_or(from);
        let mut merge = Merge::start(sources, Start::Forward(Some(&start)), blocks)?;
        // `key` is the key looked at, `passed` the one before it: all versions of that one were passed.
        let mut key: Vec<u8> = Vec::new();
        let mut passed: Vec<u8> = Vec::new();
        let mut keys_seen = 0_u32;
        let mut decided = false;
        let mut steps = 0;
        while let Some(source) = merge.current() {
            if keys_seen == 0 || !equal(&key, source.key()) {
                if self.options.upper.as_ref().is_some_and(|upper| compare(source.key(), upper).is_ge()) {
                    break;
                }
                if keys_seen > 0 && (batch.bytes() >= bytes_max || steps >= STEPS_MAX) {
                    run.end(&run_start, &behind(&key), &merge);
                    self.position = Some(key);
                    return Ok(Progress::More);
                }
                std::mem::swap(&mut key, &mut passed);
                key.clear();
                append(&mut key, source.key());
                keys_seen += 1;
                decided = false;
            }
            let mut is_due = false;
            if source.sequence() > self.snapshot {
                run.is_past |= source.kind() == Kind::Set;
            } else if !decided {
                // Versions of a key come newest first: the first one at or below the snapshot decides.
                decided = true;
                if self.is_live(source, deleting) {
                    batch.make_room(source.value().len())?;
                    batch.push_expiry(source.expires());
                    batch.push(&key, source.value());
                    run.end(&run_start, &key, &merge);
                    self.left -= 1;
                    if self.left == 0 {
                        return Ok(self.finish());
                    }
                } else {
                    if run.deaths == 0 && keys_seen > 1 {
                        run_start = behind(&passed);
                    }
                    run.deaths += 1;
                    is_due = run.is_due();
                }
            }
            steps += 1;
            match is_due.then(|| run.over(&key, false, false)).flatten() {
                Some(end) => merge.seek(Start::Forward(Some(&end)), blocks)?,
                None => merge.advance(blocks)?,
            }
        }
        let end = self.options.upper.clone().unwrap_or_else(|| behind(&key));
        run.end(&run_start, &end, &merge);
        Ok(self.finish())
    }

    fn fill_backward(
        &mut self,
        sources: Vec<Source<'_>>,
        deleting: &[Deleting<'_>],
        mut run: Run<'_>,
        blocks: &dyn Blocks,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<Progress> {
        let before = self.position.as_ref().or(self.options.upper.as_ref()).cloned();
        let gap = before.as_ref().and_then(|before| run.over(before, true, true));
        let start = gap.as_ref().or(before.as_ref());
        let mut merge = Merge::start(sources, Start::Backward(start.map(Vec::as_slice)), blocks)?;
        // Where the current run of dead entries ends: at the last live key, or where the walk began.
        let mut run_end = Vec::new();
        // Versions of a key come oldest first: the last one at or below the snapshot decides.
        let mut key: Vec<u8> = Vec::new();
        let mut value: Vec<u8> = Vec::new();
        let mut expires = None;
        let mut live = false;
        let mut open = false;
        let mut steps = 0;
        loop {
            let next = merge.current();
            let in_range = next.is_some_and(|source| source.key() >= self.options.lower.as_slice());
            let same = in_range && open && next.is_some_and(|source| equal(source.key(), &key));
            if open && !same {
                if live {
                    batch.push_expiry(expires);
                    batch.push(&key, &value);
                    self.left -= 1;
                    if run.deaths > 0 {
                        run.note(&behind(&key), &run_end, &merge);
                    }
                } else {
                    if run.deaths == 0 {
                        let end = self.position.as_ref().or(self.options.upper.as_ref());
                        run_end = end.cloned().unwrap_or_else(|| behind(&key));
                    }
                    run.deaths += 1;
                }
                self.remember(&key);
                open = false;
                let is_over = !in_range || self.left == 0;
                let is_due = !live && !is_over && run.is_due();
                live = false;
                if is_over || batch.bytes() >= bytes_max || steps >= STEPS_MAX {
                    run.end(if in_range { &key } else { &self.options.lower }, &run_end, &merge);
                    return Ok(if is_over { self.finish() } else { Progress::More });
                }
                if is_due && let Some(start) = run.over(&key, false, true) {
                    merge.seek(Start::Backward(Some(&start)), blocks)?;
                    continue;
                }
            }
            let Some(source) = next.filter(|_| in_range) else {
                run.end(&self.options.lower, &run_end, &merge);
                return Ok(self.finish());
            };
            if !open {
                key.clear();
                key.extend_from_slice(source.key());
                open = true;
            }
            if source.sequence() <= self.snapshot {
                live = self.is_live(source, deleting);
                if live {
                    expires = source.expires();
                    value.clear();
                    room::reserve(&mut value, source.value().len())?;
                    batch.make_room(source.value().len())?;
                    value.extend_from_slice(source.value());
                }
            } else {
                run.is_past |= source.kind() == Kind::Set;
            }
            steps += 1;
            merge.advance(blocks)?;
        }
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn is_live(&self, source: &Source<'_>, deleting: &[Deleting<'_>]) -> bool {
        source.kind() == Kind::Set
            && source.expires().is_none_or(|at| at > self.now_ms)
            && !deleting.iter().any(|by| by.over(source.key(), self.snapshot) > source.sequence())
    }

    fn remember(&mut self, key: &[u8]) {
        let position = self.position.get_or_insert_with(Vec::new);
        position.clear();
        position.extend_from_slice(key);
    }

    fn finish(&mut self) -> Progress {
        self.finished = true;
        Progress::Finished
    }
}

/// The first key after `key`.
#[inline(never)]
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
