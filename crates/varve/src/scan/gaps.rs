//! Gaps: ranges of keys in which a scan found nothing alive.
//!
//! A queue is read where entries were just removed, a log where its oldest days were deleted. The dead entries stay in the way
//! until a merge drops them, one tombstone after another, in memtables and tables alike. So a scan that walked over dead entries
//! leaves a note, and later scans seek to the end of the gap. Each dead entry is then walked over about once.
//! A range that was deleted is a gap from then on, so no scan walks over its entries.
//!
//! Invariant: a reader at a gap's sequence or later, and at its time or later, finds nothing alive in it. A set of a key in a gap
//! cuts the gap. A refused commit removes the gaps that may have seen its writes.

use std::cell::Cell;

use crate::codec::bytes::compare;
use crate::mutant::{self, Mutant};
use crate::types::Sequence;

/// Fewer dead entries in a row are not noted, and are walked over again.
const DEATHS_MIN: u32 = 4;
/// Approximate limit for the bytes of all gaps.
const BYTES_MAX: usize = 64 << 10;
/// Bytes of a gap besides its keys.
const GAP_BYTES: usize = 80;

/// The read point of a reader: a sequence, and a time in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadPoint {
    pub(crate) sequence: Sequence,
    pub(crate) now_ms: u64,
}

#[derive(Debug, Clone)]
struct Gap {
    /// First key.
    start: Vec<u8>,
    /// First key after it.
    end: Vec<u8>,
    since: ReadPoint,
    /// When it was last used.
    used: Cell<u64>,
}

impl Gap {
    fn bytes(&self) -> usize {
        GAP_BYTES + self.start.len() + self.end.len()
    }

    fn is_seen_by(&self, reader: ReadPoint) -> bool {
        (self.since.sequence <= reader.sequence || mutant::has(Mutant::GapsOfTheFuture))
            && self.since.now_ms <= reader.now_ms
    }
}

/// Gaps that do not overlap, in the order of their keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gaps {
    sorted: Vec<Gap>,
    bytes: usize,
    uses: Cell<u64>,
}

impl Gaps {
    /// Whether no gap is known.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Finds the gap that contains `key`, or for `below` the last key below it, if it is valid for `reader`. Returns its end, or
    /// for `backward` its start.
    #[inline(never)]
    pub(crate) fn over(&self, key: &[u8], below: bool, backward: bool, reader: ReadPoint) -> Option<&[u8]> {
        let at = self.sorted.partition_point(|gap| {
            let order = compare(&gap.start, key);
            if below { order.is_lt() } else { order.is_le() }
        });
        let gap = self.sorted.get(at.checked_sub(1)?)?;
        let order = compare(key, &gap.end);
        if !(order.is_lt() || (below && order.is_eq())) || !gap.is_seen_by(reader) {
            return None;
        }
        gap.used.set(self.tick());
        Some(if backward { &gap.start } else { &gap.end })
    }

    fn tick(&self) -> u64 {
        self.uses.set(self.uses.get() + 1);
        self.uses.get()
    }

    /// Notes that at `since` nothing was alive from `start` up to `end`, where `deaths` were walked over.
    #[inline(never)]
    pub(crate) fn note(&mut self, start: &[u8], end: &[u8], since: ReadPoint, deaths: u32) {
        if deaths >= DEATHS_MIN {
            let used = self.tick();
            self.join(start, end, since, used);
        }
    }

    /// Notes that the write with this sequence deleted the range from `start` up to `end`. Until a scan uses this gap it takes no room
    /// from others, and the first set in it removes it: a store that is cleared and filled again pays nothing for it.
    pub(crate) fn delete(&mut self, start: &[u8], end: &[u8], sequence: Sequence) {
        let sequence = if mutant::has(Mutant::DeletedRangesAtOnce) { 0 } else { sequence };
        self.join(start, end, ReadPoint { sequence, now_ms: 0 }, 0);
    }

