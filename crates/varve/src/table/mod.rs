//! Tables: sorted, immutable files of entries.
//!
//! ```text
//! data block* | filter block | range tombstone block | index block | properties block | footer (96 B)
//!      ^                                                    |                              |
//!      +------- separator, sequence, length per block ------+<--------- handles -----------+
//! ```
//!
//! Entries are ordered by key ascending, then sequence descending, so the newest version of a key comes first. A
//! [`TableBuilder`] takes them in that order and returns bytes as they are finished. A [`Table`] keeps footer, properties,
//! index, range tombstones and, unless it is lean, its filter in memory. It asks a [`Blocks`] for the rest.
//!
//! Invariants: a finished table never changes. Every byte of it is covered by a checksum that is seeded with the store,
//! the file and the place. So a flipped, torn, misdirected or foreign block causes an error, never a wrong result. A
//! read changes nothing before all the blocks it needs are available: after [`Error::Pending`] it may be run again.

mod block;
mod builder;
mod cursor;
mod filter;
mod footer;
mod index;
mod memory;
mod meta;
mod properties;
mod reader;
mod salvage;
mod tombstones;

use std::rc::Rc;

pub use block::{Block, BlockEntry, Malformed, TRAILER_BYTES, open_block, open_block_to_copy};
pub use builder::{TableBuilder, TableOptions};
pub use cursor::TableCursor;
pub use filter::{Filter, FilterBuilder, hash_key};
pub use footer::{FOOTER_BYTES, Footer};
pub use index::{Index, IndexBuilder};
pub use memory::MemoryBlocks;
pub use meta::TableMeta;
pub use properties::Properties;
pub use reader::{Table, TableValue};
pub(crate) use salvage::find_table;
pub use salvage::{Remains, find_footers, intact_blocks, is_intact, key_of, salvage_table};
pub use tombstones::RangeTombstones;

use crate::codec::cipher::KeyNumber;
use crate::error::{Error, Result};
use crate::types::FileName;

/// The kind of contents of a block. The byte is part of the block's trailer, so one kind is never read as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockKind {
    /// Entries.
    Data = 1,
    /// The Bloom filter over all keys.
    Filter = 2,
    /// The range tombstones.
    RangeTombstones = 3,
    /// A separator for each data block.
    Index = 4,
    /// Statistics of the whole table.
    Properties = 5,
}

/// Where a block lies in its file. A length of 0 means that the table has no such block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BlockHandle {
    /// First byte.
    pub offset: u64,
    /// Bytes on disk, trailer included.
    pub len: u32,
}

impl BlockHandle {
    /// The first byte after the block.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

/// Bytes that a job or a check asks its host for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// The file to read.
    pub file: FileName,
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// After a read found that bytes are missing, tries the other reads of the same call, so that the storage learns what is missing for all
/// of them. Then the host can fetch all of it together, and not one after the other. Returns the error of the first read.
pub(crate) fn come_upon<T>(failure: Error, others: impl Iterator<Item = Result<T>>) -> Error {
    if failure == Error::Pending {
        others.for_each(drop);
    }
    failure
}

/// The source of blocks: the cache, then the storage. Its errors are [`Error::Pending`] while bytes are missing, and those of the storage.
pub trait Blocks {
    /// The data block at `handle` of table `table`, whose key has the number `key`, opened (see [`open_block`]).
    fn block(&self, table: u64, key: KeyNumber, handle: BlockHandle) -> Result<Rc<Block>>;

    /// `len` raw bytes of the file from `offset` on: a table's footer, and its blocks after the data.
    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>>;

    /// Keeps an open table for later reads, as long as it is read often enough for its memory. Unless overridden, only its readers keep it.
    fn keep(&self, table: &Rc<Table>) {
        let _ = table;
    }

    /// A table that is kept open. Unless overridden, none is.
    fn kept(&self, table: u64) -> Option<Rc<Table>> {
        let _ = table;
        None
    }

    /// Whether open tables may take `bytes` more and still leave enough memory for blocks. Unless overridden, they may.
    fn has_room(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Whether the bytes that several reads are missing are noted, to be fetched together. Unless overridden, they are not: then a read that
    /// is only tried would take the place of one that is needed.
    fn notes_missing(&self) -> bool {
        false
    }

    /// Counts the filter checks of a finished get: it checked the filters of `checks` tables, and `negatives` of them
    /// excluded the key. Unless overridden, nothing is counted.
    fn count_filters(&self, checks: u32, negatives: u32) {
        let _ = (checks, negatives);
    }
}
