//! A scan: a range of keys at one snapshot, read in batches.
//!
//! Invariant: between batches a cursor keeps only its view, its snapshot and the last key it looked
//! at; each batch seeks anew. So a cursor never pins a position inside a memtable that others write,
//! and a batch that needs a block, or failed, can be run again from its start.

use std::rc::Rc;

use super::batch::Batch;
use super::merge::{Merge, Start};
use super::source::{LevelCursor, Source};
use crate::codec::bytes::{append, compare, equal};
use crate::store::view::{TableHandle, View};
use crate::table::{Blocks, ReadError};
use crate::types::{Kind, RangeTombstone, Sequence, StoreId};

/// Entries looked at in one batch before it returns, found or not: bounds the time of a call.
const STEPS_MAX: u32 = 20_000;

/// What to scan.
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
}

impl Cursor {
    pub(crate) fn new(view: Rc<View>, snapshot: Sequence, now_ms: u64, options: ScanOptions) -> Self {
        let left = options.limit.unwrap_or(u64::MAX);
        let empty = options.upper.as_ref().is_some_and(|upper| *upper <= options.lower);
        Self { view, snapshot, now_ms, options, position: None, left, finished: empty || left == 0 }
    }

    /// The sequence that this scan sees.
    #[must_use]
    pub fn snapshot(&self) -> Sequence {
        self.snapshot
    }

    /// The same moment, for another range.
    pub(crate) fn again(&self, options: ScanOptions) -> Self {
        Self::new(self.view.clone(), self.snapshot, self.now_ms, options)
    }

    /// Whether it reads this view.
    pub(crate) fn is_of(&self, view: &Rc<View>) -> bool {
        Rc::ptr_eq(&self.view, view)
    }

    /// Reads another view from here on, which has every version that the one before had.
    pub(crate) fn move_to(&mut self, view: Rc<View>) {
        self.view = view;
    }

    /// There is nothing to be read any more.
    pub(crate) fn lose(&mut self, view: Rc<View>) {
        self.view = view;
        self.finished = true;
    }

    /// Whether there is nothing to be read any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Forgets that sequences after `last` were seen.
    pub(crate) fn see_at_most(&mut self, last: Sequence) {
        self.snapshot = self.snapshot.min(last);
    }

