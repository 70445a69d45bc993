//! What can be set about a store, with its defaults and limits.
//!
//! Invariant: options change speed and memory, never what is stored or how it is read back.

use crate::types::StoreId;

/// How sure a write is when it resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Durability {
    /// In memory: its record rides ahead of the next logged write.
    Memory = 1,
    /// Handed to the operating system: survives the death of the process.
    Relaxed = 2,
    /// Flushed to the disk: survives the loss of power.
    Strict = 3,
}

impl Durability {
    /// The level of a byte, as frames carry it.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Memory),
            2 => Some(Self::Relaxed),
            3 => Some(Self::Strict),
            _ => None,
        }
    }
}

/// What a commit reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The sequence of the last write of the commit.
    pub sequence: u64,
    /// The level it reached.
    pub durability: Durability,
}

/// Sizes and limits of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bound over memtables, cached blocks, and the indexes and filters of open tables, in bytes.
    pub memory_bytes: usize,
    /// Size of the first memtable, in bytes; each next one is twice as large.
    pub memtable_bytes_min: usize,
    /// Largest memtable, in bytes. A batch larger than this becomes a memtable of its own.
    pub memtable_bytes_max: usize,
    /// Memtables that may wait for their flush before a writer has to wait (or flush inline).
    pub frozen_max: usize,
    /// Size of a data block before compression, in bytes.
    pub block_bytes: usize,
    /// Entries between two restart points of a block.
    pub restart_interval: usize,
    /// Smallest target size of a compacted table, in bytes; grows with the store so that files stay few.
    pub table_bytes: u64,
    /// Files the storage can keep open; half of them may be tables.
    pub files_max: u64,
    /// Size that the first level below 0 may reach, in bytes; the deepest level sets the others.
    pub level_base_bytes: u64,
    /// How many times larger each level may be than the one above it, at most.
    pub level_factor: u64,
    /// Most bytes that one compaction takes in, about; near the quota a quarter of what is free. A larger one takes a
    /// key range. Tables grow up to half of this, which bounds the store: `Options::store_bytes_max`.
    pub job_bytes_max: u64,
    /// Tables in level 0 that start a compaction.
    pub l0_trigger: usize,
    /// Tables in level 0 at which a writer has to wait (or compact inline).
    pub l0_stall: usize,
    /// Compress blocks below level 0 with LZ4 where it pays.
    pub compress: bool,
    /// Whether there is a WAL. Without one, only what was flushed survives.
    pub log: bool,
    /// On a full storage, flush at once: before a write is refused, and before tables are written anew without what newer ones hide. Not
    /// where a storage refuses commits and not writes: there only jobs do such work, whose commits are small.
    pub flush_when_full: bool,
    /// Flushed WAL segments that are kept for [`Store::changes`](crate::store::Store::changes), in bytes; they take at most an
    /// eighth of the room that is known to be free. `None`: 1/32 of the bytes of the tables and at most 8 MiB; and, once
    /// somebody has asked for changes in this session, at least the last segment.
    pub history_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 32 << 20,
            memtable_bytes_min: 2 << 20,
            memtable_bytes_max: 4 << 20,
            frozen_max: 2,
            block_bytes: 4096,
            restart_interval: 16,
            table_bytes: 2 << 20,
            files_max: 128,
            level_base_bytes: 32 << 20,
            level_factor: 10,
            job_bytes_max: 64 << 20,
            l0_trigger: 8,
            l0_stall: 20,
            compress: true,
            log: true,
            flush_when_full: true,
            history_bytes: Some(0),
        }
    }
}

impl Options {
    /// Bytes left for blocks and open tables when memtables hold so many bytes: they always have their share.
    #[must_use]
    pub fn cache_bytes(&self, memtable_bytes: usize) -> usize {
        let memtables = memtable_bytes.max(self.memtable_bytes_max * (self.frozen_max + 1));
        self.memory_bytes.saturating_sub(memtables).max(self.memory_bytes / 8)
    }

    /// The size up to which a store keeps within `files_max` files, in bytes: half of the files are tables of at most
    /// half a job. 2 GiB with 128 files, 15.6 GiB with 1,000.
    #[must_use]
    pub fn store_bytes_max(&self) -> u64 {
        (self.files_max / 2).saturating_mul(self.table_bytes.max(self.job_bytes_max / 2))
    }
}

/// What only the host knows: the engine has no clock and no randomness of its own.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// 64 fresh random bits; every salt is derived from them.
    pub entropy: u64,
    /// Identity for the store, used when it does not exist yet.
    pub store_id: StoreId,
}
