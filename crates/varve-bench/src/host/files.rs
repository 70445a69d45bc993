//! Slots that are files of a folder: `0.slot`, `1.slot` and so on.
//!
//! Invariant: a slot that is lent counts as closed here, though its file stays open for the worker that writes it.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use varve::storage::{SlotError, Slots};

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

/// The files of a folder as slots.
#[derive(Debug)]
pub struct FileSlots {
    folder: PathBuf,
    files: Vec<(Arc<File>, bool)>,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    written: Traffic,
}

fn failed(error: &std::io::Error) -> SlotError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => SlotError::Full,
        _ => SlotError::Io,
    }
}

impl FileSlots {
    /// Opens the slots that are there.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        let mut slots = Self {
            folder: folder.to_owned(),
            files: Vec::new(),
            reads: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            written: Traffic::default(),
        };
        while slots.path(slots.files.len()).exists() {
            slots.add(1)?;
        }
        Ok(slots)
    }

    fn path(&self, slot: usize) -> PathBuf {
        self.folder.join(format!("{slot}.slot"))
    }

    /// Makes `count` more slots, or opens those that are there.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn add(&mut self, count: u32) -> std::io::Result<()> {
        for _ in 0..count {
            let path = self.path(self.files.len());
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            self.files.push((Arc::new(file), true));
        }
        Ok(())
    }

    /// The file of a slot.
    #[must_use]
    pub fn file(&self, slot: u32) -> Arc<File> {
        self.files[slot as usize].0.clone()
    }

    /// Lends a slot, or takes it back.
    pub fn set_open(&mut self, slot: u32, open: bool) {
        self.files[slot as usize].1 = open;
    }

    /// Counts so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let (reads, bytes_read) = (self.reads.load(Relaxed), self.bytes_read.load(Relaxed));
        Traffic { reads, bytes_read, ..self.written }
    }

    fn opened(&self, slot: u32) -> Result<&File, SlotError> {
        match self.files.get(slot as usize) {
            Some((file, true)) => Ok(file),
            _ => Err(SlotError::Closed),
        }
    }
}

impl Slots for FileSlots {
    fn count(&self) -> u32 {
        self.files.len() as u32
    }

    fn is_open(&self, slot: u32) -> bool {
        self.opened(slot).is_ok()
    }

    fn size(&self, slot: u32) -> u64 {
        self.opened(slot)
            .and_then(|file| file.metadata().map_err(|error| failed(&error)))
            .map_or(0, |it| it.len())
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        let file = self.opened(slot)?;
        let mut len = 0;
        while len < into.len() {
            match file.read_at(&mut into[len..], offset + len as u64) {
                Ok(0) => break,
                Ok(count) => len += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        self.reads.fetch_add(1, Relaxed);
        self.bytes_read.fetch_add(len as u64, Relaxed);
        Ok(len)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.opened(slot)?.write_all_at(bytes, offset).map_err(|error| failed(&error))?;
        self.written.writes += 1;
        self.written.bytes_written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.written.flushes += 1;
        self.opened(slot)?.sync_data().map_err(|error| failed(&error))
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.opened(slot)?.set_len(bytes).map_err(|error| failed(&error))
    }
}
