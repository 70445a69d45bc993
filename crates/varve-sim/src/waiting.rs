//! Reads that wait, as over IndexedDB: which bytes are not in memory, when they come, and the host that makes calls again.
//!
//! ```text
//! call --read--> not here: noted, Error::Pending --> some of the missing bytes come, in any order --> the same call again
//! ```
//!
//! Invariant: a call is made again from its beginning, and only when bytes were missing. The bytes that came for a call stay in memory
//! until the call ends. So every call ends: each attempt brings at least one more of the ranges that it reads.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use varve::scan::Progress;
use varve::storage::{MemorySlots, SlotPool, Storage, StrayVisitor};
use varve::types::{FileName, StoreId};
use varve::{Error, Result, Store};

use crate::rng::Rng;
use crate::scan::{Entries, decode};

/// Attempts after which the test decides that a call never ends.
const ATTEMPTS_MAX: u32 = 100_000;

/// Which ranges are in memory. `K` names a range.
#[derive(Debug, Clone)]
pub struct Waits<K> {
    rng: Rng,
    percent: u64,
    missing: Vec<K>,
    here: BTreeSet<K>,
    /// A read of this attempt came upon missing bytes.
    is_lacking: bool,
    /// Attempts of the call so far, and how many a call waits for at most: then the host has read ahead, and all is here.
    attempts: (u32, u32),
    /// Calls that were made again.
    pub again: u64,
}

impl<K: Ord + Copy> Waits<K> {
    /// Nothing is here. A range that nobody fetched is missing in so many of a hundred reads, until a call was made again so often.
    #[must_use]
    pub fn new(seed: u64, percent: u64, attempts_max: u32) -> Self {
        let (missing, here, attempts) = (Vec::new(), BTreeSet::new(), (0, attempts_max));
        Self { rng: Rng::new(seed), percent, missing, here, is_lacking: false, attempts, again: 0 }
    }

    /// Whether a range is here. Notes it when it is missing.
    pub fn is_here(&mut self, range: K) -> bool {
        let (attempts, attempts_max) = self.attempts;
        if attempts >= attempts_max || self.here.contains(&range) || !self.rng.chance(self.percent, 100) {
            return true;
        }
        if !self.missing.contains(&range) {
            self.missing.push(range);
        }
        self.is_lacking = true;
        false
    }

    /// Some of the missing ranges come, in any order. Others stay on their way, also over the end of the call.
    ///
    /// # Panics
    /// Where none is missing: a call that waits for nothing would never end.
    pub fn fetch(&mut self) {
        assert!(!self.missing.is_empty(), "a call waits, and no bytes are missing");
        self.again += 1;
        self.attempts.0 += 1;
        self.is_lacking = false;
        for _ in 0..=self.rng.index(self.missing.len()) {
            self.here.insert(self.missing.swap_remove(self.rng.index(self.missing.len())));
        }
    }

    /// A call begins.
    pub fn begin(&mut self) {
        self.is_lacking = false;
        self.attempts.0 = 0;
    }

    /// From now on, a call waits once at most.
    pub fn wait_once(&mut self) {
        self.attempts.1 = self.attempts.1.min(1);
    }

    /// Whether a read of the last attempt came upon missing bytes.
    #[must_use]
    pub fn was_lacking(&self) -> bool {
        self.is_lacking
    }

    /// The call has a result: most of what came for it leaves the memory, and the host may give up what has not come.
    pub fn end(&mut self) {
        let Self { rng, here, missing, .. } = self;
        here.retain(|_| rng.chance(1, 4));
        missing.retain(|_| rng.chance(1, 2));
    }

    /// The process ended.
    pub fn clear(&mut self) {
        self.here.clear();
        self.missing.clear();
    }
}

