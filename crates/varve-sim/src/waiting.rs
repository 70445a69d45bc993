//! A storage that never reads tables at once, as IndexedDB never does, and the driver of its reads.
//!
//! Invariant: a read that returned `Need` is run again only once its range was provided, until it needs nothing more.

use std::cell::Cell;

use varve::scan::Progress;
use varve::storage::{Fetch, MemorySlots, SlotPool, Storage};
use varve::table::ReadError;
use varve::types::{FileKind, FileName, StoreId};
use varve::{Result, Store};

use crate::scan::{Entries, decode};

/// Rounds after which the test decides that a read never ends.
const ROUNDS_MAX: u32 = 100_000;

/// A pool in memory. Its reads of tables wait while [`waits`](Self::waits) is set.
#[derive(Debug)]
pub struct Waiting {
    /// The pool that is really read and written.
    pub pool: SlotPool<MemorySlots>,
    /// Whether a read of a table returns that it is pending. Work inside the engine (jobs, recovery) needs this
    /// unset.
    pub waits: Cell<bool>,
}

impl Waiting {
    /// A storage over slots in memory that reads at once until [`waits`](Self::waits) is set.
    ///
    /// # Panics
    /// Where a pool in memory does not open: its slots hold something else.
    #[must_use]
    pub fn new(slots: MemorySlots) -> Self {
        Self { pool: SlotPool::open(slots).expect("a pool opens"), waits: Cell::new(false) }
    }
}

/// Runs a read until it needs nothing more, and counts in `waited` how often it had to be run again.
///
/// # Panics
/// Where the store returns an error, or the read never ends.
pub fn drive<T>(
    store: &Store<Waiting>,
    waited: &mut u64,
    mut read: impl FnMut(&Store<Waiting>) -> Result<T, ReadError>,
) -> T {
    for _ in 0..ROUNDS_MAX {
        match read(store) {
            Ok(answer) => return answer,
            Err(error) => provide(store, waited, error),
        }
    }
    panic!("the read never ends");
}

/// The next batch of a numbered scan, once it needs nothing more: its entries, and whether there may be more.
///
/// # Panics
/// Where the store returns an error, or the read never ends.
pub fn drive_cursor(
    store: &mut Store<Waiting>,
    waited: &mut u64,
    cursor: u32,
    batch_bytes: usize,
) -> (Entries, bool) {
    for _ in 0..ROUNDS_MAX {
        let error = match store.next_of_cursor(cursor, batch_bytes) {
            Ok((progress, batch)) => {
                return (decode(batch).expect("a batch decodes"), progress == Progress::More);
            }
            Err(error) => error,
        };
        provide(store, waited, error);
    }
    panic!("the scan never ends");
}

/// Fetches what a read waits for.
fn provide(store: &Store<Waiting>, waited: &mut u64, error: ReadError) {
    match error {
        ReadError::Need(need) => {
            *waited += 1;
            let mut bytes = vec![0; need.len as usize];
            store.storage().pool.read(need.file, need.offset, &mut bytes).expect("the range is there");
            store.provide(*need, bytes);
        }
        ReadError::Error(error) => panic!("{error}"),
    }
}

impl Storage for Waiting {
    fn list(&self) -> Vec<(FileName, u64)> {
        self.pool.list()
    }
    fn adopt(&mut self, store: StoreId) {
        self.pool.adopt(store);
    }
    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        self.pool.create(file, bytes_hint)
    }
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<Fetch> {
        if self.waits.get() && file.kind == FileKind::Table {
            return Ok(Fetch::Pending);
        }
        self.pool.read(file, offset, into)
    }
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        self.pool.write(file, offset, bytes)
    }
    fn sync(&mut self, file: FileName) -> Result<()> {
        self.pool.sync(file)
    }
    fn delete(&mut self, file: FileName) -> Result<()> {
        self.pool.delete(file)
    }
    fn bytes_on_disk(&self) -> u64 {
        self.pool.bytes_on_disk()
    }
}
