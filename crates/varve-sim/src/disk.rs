//! The simulated disk: slot files behind [`Slots`](varve::storage::Slots), with faults that a seed can arm and a power switch.
//!
//! A [`Disk`] is the machine; [`SimSlots`] is what one process has of it. Several handles share a disk, and every handle
//! belongs to one power-on: after a crash the old handles return [`SlotError::Closed`] for every call, so a dropped store
//! cannot touch what its successor recovers.
//!
//! Faults: a quota (refused at once, or reported by a short count, as the two browsers do), a write that is short where it
//! should not be, a flush that fails, and a fuse: after so many writes and flushes the machine dies in the middle of the next
//! one. On some disks reads wait: bytes that the process does not have in memory come later ([`Waits`]), and the fuse burns then, too.
//! There is also a lie: flushes of one kind report success and do nothing, to prove that the simulator would notice if
//! the engine omitted them. Invariant: nothing here is random except through the [`Rng`] of the disk.

mod slots;

use std::cell::RefCell;
use std::rc::Rc;

use varve::storage::{Claim, SLOT_HEADER_BYTES, SlotError, SlotHeader};
use varve::types::FileKind;
use varve::wal::SEGMENT_HEADER_BYTES;

pub use self::slots::SimSlots;
use crate::rng::Rng;
use crate::slot::{PowerLoss, Slot};
use crate::waiting::{Fetcher, Waits};

/// How often a call is made again at most. A scan of a thousand small blocks would read each of them a thousand times.
const ATTEMPTS_MAX: u32 = 40;
/// After so many calls made again in one run, each call waits once at most. The missing bytes come in small parts here, so over
/// hundreds of tables a scan makes every batch again up to `ATTEMPTS_MAX` times, and opens all tables each time.
const AGAIN_MANY: u64 = 2000;

/// How the medium reports that a write does not fit the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullStyle {
    /// An error and nothing written (Chromium).
    Refuses,
    /// The part that fits is written, and the call returns some count below the requested one (Firefox).
    Shortens,
}

/// A kind of flush that the engine makes. The contents of the slot and the bytes that wait in it show which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushKind {
    /// The first of a WAL segment, which makes its header and the name of its slot durable.
    WalHeader,
    /// One that makes records of a WAL segment durable.
    WalRecords,
    /// One that makes a snapshot of the manifest durable: a rotation.
    ManifestSnapshot,
    /// One that makes durable an edit of the manifest, or the fact that another file took over.
    ManifestEdit,
    /// That of a table.
    Table,
}

/// Calls and bytes that the disk was asked for so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes and changes of size.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

#[derive(Debug, Clone)]
struct Machine {
    slots: Vec<Rc<Slot>>,
    /// The state of the medium before each change that was asked of it, while a caller wants to know.
    crash_points: Option<Vec<CrashPoint>>,
    open: Vec<bool>,
    rng: Rng,
    counts: Counts,
    power_on: u64,
    dead: bool,
    fuse: Option<u64>,
    quota_bytes: Option<u64>,
    full_style: FullStyle,
    short_write_in: Option<u64>,
    flush_failure_in: Option<u64>,
    lie: Option<FlushKind>,
    /// The ranges of slots that are in memory, if reads wait.
    waits: Option<Waits<(u32, u64, usize)>>,
}

/// All slots at one point in time.
pub type CrashPoint = Vec<Rc<Slot>>;

/// The machine whose files these are.
#[derive(Debug, Clone)]
pub struct Disk {
    machine: Rc<RefCell<Machine>>,
}

impl Disk {
    /// A disk with empty slot files.
    #[must_use]
    pub fn new(slots: u32, full_style: FullStyle, seed: u64) -> Self {
        let machine = Machine {
            slots: vec![Rc::default(); slots as usize],
            crash_points: None,
            open: vec![true; slots as usize],
            rng: Rng::new(seed),
            counts: Counts::default(),
            power_on: 0,
            dead: false,
            fuse: None,
            quota_bytes: None,
            full_style,
            short_write_in: None,
            flush_failure_in: None,
            lie: None,
            waits: None,
        };
        Self { machine: Rc::new(RefCell::new(machine)) }
    }

    /// The slot files as the present process sees them.
    #[must_use]
    pub fn slots(&self) -> SimSlots {
        SimSlots { machine: Rc::clone(&self.machine), power_on: self.machine.borrow().power_on }
    }

    /// The process dies: its handles and the faults are gone with it, its writes and the quota stay.
    pub fn kill_process(&self) {
        let mut machine = self.machine.borrow_mut();
        machine.restart();
    }

    /// The power goes. `loss` decides which unflushed data is lost.
    pub fn lose_power(&self, loss: PowerLoss) {
        let machine = &mut *self.machine.borrow_mut();
        for slot in &mut machine.slots {
            Rc::make_mut(slot).lose_power(loss, &mut machine.rng);
        }
        machine.restart();
    }

