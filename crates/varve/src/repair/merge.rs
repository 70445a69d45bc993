//! The newest version of each key, from all salvaged entries.
//!
//! Invariant: keys ascend. Entries that compare equal (one write, read from the log and from a table) are one.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::log::LogEntry;
use super::table::SalvagedTable;
use super::{Lost, RepairReport};
use crate::codec::cipher::Keyring;
use crate::error::Result;
use crate::storage::Slots;
use crate::table::RangeTombstones;
use crate::types::{Kind, SEQUENCE_MAX};

/// An entry waiting for its turn; the smallest key and, of that, the highest sequence comes first.
struct Next {
    entry: LogEntry,
    source: usize,
}

impl Next {
    fn order(&self) -> (Reverse<&[u8]>, u64, Reverse<usize>) {
        (Reverse(&self.entry.key), self.entry.sequence, Reverse(self.source))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// One table being walked.
struct TableSource {
    table: SalvagedTable,
    at: usize,
    /// Entries of the block before `at`, the last entry first.
    waiting: Vec<LogEntry>,
}

/// The merge.
pub(super) struct Merge {
    keyring: Keyring,
    tables: Vec<TableSource>,
    log: std::vec::IntoIter<LogEntry>,
    heap: BinaryHeap<Next>,
    ranges: RangeTombstones,
    /// Where entries may be missing, by the first key of each range.
    lost: Vec<Lost>,
    next_lost: usize,
    /// Those whose range was begun and has not ended.
    open_lost: Vec<Lost>,
    drop_older: bool,
    /// Bytes of tables read.
    pub(super) bytes: u64,
}

impl Merge {
    pub(super) fn new<D: Slots>(
        device: &D,
        keyring: Keyring,
        tables: Vec<SalvagedTable>,
        (log, ranges): (Vec<LogEntry>, RangeTombstones),
        drop_older: bool,
        report: &RepairReport,
    ) -> Result<Self> {
        let mut lost: Vec<Lost> = report.lost.iter().filter(|lost| lost.is_data).cloned().collect();
        lost.sort_by(|a, b| a.from.cmp(&b.from));
        let tables: Vec<_> =
            tables.into_iter().map(|table| TableSource { table, at: 0, waiting: Vec::new() }).collect();
        let mut merge = Self {
            keyring,
            tables,
            log: log.into_iter(),
            heap: BinaryHeap::new(),
            ranges,
            lost,
            next_lost: 0,
            open_lost: Vec::new(),
            drop_older,
            bytes: 0,
        };
        for source in 0..=merge.tables.len() {
            merge.pull(device, source)?;
        }
        Ok(merge)
    }

    /// The next key that has a value.
    pub(super) fn next<D: Slots>(
        &mut self,
        device: &D,
        report: &mut RepairReport,
    ) -> Result<Option<LogEntry>> {
        while let Some(Next { entry, source }) = self.heap.pop() {
            self.pull(device, source)?;
            while self.heap.peek().is_some_and(|next| next.entry.key == entry.key) {
                if let Some(older) = self.heap.pop() {
                    self.pull(device, older.source)?;
                }
            }
            let is_deleted =
                entry.kind != Kind::Set || self.ranges.over(&entry.key, SEQUENCE_MAX) > entry.sequence;
            if is_deleted {
                continue;
            }
            if self.may_be_older(&entry) {
                report.older += 1;
                if self.drop_older {
                    continue;
                }
            }
            return Ok(Some(entry));
        }
        Ok(None)
    }

    /// Whether a newer version of the entry's key, or a tombstone over it, may be lost.
    fn may_be_older(&mut self, entry: &LogEntry) -> bool {
        let key = entry.key.as_slice();
        let begins = |lost: &Lost| lost.from.as_ref().is_none_or(|from| from.as_slice() <= key);
        while let Some(lost) = self.lost.get(self.next_lost).filter(|lost| begins(lost)) {
            self.open_lost.push(lost.clone());
            self.next_lost += 1;
        }
        self.open_lost.retain(|lost| lost.concerns(key));
        self.open_lost.iter().any(|lost| lost.newest() > entry.sequence)
    }

    /// Puts the next entry of a source into the heap; the log is the source after all tables.
    fn pull<D: Slots>(&mut self, device: &D, source: usize) -> Result<()> {
        let entry = match self.tables.get_mut(source) {
            None => self.log.next(),
            Some(table) => {
                while table.waiting.is_empty() && table.at < table.table.blocks.len() {
                    self.bytes += table.read_block(device, &self.keyring)?;
                }
                table.waiting.pop()
            }
        };
        self.heap.extend(entry.map(|entry| Next { entry, source }));
        Ok(())
    }
}

impl TableSource {
    fn read_block<D: Slots>(&mut self, device: &D, keyring: &Keyring) -> Result<u64> {
        let handle = self.table.blocks[self.at];
        let block = self.table.block(device, keyring, handle)?;
        self.at += 1;
        let (table, waiting) = (&self.table, &mut self.waiting);
        // Every entry of a block that was opened decodes.
        let _ = block.walk(|entry| {
            if table.shows(entry.key) {
                let (key, value) = (entry.key.to_vec(), entry.value.to_vec());
                let (sequence, kind, expires) = (entry.sequence, entry.kind, entry.expires);
                waiting.push(LogEntry { key, sequence, kind, expires, value });
            }
        });
        waiting.reverse();
        Ok(u64::from(handle.len))
    }
}
