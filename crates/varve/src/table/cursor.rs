//! A cursor over the entries of one table, forward and backward.
//!
//! It walks (key ascending, sequence descending) and the exact reverse, every version included. It keeps the whole key
//! of its entry. The front is that of its run's head, so a step only writes the suffix.
//!
//! Invariant: a step first finds its target and only then moves there. A step that fails (a block is needed, or
//! damaged) leaves the cursor unchanged.

use std::rc::Rc;

use super::block::{Block, Entry, Malformed};
use super::{Blocks, Table};
use crate::error::{Error, Result};
use crate::types::{Kind, SEQUENCE_MAX, Sequence};

/// Bytes that are copied at once when that is cheaper than copying the exact number.
const CHUNK: usize = 16;

/// A cursor: it is on one entry of a table, or on no entry.
#[derive(Debug)]
pub struct TableCursor {
    table: Rc<Table>,
    /// The block of the entry; `None` when the cursor is on no entry.
    block: Option<Rc<Block>>,
    /// The number of the block in the table.
    block_index: usize,
    /// The number of the entry in the block.
    index: usize,
    entry: Entry,
    /// The number of the entry's run in the block.
    run: usize,
    /// Where the run ends.
    run_end: u32,
    /// The sequence of the run's head.
    head_sequence: Sequence,
    key: KeyBuffer,
    /// Bytes at the front of `key` that are those of the run's head.
    key_front: usize,
}

impl Table {
    /// A cursor that is on no entry yet.
    #[must_use]
    pub fn cursor(self: &Rc<Self>) -> TableCursor {
        let nothing =
            Entry { shared: 0, suffix: 0, value: 0, next: 0, kind: Kind::Delete, sequence: 0, expires: None };
        TableCursor {
            table: Rc::clone(self),
            block: None,
            block_index: 0,
            index: 0,
            entry: nothing,
            run: 0,
            run_end: 0,
            head_sequence: 0,
            key: KeyBuffer::default(),
            key_front: 0,
        }
    }
}

impl TableCursor {
    /// Goes to the first entry whose key is `key` or greater.
    pub fn seek(&mut self, key: &[u8], blocks: &dyn Blocks) -> Result<()> {
        self.seek_version(key, SEQUENCE_MAX, blocks)
    }

    /// Goes to the first entry at or after (`key`, `sequence`): the newest version of `key` that a snapshot at
    /// `sequence` may see, if there is one.
    pub fn seek_version(&mut self, key: &[u8], sequence: Sequence, blocks: &dyn Blocks) -> Result<()> {
        let at = self.table.index().find(key, sequence);
        if at == self.table.index().len() {
            self.block = None;
            return Ok(());
        }
        let block = self.read(at, blocks)?;
        let index = block.lower_bound(key, sequence).map_err(|error| self.corrupt(at, error))?;
        if index < block.entries() {
            return self.enter(block, at, index);
        }
        self.enter_first_of(at + 1, blocks)
    }

    /// Goes to the last entry whose key is before `key`.
    pub fn seek_before(&mut self, key: &[u8], blocks: &dyn Blocks) -> Result<()> {
        let at = self.table.index().find(key, SEQUENCE_MAX);
        if at == self.table.index().len() {
            return self.seek_last(blocks);
        }
        let block = self.read(at, blocks)?;
        let index = block.lower_bound(key, SEQUENCE_MAX).map_err(|error| self.corrupt(at, error))?;
        if index > 0 {
            return self.enter(block, at, index - 1);
        }
        self.enter_last_before(at, blocks)
    }

    /// Goes to the first entry of the table.
    pub fn seek_first(&mut self, blocks: &dyn Blocks) -> Result<()> {
        self.enter_first_of(0, blocks)
    }

    /// Goes to the last entry of the table.
    pub fn seek_last(&mut self, blocks: &dyn Blocks) -> Result<()> {
        self.enter_last_before(self.table.index().len(), blocks)
    }