    /// Whether the fuse burned: every handle is dead until the next crash call.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.machine.borrow().dead
    }

    /// The machine dies in the middle of a write or flush, after `calls` more of them.
    pub fn arm_fuse(&self, calls: u64) {
        self.machine.borrow_mut().fuse = Some(calls);
    }

    /// Limits the sum of the file sizes to the present sum and `spare_bytes` more; `None` lifts the limit.
    pub fn limit(&self, spare_bytes: Option<u64>) {
        let mut machine = self.machine.borrow_mut();
        let used = machine.bytes();
        machine.quota_bytes = spare_bytes.map(|spare| used + spare);
    }

    /// After `writes` more writes, one returns a short count though there is room.
    pub fn arm_short_write(&self, writes: u64) {
        self.machine.borrow_mut().short_write_in = Some(writes);
    }

    /// After `flushes` more flushes, one fails; some of the data that it should have made durable may be durable.
    pub fn arm_flush_failure(&self, flushes: u64) {
        self.machine.borrow_mut().flush_failure_in = Some(flushes);
    }

    /// From now on, flushes of this kind report success and do nothing.
    pub fn lie_about(&self, kind: FlushKind) {
        self.machine.borrow_mut().lie = Some(kind);
    }

    /// From now on, so many of a hundred reads of ranges that were not fetched wait.
    pub fn let_reads_wait(&self, percent: u64) {
        let mut machine = self.machine.borrow_mut();
        let seed = machine.rng.clone().bits();
        machine.waits = Some(Waits::new(seed, percent, ATTEMPTS_MAX));
    }

    /// Calls that were made again because bytes were missing.
    #[must_use]
    pub fn again(&self) -> u64 {
        self.machine.borrow().waits.as_ref().map_or(0, |waits| waits.again)
    }

    /// Removes the fuse.
    pub fn disarm_fuse(&self) {
        self.machine.borrow_mut().fuse = None;
    }

    /// Whether a write may be refused for lack of room.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.machine.borrow().quota_bytes.is_some()
    }

    /// Creates more slot files, as a host does ahead of need.
    pub fn add_slots(&self, count: u32) {
        let mut machine = self.machine.borrow_mut();
        machine.note_crash_point();
        let total = machine.slots.len() + count as usize;
        machine.slots.resize(total, Rc::default());
        machine.open.resize(total, true);
    }

    /// The engine's handle of a slot is closed (`false`) or open, as while it is lent to the compactor.
    pub fn set_open(&self, slot: u32, open: bool) {
        if let Some(state) = self.machine.borrow_mut().open.get_mut(slot as usize) {
            *state = open;
        }
    }

    /// Flips bits of one byte of one slot, on the medium.
    pub fn flip(&self, slot: u32, offset: usize, mask: u8) {
        if let Some(slot) = self.machine.borrow_mut().slots.get_mut(slot as usize) {
            Rc::make_mut(slot).flip(offset, mask);
        }
    }

    /// Where the header of a slot was written last, and what was there before.
    #[must_use]
    pub fn former(&self, slot: u32) -> Option<(usize, Vec<u8>)> {
        let machine = self.machine.borrow();
        machine.slots.get(slot as usize)?.former().map(|(offset, bytes)| (offset, bytes.to_vec()))
    }

    /// Overwrites bytes of one slot, on the medium. They must be there.
    pub fn replace(&self, slot: u32, offset: usize, bytes: &[u8]) {
        let mut old = vec![0; bytes.len()];
        let _ = self.machine.borrow().slots[slot as usize].read(offset, &mut old);
        for (at, (old, new)) in old.iter().zip(bytes).enumerate() {
            self.flip(slot, offset + at, old ^ new);
        }
    }

    /// A copy of the machine as it is now, to be damaged separately.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { machine: Rc::new(RefCell::new(self.machine.borrow().clone())) }
    }

    /// Whether a slot file has these bytes.
    #[must_use]
    pub fn contains(&self, bytes: &[u8]) -> bool {
        self.machine.borrow().slots.iter().any(|slot| slot.contains(bytes))
    }

    /// The sizes of all slot files in bytes.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        self.machine.borrow().slots.iter().map(|slot| slot.size()).collect()
    }

    /// A disk that contains these slots, with nothing armed.
    #[must_use]
    pub fn holding(slots: CrashPoint, seed: u64) -> Self {
        let disk = Self::new(slots.len() as u32, FullStyle::Refuses, seed);
        disk.machine.borrow_mut().slots = slots;
        disk
    }

    /// All slots as they are now.
    #[must_use]
    pub fn crash_point(&self) -> CrashPoint {
        self.machine.borrow().slots.clone()
    }

    /// The crash points before each write, flush, change of size and creation of slots since the last call, oldest first.
    /// From the first call on they are kept.
    pub fn take_crash_points(&self) -> Vec<CrashPoint> {
        self.machine.borrow_mut().crash_points.replace(Vec::new()).unwrap_or_default()
    }

    /// The calls and bytes that the disk was asked for so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.machine.borrow().counts
    }
}

impl Fetcher for Disk {
    fn begin(&self) {
        if let Some(waits) = &mut self.machine.borrow_mut().waits {
            waits.begin();
            if waits.again >= AGAIN_MANY {
                waits.wait_once();
            }
        }
    }