    /// Adds a gap, together with the gaps that it overlaps or touches.
    #[inline(never)]
    fn join(&mut self, start: &[u8], end: &[u8], since: ReadPoint, used: u64) {
        if start >= end {
            return;
        }
        let mut gap = Gap { start: start.to_vec(), end: end.to_vec(), since, used: Cell::new(used) };
        let low = self.sorted.partition_point(|known| compare(&known.end, start).is_lt());
        let high = self.sorted.partition_point(|known| compare(&known.start, end).is_le());
        if used == 0 && low == high && self.bytes + gap.bytes() > BYTES_MAX {
            return;
        }
        for known in self.sorted.drain(low..high) {
            self.bytes -= known.bytes();
            gap.start = gap.start.min(known.start);
            gap.end = gap.end.max(known.end);
            gap.since.sequence = gap.since.sequence.max(known.since.sequence);
            gap.since.now_ms = gap.since.now_ms.max(known.since.now_ms);
            gap.used.set(gap.used.get().max(known.used.get()));
        }
        self.put(low, gap);
        self.fit();
    }

    /// Removes a key from its gap: it has been set.
    #[inline]
    pub(crate) fn cut(&mut self, key: &[u8]) {
        if !self.is_empty() && !mutant::has(Mutant::GapsNotCut) {
            self.cut_known(key);
        }
    }

    #[inline(never)]
    fn cut_known(&mut self, key: &[u8]) {
        let at = self.sorted.partition_point(|gap| compare(&gap.end, key).is_le());
        if !self.sorted.get(at).is_some_and(|gap| compare(&gap.start, key).is_le()) {
            return;
        }
        let mut before = self.sorted.remove(at);
        self.bytes -= before.bytes();
        if before.used.get() == 0 {
            return;
        }
        let behind = Gap { start: [key, &[0]].concat(), ..before.clone() };
        before.end = key.to_vec();
        self.put(at, behind);
        self.put(at, before);
        self.fit();
    }

    /// Adds a gap, unless it is empty.
    #[inline(never)]
    fn put(&mut self, at: usize, gap: Gap) {
        if gap.start < gap.end {
            self.bytes += gap.bytes();
            self.sorted.insert(at, gap);
        }
    }

    /// Removes gaps that may depend on writes after `last`, which were refused.
    pub(crate) fn remove_after(&mut self, last: Sequence) {
        self.remove(last, 0);
    }

    /// Once all gaps take too much memory, removes those that were not used lately, down to half of the limit. So a write that cuts a gap
    /// seldom pays for this.
    #[inline(never)]
    fn fit(&mut self) {
        while self.bytes > BYTES_MAX {
            let uses: u64 = self.sorted.iter().map(|gap| gap.used.get()).sum();
            self.remove(Sequence::MAX, uses / self.sorted.len() as u64 + 1);
        }
    }

