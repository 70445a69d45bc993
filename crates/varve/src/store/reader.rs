//! Readers: the store as it was at one read point, for other threads.
//!
//! ```text
//! the store's thread                                   any thread
//! Store::reader() -- Reader: Send, Sync, Clone -----> Reader::open() -> LocalReader: get, scan
//!   keeps the tables while there is a Reader             | renew(a later Reader)
//!   copies a shared memtable before it changes it        +-> open tables and cached blocks stay
//! ```
//!
//! A reader shares only what never changes: memtables as they were, and tables in files that it reads itself. Open tables and the
//! cache belong to one thread, so reads of several threads neither lock nor write a common word.
//!
//! Invariant: a file is not deleted, and its room not used again, while a read point with it lives.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Store;
use super::blocks::{ReadFile, StoreBlocks};
use super::clock::Clock;
use super::stats::FilterCounts;
use crate::cache::Cache;
use crate::codec::cipher::Keyring;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::scan::{Batch, Cursor, Known, Progress, ScanOptions};
use crate::storage::{SharedSlots, SlotPool};
use crate::table::TableMeta;
use crate::types::{FileName, Sequence};
use crate::view::{Entry, TableHandle, View};

/// The committed state of a store at one time. Threads share it; each [opens](Reader::open) it for itself.
///
/// As long as a clone lives, the store keeps the files of its tables, also those that were merged since. A store that is dropped
/// stays locked until its last reader is dropped, too. [`Store::into_storage`] ends its readers: the storage may change from then on.
///
/// ```
/// use varve::{storage::{FileSlots, SlotPool}, Durability, Host, Options, Store};
/// # let folder = std::env::temp_dir().join(format!("varve-reader-{}", std::process::id()));
/// # let host = Host { now_ms: 1_767_225_600_000, entropy: 4, store_id: [9; 16] };
/// let slots = SlotPool::open(FileSlots::open(&folder)?)?;
/// let (mut store, _) = Store::open(slots, Options::default(), host)?;
/// store.set(b"silt", b"fine")?;
/// store.commit(Durability::Relaxed)?;
/// let reader = store.reader()?;
/// let thread = std::thread::spawn(move || reader.open(8 << 20).get(b"silt"));
/// store.delete(b"silt")?;
/// store.commit(Durability::Relaxed)?;
/// assert_eq!(thread.join().unwrap()?, Some(b"fine".to_vec()));
/// assert_eq!(store.reader()?.open(8 << 20).get(b"silt")?, None);
/// # store.close()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reader(Arc<ReadPoint>);

/// The part that threads share.
#[derive(Debug)]
pub(super) struct ReadPoint {
    keyring: Keyring,
    sequence: Sequence,
    clock: Clock,
    /// Newest first.
    memtables: Vec<Arc<Memtable>>,
    levels: Vec<Vec<PinnedTable>>,
    /// Of each table: its file, and where it begins there.
    places: HashMap<u64, (Arc<File>, u64)>,
    /// The locked file of the folder.
    lock: Arc<File>,
    /// Whether the storage was taken out of the store, and so its files may change.
    is_ended: AtomicBool,
}

impl ReadPoint {
    /// Ends all reads, in every thread.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
    }

    fn check_open(&self) -> Result<()> {
        if self.is_ended.load(Ordering::SeqCst) { Err(Error::Closed) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct PinnedTable {
    meta: TableMeta,
    is_lowest: bool,
}

impl ReadFile for ReadPoint {
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()> {
        let place = self.places.get(&file.id);
        let (slot, start) = place.ok_or_else(|| Error::corrupt(file, 0, "the file is missing"))?;
        let found = slot.read_exact_at(into, start + offset);
        // After the read: the readers end before the file changes.
        self.check_open()?;
        found.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::corrupt(file, offset, "short read"),
            _ => Error::Io("a file operation failed"),
        })
    }
}

impl<D: SharedSlots> Store<SlotPool<D>> {
    /// The store as it is now, without writes that are not committed, for reads in other threads.
    ///
    /// This copies the list of tables. The first write after it also copies the active memtable (see
    /// [`Options::memtable_bytes_max`](crate::Options::memtable_bytes_max)) if the reader is still there. The memory of such copies is
    /// not part of [`Options::memory_bytes`](crate::Options::memory_bytes).
    ///
    /// # Errors
    /// `Closed`; `Io` when a file of a table is not open.
    pub fn reader(&mut self) -> Result<Reader> {
        self.check_open()?;
        let device = self.storage.device();
        let opened = |slot| device.file(slot).ok_or(Error::Io("a file was closed from outside"));
        let mut places = HashMap::new();
        for handle in self.view.levels.iter().flat_map(|level| level.iter()) {
            let name = FileName::table(handle.meta.id);
            let place = self.storage.place_of(name);
            let place = place.ok_or_else(|| Error::corrupt(name, 0, "the file is missing"))?;
            places.insert(name.id, (opened(place.slot)?, place.start));
        }
        let pinned = |handle: &Rc<TableHandle>| PinnedTable {
            meta: TableMeta::clone(&handle.meta),
            is_lowest: handle.is_lowest,
        };
        let read_point = Arc::new(ReadPoint {
            keyring: self.manifest.keyring().clone(),
            sequence: self.acknowledged,
            clock: self.clock,
            memtables: self.view.memtables.iter().map(|memtable| memtable.borrow().clone()).collect(),
            levels: self.view.levels.iter().map(|level| level.iter().map(pinned).collect()).collect(),
            places,
            lock: opened(0)?,
            is_ended: AtomicBool::new(false),
        });
        self.unpin();
        self.obsolete.pin(&read_point, &self.view);
        Ok(Reader(read_point))
    }
}

