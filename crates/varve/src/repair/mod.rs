//! Salvaging what can be read of a damaged store into a new one, and telling what is lost.
//!
//! ```text
//! slot pages, manifests --files--> tables and segments to read
//! each table  --> blocks that verify, gaps       each segment --> records that verify, gaps
//!                        \                           /
//!                         +--> merge: newest of each key, tombstones applied --> tables of the new store --> its manifest
//! ```
//!
//! The idea is LevelDB's `RepairDB` (2011) and SQLite's `.recover`: a tool apart from the store, which believes checksums
//! and nothing else. Both leave the damaged original alone, or ought to; here it is only read.
//!
//! What the new store holds: for each key the newest version that can be read, under its sequence and with its expiry,
//! unless a tombstone that can be read is newer. So where a newer version is lost an older one may stand in for it; how many
//! entries that may be true of is counted, and [`RepairOptions::strict`] leaves them out. When no manifest tells which tables
//! count, all that are found are read, and keys whose tombstones were dropped long ago may come back: that is told too.
//!
//! Invariants: no byte is believed whose checksum does not hold. A key that was readable and is missing, or has an older
//! value, lies in a range or file that the report lists. The new store's manifest is written last: a repair that did not
//! come to its end leaves nothing that opens.

mod files;
mod job;
mod log;
mod merge;
mod output;
mod table;

pub use job::Repair;

use crate::types::{FileName, Sequence, StoreId};

/// How a store is repaired.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// Leaves out entries that may be older than what was lost.
    pub strict: bool,
    /// The identity of the new store, fresh from the host.
    pub store_id: StoreId,
    /// Fresh random bits.
    pub entropy: u64,
    /// How many files the new store's storage can hold.
    pub files_max: u64,
}

/// Something that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lost {
    /// The file; `None` only by default.
    pub file: Option<FileName>,
    /// What is lost, in a few words.
    pub what: &'static str,
    /// Where in the file.
    pub offset: u64,
    /// How many bytes, where that is known.
    pub bytes: Option<u64>,
    /// No key before this one is concerned; `None`: not known.
    pub from: Option<Vec<u8>>,
    /// No key behind this one is concerned; `None`: not known.
    pub to: Option<Vec<u8>>,
    /// Sequences of lost writes lie in this range, the last one included.
    pub sequences: Option<(Sequence, Sequence)>,
    /// Whether entries may be missing; else only a means to find them was damaged.
    pub is_data: bool,
}

impl Lost {
    pub(crate) fn of(file: FileName, what: &'static str) -> Self {
        Self { file: Some(file), what, is_data: true, ..Self::default() }
    }

    /// Whether the value of `key` may be among what is lost.
    #[must_use]
    pub fn concerns(&self, key: &[u8]) -> bool {
        self.is_data
            && self.from.as_ref().is_none_or(|from| from.as_slice() <= key)
            && self.to.as_ref().is_none_or(|to| key <= to.as_slice())
    }

    /// The highest sequence that may be lost.
    pub(crate) fn newest(&self) -> Sequence {
        self.sequences.map_or(Sequence::MAX, |(_, newest)| newest)
    }
}

/// What a repair did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Entries of the new store.
    pub entries: u64,
    /// Tables that were read, in part at least.
    pub tables: u64,
    /// WAL segments that were read, in part at least.
    pub segments: u64,
    /// Records in them.
    pub records: u64,
    /// Entries that may be older than what was lost: kept, or left out if that was asked.
    pub older: u64,
    /// The log ends in a seal: no write is missing behind what was read of it. Not so after a crash, or if the newest
    /// segment is gone.
    pub is_sealed: bool,
    /// No manifest tells which tables count: keys that were deleted may be back.
    pub may_resurrect: bool,
    /// Everything that could not be read.
    pub lost: Vec<Lost>,
}