    /// Adds live entries to `batch` until it holds `bytes_max` bytes or the scan ends.
    pub(crate) fn fill(
        &mut self,
        store: &StoreId,
        blocks: &dyn Blocks,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<Progress, ReadError> {
        if self.finished {
            return Ok(Progress::Finished);
        }
        let view = self.view.clone();
        let borrows: Vec<_> = view.memtables.iter().map(|memtable| memtable.borrow()).collect();
        let mut sources: Vec<Source<'_>> = Vec::with_capacity(borrows.len() + 8);
        let mut deleted: Vec<RangeTombstone> = Vec::new();
        for memtable in &borrows {
            deleted.extend(memtable.range_tombstones().iter().cloned());
            if !memtable.is_empty() {
                sources.push(Source::Memtable(memtable.cursor()));
            }
        }
        let is_opened = |level, handle: &TableHandle| level == 0 || handle.meta.range_tombstones > 0;
        for (level, tables) in view.levels.iter().enumerate() {
            for handle in tables.iter() {
                if is_opened(level, handle) {
                    let opened = handle.open(store, blocks);
                    let table =
                        opened.map_err(|failure| view.come_upon(store, blocks, failure, is_opened))?;
                    deleted.extend(table.range_tombstones().iter().cloned());
                    if level == 0 && self.overlaps(&handle.meta.min_key, &handle.meta.max_key) {
                        sources.push(if handle.meta.is_narrowed() {
                            Source::Level(LevelCursor::new(*store, Rc::new([handle.clone()])))
                        } else {
                            Source::Table(table.cursor())
                        });
                    }
                }
            }
            if level > 0 && !tables.is_empty() {
                sources.push(Source::Level(LevelCursor::new(*store, tables.clone())));
            }
        }
        deleted.retain(|range| range.sequence <= self.snapshot);
        let (position, left) = (self.position.clone(), self.left);
        let progress = if self.options.reverse {
            self.fill_backward(sources, &deleted, blocks, bytes_max, batch)
        } else {
            self.fill_forward(sources, &deleted, blocks, bytes_max, batch)
        };
        if progress.is_err() {
            // Nothing of this batch goes out: who asks again, the bytes being there now, begins where it began.
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
        deleted: &[RangeTombstone],
        blocks: &dyn Blocks,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<Progress, ReadError> {
        // The first key after `position` in byte order is `position` with a zero byte.
        let from = match &self.position {
            Some(position) => [position.as_slice(), &[0]].concat(),
            None => self.options.lower.clone(),
        };
        let mut merge = Merge::start(sources, Start::Forward(Some(&from)), blocks)?;
        // `key` is the key looked at, `passed` the one before it: every version of that one is behind us.
        let mut key: Vec<u8> = Vec::new();
        let mut passed: Vec<u8> = Vec::new();
        let mut keys_seen = 0_u32;
        let mut decided = false;
        let mut steps = 0;
        loop {
            let Some(source) = merge.current() else { return Ok(self.finish()) };
            if keys_seen == 0 || !equal(&key, source.key()) {
                if self.options.upper.as_ref().is_some_and(|upper| compare(source.key(), upper).is_ge()) {
                    return Ok(self.finish());
                }
                if keys_seen > 0 && (batch.bytes() >= bytes_max || steps >= STEPS_MAX) {
                    self.position = Some(key);
                    return Ok(Progress::More);
                }
                std::mem::swap(&mut key, &mut passed);
                key.clear();
                append(&mut key, source.key());
                keys_seen += 1;
                decided = false;
            }
            // Versions of a key come newest first: the first one at or below the snapshot decides.
            if !decided && source.sequence() <= self.snapshot {
                decided = true;
                if self.is_live(source, deleted) {
                    batch.make_room(source.value().len())?;
                    batch.push_expiry(source.expires());
                    batch.push(&key, source.value());
                    self.left -= 1;
                    if self.left == 0 {
                        return Ok(self.finish());
                    }
                }
            }
            steps += 1;
            if let Err(error) = merge.advance(blocks) {
                if batch.count() == 0 || !matches!(error, ReadError::Need(_)) {
                    return Err(error);
                }
                // What was found goes out; the next batch starts after the last key that is settled.
                self.position = Some(if decided { key } else { passed });
                return Ok(Progress::More);
            }
        }
    }

    fn fill_backward(
        &mut self,
        sources: Vec<Source<'_>>,
        deleted: &[RangeTombstone],
        blocks: &dyn Blocks,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<Progress, ReadError> {
        let before = self.position.as_deref().or(self.options.upper.as_deref());
        let mut merge = Merge::start(sources, Start::Backward(before), blocks)?;
        // Versions of a key come oldest first: the last one at or below the snapshot decides.
        let mut key: Vec<u8> = Vec::new();
        let mut value: Vec<u8> = Vec::new();
        let mut live = false;
        let mut open = false;
        let mut steps = 0;
        loop {
            let next = merge.current();
            let in_range = next.is_some_and(|source| source.key() >= self.options.lower.as_slice());
            let same = in_range && open && next.is_some_and(|source| equal(source.key(), &key));
            if open && !same {
                if live {
                    batch.push(&key, &value);
                    self.left -= 1;
                }
                self.remember(&key);
                open = false;
                live = false;
                if self.left == 0 {
                    return Ok(self.finish());
                }
                if in_range && (batch.bytes() >= bytes_max || steps >= STEPS_MAX) {
                    return Ok(Progress::More);
                }
            }
            let Some(source) = next.filter(|_| in_range) else { return Ok(self.finish()) };
            if !open {
                key.clear();
                key.extend_from_slice(source.key());
                open = true;
            }
            if source.sequence() <= self.snapshot {
                live = self.is_live(source, deleted);
                if live {
                    value.clear();
                    value.extend_from_slice(source.value());
                }
            }
            steps += 1;
            if let Err(error) = merge.advance(blocks) {
                return if batch.count() > 0 && matches!(error, ReadError::Need(_)) {
                    Ok(Progress::More)
                } else {
                    Err(error)
                };
            }
        }
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn is_live(&self, source: &Source<'_>, deleted: &[RangeTombstone]) -> bool {
        source.kind() == Kind::Set
            && source.expires().is_none_or(|at| at > self.now_ms)
            && !deleted.iter().any(|range| range.sequence > source.sequence() && range.covers(source.key()))
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
