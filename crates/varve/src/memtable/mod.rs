//! The memtable: a WAL segment in memory with a B+tree over its entries.
//!
//! ```text
//! image   segment header | record { entry entry } | record { entry } | ...    byte for byte the file
//!                                    ^      ^                  ^
//! tree    leaves of { 8 bytes of key, offset, sequence }  in the order (key ascending, sequence descending)
//! ```
//!
//! Writing a batch means writing its record. The tree refers to the bytes where they are, and the bytes appended to the
//! file are a slice of the image. So nothing is encoded twice, a frozen memtable is one buffer and an order (see
//! [`frozen`](Memtable::frozen)), and recovery indexes a file's bytes as they are.
//!
//! 1. A key is found by 8 bytes next to each other in a node, not by following a pointer per comparison.
//! 2. Those 8 bytes start after the common prefix of the node's keys (see `node`).
//! 3. An entry costs about 24 bytes of index, and no allocation of its own.
//!
//! Invariant: the image is always a segment header and whole records, except between [`Memtable::begin`] and
//! [`Memtable::end`]. An entry is in the tree, or a range tombstone in the list, as soon as it is pushed. A reader at
//! an older sequence does not see it.

mod cursor;
mod frozen;
mod index;
mod node;
mod replay;
mod tree;

use core::fmt;

use crate::codec::frame::{begin_record, end_record, end_record_under};
use crate::codec::{room, varint};
use crate::error::Result;
use crate::table::RangeTombstones;
use crate::types::{Kind, RangeTombstone, Sequence};
use crate::wal::{Entry, SegmentHeader, put_entry};
pub use cursor::MemtableCursor;
pub use frozen::{FrozenEntry, FrozenIter};
use index::Index;
use node::Item;

/// Longest image in bytes: offsets into it are 32 bits.
pub const IMAGE_BYTES_MAX: u64 = u32::MAX as u64;

/// A longer record gets exactly the room it needs.
const LONG_BYTES: usize = 1 << 20;
/// Approximate bytes of memory that an entry takes in the index.
const INDEX_BYTES: usize = 32;

/// The newest entries of a store, and the WAL segment that contains them.
#[derive(Clone)]
pub struct Memtable {
    image: Vec<u8>,
    header: SegmentHeader,
    index: Index,
    open: Option<OpenRecord>,
}

/// The record between `begin` and `end`.
#[derive(Clone)]
struct OpenRecord {
    start: usize,
    next_sequence: Sequence,
    left: u32,
}

/// The result of [`Memtable::get`]: the newest version of a key, which may be a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// The sequence of the write.
    pub sequence: Sequence,
    /// A value or a tombstone.
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The value, empty for a tombstone.
    pub value: &'a [u8],
}

impl Memtable {
    /// An empty memtable for a new segment.
    #[must_use]
    pub fn new(header: SegmentHeader) -> Self {
        Self { image: header.encode().to_vec(), header, index: Index::new(), open: None }
    }

