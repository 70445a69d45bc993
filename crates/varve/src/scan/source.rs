//! One input of a merge: a memtable, a table, or a whole sorted level.
//!
//! Invariant: every source walks (key ascending, sequence descending) forward and exactly the reverse backward. A move
//! for which bytes are missing leaves the source where it was.

use std::rc::Rc;

use crate::codec::bytes::compare;
use crate::codec::cipher::Keyring;
use crate::error::Result;
use crate::memtable::MemtableCursor;
use crate::table::{Block, Blocks, TableCursor};
use crate::types::{Kind, Sequence};
use crate::view::TableHandle;

/// A sorted level read as one run: its tables are opened one after the other. Entries of a narrowed table's file before
/// its bounds are never shown.
pub(crate) struct LevelCursor {
    keyring: Keyring,
    tables: Rc<[Rc<TableHandle>]>,
    at: usize,
    cursor: Option<TableCursor>,
}

impl LevelCursor {
    pub(crate) fn new(keyring: Keyring, tables: Rc<[Rc<TableHandle>]>) -> Self {
        Self { keyring, tables, at: 0, cursor: None }
    }

    fn open(&self, at: usize, blocks: &dyn Blocks) -> Result<Option<TableCursor>> {
        match self.tables.get(at) {
            Some(handle) => Ok(Some(handle.open(&self.keyring, blocks)?.cursor())),
            None => Ok(None),
        }
    }

    /// A cursor on the first entry of table `at` whose key is `key` or greater.
    fn enter(&self, at: usize, key: &[u8], blocks: &dyn Blocks) -> Result<Option<TableCursor>> {
        let mut cursor = self.open(at, blocks)?;
        if let (Some(cursor), Some(handle)) = (&mut cursor, self.tables.get(at)) {
            cursor.seek(key.max(handle.meta.min_key.as_slice()), blocks)?;
        }
        Ok(cursor)
    }

    /// Whether a cursor of table `at` is on an entry inside the table's bounds. Only a backward walk can leave them.
    fn shows(&self, at: usize, cursor: &TableCursor) -> bool {
        let within = |handle: &Rc<TableHandle>| {
            !handle.meta.is_narrowed() || cursor.key() >= handle.meta.min_key.as_slice()
        };
        cursor.valid() && self.tables.get(at).is_some_and(within)
    }

    fn seek(&mut self, key: &[u8], blocks: &dyn Blocks) -> Result<()> {
        let at = self.tables.partition_point(|handle| compare(&handle.meta.max_key, key).is_lt());
        let cursor = self.enter(at, key, blocks)?;
        self.skip_forward(at, cursor, blocks)
    }

    fn seek_before(&mut self, key: &[u8], blocks: &dyn Blocks) -> Result<()> {
        let end = self.tables.partition_point(|handle| compare(&handle.meta.min_key, key).is_lt());
        let Some(at) = end.checked_sub(1) else {
            self.cursor = None;
            return Ok(());
        };
        let mut cursor = self.open(at, blocks)?;
        if let Some(cursor) = &mut cursor {
            cursor.seek_before(key, blocks)?;
        }
        self.skip_backward(at, cursor, blocks)
    }

    fn seek_first(&mut self, blocks: &dyn Blocks) -> Result<()> {
        let cursor = self.enter(0, &[], blocks)?;
        self.skip_forward(0, cursor, blocks)
    }

    fn seek_last(&mut self, blocks: &dyn Blocks) -> Result<()> {
        let Some(at) = self.tables.len().checked_sub(1) else {
            self.cursor = None;
            return Ok(());
        };
        let mut cursor = self.open(at, blocks)?;
        if let Some(cursor) = &mut cursor {
            cursor.seek_last(blocks)?;
        }
        self.skip_backward(at, cursor, blocks)
    }

    /// Takes `cursor` of table `at`, or the first entry of a later table when the cursor is at its end.
    fn skip_forward(
        &mut self,
        mut at: usize,
        mut cursor: Option<TableCursor>,
        blocks: &dyn Blocks,
    ) -> Result<()> {
        while cursor.as_ref().is_some_and(|cursor| !cursor.valid()) {
            at += 1;
            cursor = self.enter(at, &[], blocks)?;
        }
        self.at = at;
        self.cursor = cursor;
        Ok(())
    }

    /// Takes `cursor` of table `at`, or the last entry of an earlier table when the cursor is at its end.
    fn skip_backward(
        &mut self,
        mut at: usize,
        mut cursor: Option<TableCursor>,
        blocks: &dyn Blocks,
    ) -> Result<()> {
        while cursor.as_ref().is_some_and(|cursor| !self.shows(at, cursor)) {
            let Some(before) = at.checked_sub(1) else {
                cursor = None;
                break;
            };
            at = before;
            cursor = self.open(at, blocks)?;
            if let Some(cursor) = &mut cursor {
                cursor.seek_last(blocks)?;
            }
        }
        self.at = at;
        self.cursor = cursor;
        Ok(())
    }

