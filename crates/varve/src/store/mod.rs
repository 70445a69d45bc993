//! The engine: one store over one storage.
//!
//! Life of a write: it is *staged* (a record in the active memtable's image, indexed at once), then
//! *committed* (the record's bytes go to the WAL segment in one append with all others that are staged),
//! later *flushed* (the memtable becomes a table) and *compacted*.
//!
//! Invariants:
//! - Writes that a commit did not acknowledge leave no trace: a refused append is rolled back out of the memtable.
//! - A segment is flushed to its end before the next one's header is written; only the newest may be torn.
//! - A table is synced before its edit is synced. Inputs and WAL segments are deleted only after the *next* edit, and
//!   never while a view still reads them.
//! - After one failed flush no write is acknowledged any more (`Error::Poisoned`); reads still work.

mod blocks;
mod changes;
mod clients;
mod clock;
mod condition;
mod cursors;
mod files;
mod history;
mod jobs;
mod keys;
mod log;
mod memory;
mod name;
mod read;
#[cfg(unix)]
mod reader;
mod recover;
#[cfg(test)]
mod renewal;
mod reserve;
mod snapshot;
mod stats;
mod write;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::manifest::{Edit, Manifest, Version};
use crate::memtable::Memtable;
use crate::options::{Host, Options};
use crate::scan::Gaps;
use crate::storage::Storage;
use crate::types::{Sequence, StoreId};
use crate::wal::{SegmentHeader, segment_salt};

pub use crate::view::Entry;
use crate::view::{SharedMemtable, View, share};
pub use changes::{ChangesFound, ChangesWanted};
use clients::Clients;
pub use clients::{Caller, WriteOutcome};
pub use clock::Clock;
pub use condition::{Condition, Dependency};
use cursors::Cursors;
use files::Obsolete;
use history::History;
pub use jobs::JobTicket;
use jobs::Jobs;
use log::Log;
pub use name::Name;
#[cfg(unix)]
pub use reader::{LocalReader, Reader};
pub use recover::RecoveryReport;
use snapshot::Snapshots;
pub use stats::{LevelStats, Stats};
pub use write::Op;

/// A memtable that waits for its flush.
#[derive(Debug)]
struct Frozen {
    memtable: SharedMemtable,
    segment: u64,
}

/// Numbers that no file of this store has had.
#[derive(Debug)]
struct Fresh {
    next_table: u64,
    next_segment: u64,
    entropy: u64,
    salts: u64,
}

impl Fresh {
    /// The first of so many numbers of tables.
    fn tables(&mut self, count: u64) -> u64 {
        let first = self.next_table;
        self.next_table += count;
        first
    }

