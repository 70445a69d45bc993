//! Deletes that are staged and not committed yet.
//!
//! A full storage takes no more writes, but deletes must still commit, or nothing could ever make room. The engine
//! does that for a group that it is given whole (`Store::commit_deletes`); calls that stage one at a time are
//! remembered here until their commit.
//!
//! Invariant: holds exactly what is staged, or nothing when something else than deletes is staged.

use varve::error::{Error, Result};
use varve::options::{Durability, Receipt};
use varve::store::Op;

use crate::registry::HostStore;

/// More than this is not remembered: such a group is logged within its turn anyway.
const BYTES_MAX: usize = 256 << 10;

/// Start and, for a range, end of each delete, one after another.
#[derive(Debug, Default)]
pub(crate) struct Deletes {
    bytes: Vec<u8>,
    /// Where each start and each end ends in `bytes`; a single key has no end: equal numbers.
    ends: Vec<(usize, usize)>,
    mixed: bool,
}

impl Deletes {
    /// Something else was staged.
    #[inline]
    pub(crate) fn mix(&mut self) {
        self.mixed = true;
    }

    /// A delete was staged; `end` is empty for a single key.
    #[inline]
    pub(crate) fn push(&mut self, start: &[u8], end: &[u8]) {
        if self.mixed || self.bytes.len() > BYTES_MAX {
            self.mixed = true;
            return;
        }
        self.bytes.extend_from_slice(start);
        let start_end = self.bytes.len();
        self.bytes.extend_from_slice(end);
        self.ends.push((start_end, self.bytes.len()));
    }

    /// Everything staged was committed or rolled back.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.mixed = false;
    }

    /// Commits what was rolled back for want of room, if it was deletes only.
    pub(crate) fn retry(&self, store: &mut HostStore, durability: Durability) -> Result<Receipt> {
        if self.mixed || self.ends.is_empty() {
            return Err(Error::StorageFull);
        }
        let mut ops = Vec::with_capacity(self.ends.len());
        let mut from = 0;
        for &(start_end, end) in &self.ends {
            let (start, last) = (&self.bytes[from..start_end], &self.bytes[start_end..end]);
            let range = !last.is_empty();
            ops.push(if range { Op::DeleteRange { start, end: last } } else { Op::Delete { key: start } });
            from = end;
        }
        store.commit_deletes(&ops, durability)
    }
}
