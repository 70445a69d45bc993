//! Compare and set: writes that happen only if a key still is as it was read.
//!
//! Invariant: conditions are compared with the store as it is before their batch, staged writes included; when one does
//! not hold, nothing of the batch is staged.

use super::Store;
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::types::Sequence;

/// What a write depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition<'a> {
    /// Which item of its batch asks for it, from 0.
    pub item: u32,
    /// The key.
    pub key: &'a [u8],
    /// The sequence that the key must have; 0 for a key that must be absent.
    pub sequence: Sequence,
}

impl<S: Storage> Store<S> {
    /// The sequence of the newest version of `key`; 0 when it is absent. Sequences begin at 1.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn sequence_of(&self, key: &[u8]) -> Result<Sequence> {
        Ok(self.find(key, |entry| entry.map_or(0, |entry| entry.sequence))?)
    }

    /// Compares conditions with the store as it is.
    ///
    /// # Errors
    /// `Conflict` for the first one that does not hold; else as [`Store::get`].
    pub fn check_conditions(&self, conditions: &[Condition<'_>]) -> Result<()> {
        for condition in conditions {
            let found = self.sequence_of(condition.key)?;
            if found != condition.sequence {
                return Err(Error::Conflict { item: condition.item, found });
            }
        }
        Ok(())
    }
}
