//! Finding entries in a data block.
//!
//! Entries are searched by the heads of their keys (`layout.rs`). A key with a unique head is compared once, in its two
//! parts, in place: no key is rebuilt.
//!
//! Invariant: a result is the first entry at or after (key, sequence) in the order of a table: key ascending, sequence descending.

use core::cmp::Ordering;

use super::layout::Run;
use super::{Block, Entry, Malformed};
use crate::codec::bytes;
use crate::types::Sequence;

impl Block {
    /// The newest version of `key` at or below `sequence`.
    #[cfg_attr(varve_size, optimize(speed))]
    pub(in crate::table) fn find(&self, key: &[u8], sequence: Sequence) -> Result<Option<Entry>, Malformed> {
        // A key without the common prefix lands at any entry, and then differs from the key it finds there.
        self.bound(key, sequence).map(|(_, entry)| entry)
    }

    /// The number of the first entry at or after (`key`, `sequence`); the number of entries when all of them are before.
    pub(in crate::table) fn lower_bound(&self, key: &[u8], sequence: Sequence) -> Result<usize, Malformed> {
        let prefix = &self.run(0).key(self)[..self.layout.shared];
        let same = bytes::common_prefix(prefix, key);
        if let Some(byte) = prefix.get(same) {
            // The key does not have the common prefix: it is before all keys or after all of them.
            let is_after = key.get(same).is_some_and(|found| found > byte);
            return Ok(if is_after { self.entries() } else { 0 });
        }
        self.bound(key, sequence).map(|(index, _)| index)
    }

    /// Searches for a key that has the common prefix of all keys. Returns the entry too if it is a version of `key`.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    fn bound(&self, key: &[u8], sequence: Sequence) -> Result<(usize, Option<Entry>), Malformed> {
        let marks = &self.layout.marks;
        let head = bytes::head(key, self.layout.shared);
        let first = marks.partition_point(|mark| mark.head < head);
        // Nearly always the first entry with this head is the right one. Otherwise the search uses growing steps,
        // because there may be many such entries: versions, or keys with a long common prefix.
        let (mut low, mut high, mut step) = (first, first, 1);
        while marks.get(high).is_some_and(|mark| mark.head == head) {
            let (order, entry) = self.compare(high, key)?;
            let is_before = order.is_lt() || (order.is_eq() && entry.sequence > sequence);
            if !is_before && high == first {
                return Ok((first, order.is_eq().then_some(entry)));
            }
            if !is_before {
                break;
            }
            low = high + 1;
            (high, step) = (high + step, step * 2);
        }
        high = high.min(marks.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_before = marks[middle].head == head && {
                let (order, entry) = self.compare(middle, key)?;
                order.is_lt() || (order.is_eq() && entry.sequence > sequence)
            };
            (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
        }
        if low == first || marks.get(low).is_none_or(|mark| mark.head != head) {
            return Ok((low, None));
        }
        let (order, entry) = self.compare(low, key)?;
        Ok((low, order.is_eq().then_some(entry)))
    }

    /// The order of the key of entry `index` relative to `key`, and the entry.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    fn compare(&self, index: usize, key: &[u8]) -> Result<(Ordering, Entry), Malformed> {
        let run = self.run(self.run_of(index));
        let entry = self.entry(run, index)?;
        let front = &run.key(self)[..entry.shared as usize];
        let order = match key.split_at_checked(front.len()) {
            Some((key_front, rest)) => {
                bytes::compare(front, key_front).then_with(|| bytes::compare(entry.suffix(self), rest))
            }
            None => bytes::compare(front, key),
        };
        Ok((order, entry))
    }

    /// Entry `index`, which lies in `run`.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(in crate::table) fn entry(&self, run: &Run, index: usize) -> Result<Entry, Malformed> {
        let offset = self.layout.marks[index].offset;
        if index == run.first as usize {
            // For a block that is copied as it is, only the front is available.
            return Entry::decode_head(self, offset, run.end)
                .or_else(|error| self.packed().map(|packed| packed.entry).ok_or(error));
        }
        Entry::decode_tail(self, offset, run.end, run.sequence)
    }

    /// Number of entries; at least one.
    #[inline]
    pub(in crate::table) fn entries(&self) -> usize {
        self.layout.marks.len()
    }

    /// The number of the run that entry `index` lies in.
    #[inline]
    pub(in crate::table) fn run_of(&self, index: usize) -> usize {
        self.layout.marks[index].run as usize
    }

    /// Run number `index`.
    #[inline]
    pub(in crate::table) fn run(&self, index: usize) -> &Run {
        &self.layout.runs[index]
    }
}
