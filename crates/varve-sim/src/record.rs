//! A trace as bytes for another build of the engine to replay: every request frame with the response of this build, the work between
//! frames, and the contents of every slot at the end.
//!
//! ```text
//! recording: step*             step: u32 kind | u32 length | bytes, padded to 4 | (a frame only) u32 length | response, padded to 4
//! kinds: 0 frame  1 slices of a job until none is due, u32 entries each  2 freeze  3 merge all
//!        4 close and open, u32 entropy, u32 time  5 a slot, u32 number, and its bytes  6 the time, u32
//!        7 a check, u32 each: tables, blocks, entries, segments, records, bytes, problems
//! ```
//!
//! Invariant under test: the same requests give the same responses and leave the same bytes in the same slots, on every machine that
//! the engine is compiled for. Both sides open the store with [`MEMORY_BYTES`], [`SLOTS`], the clock at [`START_MS`] at first, and
//! the entropy in the recording. Snapshots are read, transactions commit or conflict, values expire as the clock goes on, and checks
//! of the open store count the same.

use std::collections::VecDeque;

use varve::Store;
use varve::frame::{Operation, header, run};
use varve::options::{Durability, Host, Options};
use varve::storage::{MemorySlots, SlotPool};

use crate::change::Change;
use crate::frames::{encode, framed, put, put_item, put_u32};
use crate::metamorphic::calm_trace;
use crate::rot::check;
use crate::trace::{Guess, Op, Range};
use crate::transactions::{Read, frame_of};
use crate::workload::START_MS;

/// Slots of the device: enough for every trace. A host that adds slots would not do so at the same call.
pub const SLOTS: u32 = 96;
/// The `memory` option. Memtables get an eighth of it, so that short traces flush and merge.
pub const MEMORY_BYTES: usize = 64 << 10;

const FRAME: u32 = 0;
const SLICES: u32 = 1;
const FREEZE: u32 = 2;
const MERGE: u32 = 3;
const REOPEN: u32 = 4;
const SLOT: u32 = 5;
const TIME: u32 = 6;
const CHECK: u32 = 7;

/// Snapshots open at once; the oldest is closed.
const SNAPSHOTS_MAX: usize = 4;

/// The item of a batch begins its value with the sequence that its key must have.
const IF_SEQUENCE: u8 = 2;

/// Entries of a slice when all due work is done.
const SLICE_ENTRIES: u32 = 1000;

type SlotStore = Store<SlotPool<MemorySlots>>;

struct Recorder {
    bytes: Vec<u8>,
    store: SlotStore,
    openings: u32,
    now_ms: u64,
    /// Numbers of the open snapshots, the oldest first.
    snapshots: VecDeque<u8>,
    /// The last number given to a snapshot.
    snapshot: u8,
}

/// Runs the calm trace of a seed and records it.
///
/// # Panics
/// Where the store returns an error: in memory, and with enough slots, nothing can fail.
#[must_use]
pub fn record(seed: u64) -> Vec<u8> {
    let mut recorder = Recorder {
        bytes: Vec::new(),
        store: open(MemorySlots::new(SLOTS), 1, START_MS),
        openings: 1,
        now_ms: START_MS,
        snapshots: VecDeque::new(),
        snapshot: 0,
    };
    for op in &calm_trace(seed).ops {
        recorder.perform(op);
    }
    recorder.reopen();
    recorder.scan(&Range { lower: Vec::new(), upper: None, reverse: false, limit: None }, 1 << 16, 0);
    recorder.check();
    let Recorder { mut bytes, mut store, .. } = recorder;
    store.close().expect("a store closes");
    let slots = store.into_storage().into_device();
    for slot in 0..SLOTS {
        step(&mut bytes, SLOT, &[&slot.to_le_bytes(), slots.slot(slot)].concat());
    }
    bytes
}

