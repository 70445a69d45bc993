//! Which versions of a key a job may drop.
//!
//! Snapshots cut history into stripes: a version is needed only if it is the newest of its key in its
//! stripe, for some snapshot (or the present) reads exactly that one. A tombstone that no snapshot can see past is
//! dropped as well where nothing older can lie: no table below the outputs has its key in its range (see
//! [`Below`]). An entry past its expiry is a tombstone. (The stripes are LevelDB's rule, with Pebble's name for them.)

use super::below::Below;
use crate::types::{Kind, RangeTombstone, Sequence};

/// Decides entry by entry; keys must come ascending, versions of a key newest first.
#[derive(Debug)]
pub(crate) struct Keep {
    snapshots: Vec<Sequence>,
    /// Older versions of a key can only lie in `below`.
    bottom: bool,
    below: Below,
    now_ms: u64,
    ranges: Vec<RangeTombstone>,
    key: Vec<u8>,
    /// Stripe of the last version seen of `key`.
    stripe: Option<usize>,
}

impl Keep {
    pub(crate) fn new(
        snapshots: Vec<Sequence>,
        now_ms: u64,
        bottom: bool,
        below: Below,
        ranges: Vec<RangeTombstone>,
    ) -> Self {
        Self { snapshots, bottom, below, now_ms, ranges, key: Vec::new(), stripe: None }
    }

    /// The stripe of a sequence: how many snapshots are older than it.
    fn stripe_of(&self, sequence: Sequence) -> usize {
        self.snapshots.partition_point(|&snapshot| snapshot < sequence)
    }

    /// As what this version must be written to the output: as it is, as a tombstone, or not at all.
    pub(crate) fn entry(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        expires: Option<u64>,
    ) -> Option<Kind> {
        if self.stripe.is_none() || self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.stripe = None;
            self.below.advance(key);
        }
        let stripe = self.stripe_of(sequence);
        let shadowed = self.stripe == Some(stripe);
        self.stripe = Some(stripe);
        if shadowed || self.is_range_deleted(key, sequence, stripe) {
            return None;
        }
        // A snapshot has a time of its own, at which the entry may have been alive.
        let is_past = stripe == self.snapshots.len() && expires.is_some_and(|at| at <= self.now_ms);
        let kind = if is_past { Kind::Delete } else { kind };
        let is_gone = self.bottom && kind == Kind::Delete && stripe == 0 && !self.below.may_hold(key);
        (!is_gone).then_some(kind)
    }

    fn is_range_deleted(&self, key: &[u8], sequence: Sequence, stripe: usize) -> bool {
        self.ranges.iter().any(|range| {
            range.sequence > sequence && self.stripe_of(range.sequence) == stripe && range.covers(key)
        })
    }

    /// The range tombstones that must go into the outputs.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &RangeTombstone> {
        let is_gone = |range: &RangeTombstone| {
            self.bottom && self.stripe_of(range.sequence) == 0 && !self.below.touches(range)
        };
        self.ranges.iter().filter(move |range| !is_gone(range))
    }

    /// Whether `key` is the key of the entry seen last: outputs are cut only between keys.
    pub(crate) fn is_current(&self, key: &[u8]) -> bool {
        self.stripe.is_some() && self.key == key
    }

    /// What lies below the outputs.
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

    fn keep_all(snapshots: Vec<Sequence>, bottom: bool, ranges: Vec<RangeTombstone>) -> Keep {
        Keep::new(snapshots, 1000, bottom, Below::default(), ranges)
    }

    #[test]
    fn a_tombstone_stays_over_a_table_below_that_may_hold_its_key() {
        let table = TableMeta { min_key: b"b".into(), max_key: b"d".into(), ..TableMeta::default() };
        let range = RangeTombstone { start: b"e".to_vec(), end: b"f".to_vec(), sequence: 3 };
        let wide = RangeTombstone { start: b"a".to_vec(), sequence: 1, ..range.clone() };
        let below = Below::new(vec![vec![std::rc::Rc::new(table)]]);
        let mut keep = Keep::new(vec![], 1000, true, below, vec![range, wide.clone()]);
        assert_eq!(keep.ranges().collect::<Vec<_>>(), [&wide]);
        let tombstone = [(9, Kind::Delete)];
        let kept = ["a", "b", "d", "e"].map(|key| kept(&mut keep, key, &tombstone).len());
        assert_eq!(kept, [0, 1, 1, 0]);
    }

    #[test]
    fn an_entry_past_its_expiry_is_a_tombstone() {
        let entry = |keep: &mut Keep, at| keep.entry(b"a", 5, Kind::Set, Some(at));
        assert_eq!(entry(&mut keep_all(vec![], false, vec![]), 1000), Some(Kind::Delete));
        assert_eq!(entry(&mut keep_all(vec![], true, vec![]), 1000), None);
        assert_eq!(entry(&mut keep_all(vec![], true, vec![]), 1001), Some(Kind::Set));
        assert_eq!(
            entry(&mut keep_all(vec![7], true, vec![]), 1000),
            Some(Kind::Set),
            "a snapshot may read it"
        );
        assert_eq!(
            entry(&mut keep_all(vec![3], true, vec![]), 1000),
            Some(Kind::Delete),
            "one may read below"
        );
    }

    #[test]
    fn without_snapshots_only_the_newest_version_is_kept() {
        let mut keep = keep_all(vec![], false, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Set), (5, Kind::Delete), (1, Kind::Set)]), [9]);
        assert_eq!(kept(&mut keep, "b", &[(4, Kind::Set)]), [4]);
    }

    #[test]
    fn each_snapshot_keeps_the_version_it_reads() {
        let mut keep = keep_all(vec![3, 6], false, vec![]);
        let versions = [(9, Kind::Set), (7, Kind::Set), (6, Kind::Set), (5, Kind::Set), (2, Kind::Set)];
        assert_eq!(kept(&mut keep, "a", &versions), [9, 6, 2]);
    }

    #[test]
    fn a_tombstone_leaves_the_bottom_unless_a_snapshot_looks_past_it() {
        let mut keep = keep_all(vec![], true, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Delete), (1, Kind::Set)]), [] as [u64; 0]);
        let mut keep = keep_all(vec![5], true, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Delete), (1, Kind::Set)]), [9, 1]);
    }

    #[test]
    fn a_range_tombstone_drops_what_it_covers_in_its_stripe() {
        let range = RangeTombstone { start: b"a".to_vec(), end: b"c".to_vec(), sequence: 8 };
        let mut keep = keep_all(vec![4], true, vec![range]);
        assert_eq!(kept(&mut keep, "a", &[(6, Kind::Set), (3, Kind::Set)]), [3]);
        assert_eq!(kept(&mut keep, "b", &[(9, Kind::Set)]), [9]);
        assert_eq!(kept(&mut keep, "c", &[(6, Kind::Set)]), [6]);
        assert_eq!(keep.ranges().count(), 1, "a snapshot still reads under it");
    }
}
