//! Which versions of a key a job may drop.
//!
//! Snapshots cut history into stripes: a version is needed only if it is the newest of its key in its
//! stripe, for some snapshot (or the present) reads exactly that one. Below the outputs of a bottom job
//! lies nothing, so there a tombstone that no snapshot can see past is dropped as well.
//! (The stripes are LevelDB's rule, with Pebble's name for them.)

use crate::types::{Kind, RangeTombstone, Sequence};

/// Decides entry by entry; keys must come ascending, versions of a key newest first.
#[derive(Debug)]
pub(crate) struct Keep {
    snapshots: Vec<Sequence>,
    bottom: bool,
    ranges: Vec<RangeTombstone>,
    key: Vec<u8>,
    /// Stripe of the last version seen of `key`.
    stripe: Option<usize>,
}

impl Keep {
    pub(crate) fn new(snapshots: Vec<Sequence>, bottom: bool, ranges: Vec<RangeTombstone>) -> Self {
        Self { snapshots, bottom, ranges, key: Vec::new(), stripe: None }
    }

    /// The stripe of a sequence: how many snapshots are older than it.
    fn stripe_of(&self, sequence: Sequence) -> usize {
        self.snapshots.partition_point(|&snapshot| snapshot < sequence)
    }

    /// Whether this version must be written to the output.
    pub(crate) fn entry(&mut self, key: &[u8], sequence: Sequence, kind: Kind) -> bool {
        if self.stripe.is_none() || self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.stripe = None;
        }
        let stripe = self.stripe_of(sequence);
        let shadowed = self.stripe == Some(stripe);
        self.stripe = Some(stripe);
        if shadowed || self.is_range_deleted(key, sequence, stripe) {
            return false;
        }
        !(self.bottom && kind == Kind::Delete && stripe == 0)
    }

    fn is_range_deleted(&self, key: &[u8], sequence: Sequence, stripe: usize) -> bool {
        self.ranges.iter().any(|range| {
            range.sequence > sequence && self.stripe_of(range.sequence) == stripe && range.covers(key)
        })
    }

    /// The range tombstones that must go into the outputs.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.ranges.iter().filter(|range| !(self.bottom && self.stripe_of(range.sequence) == 0))
    }

    /// Whether `key` is the key of the entry seen last: outputs are cut only between keys.
    pub(crate) fn is_current(&self, key: &[u8]) -> bool {
        self.stripe.is_some() && self.key == key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(keep: &mut Keep, key: &str, versions: &[(Sequence, Kind)]) -> Vec<Sequence> {
        versions
            .iter()
            .filter(|(sequence, kind)| keep.entry(key.as_bytes(), *sequence, *kind))
            .map(|(sequence, _)| *sequence)
            .collect()
    }

    #[test]
    fn without_snapshots_only_the_newest_version_is_kept() {
        let mut keep = Keep::new(vec![], false, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Set), (5, Kind::Delete), (1, Kind::Set)]), [9]);
        assert_eq!(kept(&mut keep, "b", &[(4, Kind::Set)]), [4]);
    }

    #[test]
    fn each_snapshot_keeps_the_version_it_reads() {
        let mut keep = Keep::new(vec![3, 6], false, vec![]);
        let versions = [(9, Kind::Set), (7, Kind::Set), (6, Kind::Set), (5, Kind::Set), (2, Kind::Set)];
        assert_eq!(kept(&mut keep, "a", &versions), [9, 6, 2]);
    }

    #[test]
    fn a_tombstone_leaves_the_bottom_unless_a_snapshot_looks_past_it() {
        let mut keep = Keep::new(vec![], true, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Delete), (1, Kind::Set)]), [] as [u64; 0]);
        let mut keep = Keep::new(vec![5], true, vec![]);
        assert_eq!(kept(&mut keep, "a", &[(9, Kind::Delete), (1, Kind::Set)]), [9, 1]);
    }

    #[test]
    fn a_range_tombstone_drops_what_it_covers_in_its_stripe() {
        let range = RangeTombstone { start: b"a".to_vec(), end: b"c".to_vec(), sequence: 8 };
        let mut keep = Keep::new(vec![4], true, vec![range]);
        assert_eq!(kept(&mut keep, "a", &[(6, Kind::Set), (3, Kind::Set)]), [3]);
        assert_eq!(kept(&mut keep, "b", &[(9, Kind::Set)]), [9]);
        assert_eq!(kept(&mut keep, "c", &[(6, Kind::Set)]), [6]);
        assert_eq!(keep.ranges().count(), 1, "a snapshot still reads under it");
    }
}
