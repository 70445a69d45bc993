//! The end of a compaction that takes only a key range of its inputs.
//!
//! A job merges from the first key of its inputs on. It ends between two keys, once it has read as much as it may.
//! The entries from there on stay where they are, in tables with narrowed bounds. The end is decided while merging, so
//! no guess about the distribution of keys is needed. A job over skewed keys is cut as exactly as any other.
//!
//! Invariants: a job takes at least one key, if there is one before its end. It never goes past its end, where tables
//! begin that were left out of it. It always goes beyond the first key of the runs above the lowest, however much of a
//! table of the lowest run lies before that. So each job moves something down, and the jobs finish. If a job only cut
//! such a table in two, the next job, which joins small tables, could undo that, and so on for ever. This costs no more
//! room in the end: a narrowed table keeps the room of its file until all of it was merged.

use std::rc::Rc;

use super::spec::JobResult;
use crate::view::TableHandle;

/// Counts the bytes that a merge read.
pub(crate) struct Limit {
    raw_bytes_max: u64,
    end: Option<Vec<u8>>,
    read_bytes: u64,
    runs: Vec<Rc<[Rc<TableHandle>]>>,
    /// The first key of the runs above the lowest.
    floor: Option<Vec<u8>>,
    /// The next table of the lowest run.
    next: usize,
}

impl Limit {
    pub(crate) fn new(raw_bytes_max: u64, end: Option<Vec<u8>>, runs: Vec<Rc<[Rc<TableHandle>]>>) -> Self {
        let above = runs.split_last().map_or(&[][..], |(_, above)| above);
        let floor =
            above.iter().filter_map(|run| run.first()).map(|handle| &handle.meta.min_key).min().cloned();
        Self { raw_bytes_max, end, read_bytes: 0, runs, floor, next: 0 }
    }

    /// Notes that an entry with this many bytes of key and value was read.
    pub(crate) fn add(&mut self, raw_bytes: usize) {
        self.read_bytes += raw_bytes.max(1) as u64;
    }

    /// The first key that the job does not merge, if it ends before `key` (`None`: there are no more keys). It ends at its
    /// limit. Once half of the limit is reached, it also ends before a table of the lowest run that would go beyond the
    /// limit: a table that was not begun does not have to be narrowed.
    pub(crate) fn until<'a>(&'a mut self, key: Option<&'a [u8]>) -> Option<&'a [u8]> {
        if self.end.as_deref().is_some_and(|end| key.is_none_or(|key| end <= key)) {
            return self.end.as_deref();
        }
        let (key, lowest) = (key?, self.runs.last()?);
        let mut begun = 0;
        while let Some(handle) = lowest.get(self.next).filter(|handle| handle.meta.min_key.as_slice() <= key)
        {
            begun = handle.meta.raw_bytes;
            self.next += 1;
        }
        let is_full = self.read_bytes >= self.raw_bytes_max
            || begun > 0
                && self.read_bytes >= self.raw_bytes_max / 2
                && self.read_bytes + begun > self.raw_bytes_max;
        let is_beyond = || self.floor.as_deref().is_none_or(|floor| floor < key);
        (self.read_bytes > 0 && is_full && is_beyond()).then_some(key)
    }

    /// Records in `result` what was read: everything before `until`, or everything.
    pub(crate) fn report(&self, until: Option<Vec<u8>>, result: &mut JobResult) {
        result.bytes_read = 0;
        for handle in self.runs.iter().flat_map(|run| run.iter()) {
            let meta = &handle.meta;
            let Some(key) = until.as_deref().filter(|key| meta.max_key.as_slice() >= *key) else {
                result.bytes_read += meta.live_bytes();
                continue;
            };
            if meta.min_key.as_slice() < key {
                let before = handle.opened().map_or(0, |table| table.offset_of(key));
                result.bytes_read += before.saturating_sub(meta.skipped_bytes);
                result.skipped.push((meta.id, before));
            }
        }
        result.until = until;
    }
}