    /// Goes one entry forward. After the last one, the cursor is on no entry. A cursor on no entry stays there.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn next(&mut self, blocks: &dyn Blocks) -> Result<()> {
        let Some(block) = &self.block else {
            return Ok(());
        };
        if self.entry.next >= self.run_end {
            return self.next_run(blocks);
        }
        let entry = Entry::decode_tail(block, self.entry.next, self.run_end, self.head_sequence);
        let entry = entry.map_err(|error| self.corrupt(self.block_index, error))?;
        self.write_key(&entry);
        self.index += 1;
        self.entry = entry;
        Ok(())
    }

    fn next_run(&mut self, blocks: &dyn Blocks) -> Result<()> {
        match &self.block {
            Some(block) if self.index + 1 < block.entries() => {
                self.enter(Rc::clone(block), self.block_index, self.index + 1)
            }
            Some(_) => self.enter_first_of(self.block_index + 1, blocks),
            None => Ok(()),
        }
    }

    /// Goes one entry backward. Before the first one, the cursor is on no entry. A cursor on no entry stays there.
    pub fn prev(&mut self, blocks: &dyn Blocks) -> Result<()> {
        let Some(block) = &self.block else {
            return Ok(());
        };
        let Some(index) = self.index.checked_sub(1) else {
            return self.enter_last_before(self.block_index, blocks);
        };
        let run = block.run(self.run);
        if index < run.first as usize {
            return self.enter(Rc::clone(block), self.block_index, index);
        }
        let entry = block.entry(run, index).map_err(|error| self.corrupt(self.block_index, error))?;
        self.index = index;
        self.write_key(&entry);
        self.entry = entry;
        Ok(())
    }

    /// Goes to the first entry of block `block_index`, or to no entry if there is no such block.
    fn enter_first_of(&mut self, block_index: usize, blocks: &dyn Blocks) -> Result<()> {
        if block_index >= self.table.index().len() {
            self.block = None;
            return Ok(());
        }
        let block = self.read(block_index, blocks)?;
        self.enter(block, block_index, 0)
    }

    /// Goes to the last entry of the block before block `block_index`, or to no entry if there is no such block.
    fn enter_last_before(&mut self, block_index: usize, blocks: &dyn Blocks) -> Result<()> {
        let Some(block_index) = block_index.checked_sub(1) else {
            self.block = None;
            return Ok(());
        };
        let block = self.read(block_index, blocks)?;
        let last = block.entries() - 1;
        self.enter(block, block_index, last)
    }

    fn read(&self, block_index: usize, blocks: &dyn Blocks) -> Result<Rc<Block>> {
        blocks.block(self.table.id(), self.table.key(), self.table.index().handle(block_index))
    }

    /// Goes to entry `index` of a block.
    fn enter(&mut self, block: Rc<Block>, block_index: usize, index: usize) -> Result<()> {
        let run_index = block.run_of(index);
        let run = *block.run(run_index);
        let entry = block.entry(&run, index).map_err(|error| self.corrupt(block_index, error))?;
        self.key.replace(0, &block, run.key as usize, run.key_end as usize);
        self.key_front = self.key.len;
        self.block = Some(block);
        self.block_index = block_index;
        self.index = index;
        self.run = run_index;
        self.run_end = run.end;
        self.head_sequence = run.sequence;
        if index > run.first as usize {
            self.write_key(&entry);
        }
        self.entry = entry;
        Ok(())
    }

    /// Sets `key` to the key of an entry of the current run. That entry may share more with the run's head than the previous key did.
    #[inline]
    fn write_key(&mut self, entry: &Entry) {
        let Some(block) = &self.block else {
            return;
        };
        let shared = entry.shared as usize;
        if shared > self.key_front {
            let head = block.run(self.run).key as usize;
            self.key.replace(self.key_front, block, head + self.key_front, head + shared);
        }
        self.key.replace(shared, block, entry.suffix as usize, entry.value as usize);
        self.key_front = shared;
    }

    #[cold]
    fn corrupt(&self, block_index: usize, error: Malformed) -> Error {
        self.table.corrupt(self.table.index().handle(block_index), error)
    }

    /// Whether the cursor is on an entry. The accessors below are meaningful only then.
    #[inline]
    #[must_use]
    pub fn valid(&self) -> bool {
        self.block.is_some()
    }

    /// The key.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// The sequence.
    #[inline]
    #[must_use]
    pub fn sequence(&self) -> Sequence {
        self.entry.sequence
    }

    /// Whether the entry is a value or a tombstone.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.entry.kind
    }

    /// When the entry expires, in milliseconds since 1970.
    #[inline]
    #[must_use]
    pub fn expires(&self) -> Option<u64> {
        self.entry.expires
    }

    /// The value; empty for a tombstone and when the cursor is on no entry.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| self.entry.value(block))
    }

    /// Bytes of the value; 0 when the cursor is on no entry.
    #[must_use]
    pub(crate) fn value_len(&self) -> usize {
        self.block.as_ref().map_or(0, |_| (self.entry.next - self.entry.value) as usize)
    }

    /// The block that contains the value, to keep it alive beyond the next step.
    #[must_use]
    pub(crate) fn value_block(&self) -> Option<&Rc<Block>> {
        self.block.as_ref()
    }

    /// The table that the cursor walks.
    #[must_use]
    pub fn table(&self) -> &Rc<Table> {
        &self.table
    }
}

/// A key in a buffer with extra room after it, so that short pieces are copied as one chunk.
#[derive(Debug, Default)]
struct KeyBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl KeyBuffer {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Keeps the first `keep` bytes and puts `from[start..end]` after them.
    #[inline]
    fn replace(&mut self, keep: usize, from: &[u8], start: usize, end: usize) {
        let len = keep + (end - start);
        if self.bytes.len() < len + CHUNK {
            self.bytes.resize((len + CHUNK).next_power_of_two(), 0);
        }
        self.len = len;
        let into = &mut self.bytes[keep..];
        if end - start <= CHUNK
            && let Some(chunk) = from.get(start..).and_then(|rest| rest.first_chunk::<CHUNK>())
            && let Some(into) = into.first_chunk_mut::<CHUNK>()
        {
            *into = *chunk;
        } else {
            into[..end - start].copy_from_slice(&from[start..end]);
        }
    }
}
