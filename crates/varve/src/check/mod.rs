//! Verifying a whole store: every block, every record, and whether they agree.
//!
//! ```text
//! slot pages --survey--> files --manifest--> version --+--> log: every record under its checksum
//!                                                      +--> tables, block by block: checksum, order, index, filter, counts
//! ```
//!
//! The job does no I/O. It is made from data that a host read at one time (the first page of every slot, all manifests
//! and WAL segments). Then it asks for bytes of tables, which never change. A host that keeps a snapshot open meanwhile
//! keeps their files. So a store can be checked while it is written to.
//!
//! The check skips bytes that nothing reads (free slots, and the bytes of a slot after the end of its file), and the
//! manifest file that was superseded. It verifies that newer versions of a key lie above older ones inside tables and
//! between the tables of level 0. It does not verify this between levels, because that would take a merge of all of
//! them.
//!
//! If the store is encrypted and the keyring is empty, the check verifies all hashes, which are over ciphertext, and nothing else:
//! see `without_key.rs`.
//!
//! Invariants: nothing is changed. Damage is listed, and never returned as an error; a file of a newer format is an error, and no damage.
//! One damaged place does not hide the next.

mod job;
mod log;
mod survey;
mod table;
mod without_key;

pub use job::{Check, CheckStep};
pub use survey::{Found, SlotPage, Survey, survey};

use crate::types::FileName;

/// The kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The page that names the contents of a slot.
    Slot,
    /// A file that should exist.
    Missing,
    /// A manifest.
    Manifest,
    /// The order of tables in and between levels.
    Levels,
    /// A WAL segment.
    Log,
    /// A table's footer, or a part after its data.
    Footer,
    /// A block whose checksum or contents are wrong.
    Block,
    /// Entries out of order.
    Order,
    /// An index that leads to the wrong place.
    Index,
    /// A filter that denies a key although the table has it.
    Filter,
    /// Counts or bounds that do not match the entries.
    Counts,
}

impl ProblemKind {
    /// A fixed word for this kind, for programs to branch on.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Missing => "missing",
            Self::Manifest => "manifest",
            Self::Levels => "levels",
            Self::Log => "log",
            Self::Footer => "footer",
            Self::Block => "block",
            Self::Order => "order",
            Self::Index => "index",
            Self::Filter => "filter",
            Self::Counts => "counts",
        }
    }
}

/// One problem that the check found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub file: FileName,
    /// The kind of problem.
    pub kind: ProblemKind,
    /// A short description of the problem.
    pub what: &'static str,
    /// Where in the file, in bytes.
    pub offset: Option<u64>,
    /// The level of a table.
    pub level: Option<u8>,
}

/// The result of a check: how much it verified, and its findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Tables.
    pub tables: u64,
    /// Data blocks of tables.
    pub blocks: u64,
    /// Entries in them: every version and tombstone. 0 without the key.
    pub entries: u64,
    /// WAL segments.
    pub segments: u64,
    /// Records in them, seals included.
    pub records: u64,
    /// Bytes that were verified.
    pub bytes: u64,
    /// The store is encrypted and its key is not here: only the hashes were verified.
    pub without_key: bool,
    /// All problems; empty for a sound store.
    pub problems: Vec<Problem>,
}
