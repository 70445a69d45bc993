//! The range tombstones of a table, all in memory.
//!
//! ```text
//! { varint len, start | varint len, end | varint sequence }*      by start ascending, then sequence descending
//! ```
//!
//! The sorted list is also read as a balanced tree (the middle of a range is its root), and each root
//! knows which end below it lies furthest: a lookup skips every subtree that ends before its key.
//!
//! Invariant: every range has at least one key in it.

use super::Malformed;
use crate::codec::bytes;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::types::{RangeTombstone, SEQUENCE_MAX, Sequence};

/// Range tombstones, searchable by key.
#[derive(Debug, Clone, Default)]
pub struct RangeTombstones {
    sorted: Vec<RangeTombstone>,
    /// For each root of a subtree, the item of the subtree whose end lies furthest.
    furthest: Vec<u32>,
}

impl RangeTombstones {
    /// Sorts `tombstones`; those that cover no key are left out.
    #[must_use]
    pub fn new(mut tombstones: Vec<RangeTombstone>) -> Self {
        tombstones.retain(|tombstone| tombstone.start < tombstone.end);
        tombstones.sort_unstable_by(|a, b| a.start.cmp(&b.start).then(b.sequence.cmp(&a.sequence)));
        let mut furthest = vec![0; tombstones.len()];
        link(&tombstones, &mut furthest, 0);
        Self { sorted: tombstones, furthest }
    }

    /// Reads the bytes of a range tombstone block.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut tombstones = Vec::new();
        while !reader.is_empty() {
            let tombstone = read(&mut reader).map_err(|Truncated| Malformed("range tombstones cut short"))?;
            if tombstone.start >= tombstone.end || tombstone.sequence > SEQUENCE_MAX {
                return Err(Malformed("range tombstone"));
            }
            tombstones.push(tombstone);
        }
        Ok(Self::new(tombstones))
    }

    /// The bytes of the range tombstone block, without trailer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut into = Vec::new();
        for tombstone in &self.sorted {
            for key in [&tombstone.start, &tombstone.end] {
                put_u64(&mut into, key.len() as u64);
                into.extend_from_slice(key);
            }
            put_u64(&mut into, tombstone.sequence);
        }
        into
    }

    /// All of them, by start ascending, then sequence descending.
    #[must_use]
    pub fn as_slice(&self) -> &[RangeTombstone] {
        &self.sorted
    }

    /// The highest sequence at or below `snapshot` of one that covers `key`, 0 if none does.
    #[inline]
    #[must_use]
    pub fn over(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        if self.sorted.is_empty() { 0 } else { self.highest(0, self.sorted.len(), key, snapshot) }
    }

    fn highest(&self, low: usize, high: usize, key: &[u8], snapshot: Sequence) -> Sequence {
        if low == high {
            return 0;
        }
        let middle = low + (high - low) / 2;
        let last = &self.sorted[self.furthest[middle] as usize].end;
        if bytes::compare(last, key).is_le() {
            return 0;
        }
        let below = self.highest(low, middle, key, snapshot);
        let tombstone = &self.sorted[middle];
        if bytes::compare(&tombstone.start, key).is_gt() {
            return below;
        }
        let visible = tombstone.sequence <= snapshot && bytes::compare(key, &tombstone.end).is_lt();
        let here = if visible { tombstone.sequence } else { 0 };
        below.max(here).max(self.highest(middle + 1, high, key, snapshot))
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let keys: usize = self.sorted.iter().map(|item| item.start.capacity() + item.end.capacity()).sum();
        keys + self.sorted.capacity() * (size_of::<RangeTombstone>() + size_of::<u32>())
    }
}

/// Fills in `furthest` for the subtree over `sorted`, whose first item is number `base`; answers its root's.
fn link(sorted: &[RangeTombstone], furthest: &mut [u32], base: usize) -> Option<u32> {
    if sorted.is_empty() {
        return None;
    }
    let middle = sorted.len() / 2;
    let (left, right) = furthest.split_at_mut(middle);
    let (root, right) = right.split_first_mut()?;
    let children =
        [link(&sorted[..middle], left, base), link(&sorted[middle + 1..], right, base + middle + 1)];
    *root = (base + middle) as u32;
    for child in children.into_iter().flatten() {
        if sorted[child as usize - base].end > sorted[*root as usize - base].end {
            *root = child;
        }
    }
    Some(*root)
}

fn read(reader: &mut Reader<'_>) -> Result<RangeTombstone, Truncated> {
    Ok(RangeTombstone {
        start: reader.prefixed()?.to_vec(),
        end: reader.prefixed()?.to_vec(),
        sequence: reader.varint()?,
    })
}
