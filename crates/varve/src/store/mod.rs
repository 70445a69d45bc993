//! The engine: one store over one storage.
//!
//! Life of a write: it is *staged* (a record in the active memtable's image, indexed at once), then
//! *committed* (the record's bytes go to the WAL segment in one append with all others that are staged),
//! later *flushed* (the memtable becomes a table) and *compacted*.
//!
//! Invariants:
//! - What a commit did not acknowledge leaves no trace: a refused append is rolled back out of the memtable.
//! - A segment is flushed to its end before the next one's header is written; only the newest may be torn.
//! - Table synced, then edit synced; inputs and WAL segments go only after the *next* edit, and never
//!   while a view still reads them.
//! - After one failed flush nothing is acknowledged any more (`Error::Poisoned`); reads go on.

mod blocks;
mod changes;
mod choose;
mod clients;
mod condition;
mod files;
mod history;
mod inline;
mod jobs;
mod memory;
mod name;
mod read;
mod recover;
mod reserve;
mod snapshot;
mod stats;
pub(crate) mod view;
mod write;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::manifest::{Edit, Manifest, Version};
use crate::memtable::Memtable;
use crate::options::{Host, Options};
use crate::scan::{Batch, Cursor, Gaps};
use crate::storage::Storage;
use crate::types::{Sequence, StoreId};
use crate::wal::{SegmentHeader, segment_salt};

use blocks::Fetched;
pub use changes::{ChangesFound, ChangesWanted};
use choose::{Purge, Sweep};
use clients::Clients;
pub use clients::{Caller, Past};
pub use condition::{Condition, Dependency};
use files::Obsolete;
use history::History;
use inline::Inline;
pub use jobs::JobTicket;
use jobs::Running;
pub use name::Name;
pub use recover::RecoveryReport;
pub use stats::{LevelStats, Stats};
pub use view::Entry;
use view::{SharedMemtable, View};
use write::Log;
pub use write::Op;

/// A memtable that waits for its flush.
#[derive(Debug)]
struct Frozen {
    memtable: SharedMemtable,
    segment: u64,
}

/// A scan that a caller on the other side of a boundary knows by number.
#[derive(Debug)]
struct Numbered {
    name: Name,
    cursor: Cursor,
    want_keys: bool,
    want_values: bool,
    want_expiries: bool,
}

/// An open store.
#[derive(Debug)]
pub struct Store<S: Storage> {
    storage: S,
    options: Options,
    id: StoreId,
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
    fetched: Fetched,
    /// Where scans found nothing alive.
    gaps: RefCell<Gaps>,
    cursors: Vec<Numbered>,
    /// In the order of their names.
    snapshots: Vec<(Name, Cursor)>,
    /// Reused by every batch of a numbered scan.
    batch: Batch,
    next_cursor: u32,
    running: Vec<Running>,
    inline: Option<Inline>,
    /// Somebody wants all tables merged.
    sweep: Option<Sweep>,
    /// Bytes that the last sweep has done, of how many.
    swept: (u64, u64),
    purge: Purge,
    /// See [`Store::set_idle`].
    is_idle: bool,
    /// The log's floor when a flush failed last: none has come to an end since, while it is the same.
    flush_refused: Option<u64>,
    /// How many edits there were when files were cut for want of room.
    cut_at: Option<u64>,
    /// The last merge of level 0 dropped much.
    overwrites: bool,
    /// Level 0 is as large as writers may make it.
    level_zero_full: bool,
    /// No compaction was due after this many edits.
    settled_at: Option<u64>,
    next_job: u32,
    next_table: u64,
    next_segment: u64,
    /// Sequence of the last staged write.
    last_sequence: Sequence,
    /// Sequence of the last write that a commit acknowledged.
    acknowledged: Sequence,
    /// Sequence of the last write that the opening found.
    recovered: Sequence,
    clients: Clients,
    obsolete: Obsolete,
    history: History,
    entropy: u64,
    salts: u64,
    now_ms: u64,
    memtable_bytes: usize,
    poisoned: bool,
    closed: bool,
    counters: stats::Counters,
}

impl<S: Storage> Store<S> {
    /// Opens the store that lies in `storage`, or makes a new one there.
    ///
    /// # Errors
    /// `Error::Corrupt` when files are missing or damaged, `Error::Version` for a newer format,
    /// `Error::StorageFull` or `Error::Io` when the storage refuses.
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

    /// Tells the store what time it is: milliseconds since 1970.
    pub fn set_now(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// The time that reads go by: the highest that the host has told or an edit of the manifest holds.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The storage beneath.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage beneath, for a host that adds or lends files.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Identity of the store.
    pub fn id(&self) -> &StoreId {
        &self.id
    }

    /// Sequence of the last staged write: what a read sees.
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

    /// Commits what is staged, flushes the WAL, seals it, and accepts nothing more.
    ///
    /// # Errors
    /// What the commit or the flush answered; the store is closed all the same.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let result = if self.poisoned { Err(Error::Poisoned) } else { self.close_log() };
        self.closed = true;
        self.cursors.clear();
        self.snapshots.clear();
        result
    }

    fn close_log(&mut self) -> Result<()> {
        if self.options.log {
            self.log_staged(false)?;
            return self.seal();
        }
        let mut flushed = false;
        while !self.frozen.is_empty() || !self.active.borrow().is_empty() {
            self.flush()?;
            flushed = true;
        }
        // There is no log to replay what a damaged last edit added: an empty edit behind it promises that it was durable.
        if flushed {
            self.commit_edit(Edit { floors: self.version.floors, ..Edit::default() })?;
        }
        Ok(())
    }

    /// Closes the store without another write, as a crash would, and gives the storage back.
    pub fn into_storage(self) -> S {
        self.storage
    }

    fn check_open(&self) -> Result<()> {
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }

    fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.poisoned { Err(Error::Poisoned) } else { Ok(()) }
    }

    /// Closes the store for writes after `error`, and hands the error on.
    fn poison(&mut self, error: Error) -> Error {
        self.poisoned = true;
        error
    }

    /// As [`Store::poison`], but for a lack of room or memory, for which nothing was changed.
    fn poison_unless_lack(&mut self, error: Error) -> Error {
        if error.is_lack() { error } else { self.poison(error) }
    }

    /// Bits that no other segment of this or an earlier session has seen, but by a chance of 2^-32.
    fn fresh_entropy(&mut self) -> u64 {
        self.salts += 1;
        crate::codec::hash::xxh3(&self.salts.to_le_bytes(), self.entropy)
    }

    /// An empty memtable whose segment follows `previous` (its number and where it ends).
    fn new_memtable(&mut self, previous: u64, previous_end: u64) -> SharedMemtable {
        let segment = self.next_segment;
        self.next_segment += 1;
        let salt = segment_salt(segment, self.fresh_entropy());
        Rc::new(RefCell::new(Memtable::new(SegmentHeader { segment, salt, previous, previous_end })))
    }
}
