//! Which entries a job may drop.
//!
//! Only the newest version of a key is kept: a snapshot reads the tables of its read point, never what a job wrote later. A
//! tombstone is also dropped where nothing older can exist (no table below the outputs has its key in its range, see
//! [`Below`]). But a tombstone that is newer than an open snapshot is kept: a transaction that read at that snapshot must
//! find that the key was written. An entry past its expiry is a tombstone.

use super::below::Below;
use crate::mutant::{self, Mutant};
use crate::table::RangeTombstones;
use crate::types::{Kind, RangeTombstone, SEQUENCE_MAX, Sequence};

/// Decides for each entry. Keys must be ascending, and the versions of a key must come newest first.
#[derive(Debug)]
pub(crate) struct Keep {
    /// Tombstones up to this sequence may be dropped.
    tombstones_until: Sequence,
    /// Older versions of a key can only lie in `below`.
    bottom: bool,
    below: Below,
    now_ms: u64,
    ranges: RangeTombstones,
    hiding: RangeTombstones,
    key: Vec<u8>,
    /// A version of `key` was seen.
    is_open: bool,
    /// Entries that had expired.
    expired: u64,
}

impl Keep {
    pub(crate) fn new(
        tombstones_until: Sequence,
        now_ms: u64,
        bottom: bool,
        below: Below,
        ranges: Vec<RangeTombstone>,
    ) -> Self {
        let (hiding, key) = (RangeTombstones::default(), Vec::new());
        let ranges = RangeTombstones::new(ranges);
        Self { tombstones_until, bottom, below, now_ms, ranges, hiding, key, is_open: false, expired: 0 }
    }

    /// How this version must be written to the output: unchanged, as a tombstone, or not at all.
    pub(crate) fn entry(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        expires: Option<u64>,
    ) -> Option<Kind> {
        if self.is_current(key) {
            return None;
        }
        self.open(key);
        if [&self.ranges, &self.hiding].into_iter().any(|ranges| ranges.over(key, SEQUENCE_MAX) > sequence) {
            return None;
        }
        let is_past = expires.is_some_and(|at| at <= self.now_ms) && !mutant::has(Mutant::ExpiredEntriesKept);
        self.expired += u64::from(is_past);
        let kind = if is_past { Kind::Delete } else { kind };
        let is_gone = kind == Kind::Delete && self.may_drop(sequence) && !self.below.may_hold(key);
        (!is_gone).then_some(kind)
    }

    /// Takes note of a version that is written elsewhere: it hides the older versions of its key.
    pub(crate) fn pass(&mut self, key: &[u8]) {
        if !self.is_current(key) {
            self.open(key);
        }
    }

    /// Adds range tombstones that are written elsewhere: they hide entries too.
    pub(crate) fn hide(&mut self, ranges: Vec<RangeTombstone>) {
        self.hiding = RangeTombstones::new(ranges);
    }

    fn open(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.is_open = true;
        self.below.advance(key);
    }

    /// Number of entries so far that had expired: they became tombstones or were dropped.
    pub(crate) fn expired(&self) -> u64 {
        self.expired
    }

    /// Number of range tombstones that are not written to the outputs.
    pub(crate) fn ranges_dropped(&self) -> u64 {
        (self.ranges.as_slice().len() - self.ranges().count()) as u64
    }

    /// Whether a tombstone may be dropped where nothing lies below it.
    fn may_drop(&self, sequence: Sequence) -> bool {
        self.bottom && sequence <= self.tombstones_until
    }