fn open(slots: MemorySlots, entropy: u32, now_ms: u64) -> SlotStore {
    let memtable = MEMORY_BYTES / 8;
    let options = Options {
        memory_bytes: MEMORY_BYTES,
        memtable_bytes_min: memtable,
        memtable_bytes_max: memtable,
        files_max: u64::from(SLOTS),
        ..Options::default()
    };
    let host = Host { now_ms, entropy: u64::from(entropy), store_id: [7; 16] };
    let storage = SlotPool::open(slots).expect("a pool opens");
    Store::open(storage, options, host).expect("a store opens").0
}

impl Recorder {
    fn perform(&mut self, op: &Op) {
        match op {
            Op::Write { changes, batch, commit } => {
                self.write(changes, *batch, commit.unwrap_or(Durability::Memory));
            }
            Op::Frame { changes, batch, level } => self.write(changes, *batch, *level),
            Op::Commit(level) => self.write(&[], true, *level),
            Op::Sync => {
                self.request((Operation::Sync, 0), &[], &[]);
            }
            Op::Get(key) => {
                self.request((Operation::GetEntry, 0), key, &[]);
            }
            Op::Scan(range, bytes) => self.scan(range, *bytes, 0),
            Op::Flush => {
                self.freeze();
                self.slices(SLICE_ENTRIES);
            }
            Op::Slice(entries) => self.slices(u32::try_from(*entries).unwrap_or(SLICE_ENTRIES).max(1)),
            Op::Compact => {
                self.freeze();
                step(&mut self.bytes, MERGE, &[]);
                self.store.ask_for_compaction().expect("a store takes orders");
                self.slices(SLICE_ENTRIES);
                self.check();
            }
            Op::Reopen => self.reopen(),
            Op::Begin | Op::OpenSnapshot => self.open_snapshot(),
            Op::ReadSnapshot(which, key, range, bytes) => {
                if let Some(&number) = self.snapshots.get(*which) {
                    self.request((Operation::GetEntry, number), key, &[]);
                    self.scan(range, *bytes, number);
                }
            }
            Op::DropSnapshot(which) => {
                if let Some(number) = self.snapshots.remove(*which) {
                    self.request((Operation::SnapshotClose, number), &[], &[]);
                }
            }
            Op::Transact { snapshot, keys, ranges, changes, level, .. } => {
                if let Some(number) = self.snapshots.remove(*snapshot) {
                    for key in keys {
                        self.request((Operation::GetEntry, number), key, &[]);
                    }
                    let changes = framed(changes, self.now_ms);
                    self.frame(&frame_of(&Read { keys, ranges }, &changes, self.now_ms, *level, number));
                }
            }
            Op::SetIf(key, value, guess, level) => self.set_if(key, value, *guess, *level),
            Op::Wait(ms) => {
                self.now_ms += ms;
                self.store.set_now(self.now_ms);
                step(&mut self.bytes, TIME, &(self.now_ms as u32).to_le_bytes());
            }
            other => panic!("{other} is not calm"),
        }
    }

    fn write(&mut self, changes: &[Change], batch: bool, level: Durability) {
        let changes = &framed(changes, self.now_ms)[..];
        let groups: Vec<&[Change]> = if batch { vec![changes] } else { changes.chunks(1).collect() };
        let groups: Vec<&[Change]> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        self.frame(&encode(&groups, level, self.now_ms));
    }

    /// Sets a key if it has the sequence that is guessed.
    fn set_if(&mut self, key: &[u8], value: &[u8], guess: Guess, level: Durability) {
        let has = self.store.sequence_of(key).expect("a key is read");
        let sequence = match guess {
            Guess::Right => has,
            Guess::Absent => 0,
            Guess::TooHigh => has + 1,
        };
        let mut batch = 1_u32.to_le_bytes().to_vec();
        put_item(&mut batch, [1, IF_SEQUENCE], key, &[&sequence.to_le_bytes()[..], value].concat());
        let mut frame = header(0, 0, 1).to_vec();
        put(&mut frame, 0, (Operation::Batch, level as u8, 0), &[], &batch);
        self.frame(&frame);
    }

