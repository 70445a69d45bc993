//! The operations that a bench needs from an engine.
//!
//! Invariant: a write is given to the operating system before it returns, unless [`Settings::buffered`] is set; nothing
//! is flushed to the disk for a single write. Each engine's file describes its differences from this.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The error of a bench.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// How an engine is opened.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Memory for memtables and block cache, in bytes.
    pub memory_bytes: usize,
    /// Size of a memtable, in bytes.
    pub memtable_bytes: usize,
    /// The log may stay in the process until its buffer is full: if the process dies, the buffer is lost.
    pub buffered: bool,
}

impl Settings {
    /// The memory that remains for a cache: three memtables may be in memory, as in Varve.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.memory_bytes.saturating_sub(3 * self.memtable_bytes).max(self.memory_bytes / 8)
    }
}

/// The work that two threads, or two tasks that share one, did side by side.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside {
    /// Reads made until the last write was done.
    pub reads: u64,
    /// Of them, those that found nothing.
    pub missing: u64,
}

/// A store that is measured.
pub trait Engine: Concurrent + Sized {
    /// Its name in tables.
    const NAME: &'static str;

    /// Opens the store in `dir`, or makes it.
    ///
    /// # Errors
    /// The error that the engine returned; the other methods do the same.
    fn open(dir: &Path, settings: &Settings) -> Outcome<Self>;

    /// Sets a key.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome;

    /// Removes a key.
    fn delete(&mut self, key: &[u8]) -> Outcome;

    /// Looks a key up and passes its value in place, without a copy where the engine allows it.
    fn get<R>(&mut self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R>;

    /// Sets all pairs, or none of them.
    fn write(&mut self, pairs: &[([u8; 32], [u8; 32])]) -> Outcome;

    /// Looks all keys up at one read point; returns how many were there.
    fn get_all(&mut self, keys: &[[u8; 32]]) -> Outcome<u64> {
        let mut found = 0;
        for key in keys {
            found += u64::from(self.get(key, |value| value.is_some())?);
        }
        Ok(found)
    }

    /// Reads up to `count` pairs from `from` on; returns how many there were.
    fn scan(&mut self, from: &[u8], count: usize) -> Outcome<usize>;

    /// Moves all data in memory to the disk's files.
    fn flush(&mut self) -> Outcome;

    /// Waits until no work is left in the background.
    fn finish_jobs(&mut self) -> Outcome;

    /// Merges everything, and returns room to the disk.
    fn compact(&mut self) -> Outcome;

    /// The memory use that the engine reports, in bytes: memtables, cache, indexes and filters.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// All other figures that it reports about itself, for the reader of the report.
    fn notes(&self) -> String {
        String::new()
    }

    /// Closes the store.
    fn close(self) -> Outcome;
}

/// The operations that several tasks make in one store at the same time. A task is a thread, unless the engine's file
/// says something else.
pub trait Concurrent {
    /// Looks up `batches` batches from each of `threads` threads; `keys` gets the thread and the batch. Returns how many keys were there.
    fn get_all_from_all(
        &mut self,
        threads: u64,
        batches: u64,
        keys: impl Fn(u64, u64) -> Vec<[u8; 32]> + Sync,
    ) -> Outcome<u64>;

    /// Makes the `writes` in one task while another makes `reads` until the writes are done. `writes` and `reads` return
    /// the key of their n-th operation, and the value to set.
    fn beside(
        &mut self,
        writes: u64,
        pair: impl Fn(u64) -> ([u8; 32], [u8; 32]) + Sync,
        key: impl Fn(u64) -> [u8; 32] + Sync,
    ) -> Outcome<Beside>;

    /// Writes the same pairs from `threads` tasks, `each` of them; `pair` gets the task and the number.
    fn put_from_all(
        &mut self,
        threads: u64,
        each: u64,
        pair: impl Fn(u64, u64) -> ([u8; 16], [u8; 100]) + Sync,
    ) -> Outcome;

    /// Reads from `threads` tasks, `each` of them; returns how many keys were there.
    fn get_from_all(
        &mut self,
        threads: u64,
        each: u64,
        key: impl Fn(u64, u64) -> [u8; 16] + Sync,
    ) -> Outcome<u64>;
}

/// A store that threads share.
pub trait Shared: Sync {
    /// Sets a key.
    ///
    /// # Errors
    /// The error that the engine returned; the other methods do the same.
    fn set(&self, key: &[u8], value: &[u8]) -> Outcome;

    /// Whether a key is there.
    fn has(&self, key: &[u8]) -> Outcome<bool>;

    /// Looks all keys up at one read point; returns how many were there.
    fn get_batch(&self, keys: &[[u8; 32]]) -> Outcome<u64>;
}

impl<S: Shared> Concurrent for S {
    fn get_all_from_all(
        &mut self,
        threads: u64,
        batches: u64,
        keys: impl Fn(u64, u64) -> Vec<[u8; 32]> + Sync,
    ) -> Outcome<u64> {
        let store = &*self;
        all(threads, |thread| (0..batches).map(|batch| store.get_batch(&keys(thread, batch))).sum())
    }

    fn beside(
        &mut self,
        writes: u64,
        pair: impl Fn(u64) -> ([u8; 32], [u8; 32]) + Sync,
        key: impl Fn(u64) -> [u8; 32] + Sync,
    ) -> Outcome<Beside> {
        let store = &*self;
        let write = || {
            for number in 0..writes {
                let (key, value) = pair(number);
                store.set(&key, &value)?;
            }
            Ok(())
        };
        both(write, |over| {
            let mut beside = Beside::default();
            while !over.load(Relaxed) {
                beside.missing += u64::from(!store.has(&key(beside.reads))?);
                beside.reads += 1;
            }
            Ok(beside)
        })
    }

    fn put_from_all(
        &mut self,
        threads: u64,
        each: u64,
        pair: impl Fn(u64, u64) -> ([u8; 16], [u8; 100]) + Sync,
    ) -> Outcome {
        let store = &*self;
        all(threads, |thread| {
            for number in 0..each {
                let (key, value) = pair(thread, number);
                store.set(&key, &value)?;
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn get_from_all(
        &mut self,
        threads: u64,
        each: u64,
        key: impl Fn(u64, u64) -> [u8; 16] + Sync,
    ) -> Outcome<u64> {
        let store = &*self;
        all(threads, |thread| {
            let mut found = 0;
            for number in 0..each {
                found += u64::from(store.has(&key(thread, number))?);
            }
            Ok(found)
        })
    }
}

/// Runs `write` on this thread and `read` on another until it returns.
fn both(
    write: impl FnOnce() -> Outcome,
    read: impl FnOnce(&AtomicBool) -> Outcome<Beside> + Send,
) -> Outcome<Beside> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&over));
        let written = write();
        over.store(true, Relaxed);
        let read = reader.join().map_err(|_| "a reader panicked")?;
        written?;
        read
    })
}

/// Runs `work` on as many threads; returns the sum.
pub fn all(threads: u64, work: impl Fn(u64) -> Outcome<u64> + Sync) -> Outcome<u64> {
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.join().map_err(|_| "a thread panicked")??;
        }
        Ok(sum)
    })
}
