//! A job from its offer to its result: what the store keeps of it.

use crate::compact::{JobKind, JobSpec};
use crate::types::Sequence;

/// A job that is about to start: its specification, the record that the store keeps of it, and the expected bytes of an
/// output.
pub(super) type Offer = (JobSpec, Running, u64);

/// An input table as it was when its job was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) id: u64,
    pub(super) level: usize,
    pub(super) skipped_bytes: u64,
}

/// A job that was handed out.
#[derive(Debug)]
pub(in crate::store) struct Running {
    pub(super) id: u32,
    pub(super) kind: JobKind,
    /// Segments of the memtables that are flushed, the first and the last.
    pub(super) segments: (u64, u64),
    /// The tables that are merged.
    pub(super) inputs: Vec<Input>,
    /// Tables that are read only to find which entries they hide.
    pub(super) newer: Vec<u64>,
    pub(super) level: u8,
    /// It may drop tombstones up to this sequence.
    pub(super) forgets_until: Sequence,
    /// It is part of a sweep.
    pub(super) swept: bool,
}

impl Running {
    /// Whether it rewrites a table without the entries that newer tables hide.
    pub(super) fn is_purge(&self) -> bool {
        !self.newer.is_empty()
    }

    /// Whether it frees as much room as it takes: then it may use the room that is set aside.
    pub(super) fn gives_room(&self) -> bool {
        self.kind == JobKind::Flush || self.is_purge()
    }

    /// Whether the job reads this table.
    pub(super) fn reads(&self, id: u64) -> bool {
        self.inputs.iter().any(|input| input.id == id) || self.newer.contains(&id)
    }
}
