//! A small disk for the manifest's crash tests: it loses power after a given number of operations and keeps any
//! subset of the 512-byte sectors that were not flushed.

use varve::storage::{SlotError, Slots};

use crate::manifest_edits::Random;

const SECTOR_BYTES: usize = 512;

/// Up to this many unsynced sectors, every subset of them is tried.
const EXHAUSTIVE_SECTORS_MAX: usize = 6;

/// Random subsets tried when there are more.
const RANDOM_SUBSETS: usize = 24;

#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    current: Vec<u8>,
}

/// Slot files of which the unflushed sectors may be lost.
#[derive(Clone)]
pub struct Disk {
    files: Vec<File>,
    operations_left: Option<usize>,
    operations: usize,
}

impl Disk {
    pub fn new(slots: u32) -> Self {
        Self { files: vec![File::default(); slots as usize], operations_left: None, operations: 0 }
    }

    /// How many operations have changed something so far.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// The power goes after `operations` more changes.
    pub fn fail_after(mut self, operations: usize) -> Self {
        self.operations_left = Some(operations);
        self
    }

    /// The process dies but the machine lives on: nothing is lost, and nothing becomes durable.
    pub fn after_process_crash(&self) -> Self {
        Self { operations_left: None, operations: 0, ..self.clone() }
    }

    /// Every disk (or a sample) that may be left after the power went.
    pub fn after_power_loss(&self, random: &mut Random) -> Vec<Self> {
        let pending = self.unsynced();
        if pending.len() <= EXHAUSTIVE_SECTORS_MAX {
            let subsets = 0..1u64 << pending.len();
            return subsets
                .map(|bits| self.keeping(&pending, |index| bits >> index & 1 == 1, random))
                .collect();
        }
        let mut disks = vec![self.keeping(&pending, |_| false, &mut Random(1))];
        disks.push(self.keeping(&pending, |_| true, &mut Random(1)));
        for _ in 0..RANDOM_SUBSETS {
            // From nearly nothing kept to nearly everything.
            let odds = 1 + random.below(15);
            let kept: Vec<bool> = pending.iter().map(|_| random.below(16) < odds).collect();
            disks.push(self.keeping(&pending, |index| kept[index], random));
        }
        disks
    }

    /// (slot, sector) pairs whose durable bytes differ from what was written.
    fn unsynced(&self) -> Vec<(usize, usize)> {
        let mut pending = Vec::new();
        for (slot, file) in self.files.iter().enumerate() {
            for sector in 0..file.current.len().div_ceil(SECTOR_BYTES) {
                let start = sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(file.current.len());
                let byte = |at: usize| file.durable.get(at).copied().unwrap_or(0);
                if (start..end).any(|at| byte(at) != file.current[at]) {
                    pending.push((slot, sector));
                }
            }
        }
        pending
    }

    fn keeping(&self, pending: &[(usize, usize)], keep: impl Fn(usize) -> bool, random: &mut Random) -> Self {
        let mut files: Vec<File> = self.files.clone();
        for file in &mut files {
            // The length may have become durable without the bytes, which then read as zeros.
            if file.current.len() > file.durable.len() && random.below(2) == 0 {
                file.durable.resize(file.current.len(), 0);
            }
        }
        for (index, &(slot, sector)) in pending.iter().enumerate() {
            if keep(index) {
                let File { durable, current } = &mut files[slot];
                let start = sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(current.len());
                if durable.len() < end {
                    durable.resize(end, 0);
                }
                durable[start..end].copy_from_slice(&current[start..end]);
            }
        }
        for file in &mut files {
            file.current.clone_from(&file.durable);
        }
        Self { files, operations_left: None, operations: 0 }
    }

    fn change(&mut self) -> Result<(), SlotError> {
        match &mut self.operations_left {
            Some(0) => return Err(SlotError::Io),
            Some(left) => *left -= 1,
            None => {}
        }
        self.operations += 1;
        Ok(())
    }
}

impl Slots for Disk {
    fn count(&self) -> u32 {
        self.files.len() as u32
    }

    fn is_open(&self, _slot: u32) -> bool {
        true
    }

    fn size(&self, slot: u32) -> u64 {
        self.files[slot as usize].current.len() as u64
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        let bytes = &self.files[slot as usize].current;
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.change()?;
        let current = &mut self.files[slot as usize].current;
        let end = offset as usize + bytes.len();
        if current.len() < end {
            current.resize(end, 0);
        }
        current[offset as usize..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.change()?;
        let File { durable, current } = &mut self.files[slot as usize];
        durable.clone_from(current);
        Ok(())
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.change()?;
        self.files[slot as usize].current.truncate(bytes as usize);
        Ok(())
    }
}
