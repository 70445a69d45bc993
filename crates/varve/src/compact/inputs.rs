//! The input side of a compaction: blocks cut from chunks that the host fetched.
//!
//! Invariant: at most `lanes + 1` chunks are kept, and the least recently used is dropped first. The chunk just fetched is always
//! there for the retry, so a job makes progress however small that number is. A retry begins with the block that the last try had,
//! so the last long block, which is not also kept as a chunk, is kept open. The hash of a block is verified as in any
//! read: a job never copies damage into a new table.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::codec::cipher::{KeyNumber, Keyring};
use crate::codec::room;
use crate::error::{Error, Result};
use crate::table::{Block, BlockHandle, BlockKind, Blocks, Need, Table, open_block_to_copy};
use crate::types::FileName;

/// Bytes asked for at once: one read of the largest size costs an engine worker about 0.1 ms.
const CHUNK_BYTES: (u64, u64) = (64 << 10, 1 << 20);
/// Approximate limit for the bytes of all chunks: a job with many runs has smaller chunks.
const CHUNKS_BYTES: u64 = 8 << 20;
/// The end of a table (filter, index, footer) is fetched in one piece of this size.
const TAIL_BYTES: u64 = 64 << 10;

struct Chunk {
    table: u64,
    offset: u64,
    bytes: Vec<u8>,
    used: u64,
}

/// A long block that is open. Its chunk was dropped, but a caller that asks for it again does not have to fetch it again.
struct LongBlock {
    table: u64,
    offset: u64,
    block: Rc<Block>,
}

/// Fetched parts of the input tables.
pub(crate) struct ChunkBlocks {
    keyring: Keyring,
    sizes: Vec<(u64, u64)>,
    chunks: RefCell<Vec<Chunk>>,
    /// The bytes that are missing.
    need: Cell<Option<Need>>,
    long_block: RefCell<Option<LongBlock>>,
    clock: RefCell<u64>,
    /// The inputs that are open: all of them, until the job is done.
    tables: RefCell<Vec<Rc<Table>>>,
    lanes: usize,
    chunk_bytes: u64,
    /// See [`ChunkBlocks::copying`].
    copied_bytes_min: usize,
}

impl ChunkBlocks {
    pub(crate) fn new(keyring: Keyring, sizes: Vec<(u64, u64)>, lanes: usize) -> Self {
        Self {
            keyring,
            sizes,
            chunks: RefCell::default(),
            need: Cell::default(),
            long_block: RefCell::default(),
            clock: RefCell::default(),
            tables: RefCell::default(),
            lanes,
            chunk_bytes: (CHUNKS_BYTES / (lanes as u64 + 1)).clamp(CHUNK_BYTES.0, CHUNK_BYTES.1),
            copied_bytes_min: usize::MAX,
        }
    }

    /// Opens blocks of one entry to be copied, if they have at least this many raw bytes.
    pub(crate) fn copying(self, raw_bytes_min: usize) -> Self {
        Self { copied_bytes_min: raw_bytes_min, ..self }
    }

    /// The range to fetch after [`Error::Pending`].
    pub(crate) fn need(&self) -> Option<Need> {
        self.need.get()
    }

    /// Keeps the bytes that the host fetched for [`need`](Self::need).
    pub(crate) fn feed(&self, bytes: Vec<u8>) {
        let Some(need) = self.need.take() else { return };
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
    fn block(&self, table: u64, key: KeyNumber, handle: BlockHandle) -> Result<Rc<Block>> {
        if let Some(long) = &*self.long_block.borrow()
            && (long.table, long.offset) == (table, handle.offset)
        {
            return Ok(Rc::clone(&long.block));
        }
        let is_long = u64::from(handle.len) >= self.chunk_bytes;
        let stored = self.stored(table, handle.offset, handle.len, is_long)?;
        let (kind, copied_bytes_min) = (BlockKind::Data, self.copied_bytes_min);
        let block = open_block_to_copy(&self.keyring, table, key, handle, stored, kind, copied_bytes_min)?;
        let block = Rc::new(block);
        if is_long {
            let long = LongBlock { table, offset: handle.offset, block: Rc::clone(&block) };
            *self.long_block.borrow_mut() = Some(long);
        }
        Ok(block)
    }

    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>> {
        self.stored(table, offset, len, false)
    }

    /// A merge uses no filter.
    fn has_room(&self, _: usize) -> bool {
        false
    }

    fn keep(&self, table: &Rc<Table>) {
        self.tables.borrow_mut().push(Rc::clone(table));
    }
}

impl ChunkBlocks {
    /// Bytes of a chunk. If the chunk has no other bytes, it is removed and its memory reused, if that is allowed.
    fn stored(&self, table: u64, offset: u64, len: u32, may_take: bool) -> Result<Vec<u8>> {
        let mut clock = self.clock.borrow_mut();
        *clock += 1;
        let len = u64::from(len);
        let mut chunks = self.chunks.borrow_mut();
        let holds = |chunk: &Chunk| {
            chunk.table == table
                && chunk.offset <= offset
                && offset + len <= chunk.offset + chunk.bytes.len() as u64
        };
        if let Some(at) = chunks.iter().position(holds) {
            if may_take && chunks[at].bytes.len() as u64 == len {
                return Ok(chunks.swap_remove(at).bytes);
            }
            let chunk = &mut chunks[at];
            chunk.used = *clock;
            let from = (offset - chunk.offset) as usize;
            let mut block = Vec::new();
            room::reserve_exact(&mut block, len as usize)?;
            block.extend_from_slice(&chunk.bytes[from..from + len as usize]);
            return Ok(block);
        }
        let size = self.size_of(table);
        if offset.checked_add(len).is_none_or(|end| end > size) {
            let file = FileName::table(table);
            return Err(Error::corrupt(file, offset, "a block lies beyond the end"));
        }
        let tail = size.saturating_sub(TAIL_BYTES);
        let (from, until) = if offset >= tail {
            (tail, size)
        } else {
            (offset, size.min(offset + len.max(self.chunk_bytes)))
        };
        let len = u32::try_from(until - from).map_err(|_| Error::InvalidArgument("A block is too large."))?;
        self.need.set(Some(Need { file: FileName::table(table), offset: from, len }));
        Err(Error::Pending)
    }
}
