//! The parts of a history: changes, the groups that they come in, and the states that they lead to.
//!
//! Invariant: a group is applied whole, its changes in order and each at a sequence of its own.

use std::collections::BTreeMap;

use varve::Op as StoreOp;

/// The content of a key: its value and the sequence of the write that set it.
pub type State = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// One change of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key gets the value.
    Set(Vec<u8>, Vec<u8>),
    /// The key gets the value until a time, in milliseconds.
    SetUntil(Vec<u8>, Vec<u8>, u64),
    /// The key is deleted.
    Delete(Vec<u8>),
    /// The keys from the first on are deleted, up to the second (exclusive) if there is one.
    DeleteRange(Vec<u8>, Option<Vec<u8>>),
}

/// Changes that are applied all or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The changes in order; change `i` has sequence `first_sequence + i`.
    pub changes: Vec<Change>,
    /// The sequence of the first change.
    pub first_sequence: u64,
}

impl Change {
    /// Whether it writes keys from `start` up to `end` (`None`: that key alone).
    pub(crate) fn touches(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        let is_before_end = |key: &[u8]| end.map_or(key <= start, |end| key < end);
        match self {
            Self::Set(key, _) | Self::SetUntil(key, ..) | Self::Delete(key) => {
                start <= key.as_slice() && is_before_end(key)
            }
            Self::DeleteRange(from, to) => {
                let first = start.max(from);
                is_before_end(first) && to.as_deref().is_none_or(|to| first < to)
            }
        }
    }
}

impl Group {
    pub(crate) fn apply(&self, state: &mut State) {
        for (sequence, change) in (self.first_sequence..).zip(&self.changes) {
            match change {
                Change::Set(key, value) | Change::SetUntil(key, value, _) => {
                    state.insert(key.clone(), (value.clone(), sequence));
                }
                Change::Delete(key) => {
                    state.remove(key);
                }
                Change::DeleteRange(start, end) => {
                    state.retain(|key, _| key < start || end.as_ref().is_some_and(|end| key >= end));
                }
            }
        }
    }

    pub(crate) fn last_sequence(&self) -> u64 {
        self.first_sequence + self.changes.len() as u64 - 1
    }
}

/// The change as the engine takes it.
pub(crate) fn store_op(change: &Change) -> StoreOp<'_> {
    match change {
        Change::Set(key, value) => StoreOp::Set { key, value, expires: None },
        Change::SetUntil(key, value, at) => StoreOp::Set { key, value, expires: Some(*at) },
        Change::Delete(key) => StoreOp::Delete { key },
        Change::DeleteRange(start, end) => StoreOp::DeleteRange { start, end: range_end(end) },
    }
}

/// No key of a workload begins with the highest byte.
pub(crate) fn range_end(end: &Option<Vec<u8>>) -> &[u8] {
    end.as_deref().unwrap_or(&[0xff])
}

/// A key as text, short.
#[must_use]
pub fn show(key: &[u8]) -> String {
    let tail = &key[key.len().saturating_sub(12)..];
    format!("key ..{} ({} bytes)", tail.escape_ascii(), key.len())
}
