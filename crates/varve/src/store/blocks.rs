//! Blocks for reads: from the cache or from the storage.
//!
//! Invariant: a block enters the cache only after its checksum was verified.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::stats::FilterCounts;
use crate::cache::Cache;
use crate::codec::cipher::{KeyNumber, Keyring};
use crate::codec::room;
use crate::error::Result;
use crate::storage::Storage;
use crate::table::{Block, BlockHandle, BlockKind, Blocks, Table, open_block};
use crate::types::FileName;

/// Files that can be read.
pub(crate) trait ReadFile {
    /// As [`Storage::read`].
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()>;
}

impl<S: Storage> ReadFile for S {
    #[inline]
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()> {
        Storage::read(self, file, offset, into)
    }
}

/// The blocks of a store's tables.
pub(crate) struct StoreBlocks<'a, S> {
    pub(crate) storage: &'a S,
    pub(crate) cache: &'a RefCell<Cache>,
    pub(crate) keyring: &'a Keyring,
    pub(crate) filters: &'a Cell<FilterCounts>,
}

impl<S: ReadFile> Blocks for StoreBlocks<'_, S> {
    #[cfg_attr(varve_size, optimize(speed))]
    fn block(&self, table: u64, key: KeyNumber, handle: BlockHandle) -> Result<Rc<Block>> {
        if let Some(block) = self.cache.borrow_mut().get((FileName::table(table), handle.offset)) {
            return Ok(block);
        }
        let stored = self.raw(table, handle.offset, handle.len)?;
        let block = Rc::new(open_block(self.keyring, table, key, handle, stored, BlockKind::Data)?);
        self.cache.borrow_mut().insert((FileName::table(table), handle.offset), block.clone());
        Ok(block)
    }

    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>> {
        let mut bytes = room::zeros(len as usize)?;
        self.storage.read(FileName::table(table), offset, &mut bytes)?;
        Ok(bytes)
    }

    fn keep(&self, table: &Rc<Table>) {
        self.cache.borrow_mut().insert_table(Rc::clone(table));
    }

    fn kept(&self, table: u64) -> Option<Rc<Table>> {
        self.cache.borrow().table(table)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.cache.borrow().has_room(bytes)
    }

    fn notes_missing(&self) -> bool {
        true
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn count_filters(&self, checks: u32, negatives: u32) {
        let FilterCounts { checks: asked, negatives: saved } = self.filters.get();
        let (checks, negatives) = (asked + u64::from(checks), saved + u64::from(negatives));
        self.filters.set(FilterCounts { checks, negatives });
    }
}
