//! Tables in memory, for tests and tools.
//!
//! Invariant: in asking mode, every first read of a place returns [`Error::Pending`]. The fetched bytes are dropped as
//! soon as the read that needed them is complete, as in a host that only reads asynchronously.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Block, BlockHandle, BlockKind, Blocks, open_block};
use crate::codec::cipher::{KeyNumber, Keyring};
use crate::error::{Error, Result};
use crate::types::FileName;

/// Whole table files in memory.
#[derive(Debug)]
pub struct MemoryBlocks {
    keyring: Keyring,
    files: BTreeMap<u64, Vec<u8>>,
    opened: RefCell<BTreeMap<(u64, u64), Rc<Block>>>,
    asks: bool,
    /// The places that the read in progress found missing: their bytes are there when it is run again.
    fetched: RefCell<BTreeSet<(u64, u64, u32)>>,
}

impl MemoryBlocks {
    /// No tables; reads return at once, and opened blocks are kept.
    #[must_use]
    pub fn new(keyring: Keyring) -> Self {
        Self {
            keyring,
            files: BTreeMap::new(),
            opened: RefCell::default(),
            asks: false,
            fetched: RefCell::default(),
        }
    }

    /// No tables; reads return [`Error::Pending`] until the bytes were fetched.
    #[must_use]
    pub fn asking(keyring: Keyring) -> Self {
        Self { asks: true, ..Self::new(keyring) }
    }

    /// The keys of the tables.
    #[must_use]
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Adds the file of a table, or replaces it.
    pub fn insert(&mut self, table: u64, bytes: Vec<u8>) {
        self.opened.borrow_mut().retain(|&(id, _), _| id != table);
        self.files.insert(table, bytes);
    }

    /// Runs `read` until no bytes are missing.
    pub fn run<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        let mut result = read();
        while matches!(result, Err(Error::Pending)) {
            result = read();
        }
        self.fetched.borrow_mut().clear();
        result
    }

    fn bytes(&self, table: u64, offset: u64, len: u32) -> Result<&[u8]> {
        if self.asks && self.fetched.borrow_mut().insert((table, offset, len)) {
            return Err(Error::Pending);
        }
        let end = offset.checked_add(u64::from(len));
        let range = usize::try_from(offset).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
        let file = self.files.get(&table);
        let bytes = file.zip(range).and_then(|(file, (start, end))| file.get(start..end));
        bytes.ok_or_else(|| Error::corrupt(FileName::table(table), offset, "short read"))
    }
}

impl Blocks for MemoryBlocks {
    fn block(&self, table: u64, key: KeyNumber, handle: BlockHandle) -> Result<Rc<Block>> {
        let place = (table, handle.offset);
        if !self.asks
            && let Some(block) = self.opened.borrow().get(&place)
        {
            return Ok(Rc::clone(block));
        }
        let stored = self.bytes(table, handle.offset, handle.len)?.to_vec();
        let block = Rc::new(open_block(&self.keyring, table, key, handle, stored, BlockKind::Data)?);
        self.opened.borrow_mut().insert(place, Rc::clone(&block));
        Ok(block)
    }

    fn raw(&self, table: u64, offset: u64, len: u32) -> Result<Vec<u8>> {
        Ok(self.bytes(table, offset, len)?.to_vec())
    }
}
