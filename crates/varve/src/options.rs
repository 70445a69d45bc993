//! The options of a store, with their defaults and limits.
//!
//! Invariant: options change speed and memory, never which data is stored or how it is read back; only the keys of an encrypted store
//! decide whether it is read at all.

use crate::codec::cipher::Encryption;
use crate::types::StoreId;

/// How durable a write is when its call returns success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Durability {
    /// In memory: its record is logged just before the next logged write.
    Memory = 1,
    /// Handed to the operating system: survives the death of the process.
    Relaxed = 2,
    /// Flushed to the disk: survives the loss of power.
    Strict = 3,
}

impl Durability {
    /// Converts the byte that frames carry to its level; `None` for any other byte.
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

/// The result of a commit.
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
    /// Limit for memtables, cached blocks, and the indexes and filters of open tables, in bytes.
    pub memory_bytes: usize,
    /// Size of the first memtable, in bytes; each later one is twice as large as the one before.
    pub memtable_bytes_min: usize,
    /// Largest memtable, in bytes; 4 GiB at most. A batch larger than this becomes a memtable of its own.
    pub memtable_bytes_max: usize,
    /// How many memtables may wait for their flush before a writer has to wait (or flush inline).
    pub frozen_max: usize,
    /// Size of a data block before compression, in bytes.
    pub block_bytes: usize,
    /// Entries between two restart points of a block.
    pub restart_interval: usize,
    /// Smallest target size of a compacted table, in bytes; grows with the store so that files stay few.
    pub table_bytes: u64,
    /// How many files the storage can keep open; half of them may be tables.
    pub files_max: u64,
    /// Size that the first level below 0 may reach, in bytes; the deepest level sets the others.
    pub level_base_bytes: u64,
    /// How many times larger each level may be than the one above it, at most.
    pub level_factor: u64,
    /// How many bytes one compaction reads at most, approximately; near the quota, a quarter of the free room. A
    /// compaction that would read more takes only a key range. Tables grow up to half of this size, which limits the
    /// size of the store: `Options::store_bytes_max`.
    pub job_bytes_max: u64,
    /// Number of tables in level 0 that starts a compaction.
    pub l0_trigger: usize,
    /// Number of tables in level 0 at which a writer has to wait (or compact inline).
    pub l0_stall: usize,
    /// Compress blocks below level 0 with LZ4 where that saves at least 12%.
    pub compress: bool,
    /// Whether there is a WAL. Without one, only flushed writes survive.
    pub log: bool,
    /// On a full storage, flush at once: before a write is refused, and before tables are rewritten without the entries that newer tables
    /// hide. Turn this off for a storage that refuses commits instead of writes: there only jobs do such work, because their commits are
    /// small.
    pub flush_when_full: bool,
    /// How many bytes of flushed WAL segments are kept for [`Store::changes`](crate::store::Store::changes). They take at most an eighth of
    /// the room that is known to be free. `None` means 1/32 of the bytes of the tables, and at most 8 MiB. Once a caller has asked for
    /// changes in this session, `None` also keeps at least the last segment.
    pub history_bytes: Option<u64>,
    /// The data keys of an encrypted store. Without any, new stores are not encrypted, and encrypted ones do not open.
    pub encryption: Encryption,
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
            encryption: Encryption::none(),
        }
    }
}

impl Options {
    /// Bytes left for blocks and open tables when memtables take `memtable_bytes`: at least an eighth of the memory.
    #[must_use]
    pub fn cache_bytes(&self, memtable_bytes: usize) -> usize {
        self.memory_bytes.saturating_sub(memtable_bytes).max(self.memory_bytes / 8)
    }

    /// The size in bytes up to which a store needs at most `files_max` files: half of the files are tables, and a table
    /// is at most half of `job_bytes_max`. 2 GiB with 128 files, 15.6 GiB with 1,000.
    #[must_use]
    pub fn store_bytes_max(&self) -> u64 {
        (self.files_max / 2).saturating_mul(self.table_bytes.max(self.job_bytes_max / 2))
    }
}

/// Values that only the host knows: the engine has no clock and no randomness of its own.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// 64 fresh random bits; every salt is derived from them.
    pub entropy: u64,
    /// Identity of a new store; used only when no store exists yet.
    pub store_id: StoreId,
}