    fn step(&mut self, forward: bool, blocks: &dyn Blocks) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        if cursor.valid() {
            if forward {
                cursor.next(blocks)?;
            } else {
                cursor.prev(blocks)?;
            }
        }
        let Some(cursor) = &self.cursor else { return Ok(()) };
        if if forward { cursor.valid() } else { self.shows(self.at, cursor) } {
            return Ok(());
        }
        // The table is finished. Its cursor stays (at its end) until the neighbour is open: its bytes may be missing.
        if forward {
            let next = self.enter(self.at + 1, &[], blocks)?;
            return self.skip_forward(self.at + 1, next, blocks);
        }
        let Some(at) = self.at.checked_sub(1) else {
            self.cursor = None;
            return Ok(());
        };
        let mut next = self.open(at, blocks)?;
        if let Some(cursor) = &mut next {
            cursor.seek_last(blocks)?;
        }
        self.skip_backward(at, next, blocks)
    }
}

/// One input of a merge.
pub(crate) enum Source<'a> {
    Memtable(MemtableCursor<'a>),
    Table(TableCursor),
    Level(LevelCursor),
}

impl Source<'_> {
    pub(crate) fn seek(&mut self, key: &[u8], blocks: &dyn Blocks) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.seek(key);
                Ok(())
            }
            Self::Table(cursor) => cursor.seek(key, blocks),
            Self::Level(cursor) => cursor.seek(key, blocks),
        }
    }

    pub(crate) fn seek_before(&mut self, key: &[u8], blocks: &dyn Blocks) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.seek_before(key);
                Ok(())
            }
            Self::Table(cursor) => cursor.seek_before(key, blocks),
            Self::Level(cursor) => cursor.seek_before(key, blocks),
        }
    }

    pub(crate) fn seek_first(&mut self, blocks: &dyn Blocks) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.seek_first();
                Ok(())
            }
            Self::Table(cursor) => cursor.seek_first(blocks),
            Self::Level(cursor) => cursor.seek_first(blocks),
        }
    }

    pub(crate) fn seek_last(&mut self, blocks: &dyn Blocks) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.seek_last();
                Ok(())
            }
            Self::Table(cursor) => cursor.seek_last(blocks),
            Self::Level(cursor) => cursor.seek_last(blocks),
        }
    }

    pub(crate) fn step(&mut self, forward: bool, blocks: &dyn Blocks) -> Result<()> {
        match (self, forward) {
            (Self::Memtable(cursor), true) => {
                cursor.next();
                Ok(())
            }
            (Self::Memtable(cursor), false) => {
                cursor.prev();
                Ok(())
            }
            (Self::Table(cursor), true) => cursor.next(blocks),
            (Self::Table(cursor), false) => cursor.prev(blocks),
            (Self::Level(cursor), forward) => cursor.step(forward, blocks),
        }
    }

    pub(crate) fn valid(&self) -> bool {
        match self {
            Self::Memtable(cursor) => cursor.valid(),
            Self::Table(cursor) => cursor.valid(),
            Self::Level(cursor) => cursor.cursor.as_ref().is_some_and(TableCursor::valid),
        }
    }

    /// The table cursor of the current entry of a table or level.
    fn table(&self) -> Option<&TableCursor> {
        match self {
            Self::Memtable(_) => None,
            Self::Table(cursor) => Some(cursor),
            Self::Level(level) => level.cursor.as_ref(),
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.key(),
            _ => self.table().map_or(&[], TableCursor::key),
        }
    }

    pub(crate) fn sequence(&self) -> Sequence {
        match self {
            Self::Memtable(cursor) => cursor.sequence(),
            _ => self.table().map_or(0, TableCursor::sequence),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Memtable(cursor) => cursor.kind(),
            _ => self.table().map_or(Kind::Delete, TableCursor::kind),
        }
    }

    pub(crate) fn expires(&self) -> Option<u64> {
        match self {
            Self::Memtable(cursor) => cursor.expires(),
            _ => self.table().and_then(TableCursor::expires),
        }
    }

    /// The block of the current entry; a memtable has none.
    pub(crate) fn block(&self) -> Option<&Rc<Block>> {
        self.table().and_then(TableCursor::value_block)
    }

    /// Bytes of the value, even if the value itself is not available because its block is copied as it is.
    pub(crate) fn value_len(&self) -> usize {
        match self {
            Self::Memtable(cursor) => cursor.value().len(),
            _ => self.table().map_or(0, TableCursor::value_len),
        }
    }

    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.value(),
            _ => self.table().map_or(&[], TableCursor::value),
        }
    }
}
