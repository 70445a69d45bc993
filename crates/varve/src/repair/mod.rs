//! Salvages the readable data of a damaged store into a new one, and reports the losses.
//!
//! ```text
//! slot pages, manifests --files--> tables and segments to read
//! each table  --> blocks that verify, gaps       each segment --> records that verify, gaps
//!                        \                           /
//!                         +--> merge: newest of each key, tombstones applied --> tables of the new store --> its manifest
//! ```
//!
//! The idea is LevelDB's `RepairDB` (2011) and SQLite's `.recover`: a tool separate from the store, which trusts
//! checksums and nothing else. Both leave the damaged original unchanged, or should; here it is only read.
//!
//! The new store contains, for each key, the newest readable version with its sequence and its expiry, unless a readable
//! tombstone is newer. So if a newer version is lost, an older one may take its place. The report counts the entries for
//! which this may be true, and [`RepairOptions::drop_older`] leaves them out. If no manifest defines which tables count, all
//! tables found are read, and keys whose tombstones were dropped long ago may come back. The report includes that too.
//!
//! Invariants: no byte is trusted if its checksum does not match. A key that was readable and is missing, or has an
//! older value, lies in a range or file that the report lists. The new store's manifest is written last: a repair that
//! did not finish leaves nothing that opens. A file of a newer format is no damage: the repair ends with `Error::Version` before it writes.

mod files;
mod job;
mod log;
mod merge;
mod output;
mod strays;
mod table;

pub use files::key_slots;
pub use job::Repair;

use crate::codec::cipher::Encryption;
use crate::types::{FileName, Sequence, StoreId};

/// Options of a repair.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// Leaves out entries that may be older than lost ones.
    pub drop_older: bool,
    /// The identity of the new store, fresh from the host.
    pub store_id: StoreId,
    /// Fresh random bits.
    pub entropy: u64,
    /// The number of files that the new store's storage can have.
    pub files_max: u64,
    /// The data keys of the damaged store. The salvaged one is encrypted under the newest, with the key slots of the damaged one, or
    /// with these if no manifest has any.
    pub encryption: Encryption,
}

/// Something that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The file; `None` only by default.
    pub file: Option<FileName>,
    /// A short description of the loss.
    pub what: &'static str,
    /// Where in the file.
    pub offset: u64,
    /// How many bytes, where that is known.
    pub bytes: Option<u64>,
    /// No key before this one is affected; `None`: not known.
    pub from: Option<Vec<u8>>,
    /// No key after this one is affected; `None`: not known.
    pub to: Option<Vec<u8>>,
    /// The sequences of lost writes lie in this inclusive range.
    pub sequences: Option<(Sequence, Sequence)>,
    /// Whether entries may be missing; otherwise only data that helps to find them was damaged.
    pub is_data: bool,
}

impl Lost {
    pub(crate) fn of(file: FileName, what: &'static str) -> Self {
        Self { file: Some(file), what, is_data: true, ..Self::default() }
    }

    /// Whether the value of `key` may be lost.
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

/// The report of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Entries of the new store.
    pub entries: u64,
    /// Tables that were read, at least in part.
    pub tables: u64,
    /// WAL segments that were read, at least in part.
    pub segments: u64,
    /// Records in them.
    pub records: u64,
    /// Entries that may be older than lost ones: kept, or left out if [`RepairOptions::drop_older`] is set.
    pub older: u64,
    /// The log ends in a seal: all writes that are missing before it are listed, and none is missing after it. This is `false` after a
    /// crash, or if the newest segment is gone.
    pub is_sealed: bool,
    /// No manifest defines which tables count: deleted keys may be back.
    pub may_resurrect: bool,
    /// Everything that could not be read.
    pub lost: Vec<Lost>,
}