    fn fetch(&self) {
        let machine = &mut *self.machine.borrow_mut();
        let Some(waits) = &mut machine.waits else { panic!("a disk that reads at once lets a call wait") };
        waits.fetch();
        machine.burns();
    }

    fn was_lacking(&self) -> bool {
        self.machine.borrow().waits.as_ref().is_some_and(Waits::was_lacking)
    }

    fn end(&self) {
        if let Some(waits) = &mut self.machine.borrow_mut().waits {
            waits.end();
        }
    }
}

impl Machine {
    fn restart(&mut self) {
        self.power_on += 1;
        self.dead = false;
        self.open.fill(true);
        self.fuse = None;
        self.short_write_in = None;
        self.flush_failure_in = None;
        if let Some(waits) = &mut self.waits {
            waits.clear();
        }
    }

    fn bytes(&self) -> u64 {
        self.slots.iter().map(|slot| slot.size() as u64).sum()
    }

    fn note_crash_point(&mut self) {
        if let Some(crash_points) = &mut self.crash_points {
            crash_points.push(self.slots.clone());
        }
    }

    /// Counts a fuse down; true when it burns now.
    fn burns(&mut self) -> bool {
        let burns = due(&mut self.fuse);
        self.dead |= burns;
        burns
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.note_crash_point();
        self.counts.writes += 1;
        let at = usize::try_from(offset).map_err(|_| SlotError::Full)?;
        let mut count = bytes.len();
        let burned = self.burns();
        if burned || due(&mut self.short_write_in) {
            count = self.rng.index(count + 1);
        }
        let used = self.bytes();
        let file = self.slots.get_mut(slot as usize).ok_or(SlotError::Closed)?;
        let room = self.quota_bytes.map_or(u64::MAX, |quota| quota.saturating_sub(used));
        let fits = usize::try_from((file.size() as u64).saturating_add(room).saturating_sub(offset))
            .unwrap_or(usize::MAX);
        if count > fits {
            if self.full_style == FullStyle::Refuses {
                return Err(SlotError::Full);
            }
            count = fits;
        }
        Rc::make_mut(file).write(at, &bytes[..count]);
        self.counts.bytes_written += count as u64;
        if burned {
            return Err(SlotError::Io);
        }
        // Firefox: a short count does mean a short write, but the count itself may be wrong.
        let reported = if count < bytes.len() { self.rng.index(bytes.len()) } else { count };
        Ok(reported)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.note_crash_point();
        self.counts.flushes += 1;
        let burned = self.burns();
        let failed = due(&mut self.flush_failure_in);
        let reaches_medium = !(burned || failed) || self.rng.chance(1, 2);
        let file = self.slots.get_mut(slot as usize).ok_or(SlotError::Closed)?;
        let lies = self.lie.is_some() && self.lie == kind_of(file, slot);
        if reaches_medium && !lies {
            Rc::make_mut(file).flush();
        }
        if burned || failed { Err(SlotError::Io) } else { Ok(()) }
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.note_crash_point();
        self.counts.writes += 1;
        if self.burns() {
            return Err(SlotError::Io);
        }
        let used = self.bytes();
        let file = self.slots.get_mut(slot as usize).ok_or(SlotError::Closed)?;
        let grown = bytes.saturating_sub(file.size() as u64);
        if grown > 0 && self.quota_bytes.is_some_and(|quota| used + grown > quota) {
            return Err(SlotError::Full);
        }
        Rc::make_mut(file).resize(usize::try_from(bytes).map_err(|_| SlotError::Full)?);
        Ok(())
    }
}

/// The kind of a flush of this slot, by the file that it would make durable; `None` for a slot without a readable name.
fn kind_of(slot: &Slot, number: u32) -> Option<FlushKind> {
    const HEADER: usize = SLOT_HEADER_BYTES as usize;
    let mut page = vec![0; HEADER];
    if slot.read(0, &mut page) < HEADER {
        return None;
    }
    let header = SlotHeader::decode(&page, number).ok()??;
    let unsynced = |claim: &&Claim, from: usize| {
        let start = claim.start as usize;
        slot.has_unsynced(start + from..start.saturating_add(claim.room as usize))
    };
    // The newest file with unsynced bytes. For a slot where no file has any and only the page is unsynced: the file that was
    // claimed last.
    let newest = || header.claims.iter().max_by_key(|claim| claim.generation);
    let written =
        header.claims.iter().filter(|claim| unsynced(claim, 0)).max_by_key(|claim| claim.generation);
    let claim = written.or_else(newest)?;
    Some(match claim.file.kind {
        FileKind::Table => FlushKind::Table,
        FileKind::Wal if unsynced(&claim, SEGMENT_HEADER_BYTES) => FlushKind::WalRecords,
        FileKind::Wal => FlushKind::WalHeader,
        FileKind::Manifest if slot.has_unsynced(HEADER..HEADER + 1) => FlushKind::ManifestSnapshot,
        FileKind::Manifest => FlushKind::ManifestEdit,
    })
}

/// Counts down; true once, when it was at zero.
fn due(countdown: &mut Option<u64>) -> bool {
    match countdown {
        Some(0) => {
            *countdown = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}
