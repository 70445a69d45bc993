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
//! read changes nothing before all the blocks it needs are available: it may be run again.

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
pub use salvage::{Remains, find_footers, salvage_table};
pub use tombstones::RangeTombstones;

use crate::error::Error;
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

/// Bytes that a read needs to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// The file to read.
    pub file: FileName,
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// Why a read gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// Fetch these bytes, then run the read again: it changed nothing.
    Need(Box<Need>),
    /// The read failed.
    Error(Error),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl ReadError {
    /// Tries the other reads of the same call after one failed. A host that fetches the data of failed reads (over an
    /// asynchronous storage) then fetches all of it together, and not one after the other. A read that returns what it
    /// needs does not require this.
    pub(crate) fn come_upon<T>(self, others: impl Iterator<Item = Result<T, Self>>) -> Self {
        if matches!(self, Self::Error(_)) {
            others.for_each(drop);
        }
        self
    }
}

/// The source of blocks: the cache, then the storage.
pub trait Blocks {
    /// The block at `handle` of table `table`, opened (see [`open_block`]).
    fn block(&self, table: u64, handle: BlockHandle, kind: BlockKind) -> Result<Rc<Block>, ReadError>;

    /// `len` raw bytes of the file from `offset` on: a table's footer, and its blocks after the data.
    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>, ReadError>;

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

    /// Counts the filter checks of a finished get: it checked the filters of `checks` tables, and `negatives` of them
    /// excluded the key. Unless overridden, nothing is counted.
    fn count_filters(&self, checks: u32, negatives: u32) {
        let _ = (checks, negatives);
    }
}
