//! All entries of a data block, one after the other, for tools that look at every one.
//!
//! Invariant: entries come in their order in the block. The caller must check whether that is the order of a table.

use super::{Block, Entry, Malformed};
use crate::types::{Kind, Sequence};

/// One entry of a block, with its whole key.
#[derive(Debug, Clone, Copy)]
pub struct BlockEntry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence of the write.
    pub sequence: Sequence,
    /// A value or a tombstone.
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The value; empty for a tombstone.
    pub value: &'a [u8],
}

impl Block {
    /// Passes every entry of a data block to `visit`.
    ///
    /// # Errors
    /// [`Malformed`] when an entry does not decode; in an opened block, every entry decodes.
    pub fn walk(&self, mut visit: impl FnMut(&BlockEntry<'_>)) -> Result<(), Malformed> {
        let bytes: &[u8] = self;
        let (mut at, mut key) = (0, Vec::new());
        for run in &self.layout.runs {
            let mut is_head = true;
            while at < run.end {
                let entry = if is_head {
                    Entry::decode_head(bytes, at, run.end)?
                } else {
                    Entry::decode_tail(bytes, at, run.end, run.sequence)?
                };
                let front = run.key(bytes).get(..entry.shared as usize).ok_or(Malformed("entry"))?;
                key.clear();
                key.extend_from_slice(front);
                key.extend_from_slice(entry.suffix(bytes));
                let Entry { sequence, kind, expires, .. } = entry;
                visit(&BlockEntry { key: &key, sequence, kind, expires, value: entry.value(bytes) });
                (at, is_head) = (entry.next, false);
            }
        }
        Ok(())
    }
}
