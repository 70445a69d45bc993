//! A trace as bytes for another build of the engine to replay: every request frame with the response that this build
//! gave, the work between frames, and what every slot held in the end.
//!
//! ```text
//! recording: step*             step: u32 kind | u32 length | bytes, padded to 4 | (a frame only) u32 length | response, padded to 4
//! kinds: 0 frame  1 slices of a job until none is due, u32 entries each  2 freeze  3 merge all  4 close and open, u32 entropy
//!        5 a slot, u32 number, and its bytes
//! ```
//!
//! Invariant under test: the same requests give the same responses and leave the same bytes in the same slots, whatever the
//! machine that the engine was compiled for. Both sides open the store with [`MEMORY_BYTES`], [`SLOTS`], the clock at 1
//! and the entropy that the recording names.

use varve::frame::{FRAME_MAGIC, Operation, run};
use varve::options::{Durability, Host, Options};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Error, Store};

use crate::change::Change;
use crate::frames::{encode, put, put_u32};
use crate::metamorphic::calm_trace;
use crate::trace::{Op, Range};

/// Slots of the device: enough for every trace, for a host that adds some would not do so at the same call.
pub const SLOTS: u32 = 96;
/// The `memory` option. Memtables get an eighth of it, so that short traces flush and merge.
pub const MEMORY_BYTES: usize = 64 << 10;

/// The time of every recording.
const NOW_MS: u64 = 1;

const FRAME: u32 = 0;
const SLICES: u32 = 1;
const FREEZE: u32 = 2;
const MERGE: u32 = 3;
const REOPEN: u32 = 4;
const SLOT: u32 = 5;

/// Entries of a slice when all due work is done.
const SLICE_ENTRIES: u32 = 1000;

type SlotStore = Store<SlotPool<MemorySlots>>;

struct Recorder {
    bytes: Vec<u8>,
    store: SlotStore,
    openings: u32,
}

/// Carries out the calm trace of a seed and records it.
///
/// # Panics
/// Where the store answers with an error: in memory, and with slots to spare, nothing can fail.
#[must_use]
pub fn record(seed: u64) -> Vec<u8> {
    let mut recorder = Recorder { bytes: Vec::new(), store: open(MemorySlots::new(SLOTS), 1), openings: 1 };
    for op in &calm_trace(seed).ops {
        recorder.perform(op);
    }
    recorder.reopen();
    recorder.scan(&Range { lower: Vec::new(), upper: None, reverse: false, limit: None }, 1 << 16);
    let Recorder { mut bytes, mut store, .. } = recorder;
    store.close().expect("a store closes");
    let slots = store.into_storage().into_device();
    for slot in 0..SLOTS {
        step(&mut bytes, SLOT, &[&slot.to_le_bytes(), slots.slot(slot)].concat());
    }
    bytes
}

fn open(slots: MemorySlots, entropy: u32) -> SlotStore {
    let memtable = MEMORY_BYTES / 8;
    let options = Options {
        memory_bytes: MEMORY_BYTES,
        memtable_bytes_min: memtable,
        memtable_bytes_max: memtable,
        files_max: u64::from(SLOTS),
        ..Options::default()
    };
    let host = Host { now_ms: NOW_MS, entropy: u64::from(entropy), store_id: [7; 16] };
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
                self.request(Operation::Sync, &[], &[]);
            }
            Op::Get(key) => {
                self.request(Operation::GetEntry, key, &[]);
            }
            Op::Scan(range, bytes) => self.scan(range, *bytes),
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
            }
            Op::Reopen => self.reopen(),
            other => panic!("{other} is not calm"),
        }
    }

    fn write(&mut self, changes: &[Change], batch: bool, level: Durability) {
        let groups: Vec<&[Change]> = if batch { vec![changes] } else { changes.chunks(1).collect() };
        let groups: Vec<&[Change]> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        self.frame(&encode(&groups, level, NOW_MS));
    }

    fn request(&mut self, operation: Operation, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut frame = FRAME_MAGIC.to_le_bytes().to_vec();
        put_u32(&mut frame, 1);
        put(&mut frame, 0, (operation, 0, 0), key, value);
        self.frame(&frame)
    }

    fn frame(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut response = Vec::new();
        run(&mut self.store, frame, &mut response).expect("a frame is answered");
        step(&mut self.bytes, FRAME, frame);
        padded(&mut self.bytes, &response);
        response
    }

    fn scan(&mut self, range: &Range, batch_bytes: usize) {
        let upper = range.upper.clone().unwrap_or_default();
        let flags = u32::from(range.reverse) | 2 | 4 | 8 | if range.upper.is_some() { 32 | 64 } else { 0 };
        let limit = range.limit.map_or(u32::MAX, |limit| limit as u32);
        let mut scan = Vec::new();
        for word in [flags, limit, batch_bytes as u32, range.lower.len() as u32, upper.len() as u32] {
            scan.extend_from_slice(&word.to_le_bytes());
        }
        scan.extend_from_slice(&range.lower);
        scan.extend_from_slice(&upper);
        let mut response = self.request(Operation::ScanOpen, &[], &scan);
        // Behind the frame's head (8 bytes) and the response's (16): the cursor, 0 at the end.
        while let Some(cursor) = response.get(24..28).filter(|cursor| *cursor != [0; 4]) {
            let cursor = cursor.to_vec();
            response = self.request(Operation::ScanNext, &cursor, &(batch_bytes as u32).to_le_bytes());
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
        step(&mut self.bytes, REOPEN, &self.openings.to_le_bytes());
        let closed = self.store.close();
        assert_ne!(closed, Err(Error::Busy), "there are slots to spare");
        closed.expect("a store closes");
        let empty = open(MemorySlots::new(SLOTS), 0);
        let slots = std::mem::replace(&mut self.store, empty).into_storage().into_device();
        self.store = open(slots, self.openings);
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
