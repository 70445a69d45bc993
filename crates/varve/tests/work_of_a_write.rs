//! How much a store reads, writes and flushes inside one write of a queue: a pause of a queue is as long as the largest of these. Counted
//! in bytes and calls, not in time.

use std::cell::Cell;

use varve::scan::{Batch, ScanOptions};
use varve::storage::{MemorySlots, SlotError, SlotPool, Slots};
use varve::{Durability, Host, Options, Store};

use crate::same_as::same_as;

const JOBS: u64 = 2000;
const STEPS: u64 = 100_000;

/// Slots that count what is done to them.
struct Counted {
    slots: MemorySlots,
    bytes: Cell<u64>,
    flushes: Cell<u64>,
}

impl Slots for Counted {
    same_as!(slots: count is_open size truncate);

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        self.bytes.set(self.bytes.get() + into.len() as u64);
        self.slots.read(slot, offset, into)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.bytes.set(self.bytes.get() + bytes.len() as u64);
        self.slots.write(slot, offset, bytes)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.flushes.set(self.flushes.get() + 1);
        self.slots.flush(slot)
    }
}

type Queue = Store<SlotPool<Counted>>;

fn key(number: u64) -> Vec<u8> {
    [b"job".as_slice(), &number.to_be_bytes()].concat()
}

/// The most bytes that one write of a queue reads and writes, and its flushes at most; `between` runs after each step.
fn most_of_a_write(between: impl Fn(&mut Queue, u64)) -> (u64, u64) {
    let slots = Counted { slots: MemorySlots::new(60), bytes: Cell::new(0), flushes: Cell::new(0) };
    let pool = SlotPool::open(slots).expect("slots");
    let host = Host { now_ms: 0, entropy: 7, store_id: [1; 16] };
    let mut store = Store::open(pool, Options::default(), host).expect("opens").0;
    for number in 0..JOBS {
        store.set(&key(number), &[7; 100]).expect("staged");
    }
    store.commit(Durability::Relaxed).expect("committed");
    let (mut most_bytes, mut most_flushes) = (0, 0);
    for step in 0..STEPS {
        for is_set in [true, false] {
            store.storage().device().bytes.set(0);
            store.storage().device().flushes.set(0);
            if is_set { store.set(&key(JOBS + step), &[7; 100]) } else { store.delete(&key(step)) }
                .expect("staged");
            store.commit(Durability::Relaxed).expect("committed");
            let device = store.storage().device();
            most_bytes = most_bytes.max(device.bytes.get());
            most_flushes = most_flushes.max(device.flushes.get());
        }
        let first = ScanOptions { lower: Vec::new(), upper: None, reverse: false, limit: Some(1) };
        let mut batch = Batch::new(true, true);
        let mut cursor = store.scan(first).expect("a scan");
        store.scan_next(&mut cursor, 1 << 20, &mut batch).expect("scanned");
        assert_eq!(batch.count(), 1);
        between(&mut store, step);
    }
    (most_bytes, most_flushes)
}

/// Where jobs run between the turns, a write begins the next segment of the log. It merges only while all tables are a small part of a memtable.
/// Measured: 302,785 bytes and 4 flushes.
#[test]
fn a_write_of_a_queue_leaves_flushes_and_merges_to_the_time_between_turns() {
    let (bytes, flushes) =
        most_of_a_write(|store, step| while step % 1000 == 0 && store.run_slice(4000).expect("a job") {});
    assert!(bytes < 400_000 && flushes <= 4, "{bytes} bytes, {flushes} flushes");
}

/// Inside one long turn it also flushes memtables, and merges their tables. Measured: 824,683 bytes and 9 flushes.
#[test]
fn a_write_of_a_queue_does_little_also_in_a_turn_that_does_not_end() {
    let (bytes, flushes) = most_of_a_write(|_, _| {});
    assert!(bytes < 1_000_000 && flushes <= 9, "{bytes} bytes, {flushes} flushes");
}