    fn open_snapshot(&mut self) {
        self.snapshot = self.snapshot.checked_add(1).unwrap_or(1);
        let number = self.snapshot;
        self.request((Operation::SnapshotOpen, number), &[], &[]);
        self.snapshots.push_back(number);
        if self.snapshots.len() > SNAPSHOTS_MAX
            && let Some(oldest) = self.snapshots.pop_front()
        {
            self.request((Operation::SnapshotClose, oldest), &[], &[]);
        }
    }

    /// Checks the store from the bytes in its slots.
    fn check(&mut self) {
        let found =
            check(self.store.storage().device(), &varve::Keyring::plain([0; 16])).expect("a check runs");
        let problems = found.problems.len() as u64;
        let counts =
            [found.tables, found.blocks, found.entries, found.segments, found.records, found.bytes, problems];
        let words: Vec<u8> = counts.iter().flat_map(|&count| (count as u32).to_le_bytes()).collect();
        step(&mut self.bytes, CHECK, &words);
    }

    /// Sends one request, to a snapshot or (0) to the store as it is.
    fn request(&mut self, (operation, snapshot): (Operation, u8), key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut frame = header(0, 0, 1).to_vec();
        put(&mut frame, 0, (operation, 0, snapshot), key, value);
        self.frame(&frame)
    }

    fn frame(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut response = Vec::new();
        run(&mut self.store, frame, &mut response).expect("a frame is answered");
        step(&mut self.bytes, FRAME, frame);
        padded(&mut self.bytes, &response);
        response
    }

    fn scan(&mut self, range: &Range, batch_bytes: usize, snapshot: u8) {
        let upper = range.upper.clone().unwrap_or_default();
        let flags = u32::from(range.reverse) | 2 | 4 | 8 | if range.upper.is_some() { 32 | 64 } else { 0 };
        let limit = range.limit.map_or(u32::MAX, |limit| limit as u32);
        let mut scan = Vec::new();
        let flags = flags | u32::from(snapshot) << 16;
        for word in [flags, limit, batch_bytes as u32, range.lower.len() as u32, upper.len() as u32] {
            scan.extend_from_slice(&word.to_le_bytes());
        }
        scan.extend_from_slice(&range.lower);
        scan.extend_from_slice(&upper);
        let number = 1_u32.to_le_bytes();
        let mut response = self.request((Operation::ScanOpen, 0), &number, &scan);
        // Behind the frame's head (8 bytes), the response's (16) and what the scan sees (16): its number, 0 at the end.
        let mut at = 40;
        while response.get(at..at + 4).is_some_and(|more| more == number) {
            response = self.request((Operation::ScanNext, 0), &number, &(batch_bytes as u32).to_le_bytes());
            at = 24;
        }
    }

    fn freeze(&mut self) {
        step(&mut self.bytes, FREEZE, &[]);
        self.store.freeze_active().expect("a memtable freezes");
    }

    fn slices(&mut self, entries: u32) {
        step(&mut self.bytes, SLICES, &entries.to_le_bytes());
        while self.store.run_slice(entries as usize).expect("a job runs") {}
    }

    fn reopen(&mut self) {
        self.openings += 1;
        self.snapshots.clear();
        let payload = [self.openings.to_le_bytes(), (self.now_ms as u32).to_le_bytes()].concat();
        step(&mut self.bytes, REOPEN, &payload);
        self.store.close().expect("a store closes");
        let empty = open(MemorySlots::new(SLOTS), 0, self.now_ms);
        let slots = std::mem::replace(&mut self.store, empty).into_storage().into_device();
        self.store = open(slots, self.openings, self.now_ms);
    }
}

fn step(bytes: &mut Vec<u8>, kind: u32, payload: &[u8]) {
    bytes.extend_from_slice(&kind.to_le_bytes());
    padded(bytes, payload);
}

fn padded(bytes: &mut Vec<u8>, payload: &[u8]) {
    put_u32(bytes, payload.len());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