    /// The range tombstones that must be written to the outputs.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &RangeTombstone> {
        let is_gone = |range: &RangeTombstone| self.may_drop(range.sequence) && !self.below.touches(range);
        self.ranges.as_slice().iter().filter(move |range| !is_gone(range))
    }

    /// Whether `key` is the key of the last entry: outputs are cut only between keys.
    pub(crate) fn is_current(&self, key: &[u8]) -> bool {
        self.is_open && self.key == key
    }

    /// The levels below the outputs.
    pub(crate) fn below(&mut self) -> &mut Below {
        &mut self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableMeta;

    fn kept(keep: &mut Keep, key: &str, versions: &[(Sequence, Kind)]) -> Vec<Sequence> {
        versions
            .iter()
            .filter(|(sequence, kind)| keep.entry(key.as_bytes(), *sequence, *kind, None).is_some())
            .map(|(sequence, _)| *sequence)
            .collect()
    }

    fn keep_all(tombstones_until: Sequence, bottom: bool, ranges: Vec<RangeTombstone>) -> Keep {
        Keep::new(tombstones_until, 1000, bottom, Below::default(), ranges)
    }

    #[test]
    fn a_tombstone_stays_over_a_table_below_that_may_hold_its_key() {
        let table = TableMeta { min_key: b"b".into(), max_key: b"d".into(), ..TableMeta::default() };
        let range = RangeTombstone { start: b"e".to_vec(), end: b"f".to_vec(), sequence: 3 };
        let wide = RangeTombstone { start: b"a".to_vec(), sequence: 1, ..range.clone() };
        let below = Below::new(vec![vec![std::rc::Rc::new(table)]]);
        let mut keep = Keep::new(SEQUENCE_MAX, 1000, true, below, vec![range, wide.clone()]);
        assert_eq!(keep.ranges().collect::<Vec<_>>(), [&wide]);
        let tombstone = [(9, Kind::Delete)];
        let kept = ["a", "b", "d", "e"].map(|key| kept(&mut keep, key, &tombstone).len());
        assert_eq!(kept, [0, 1, 1, 0]);
    }

    #[test]
    fn an_entry_past_its_expiry_is_a_tombstone() {
        let entry = |keep: &mut Keep, at| keep.entry(b"a", 5, Kind::Set, Some(at));
        assert_eq!(entry(&mut keep_all(SEQUENCE_MAX, false, vec![]), 1000), Some(Kind::Delete));
        assert_eq!(entry(&mut keep_all(SEQUENCE_MAX, true, vec![]), 1000), None);
        assert_eq!(entry(&mut keep_all(SEQUENCE_MAX, true, vec![]), 1001), Some(Kind::Set));
        assert_eq!(entry(&mut keep_all(4, true, vec![]), 1000), Some(Kind::Delete), "it may be asked for");
    }

    #[test]
    fn only_the_newest_version_is_kept() {
        let mut keep = keep_all(SEQUENCE_MAX, false, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Set), (5, Kind::Delete), (1, Kind::Set)]), [9]);
        assert_eq!(kept(&mut keep, "b", &[(4, Kind::Set)]), [4]);
    }

    #[test]
    fn a_tombstone_leaves_the_bottom_unless_it_is_newer_than_a_snapshot() {
        let versions = [(9, Kind::Delete), (1, Kind::Set)];
        for (tombstones_until, left) in [(SEQUENCE_MAX, vec![]), (9, vec![]), (8, vec![9])] {
            assert_eq!(kept(&mut keep_all(tombstones_until, true, vec![]), "a", &versions), left);
        }
    }

    #[test]
    fn a_range_tombstone_drops_what_it_covers_and_stays_if_it_is_newer_than_a_snapshot() {
        let range = RangeTombstone { start: b"a".to_vec(), end: b"c".to_vec(), sequence: 8 };
        for (tombstones_until, left) in [(8, 0), (7, 1)] {
            let mut keep = keep_all(tombstones_until, true, vec![range.clone()]);
            assert_eq!(kept(&mut keep, "a", &[(6, Kind::Set), (3, Kind::Set)]), [0; 0]);
            assert_eq!(kept(&mut keep, "b", &[(9, Kind::Set)]), [9]);
            assert_eq!(kept(&mut keep, "c", &[(6, Kind::Set)]), [6]);
            assert_eq!(keep.ranges().count(), left);
        }
    }
}
