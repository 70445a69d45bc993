//! Gaps: ranges of keys in which a scan found nothing alive.
//!
//! A queue is read where it was emptied a moment ago, a log where its oldest days were deleted. All that died there lies in the way
//! until a merge drops it, one tombstone after another, in memtables and tables alike. So a scan that walked over the dead leaves
//! a note, and later ones seek to the end of the gap. Each death is then walked over about once.
//!
//! Invariant: no reader at a gap's sequence or a later one, and at its time or a later one, finds anything alive in it. A set of a
//! key in a gap cuts it; what was written by a refused commit takes the gaps back that may have seen it.

use std::cell::Cell;

use crate::codec::bytes::compare;
use crate::mutant::{self, Mutant};
use crate::types::Sequence;

/// Fewer deaths in a row are walked over again.
const DEATHS_MIN: u32 = 4;
/// Bytes that gaps take at most, about.
const BYTES_MAX: usize = 64 << 10;
/// Bytes of a gap besides its keys.
const GAP_BYTES: usize = 80;

/// A moment that a reader sees: a sequence, and a time in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) sequence: Sequence,
    pub(crate) now_ms: u64,
}

#[derive(Debug, Clone)]
struct Gap {
    /// First key.
    start: Vec<u8>,
    /// First key behind it.
    end: Vec<u8>,
    since: Moment,
    /// When it was last of use.
    used: Cell<u64>,
}

impl Gap {
    fn bytes(&self) -> usize {
        GAP_BYTES + self.start.len() + self.end.len()
    }

    fn holds(&self, key: &[u8]) -> bool {
        compare(&self.start, key).is_le() && compare(key, &self.end).is_lt()
    }

    fn is_seen_by(&self, reader: Moment) -> bool {
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
    /// Whether nothing is known.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The bounds of the gap that holds `key`, or the last key below it for `below`, as far as `reader` may know it.
    pub(crate) fn around(&self, key: &[u8], below: bool, reader: Moment) -> Option<(&[u8], &[u8])> {
        let at = self.sorted.partition_point(|gap| {
            let order = compare(&gap.start, key);
            if below { order.is_lt() } else { order.is_le() }
        });
        let gap = self.sorted.get(at.checked_sub(1)?)?;
        let is_within = compare(key, &gap.end).is_lt() || (below && key == gap.end);
        if !is_within || !gap.is_seen_by(reader) {
            return None;
        }
        self.uses.set(self.uses.get() + 1);
        gap.used.set(self.uses.get());
        Some((&gap.start, &gap.end))
    }

    /// Notes that at `since` nothing was alive from `start` up to `end`, where `deaths` were walked over.
    pub(crate) fn note(&mut self, start: &[u8], end: &[u8], since: Moment, deaths: u32) {
        if deaths < DEATHS_MIN || start >= end {
            return;
        }
        self.uses.set(self.uses.get() + 1);
        let mut gap = Gap { start: start.to_vec(), end: end.to_vec(), since, used: self.uses.clone() };
        let low = self.sorted.partition_point(|known| compare(&known.end, start).is_lt());
        let high = self.sorted.partition_point(|known| compare(&known.start, end).is_le());
        for known in self.sorted.drain(low..high) {
            self.bytes -= known.bytes();
            gap.start = gap.start.min(known.start);
            gap.end = gap.end.max(known.end);
            gap.since.sequence = gap.since.sequence.max(known.since.sequence);
            gap.since.now_ms = gap.since.now_ms.max(known.since.now_ms);
        }
        self.bytes += gap.bytes();
        self.sorted.insert(low, gap);
        self.fit();
    }

    /// Takes a key out: it has been set.
    #[inline]
    pub(crate) fn cut(&mut self, key: &[u8]) {
        if !self.is_empty() && !mutant::has(Mutant::GapsNotCut) {
            self.cut_known(key);
        }
    }

    fn cut_known(&mut self, key: &[u8]) {
        let at = self.sorted.partition_point(|gap| compare(&gap.end, key).is_le());
        let Some(gap) = self.sorted.get_mut(at).filter(|gap| gap.holds(key)) else { return };
        let behind = Gap { start: [key, &[0]].concat(), ..gap.clone() };
        self.bytes -= gap.bytes();
        gap.end = key.to_vec();
        let before = self.sorted.remove(at);
        let parts = [before, behind].into_iter().filter(|part| part.start < part.end);
        for (at, part) in (at..).zip(parts) {
            self.bytes += part.bytes();
            self.sorted.insert(at, part);
        }
        self.fit();
    }

    /// Forgets what may rest on writes behind `last`, which were refused.
    pub(crate) fn forget_after(&mut self, last: Sequence) {
        self.sorted.retain(|gap| gap.since.sequence <= last);
        self.bytes = self.sorted.iter().map(Gap::bytes).sum();
    }

    /// Lets those go that were of use least lately, where all take too much.
    fn fit(&mut self) {
        while self.bytes > BYTES_MAX {
            let oldest = (0..self.sorted.len()).min_by_key(|&at| self.sorted[at].used.get());
            let Some(oldest) = oldest else { return };
            self.bytes -= self.sorted.remove(oldest).bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment { sequence: 10, now_ms: 100 };

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
        let found = |key: &str, below| gaps.around(key.as_bytes(), below, NOW).is_some();
        assert_eq!(["a", "b", "c", "d"].map(|key| found(key, false)), [false, true, true, false]);
        assert_eq!(["b", "c", "d", "e"].map(|key| found(key, true)), [false, true, true, false]);
    }

    #[test]
    fn a_reader_of_an_earlier_moment_may_see_what_died_since() {
        let mut gaps = Gaps::default();
        gaps.note(b"b", b"d", NOW, 4);
        for (reader, sees) in [
            (NOW, true),
            (Moment { sequence: 9, ..NOW }, false),
            (Moment { now_ms: 99, ..NOW }, false),
            (Moment { sequence: 11, now_ms: 101 }, true),
        ] {
            assert_eq!(gaps.around(b"c", false, reader).is_some(), sees, "{reader:?}");
        }
        gaps.note(b"c", b"e", Moment { sequence: 12, now_ms: 90 }, 4);
        assert_eq!(
            gaps.around(b"b", false, Moment { sequence: 11, now_ms: 100 }),
            None,
            "joined, the later counts"
        );
        gaps.forget_after(11);
        assert!(gaps.is_empty());
    }

    #[test]
    fn they_take_so_much_memory_and_no_more() {
        let mut gaps = Gaps::default();
        let key = |n: u32| [n.to_be_bytes().as_slice(), &[0; 200]].concat();
        for n in 0..1000 {
            gaps.note(&key(2 * n), &key(2 * n + 1), NOW, 4);
            assert!(gaps.around(&key(0), false, NOW).is_some(), "what is of use stays");
        }
        assert!(gaps.bytes <= BYTES_MAX && gaps.sorted.len() > 100);
    }
}
