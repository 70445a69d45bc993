//! The input side of a compaction: blocks cut from chunks that the host fetched.
//!
//! Invariant: at most `lanes + 1` chunks are kept, the least recently used goes first; the chunk just
//! fetched is always there for the retry, so a job makes progress however small that number is.
//! The hash of a block is verified like that of any read: a job never copies damage into a new table.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::Error;
use crate::table::{Block, BlockHandle, BlockKind, Blocks, Need, ReadError, Table, open_block_to_copy};
use crate::types::{FileName, StoreId};

/// Bytes asked for at once: one read of this size costs an engine worker about 0.1 ms.
const CHUNK_BYTES: u64 = 1 << 20;
/// The end of a table (filter, index, footer) is fetched in one piece of this size.
const TAIL_BYTES: u64 = 64 << 10;

struct Chunk {
    table: u64,
    offset: u64,
    bytes: Vec<u8>,
    used: u64,
}

/// Fetched parts of the input tables.
pub(crate) struct ChunkBlocks {
    store: StoreId,
    sizes: Vec<(u64, u64)>,
    chunks: RefCell<Vec<Chunk>>,
    clock: RefCell<u64>,
    /// The inputs that are open: all of them, until the job is done.
    tables: RefCell<Vec<Rc<Table>>>,
    lanes: usize,
    /// See [`ChunkBlocks::copying`].
    copied_bytes_min: usize,
}

impl ChunkBlocks {
    pub(crate) fn new(store: StoreId, sizes: Vec<(u64, u64)>, lanes: usize) -> Self {
        Self {
            store,
            sizes,
            chunks: RefCell::default(),
            clock: RefCell::default(),
            tables: RefCell::default(),
            lanes,
            copied_bytes_min: usize::MAX,
        }
    }

    /// Opens blocks of one entry to be copied, from so many raw bytes on.
    pub(crate) fn copying(self, raw_bytes_min: usize) -> Self {
        Self { copied_bytes_min: raw_bytes_min, ..self }
    }

    /// Keeps what the host fetched for `need`.
    pub(crate) fn feed(&self, need: &Need, bytes: Vec<u8>) {
        let mut chunks = self.chunks.borrow_mut();
        if chunks.len() > self.lanes
            && let Some(oldest) = (0..chunks.len()).min_by_key(|&index| chunks[index].used)
        {
            chunks.swap_remove(oldest);
        }
        chunks.push(Chunk { table: need.file.id, offset: need.offset, bytes, used: u64::MAX });
    }

    fn size_of(&self, table: u64) -> u64 {
        self.sizes.iter().find(|(id, _)| *id == table).map_or(0, |(_, size)| *size)
    }
}

impl Blocks for ChunkBlocks {
    fn block(&self, table: u64, handle: BlockHandle, kind: BlockKind) -> Result<Rc<Block>, ReadError> {
        let stored = self.raw(table, handle.offset, handle.len)?;
        let block = open_block_to_copy(&self.store, table, handle, stored, kind, self.copied_bytes_min)?;
        Ok(Rc::new(block))
    }

    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>, ReadError> {
        let mut clock = self.clock.borrow_mut();
        *clock += 1;
        let len = u64::from(len);
        for chunk in self.chunks.borrow_mut().iter_mut().filter(|chunk| chunk.table == table) {
            let end = chunk.offset + chunk.bytes.len() as u64;
            if chunk.offset <= offset && offset + len <= end {
                chunk.used = *clock;
                let from = (offset - chunk.offset) as usize;
                return Ok(chunk.bytes[from..from + len as usize].to_vec());
            }
        }
        let size = self.size_of(table);
        if offset.checked_add(len).is_none_or(|end| end > size) {
            let file = FileName::table(table);
            return Err(Error::corrupt(file, offset, "a block lies beyond the end").into());
        }
        let tail = size.saturating_sub(TAIL_BYTES);
        let (from, until) =
            if offset >= tail { (tail, size) } else { (offset, size.min(offset + len.max(CHUNK_BYTES))) };
        let len = u32::try_from(until - from).map_err(|_| Error::InvalidArgument("A block is too large."))?;
        Err(ReadError::Need(Box::new(Need { file: FileName::table(table), offset: from, len })))
    }

    fn keep(&self, table: &Rc<Table>) {
        self.tables.borrow_mut().push(Rc::clone(table));
    }
}