    /// The segment's bytes, header first.
    #[must_use]
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// The segment's header.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Makes room for a record of at most `bytes` with this many entries, or fails if memory is short.
    ///
    /// # Errors
    /// [`Error::NO_MEMORY`](crate::error::Error::NO_MEMORY).
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize, entries: usize) -> Result<()> {
        if bytes < LONG_BYTES {
            return room::reserve(&mut self.image, bytes);
        }
        room::reserve_exact(&mut self.image, bytes)?;
        room::claim(entries * INDEX_BYTES)
    }

    /// Opens a record for `count` entries. The first entry gets `first_sequence`. [`end`](Self::end) closes the record;
    /// until then the image ends in the middle of it.
    ///
    /// # Panics
    /// When a record is open, when sequences do not ascend, or when they reach 2^32 past the first one here: recovery
    /// would refuse the segment.
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn begin(&mut self, client: u64, request: u64, first_sequence: Sequence, count: u32) {
        assert!(self.open.is_none(), "a record is open");
        assert!(self.index.admits(first_sequence, u64::from(count)), "sequences ascend, over less than 2^32");
        let start = begin_record(&mut self.image);
        for field in [client, request, first_sequence, u64::from(count)] {
            varint::put_u64(&mut self.image, field);
        }
        self.open = Some(OpenRecord { start, next_sequence: first_sequence, left: count });
    }

    /// Adds the next entry of the open record. [`get`](Self::get) finds it at once.
    ///
    /// For a range tombstone, `key` is the first key of the range and `value` the first key after it.
    ///
    /// # Panics
    /// When no record is open, when it already has its `count` entries, or when the image would pass
    /// [`IMAGE_BYTES_MAX`].
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn push(&mut self, kind: Kind, expires: Option<u64>, key: &[u8], value: &[u8]) {
        let open = self.open.as_mut().filter(|open| open.left > 0).expect("a record is open");
        let sequence = open.next_sequence;
        open.next_sequence += 1;
        open.left -= 1;
        let offset = self.image.len();
        put_entry(&mut self.image, kind, expires, key, value);
        assert!(self.image.len() as u64 <= IMAGE_BYTES_MAX, "a segment is at most 4 GiB");
        self.index.add(&self.image, offset as u32, sequence, kind, key, value);
    }

    /// Closes the open record: writes its length, its promise that all bytes before `synced_upto` are durable, and its
    /// checksum.
    ///
    /// # Panics
    /// When no record is open, or entries are missing from it.
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn end(&mut self, synced_upto: u32) {
        let open = self.open.take().expect("a record is open");
        assert!(open.left == 0, "a record has as many entries as it says");
        end_record_under(self.header.key, &mut self.image, open.start, self.header.salt, synced_upto);
    }

    /// Appends a seal: a record without entries which promises that everything before it is durable. Call it only when that is true.
    ///
    /// # Panics
    /// When a record is open.
    pub fn seal(&mut self) {
        assert!(self.open.is_none(), "a record is open");
        let start = begin_record(&mut self.image);
        end_record(&mut self.image, start, self.header.salt, start as u32);
    }

    /// The newest version of `key` at or below `snapshot`, tombstones included. Range tombstones are not checked: see
    /// [`tombstone_over`](Self::tombstone_over).
    #[inline(always)]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn get(&self, key: &[u8], snapshot: Sequence) -> Option<Found<'_>> {
        let item = self.index.tree.get(&self.image, key, self.delta(snapshot)?)?;
        self.found(item).map(|(_, found)| found)
    }

    /// `snapshot`, counted from the first sequence here; `None` when no entry is that old.
    #[inline]
    fn delta(&self, snapshot: Sequence) -> Option<u32> {
        Some(u32::try_from(snapshot.checked_sub(self.index.base)?).unwrap_or(u32::MAX))
    }

    /// The highest sequence, at most `snapshot`, of a range tombstone that covers `key`; 0 when there is
    /// none.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn tombstone_over(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        let newest_first = self.index.range_tombstones.iter().rev();
        newest_first.map(|run| run.over(key, snapshot)).find(|&sequence| sequence > 0).unwrap_or(0)
    }

    /// All range tombstones.
    pub fn range_tombstones(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.index.range_tombstones.iter().flat_map(RangeTombstones::as_slice)
    }

    /// The first entry with a sequence above `since` that lies at `from` or after it, while `reaches` accepts its key. Entries
    /// that are not newer cost almost nothing.
    pub(crate) fn first_newer(
        &self,
        from: &[u8],
        since: Sequence,
        reaches: &dyn Fn(&[u8]) -> bool,
    ) -> Option<(&[u8], Found<'_>)> {
        self.found(self.index.tree.first_newer(&self.image, from, self.delta(since), reaches)?)
    }

    fn found(&self, item: Item) -> Option<(&[u8], Found<'_>)> {
        let (entry, _) = Entry::decode(&self.image, item.offset as usize)?;
        let sequence = self.index.base + Sequence::from(item.delta);
        Some((entry.key, Found { sequence, kind: entry.kind, expires: entry.expires, value: entry.value }))
    }

    /// A cursor that sees the same as a reader of `snapshot`, not yet positioned.
    #[must_use]
    pub fn cursor(&self, snapshot: Sequence) -> MemtableCursor<'_> {
        MemtableCursor::new(self, snapshot)
    }

    /// Number of entries, including range tombstones.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.index.points + self.index.range_items.len()
    }

    /// Whether there are no entries; the image may still contain seals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// Bytes of the image and its index.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.image.len() + self.index.bytes()
    }

    /// Sequence of the newest entry, 0 when empty.
    #[must_use]
    pub fn max_sequence(&self) -> Sequence {
        self.index.last
    }

    /// Sequence of the oldest entry, 0 when empty.
    #[must_use]
    pub fn min_sequence(&self) -> Sequence {
        self.index.base
    }

    /// The order of the entries, for [`frozen`](Self::frozen): 8 bytes each.
    #[must_use]
    pub fn freeze_order(&self) -> Vec<u8> {
        frozen::encode_order(
            self.index.base,
            self.index.points,
            self.index.tree.items(),
            &self.index.range_items,
        )
    }

    /// The entries of a memtable, from its image and its [`freeze_order`](Self::freeze_order).
    ///
    /// # Errors
    /// `Error::InvalidArgument` when the bytes are not such an image and order.
    pub fn frozen<'a>(image: &'a [u8], order: &'a [u8]) -> Result<FrozenIter<'a>> {
        FrozenIter::new(image, order)
    }
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memtable")
            .field("segment", &self.header.segment)
            .field("image_bytes", &self.image.len())
            .field("entries", &self.entries())
            .finish_non_exhaustive()
    }
}
