//! A memtable that will become a table, as two buffers that can be sent to another worker.
//!
//! ```text
//! image    the segment as it is in the file
//! order    u64 base | u32 entries | u32 range tombstones | { u32 offset, u32 sequence - base } *
//!          entries in the order (key ascending, sequence descending), then the range tombstones as written
//! ```
//!
//! Offsets do not depend on where the buffers are in memory, so freezing costs one pass over the leaves.
//!
//! Invariant: reading never panics, whatever the two buffers contain.

use super::node::Item;
use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::types::{Kind, RangeTombstone, Sequence};
use crate::wal::Entry;

const ORDER_HEADER_BYTES: usize = 16;
const NOT_AN_ORDER: Error = Error::InvalidArgument("The bytes are not a frozen memtable.");

/// An entry of a frozen memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrozenEntry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence of the write.
    pub sequence: Sequence,
    /// The kind of write.
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The value.
    pub value: &'a [u8],
}

/// The point entries of a frozen memtable, in the order of a table. Skipping ahead is free.
#[derive(Debug, Clone)]
pub struct FrozenIter<'a> {
    image: &'a [u8],
    base: Sequence,
    entries: &'a [[u8; 8]],
    range_tombstones: &'a [[u8; 8]],
}

pub(super) fn encode_order(
    base: Sequence,
    entries: usize,
    items: impl Iterator<Item = Item>,
    ranges: &[Item],
) -> Vec<u8> {
    let mut order = Vec::with_capacity(ORDER_HEADER_BYTES + 8 * (entries + ranges.len()));
    order.extend_from_slice(&base.to_le_bytes());
    order.extend_from_slice(&(entries as u32).to_le_bytes());
    order.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
    for item in items.chain(ranges.iter().copied()) {
        let pair = u64::from(item.offset) | u64::from(item.delta) << 32;
        order.extend_from_slice(&pair.to_le_bytes());
    }
    order
}

impl<'a> FrozenIter<'a> {
    pub(super) fn new(image: &'a [u8], order: &'a [u8]) -> Result<Self> {
        let iter = Self::decode(image, order).map_err(|Truncated| NOT_AN_ORDER)?;
        // Losing a range tombstone would bring deleted keys back: all of them must be complete before any entry is returned.
        for pair in iter.range_tombstones {
            if iter.entry(pair)?.kind != Kind::RangeDelete {
                return Err(NOT_AN_ORDER);
            }
        }
        Ok(iter)
    }

    fn decode(image: &'a [u8], order: &'a [u8]) -> Result<Self, Truncated> {
        let mut reader = Reader::new(order);
        let base = reader.u64()?;
        let entries = reader.u32()? as usize;
        let ranges = reader.u32()? as usize;
        let (pairs, rest) = order[ORDER_HEADER_BYTES..].as_chunks::<8>();
        if !rest.is_empty() || entries.checked_add(ranges) != Some(pairs.len()) {
            return Err(Truncated);
        }
        let (entries, range_tombstones) = pairs.split_at(entries);
        Ok(Self { image, base, entries, range_tombstones })
    }

    fn entry(&self, pair: &[u8; 8]) -> Result<FrozenEntry<'a>> {
        let pair = u64::from_le_bytes(*pair);
        let (entry, _) = Entry::decode(self.image, pair as u32 as usize).ok_or(NOT_AN_ORDER)?;
        let sequence = self.base.checked_add(pair >> 32).ok_or(NOT_AN_ORDER)?;
        let Entry { kind, expires, key, value, .. } = entry;
        Ok(FrozenEntry { key, sequence, kind, expires, value })
    }

    /// The memtable's range tombstones, oldest first.
    #[must_use]
    pub fn range_tombstones(&self) -> Vec<RangeTombstone> {
        let entries = self.range_tombstones.iter().filter_map(|pair| self.entry(pair).ok());
        entries
            .map(|entry| RangeTombstone {
                start: entry.key.to_vec(),
                end: entry.value.to_vec(),
                sequence: entry.sequence,
            })
            .collect()
    }
}

impl<'a> Iterator for FrozenIter<'a> {
    type Item = Result<FrozenEntry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    fn nth(&mut self, skipped: usize) -> Option<Self::Item> {
        let (pair, rest) = self.entries.get(skipped..).unwrap_or_default().split_first().unzip();
        self.entries = rest.unwrap_or_default();
        pair.map(|pair| self.entry(pair))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}