    /// The number of a segment, and bits that no other segment of this or an earlier session has used, except with a probability of
    /// 2^-32.
    fn segment(&mut self) -> (u64, u64) {
        let segment = self.next_segment;
        self.next_segment += 1;
        self.salts += 1;
        (segment, crate::codec::hash::xxh3(&self.salts.to_le_bytes(), self.entropy))
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store<S: Storage> {
    storage: S,
    options: Options,
    manifest: Manifest,
    version: Version,
    view: Rc<View>,
    active: SharedMemtable,
    /// Oldest first.
    frozen: VecDeque<Frozen>,
    log: Log,
    /// WAL segments that have a file.
    segments: Vec<u64>,
    cache: RefCell<Cache>,
    /// Ranges where scans found no live entry.
    gaps: RefCell<Gaps>,
    cursors: Cursors,
    snapshots: Snapshots,
    jobs: Jobs,
    fresh: Fresh,
    /// Sequence of the last staged write.
    last_sequence: Sequence,
    /// Sequence of the last write that a commit acknowledged.
    acknowledged: Sequence,
    /// Sequence of the last write that recovery found when the store was opened.
    recovered: Sequence,
    clients: Clients,
    obsolete: Obsolete,
    history: History,
    clock: Clock,
    memtable_bytes: usize,
    /// The bytes of deleted files are overwritten: some were written before the store was encrypted.
    wipes: bool,
    poisoned: bool,
    closed: bool,
    counters: stats::Counters,
}

impl<S: Storage> Store<S> {
    /// Opens the store in `storage`, or creates a new one there.
    ///
    /// # Errors
    /// `Error::Corrupt` when files are missing or damaged, `Error::Version` for a newer format, `Error::StorageFull` or
    /// `Error::Io` when the storage fails.
    ///
    /// # Example
    /// ```
    /// use varve::{Durability, Host, Options, Store, storage::{MemorySlots, SlotPool}};
    /// let storage = SlotPool::open(MemorySlots::new(8))?;
    /// let host = Host { now_ms: 0, entropy: 7, store_id: [1; 16] };
    /// let (mut store, report) = Store::open(storage, Options::default(), host)?;
    /// assert!(report.new);
    /// store.set(b"silt", b"fine")?;
    /// store.commit(Durability::Strict)?;
    /// assert_eq!(store.get(b"silt")?, Some(b"fine".to_vec()));
    /// # Ok::<(), varve::Error>(())
    /// ```
    pub fn open(storage: S, options: Options, host: Host) -> Result<(Self, RecoveryReport)> {
        recover::open(storage, options, host)
    }

    /// Tells the store the time of the host, in milliseconds since 1970. The store's time never goes back: see [`Clock`].
    pub fn set_now(&mut self, host_ms: u64) {
        self.clock = self.clock.at(host_ms);
    }

    /// The store's time, and how far it is ahead of the host's.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time that reads use: the highest that the host has set or that an edit of the manifest has recorded.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms
    }

    /// The storage that the store uses.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage that the store uses, for a host that adds or lends files.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Identity of the store.
    pub fn id(&self) -> &StoreId {
        self.manifest.keyring().store()
    }

    /// Sequence of the last staged write; reads see everything up to it.
    pub fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }

    /// Sequence of the last acknowledged write.
    pub fn acknowledged(&self) -> Sequence {
        self.acknowledged
    }

    /// Whether writes are logged; a store without a WAL keeps them in memory until a flush.
    pub fn is_logged(&self) -> bool {
        self.options.log
    }

    /// Whether an earlier failure closed the store for writes.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// Commits the staged writes, flushes the WAL, seals it, and closes the store: later reads and writes fail.
    ///
    /// # Errors
    /// The error of the commit or of the flush; the store is closed even then. It is never `Pending`: closing reads nothing.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let result = if self.poisoned { Err(Error::Poisoned) } else { self.close_log() };
        self.closed = true;
        self.cursors.close_all();
        self.snapshots.close_all();
        result
    }

    fn close_log(&mut self) -> Result<()> {
        if self.options.log {
            return self.seal();
        }
        let mut flushed = false;
        while !self.frozen.is_empty() || !self.active.borrow().is_empty() {
            self.flush()?;
            flushed = true;
        }
        // Without a log, nothing can be replayed if the last edit is damaged. An empty edit after it records that it was
        // durable.
        if flushed {
            self.commit_edit(Edit { floors: self.version.floors, ..Edit::default() })?;
        }
        self.keep_manifest()
    }

    /// Closes the store without another write, as a crash would, and returns the storage. The next store there may change every file, so
    /// readers in other threads end: their reads are `Closed` from now on.
    pub fn into_storage(self) -> S {
        #[cfg(unix)]
        self.obsolete.end_readers();
        self.storage
    }

    fn check_open(&self) -> Result<()> {
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }

    fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.poisoned { Err(Error::Poisoned) } else { Ok(()) }
    }

    /// Closes the store for writes after `error`, and returns the error.
    fn poison(&mut self, error: Error) -> Error {
        self.poisoned = true;
        error
    }

    /// As [`Store::poison`], except after a lack of room or memory: then nothing was changed, and the store stays
    /// usable.
    fn poison_unless_lack(&mut self, error: Error) -> Error {
        if error.is_lack() { error } else { self.poison(error) }
    }

    /// An empty memtable whose segment follows `previous` (its number and where it ends).
    fn new_memtable(&mut self, previous: u64, previous_end: u64) -> SharedMemtable {
        let (segment, entropy) = self.fresh.segment();
        let keyring = self.manifest.keyring();
        let (salt, key) = (segment_salt(keyring.store(), segment, entropy), keyring.current());
        share(Memtable::new(SegmentHeader { segment, salt, previous, previous_end, key }))
    }
}