/// The host of a store, between the attempts of a call.
pub trait Fetcher {
    /// A call begins.
    fn begin(&self) {}
    /// Waits until some of the missing bytes are here, for the next attempt.
    fn fetch(&self);
    /// Whether bytes were missing in the last attempt.
    fn was_lacking(&self) -> bool {
        false
    }
    /// Whether the call is to be made again. A file that has to move stays while its bytes are missing, so the write finds no room.
    fn is_again<T>(&self, result: &Result<T>) -> bool {
        match result {
            Err(Error::Pending) => true,
            Err(Error::StorageFull) => self.was_lacking(),
            _ => false,
        }
    }
    /// The call has a result.
    fn end(&self) {}
}

/// The host of a storage that reads at once.
#[derive(Debug, Clone, Copy)]
pub struct AtOnce;

impl Fetcher for AtOnce {
    fn fetch(&self) {
        panic!("a storage that reads at once lets a call wait");
    }
}

/// Makes a call until no bytes are missing.
///
/// # Errors
/// That of the call.
///
/// # Panics
/// Where the call never ends.
pub fn patiently<T>(host: &impl Fetcher, mut call: impl FnMut() -> Result<T>) -> Result<T> {
    host.begin();
    for _ in 0..ATTEMPTS_MAX {
        let result = call();
        if !host.is_again(&result) {
            host.end();
            return result;
        }
        host.fetch();
    }
    panic!("the call never ends");
}

/// The waits of a storage in memory. Its clones share them.
#[derive(Debug, Clone)]
pub struct Reads(Rc<RefCell<Waits<(FileName, u64, usize)>>>);

impl Reads {
    /// So many of a hundred reads of ranges that were not fetched wait.
    #[must_use]
    pub fn waiting(percent: u64) -> Self {
        Self(Rc::new(RefCell::new(Waits::new(0x3a17, percent, u32::MAX))))
    }

    /// Every read waits from now on, or none.
    pub fn wait(&self, percent: u64) {
        self.0.borrow_mut().percent = percent;
    }

    /// Calls that were made again.
    #[must_use]
    pub fn again(&self) -> u64 {
        self.0.borrow().again
    }
}

impl Fetcher for Reads {
    fn begin(&self) {
        self.0.borrow_mut().begin();
    }
    fn fetch(&self) {
        self.0.borrow_mut().fetch();
    }
    fn end(&self) {
        self.0.borrow_mut().end();
    }
}

/// A pool in memory whose reads wait.
#[derive(Debug)]
pub struct Waiting {
    pool: SlotPool<MemorySlots>,
    reads: Reads,
}

impl Waiting {
    /// A storage over slots in memory.
    ///
    /// # Panics
    /// Where a pool in memory does not open: its slots contain something else.
    #[must_use]
    pub fn new(slots: MemorySlots, reads: &Reads) -> Self {
        Self { pool: SlotPool::open(slots).expect("a pool opens"), reads: reads.clone() }
    }

    /// The slots.
    #[must_use]
    pub fn into_slots(self) -> MemorySlots {
        self.pool.into_device()
    }
}

/// The next batch of a numbered scan: its entries, and whether there may be more.
///
/// # Panics
/// Where the store returns an error, or the read never ends.
pub fn next_batch(
    store: &mut Store<Waiting>,
    reads: &Reads,
    cursor: u32,
    batch_bytes: usize,
) -> (Entries, bool) {
    let next = patiently(reads, || {
        let (progress, batch) = store.next_of_cursor(cursor, batch_bytes)?;
        Ok((decode(batch).expect("a batch decodes"), progress == Progress::More))
    });
    next.unwrap_or_else(|error| panic!("{error}"))
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
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()> {
        if !self.reads.0.borrow_mut().is_here((file, offset, into.len())) {
            return Err(Error::Pending);
        }
        self.pool.read(file, offset, into)
    }
    fn visit_strays(&self, needed: &[(FileName, u64)], visit: &mut StrayVisitor<'_>) -> Result<()> {
        self.pool.visit_strays(needed, visit)
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
    fn drop_claims(&mut self) {
        self.pool.drop_claims();
    }
    fn bytes_on_disk(&self) -> u64 {
        self.pool.bytes_on_disk()
    }
}
