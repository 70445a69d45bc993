//! Blocks for reads: from the cache, from the ranges that a host fetched for this read, or from the storage.
//!
//! Invariant: a block enters the cache only after its checksum was verified. A range that was fetched for a retry stays
//! until that read has succeeded, so a small cache cannot make a read run for ever.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::stats::FilterCounts;
use crate::cache::Cache;
use crate::codec::room;
use crate::storage::{Fetch, Storage};
use crate::table::{Block, BlockHandle, BlockKind, Blocks, Need, ReadError, Table, open_block};
use crate::types::{FileName, StoreId};

/// Ranges fetched by an asynchronous host for reads that returned `Need`.
#[derive(Debug, Default)]
pub(crate) struct Fetched(RefCell<Vec<(Need, Vec<u8>)>>);

impl Fetched {
    pub(crate) fn provide(&self, need: Need, bytes: Vec<u8>) {
        self.0.borrow_mut().push((need, bytes));
    }

    #[inline]
    pub(crate) fn clear(&self) {
        let mut fetched = self.0.borrow_mut();
        if !fetched.is_empty() {
            fetched.clear();
        }
    }

    pub(crate) fn find(&self, file: FileName, offset: u64, len: u32) -> Option<Vec<u8>> {
        let fetched = self.0.borrow();
        let matches = |need: &Need| need.file == file && need.offset == offset && need.len == len;
        fetched.iter().find(|(need, _)| matches(need)).map(|(_, bytes)| bytes.clone())
    }
}

/// The blocks of a store's tables.
pub(crate) struct StoreBlocks<'a, S> {
    pub(crate) storage: &'a S,
    pub(crate) cache: &'a RefCell<Cache>,
    pub(crate) fetched: &'a Fetched,
    pub(crate) store: StoreId,
    pub(crate) filters: &'a Cell<FilterCounts>,
}

impl<S: Storage> Blocks for StoreBlocks<'_, S> {
    #[cfg_attr(varve_size, optimize(speed))]
    fn block(&self, table: u64, handle: BlockHandle, kind: BlockKind) -> Result<Rc<Block>, ReadError> {
        if let Some(block) = self.cache.borrow_mut().get((FileName::table(table), handle.offset)) {
            return Ok(block);
        }
        let stored = self.raw(table, handle.offset, handle.len)?;
        let block = Rc::new(open_block(&self.store, table, handle, stored, kind)?);
        if kind == BlockKind::Data {
            self.cache.borrow_mut().insert((FileName::table(table), handle.offset), block.clone());
        }
        Ok(block)
    }

    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>, ReadError> {
        let file = FileName::table(table);
        if let Some(bytes) = self.fetched.find(file, offset, len) {
            return Ok(bytes);
        }
        let mut bytes = room::zeros(len as usize)?;
        match self.storage.read(file, offset, &mut bytes)? {
            Fetch::Ready => Ok(bytes),
            Fetch::Pending => Err(ReadError::Need(Box::new(Need { file, offset, len }))),
        }
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

    #[cfg_attr(varve_size, optimize(speed))]
    fn count_filters(&self, checks: u32, negatives: u32) {
        let FilterCounts { checks: asked, negatives: saved } = self.filters.get();
        let (checks, negatives) = (asked + u64::from(checks), saved + u64::from(negatives));
        self.filters.set(FilterCounts { checks, negatives });
    }
}