impl Reader {
    /// Opens the read point in this thread. Open tables and cached blocks take up to `memory_bytes` bytes, for each call.
    #[must_use]
    pub fn open(&self, memory_bytes: usize) -> LocalReader {
        LocalReader {
            read_point: Arc::clone(&self.0),
            point: self.0.cursor(),
            cache: RefCell::new(Cache::new(memory_bytes)),
            filters: Cell::default(),
        }
    }

    /// The sequence of the last write that it sees.
    #[must_use]
    pub fn sequence(&self) -> Sequence {
        self.0.sequence
    }
}

impl ReadPoint {
    /// Its view for one thread.
    fn cursor(&self) -> Cursor {
        let handle =
            |table: &PinnedTable| Rc::new(TableHandle::new(Rc::new(table.meta.clone()), table.is_lowest));
        let memtables = self.memtables.iter().map(|memtable| Rc::new(RefCell::new(Arc::clone(memtable))));
        let levels = self.levels.iter().map(|level| level.iter().map(handle).collect());
        let view = Rc::new(View { memtables: memtables.collect(), levels: levels.collect() });
        Cursor::new(view, self.sequence, self.clock.now_ms, ScanOptions::default()).kept()
    }
}

/// A [`Reader`] in the thread that opened it.
#[derive(Debug)]
pub struct LocalReader {
    read_point: Arc<ReadPoint>,
    point: Cursor,
    cache: RefCell<Cache>,
    filters: Cell<FilterCounts>,
}

impl LocalReader {
    /// Goes to another read point, usually a later one. If it is one of the same store, open tables and cached blocks stay. Scans of the
    /// former read point cannot continue.
    pub fn renew(&mut self, reader: &Reader) {
        // Copies of a store have its tables' numbers, but maybe other tables.
        if !Arc::ptr_eq(&self.read_point.lock, &reader.0.lock) || self.read_point.check_open().is_err() {
            let capacity = self.cache.get_mut().capacity();
            self.cache = RefCell::new(Cache::new(capacity));
        }
        (self.point, self.read_point) = (reader.0.cursor(), Arc::clone(&reader.0));
    }

    /// Finds the newest version of `key` and passes it to `then` without copying; `None` when it is absent.
    ///
    /// # Errors
    /// `Corrupt` when a block is damaged; `Io` when a file cannot be read; `Closed` after [`Store::into_storage`].
    pub fn find<R>(&self, key: &[u8], then: impl FnOnce(Option<Entry<'_>>) -> R) -> Result<R> {
        self.read_point.check_open()?;
        let Cursor { view, now_ms, .. } = &self.point;
        view.find(&self.read_point.keyring, &self.blocks(), key, self.read_point.sequence, *now_ms, then)
    }

    /// The value of `key`, copied.
    ///
    /// # Errors
    /// As [`LocalReader::find`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.find(key, |entry| entry.map(|entry| entry.value.to_vec()))
    }

    /// The values of all `keys`, copied, in their order.
    ///
    /// # Errors
    /// As [`LocalReader::find`].
    pub fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Vec<u8>>>> {
        keys.iter().map(|key| self.get(key.as_ref())).collect()
    }

    /// Starts a scan. The next batch is read by [`LocalReader::scan_next`].
    #[must_use]
    pub fn scan(&self, options: ScanOptions) -> Cursor {
        self.point.again(options)
    }

    /// Adds entries of a scan to `batch` until it contains `bytes_max` bytes or the scan ends.
    ///
    /// # Errors
    /// As [`LocalReader::find`]. The scan then stays where it was. Reset `batch` before calling again. `InvalidArgument` for a scan of
    /// another read point.
    pub fn scan_next(&self, cursor: &mut Cursor, bytes_max: usize, batch: &mut Batch) -> Result<Progress> {
        self.read_point.check_open()?;
        if !cursor.is_of(&self.point.view) {
            return Err(Error::InvalidArgument("The scan is one of another read point. Start it again."));
        }
        // The read point notes the gaps that its scans find.
        let known = Known { gaps: &RefCell::default(), present: None };
        batch.ahead_ms = self.read_point.clock.ahead_ms;
        cursor.fill(&self.read_point.keyring, &self.blocks(), known, bytes_max, batch)
    }

    fn blocks(&self) -> StoreBlocks<'_, ReadPoint> {
        StoreBlocks {
            storage: &self.read_point,
            cache: &self.cache,
            keyring: &self.read_point.keyring,
            filters: &self.filters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Host, Options};
    use crate::storage::FileSlots;

    /// The story: a server made a reader for each request. Its store remembered all of them until the next edit, and a store that is only
    /// read has none.
    #[test]
    fn readers_that_are_gone_are_forgotten_without_an_edit() {
        let folder = std::env::temp_dir().join(format!("varve-readers-gone-{}", std::process::id()));
        let slots = SlotPool::open(FileSlots::open(&folder).expect("no other opener")).expect("a pool");
        let host = Host { now_ms: 0, entropy: 4, store_id: [9; 16] };
        let (mut store, _) = Store::open(slots, Options::default(), host).expect("opens");
        for _ in 0..100 {
            drop(store.reader().expect("a reader"));
        }
        let views = store.obsolete.views().len();
        drop(store);
        let _ = std::fs::remove_dir_all(&folder);
        assert!(views < 10, "{views} views");
    }
}
