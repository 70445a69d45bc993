//! Slots in files of a folder, for native programs: `slot-0000`, `slot-0001` and so on, as the JavaScript package names them in
//! `varve/fs`. A program of either can open the folder when the other has closed it.
//!
//! Invariants:
//! - A slot's name is durable before the slot can be used, so that its bytes need only a flush of the file.
//! - The first slot is locked as long as the slots are open or a reader in another thread has its file. The operating system releases
//!   the lock when the process ends. JavaScript runtimes do not see this lock. Their own is a file, and a folder with such a file is not
//!   opened here.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::slots::{SlotError, Slots};

/// Slots of a new store: two manifests, a WAL segment and its reserve, and room for the first tables.
const SLOTS_FIRST: u32 = 8;
/// How the lock of a JavaScript runtime begins.
const CLAIM: &[u8] = b"lock.";
/// The names of slots begin with this.
const SLOT: &str = "slot-";

/// Slots in files that other threads can use, too: jobs write tables there, and readers read them.
pub trait SharedSlots: Slots {
    /// The file of a slot; `None` when there is no such slot. Readers keep the file of slot 0 as long as they read, so a lock on it lasts.
    fn file(&self, slot: u32) -> Option<Arc<File>>;
}

/// The files of a folder as slots, all open.
#[derive(Debug)]
pub struct FileSlots {
    folder: PathBuf,
    files: Vec<Arc<File>>,
}

impl FileSlots {
    /// Opens the slots in `folder`, and makes the folder and the first slots if they are missing.
    ///
    /// ```
    /// use varve::{storage::{FileSlots, SlotPool}, Durability, Host, Options, Store};
    /// # let folder = std::env::temp_dir().join(format!("varve-doc-{}", std::process::id()));
    /// let host = Host { now_ms: 1_767_225_600_000, entropy: 4, store_id: [9; 16] };
    /// let slots = SlotPool::open(FileSlots::open(&folder)?)?;
    /// let (mut store, _) = Store::open(slots, Options::default(), host)?;
    /// store.set(b"silt", b"fine")?;
    /// store.commit(Durability::Strict)?;
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The error of the file system. [`ErrorKind::WouldBlock`]: the folder is open already, in this process or another, or a JavaScript
    /// runtime was killed while it had the folder open. The next one that opens the folder removes what is left then.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut count = 0;
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(slot) = name.strip_prefix(SLOT).and_then(|number| number.parse::<u16>().ok()) {
                count = count.max(u32::from(slot) + 1);
            }
            if name.as_bytes().starts_with(CLAIM) {
                let what =
                    format!("a JavaScript runtime has the store open, or was killed: {}", path.display());
                return Err(io::Error::new(ErrorKind::WouldBlock, what));
            }
        }
        let mut slots = Self { folder: folder.to_owned(), files: Vec::new() };
        // One that is missing, as in a folder that was restored in part, becomes an empty slot: those behind it are used.
        slots.add(count.max(SLOTS_FIRST))?;
        if let Some(first) = slots.files.first() {
            first.try_lock()?;
        }
        Ok(slots)
    }

    /// Makes `count` more slots; call [`SlotPool::added`](super::SlotPool::added) afterwards.
    ///
    /// # Errors
    /// The error of the file system; the slots that were made stay.
    pub fn add(&mut self, count: u32) -> io::Result<()> {
        for _ in 0..count {
            self.open_next()?;
        }
        File::open(&self.folder)?.sync_all()
    }

    fn path(&self, slot: usize) -> PathBuf {
        self.folder.join(format!("{SLOT}{slot:04}"))
    }

    fn open_next(&mut self) -> io::Result<()> {
        let path = self.path(self.files.len());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        self.files.push(Arc::new(file));
        Ok(())
    }

    fn opened(&self, slot: u32) -> Result<&Arc<File>, SlotError> {
        self.files.get(slot as usize).ok_or(SlotError::Closed)
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
        self.opened(slot).map_or(0, |file| file.metadata().map_or(0, |it| it.len()))
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        let file = self.opened(slot)?;
        let mut len = 0;
        while let Some(rest) = into.get_mut(len..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + len as u64) {
                Ok(0) => break,
                Ok(count) => len += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(len)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.opened(slot)?.write_all_at(bytes, offset).map_err(|error| failed(&error))?;
        Ok(bytes.len())
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.opened(slot)?.sync_data().map_err(|error| failed(&error))
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.opened(slot)?.set_len(bytes).map_err(|error| failed(&error))
    }
}

impl SharedSlots for FileSlots {
    fn file(&self, slot: u32) -> Option<Arc<File>> {
        self.opened(slot).ok().cloned()
    }
}

fn failed(error: &io::Error) -> SlotError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => SlotError::Full,
        _ => SlotError::Io,
    }
}
