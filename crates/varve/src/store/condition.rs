//! The conditions of a write: that a key has not changed since it was read (compare and set), and that none of the keys and ranges that a
//! transaction read was written since its snapshot (optimistic validation).
//!
//! Invariant: both are compared with the store as it is before their batch, staged writes included; when one does not hold,
//! nothing of the batch is staged. A transaction whose batch is staged could therefore have run as a whole at that point,
//! with one exception, time: it reads by the time of its snapshot, and an entry that expires meanwhile does not count as a
//! write.
//!
//! Writes since a snapshot are always found, even after merges: every key keeps its newest version, a range tombstone outlives the tables
//! that it deletes, and no job drops a tombstone that is newer than an open snapshot. A job that started before the snapshot was opened has
//! only older tombstones among its inputs. Memtables and tables that have nothing newer than the snapshot are not examined.

use std::rc::Rc;

use super::{Name, Store};
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::mutant::{self, Mutant};
use crate::scan::{LevelCursor, Merge, Source, Start};
use crate::storage::Storage;
use crate::table::Blocks;
use crate::types::{Kind, RangeTombstone, Sequence};

/// A condition of a write: the sequence that a key must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence that the key must have; 0 for a key that must be absent.
    pub sequence: Sequence,
}

/// A key, or a range of keys, that a transaction has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency<'a> {
    /// The key, or the first key of the range.
    pub start: &'a [u8],
    /// The first key after the range; `None` for one key.
    pub end: Option<&'a [u8]>,
}

impl Dependency<'_> {
    /// Whether it extends as far as `key`; where it starts does not matter.
    fn reaches(&self, key: &[u8]) -> bool {
        self.end.map_or(key <= self.start, |end| key < end)
    }

    /// Looks for writes after `since` in a memtable.
    fn check_memtable(&self, since: Sequence, memtable: &Memtable) -> Result<()> {
        match memtable.first_newer(self.start, since, &|key| self.reaches(key)) {
            Some((key, found)) => Err(conflict(key, found.kind, found.sequence)),
            None => self.check_deleted(since, memtable.range_tombstones()),
        }
    }

    /// Looks for writes after `since` in entries of tables.
    fn check_tables(&self, since: Sequence, source: LevelCursor, blocks: &dyn Blocks) -> Result<()> {
        // A merge of only one source: so the code of a source's steps stays in one place and inlined, where scans need
        // it.
        let sources = vec![Source::Level(source)];
        let mut merge = Merge::start(sources, Start::Forward(Some(self.start)), blocks)?;
        while let Some(entry) = merge.current().filter(|entry| self.reaches(entry.key())) {
            if entry.sequence() > since {
                return Err(conflict(entry.key(), entry.kind(), entry.sequence()));
            }
            merge.advance(blocks)?;
        }
        Ok(())
    }

    /// Looks for range tombstones that were written after `since`.
    fn check_deleted<'r>(
        &self,
        since: Sequence,
        deleted: impl Iterator<Item = &'r RangeTombstone>,
    ) -> Result<()> {
        let is_newer =
            |range: &&RangeTombstone| range.sequence > since && !mutant::has(Mutant::DeletedRangesIgnored);
        for range in deleted.filter(is_newer) {
            let start = self.start.max(&range.start);
            if self.reaches(start) && start < range.end.as_slice() {
                return Err(conflict(start, Kind::RangeDelete, range.sequence));
            }
        }
        Ok(())
    }
}

/// The conflict of a key that was written: set or deleted.
fn conflict(key: &[u8], kind: Kind, sequence: Sequence) -> Error {
    Error::conflict(key, if kind == Kind::Set { sequence } else { 0 })
}

impl<S: Storage> Store<S> {
    /// The sequence of the newest version of `key`; 0 when it is absent. Sequences begin at 1.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn sequence_of(&self, key: &[u8]) -> Result<Sequence> {
        self.find(key, |entry| entry.map_or(0, |entry| entry.sequence))
    }

    /// Compares conditions with the store as it is now.
    ///
    /// # Errors
    /// `Conflict` for the first one that does not hold; else as [`Store::get`].
    pub fn check_conditions(&self, conditions: &[Condition<'_>]) -> Result<()> {
        for condition in conditions {
            let found = self.sequence_of(condition.key)?;
            if found != condition.sequence && !mutant::has(Mutant::ConditionsIgnored) {
                return Err(Error::conflict(condition.key, found));
            }
        }
        Ok(())
    }

    /// Checks that no key or range that a transaction read in a snapshot was written since. Any write counts, also one of
    /// the same value.
    ///
    /// # Errors
    /// `Conflict` for a key that was written (for a deleted range: the start of the deleted part); `InvalidArgument` when
    /// there is no such snapshot; else as [`Store::get`].
    ///
    /// # Example
    /// ```
    /// use varve::{Error, Host, Options, Store, store::Dependency, storage::{MemorySlots, SlotPool}};
    /// let storage = SlotPool::open(MemorySlots::new(8))?;
    /// let (mut store, _) = Store::open(storage, Options::default(), Host { now_ms: 0, entropy: 7, store_id: [1; 16] })?;
    /// let snapshot = store.open_snapshot()?;
    /// let read = [Dependency { start: b"a", end: Some(b"c") }];
    /// store.check_unchanged(snapshot, &read)?;
    /// store.set(b"b", b"new")?;
    /// assert_eq!(store.check_unchanged(snapshot, &read), Err(Error::conflict(b"b", 1)));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn check_unchanged(&self, snapshot: impl Into<Name>, read: &[Dependency<'_>]) -> Result<()> {
        let since = self.snapshot_sequence(snapshot)?;
        if mutant::has(Mutant::ConflictsIgnored) {
            return Ok(());
        }
        let blocks = self.blocks();
        for memtable in &self.view.memtables {
            let memtable = memtable.borrow();
            if memtable.max_sequence() > since {
                for read in read {
                    read.check_memtable(since, &memtable)?;
                }
            }
        }
        let levels = if mutant::has(Mutant::ConflictsInTablesIgnored) { &[][..] } else { &self.view.levels };
        for tables in levels {
            for handle in tables.iter().filter(|handle| handle.meta.max_sequence > since) {
                let meta = &handle.meta;
                for read in read {
                    if read.reaches(&meta.min_key) && read.start <= meta.max_key.as_slice() {
                        let table = handle.open(self.manifest.keyring(), &blocks)?;
                        read.check_tables(
                            since,
                            LevelCursor::new(self.manifest.keyring().clone(), Rc::new([handle.clone()])),
                            &blocks,
                        )?;
                        read.check_deleted(since, table.range_tombstones().iter())?;
                    }
                }
            }
        }
        Ok(())
    }
}
