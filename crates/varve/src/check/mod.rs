//! Verifying a whole store: every block, every record, and what they say of one another.
//!
//! ```text
//! slot pages --survey--> files --manifest--> version --+--> log: every record under its checksum
//!                                                      +--> tables, block by block: checksum, order, index, filter, counts
//! ```
//!
//! The job does no I/O. It is made from what a host read in one moment (the first page of every slot, manifests and WAL
//! segments as a whole), and then asks for bytes of tables, which never change; a host that keeps a snapshot open
//! meanwhile keeps their files. So a store is checked while it is written to.
//!
//! What is not looked at: bytes that nothing reads (free slots, what lies in a slot behind the end of its file), and the
//! manifest file that was superseded. That newer versions of a key lie above older ones is verified inside tables and
//! between the tables of level 0; not between levels, which would take a merge of all of them.
//!
//! Invariants: nothing is changed. Damage is listed, never an error; one damaged place does not hide the next.

mod job;
mod log;
mod survey;
mod table;

pub use job::{Check, CheckStep};
pub use survey::{Found, SlotPage, Survey, survey};

use crate::types::FileName;

/// What is wrong, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The page that says what a slot holds.
    Slot,
    /// A file that should be there.
    Missing,
    /// A manifest.
    Manifest,
    /// The order of tables in and between levels.
    Levels,
    /// A WAL segment.
    Log,
    /// A table's footer, or a part behind its data.
    Footer,
    /// A block whose checksum or contents are wrong.
    Block,
    /// Entries out of order.
    Order,
    /// An index that leads elsewhere.
    Index,
    /// A filter that denies a key which is there.
    Filter,
    /// Counts or bounds that are not those of the entries.
    Counts,
}

impl ProblemKind {
    /// The word for it that programs branch on.
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: FileName,
    /// What is wrong, roughly.
    pub kind: ProblemKind,
    /// What is wrong, in a few words.
    pub what: &'static str,
    /// Where in the file, in bytes.
    pub offset: Option<u64>,
    /// The level of a table.
    pub level: Option<u8>,
}

/// What a check looked at, and what it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tables.
    pub tables: u64,
    /// Data blocks of tables.
    pub blocks: u64,
    /// Entries in them: every version and tombstone.
    pub entries: u64,
    /// WAL segments.
    pub segments: u64,
    /// Records in them, seals included.
    pub records: u64,
    /// Bytes that were verified.
    pub bytes: u64,
    /// Everything that is wrong; empty for a sound store.
    pub problems: Vec<Problem>,
}
