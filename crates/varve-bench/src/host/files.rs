//! Slots in files, whose calls are counted, and some of which are lent to workers.
//!
//! Invariant: a slot that is lent counts as closed here, though its file stays open for the worker that writes it.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use varve::storage::{FileSlots, SharedSlots, SlotError, Slots};

/// Bytes and calls so far, of the store's own thread; reads and writes of workers are not included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Read calls.
    pub reads: u64,
    /// Bytes they read.
    pub bytes_read: u64,
    /// Write calls.
    pub writes: u64,
    /// Bytes they wrote.
    pub bytes_written: u64,
    /// Flushes.
    pub flushes: u64,
}

/// See the module.
#[derive(Debug)]
pub struct LentSlots {
    slots: FileSlots,
    lent: HashSet<u32>,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    written: Traffic,
}

impl LentSlots {
    /// Opens the slots of a folder.
    ///
    /// # Errors
    /// The error of the file system; the other methods do the same.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        Ok(Self {
            slots: FileSlots::open(folder)?,
            lent: HashSet::new(),
            reads: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            written: Traffic::default(),
        })
    }

    /// Makes `count` more slots.
    pub fn add(&mut self, count: u32) -> std::io::Result<()> {
        self.slots.add(count)
    }

    /// Lends a slot, or takes it back.
    pub fn set_open(&mut self, slot: u32, open: bool) {
        if open {
            self.lent.remove(&slot)
        } else {
            self.lent.insert(slot)
        };
    }

    /// Counts so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let (reads, bytes_read) = (self.reads.load(Relaxed), self.bytes_read.load(Relaxed));
        Traffic { reads, bytes_read, ..self.written }
    }

    fn check_open(&self, slot: u32) -> Result<(), SlotError> {
        if self.is_open(slot) { Ok(()) } else { Err(SlotError::Closed) }
    }
}

impl Slots for LentSlots {
    fn count(&self) -> u32 {
        self.slots.count()
    }

    fn is_open(&self, slot: u32) -> bool {
        !self.lent.contains(&slot) && self.slots.is_open(slot)
    }

    fn size(&self, slot: u32) -> u64 {
        self.slots.size(slot)
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        self.check_open(slot)?;
        let len = self.slots.read(slot, offset, into)?;
        self.reads.fetch_add(1, Relaxed);
        self.bytes_read.fetch_add(len as u64, Relaxed);
        Ok(len)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.check_open(slot)?;
        self.written.writes += 1;
        self.written.bytes_written += bytes.len() as u64;
        self.slots.write(slot, offset, bytes)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.check_open(slot)?;
        self.written.flushes += 1;
        self.slots.flush(slot)
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.check_open(slot)?;
        self.slots.truncate(slot, bytes)
    }
}

impl SharedSlots for LentSlots {
    fn file(&self, slot: u32) -> Option<Arc<File>> {
        self.slots.file(slot)
    }
}