    /// Removes gaps that may depend on writes after `last`, and down to half of the limit those that were last used before `used`.
    #[inline(never)]
    fn remove(&mut self, last: Sequence, used: u64) {
        let bytes = &mut self.bytes;
        self.sorted.retain(|gap| {
            let stays = gap.since.sequence <= last && (gap.used.get() >= used || *bytes <= BYTES_MAX / 2);
            *bytes -= if stays { 0 } else { gap.bytes() };
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: ReadPoint = ReadPoint { sequence: 10, now_ms: 100 };

    fn bounds(gaps: &Gaps) -> Vec<(&str, &str)> {
        let text = |key| std::str::from_utf8(key).unwrap();
        gaps.sorted.iter().map(|gap| (text(&gap.start), text(&gap.end))).collect()
    }

    #[test]
    fn gaps_that_touch_are_one_and_a_set_cuts_it() {
        let mut gaps = Gaps::default();
        gaps.note(b"b", b"d", NOW, 3);
        assert!(gaps.is_empty(), "too few deaths to be worth a note");
        gaps.note(b"b", b"d", NOW, 4);
        gaps.note(b"m", b"p", NOW, 4);
        gaps.note(b"d", b"f", NOW, 4);
        assert_eq!(bounds(&gaps), [("b", "f"), ("m", "p")]);
        gaps.cut(b"a");
        gaps.cut(b"f");
        gaps.cut(b"n");
        assert_eq!(bounds(&gaps), [("b", "f"), ("m", "n"), ("n\0", "p")]);
        gaps.cut(b"m");
        gaps.cut(b"b");
        assert_eq!(bounds(&gaps), [("b\0", "f"), ("m\0", "n"), ("n\0", "p")]);
        gaps.note(b"c", b"o", NOW, 4);
        assert_eq!(bounds(&gaps), [("b\0", "p")]);
        assert_eq!(gaps.bytes, gaps.sorted.iter().map(Gap::bytes).sum());
    }

    #[test]
    fn a_gap_is_found_by_its_first_key_and_from_its_end() {
        let mut gaps = Gaps::default();
        gaps.note(b"b", b"d", NOW, 4);
        let found = |key: &str, below| gaps.over(key.as_bytes(), below, false, NOW).is_some();
        assert_eq!(["a", "b", "c", "d"].map(|key| found(key, false)), [false, true, true, false]);
        assert_eq!(["b", "c", "d", "e"].map(|key| found(key, true)), [false, true, true, false]);
    }

    #[test]
    fn a_reader_at_an_earlier_read_point_may_see_what_died_since() {
        let mut gaps = Gaps::default();
        gaps.note(b"b", b"d", NOW, 4);
        for (reader, sees) in [
            (NOW, true),
            (ReadPoint { sequence: 9, ..NOW }, false),
            (ReadPoint { now_ms: 99, ..NOW }, false),
            (ReadPoint { sequence: 11, now_ms: 101 }, true),
        ] {
            assert_eq!(gaps.over(b"c", false, false, reader).is_some(), sees, "{reader:?}");
        }
        gaps.note(b"c", b"e", ReadPoint { sequence: 12, now_ms: 90 }, 4);
        assert_eq!(
            gaps.over(b"b", false, true, ReadPoint { sequence: 11, now_ms: 100 }),
            None,
            "joined, the later counts"
        );
        gaps.remove_after(11);
        assert!(gaps.is_empty());
    }

    #[test]
    fn a_deleted_range_is_a_gap_for_those_that_see_the_deletion() {
        let mut gaps = Gaps::default();
        gaps.delete(b"b", b"d", 10);
        gaps.delete(b"d", b"f", 11);
        gaps.delete(b"x", b"x", 12);
        assert_eq!(bounds(&gaps), [("b", "f")]);
        let reader = |sequence| ReadPoint { sequence, now_ms: 0 };
        assert_eq!(gaps.over(b"c", false, false, reader(10)), None);
        assert_eq!(gaps.over(b"c", false, false, reader(11)), Some(b"f".as_slice()));
        let mut refused = gaps.clone();
        refused.remove_after(10);
        assert!(refused.is_empty(), "the second deletion was refused");
        gaps.cut(b"c");
        assert_eq!(bounds(&gaps), [("b", "c"), ("c\0", "f")], "a scan has used it");
        gaps.delete(b"x", b"z", 12);
        gaps.cut(b"y");
        assert_eq!(bounds(&gaps).len(), 2, "no scan has");
    }

    #[test]
    fn they_take_so_much_memory_and_no_more() {
        let mut gaps = Gaps::default();
        let key = |n: u32| [n.to_be_bytes().as_slice(), &[0; 200]].concat();
        for n in 0..1000 {
            gaps.note(&key(2 * n), &key(2 * n + 1), NOW, 4);
            assert!(gaps.over(&key(0), false, false, NOW).is_some(), "a gap in use stays");
            gaps.delete(&key(2 * n + 1_000_000), &key(2 * n + 1_000_001), NOW.sequence);
        }
        assert!(gaps.bytes <= BYTES_MAX && gaps.sorted.len() > 100);
    }

    /// The story: after `clear()`, a scan found nothing and so used the gap of the deletion. Then each set of a load cut it. With keys in
    /// order, each cut left one more small gap, and once these took too much memory, each set searched all of them for one to remove.
    #[test]
    fn a_load_into_a_gap_seldom_pays_for_the_memory_of_gaps() {
        let mut gaps = Gaps::default();
        gaps.delete(b"", &[0xff], 1);
        assert!(gaps.over(b"", false, false, NOW).is_some());
        let (mut removals, mut bytes_max) = (0, 0);
        for n in 0..20_000_u32 {
            let before = gaps.sorted.len();
            gaps.cut(&n.to_be_bytes());
            removals += u32::from(gaps.sorted.len() <= before);
            bytes_max = bytes_max.max(gaps.bytes);
        }
        assert!((10..200).contains(&removals), "{removals} of 20,000 sets removed gaps");
        assert!((BYTES_MAX / 2..=BYTES_MAX).contains(&bytes_max), "{bytes_max} bytes");
        let behind = 20_000_u32.to_be_bytes();
        assert!(gaps.over(&behind, false, false, NOW).is_some(), "the range behind the load is still a gap");
        assert_eq!(gaps.bytes, gaps.sorted.iter().map(Gap::bytes).sum());
    }
}
