//! The index of an image: the tree of point entries, and the range tombstones.
//!
//! Range tombstones lie in sorted runs, the oldest first. Each run is longer than the next one (the logarithmic method: Bentley
//! and Saxe, "Decomposable searching problems", 1980). So a lookup searches only a few runs, and each tombstone is sorted a few
//! times.
//!
//! Invariant: everything here follows from the image alone, so it can be built again at any time.

use super::node::Item;
use super::tree::Tree;
use crate::table::RangeTombstones;
use crate::types::{Kind, RangeTombstone, Sequence};

/// Approximate bytes of a range tombstone besides its two keys. The same on every machine, because it decides when a memtable is full.
const RANGE_TOMBSTONE_BYTES: usize = 72;

#[derive(Clone)]
pub(super) struct Index {
    pub(super) tree: Tree,
    /// Sequence of the first entry; items count from it. 0 while there is no entry.
    pub(super) base: Sequence,
    /// Sequence of the last entry.
    pub(super) last: Sequence,
    /// Entries in the tree.
    pub(super) points: usize,
    pub(super) range_tombstones: Vec<RangeTombstones>,
    /// Where they lie in the image, in the order of writing.
    pub(super) range_items: Vec<Item>,
    range_bytes: usize,
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            tree: Tree::new(),
            base: 0,
            last: 0,
            points: 0,
            range_tombstones: Vec::new(),
            range_items: Vec::new(),
            range_bytes: 0,
        }
    }

    /// Bytes of the index.
    pub(super) fn bytes(&self) -> usize {
        self.tree.bytes() + self.range_bytes
    }

    /// Adds the entry at `offset` of `image`, which is newer than all others.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn add(
        &mut self,
        image: &[u8],
        offset: u32,
        sequence: Sequence,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) {
        if self.base == 0 {
            self.base = sequence;
        }
        self.last = sequence;
        let item = Item { offset, delta: (sequence - self.base) as u32 };
        if kind == Kind::RangeDelete {
            let (start, end) = (key.to_vec(), value.to_vec());
            self.range_bytes += start.len() + end.len() + RANGE_TOMBSTONE_BYTES;
            self.add_range(RangeTombstone { start, end, sequence });
            self.range_items.push(item);
        } else {
            self.points += 1;
            self.tree.insert(image, key, item);
        }
    }

    fn add_range(&mut self, tombstone: RangeTombstone) {
        let mut run = vec![tombstone];
        while let Some(last) = self.range_tombstones.pop_if(|last| last.as_slice().len() <= run.len()) {
            run.extend(last.into_vec());
        }
        self.range_tombstones.push(RangeTombstones::new(run));
    }
}
