//! How often an opening reads. Each read of a slot is a call to the host, and opening times matter.

use std::cell::Cell;

use varve::storage::{MemorySlots, SlotError, SlotPool, Slots};
use varve::{Durability, Host, Options, Store};

const SLOTS: u64 = 12;

/// Slots that count reads.
#[derive(Clone)]
struct Counted {
    slots: MemorySlots,
    reads: Cell<(u64, u64)>,
}

impl Slots for Counted {
    fn count(&self) -> u32 {
        self.slots.count()
    }

    fn is_open(&self, slot: u32) -> bool {
        self.slots.is_open(slot)
    }

    fn size(&self, slot: u32) -> u64 {
        self.slots.size(slot)
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        let (reads, bytes) = self.reads.get();
        self.reads.set((reads + 1, bytes + into.len() as u64));
        self.slots.read(slot, offset, into)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.slots.write(slot, offset, bytes)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.slots.flush(slot)
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.slots.truncate(slot, bytes)
    }
}

/// Opens a store; `searches` whether it looks for segments that are in no page.
fn open(slots: Counted, searches: bool, opening: u64) -> Store<SlotPool<Counted>> {
    let mut pool = SlotPool::open(slots).expect("a pool opens");
    pool.set_room(Some(10 << 30));
    if !searches {
        pool.leave_table_room();
    }
    let host = Host { now_ms: 1000, entropy: opening, store_id: [9; 16] };
    Store::open(pool, Options::default(), host).expect("a store opens").0
}

/// Slots of a store of so many keys, after so many sessions of a write each.
fn filled(keys: u32, sessions: u64, closes: bool) -> Counted {
    let mut slots = Counted { slots: MemorySlots::new(SLOTS as u32), reads: Cell::default() };
    for session in 0..sessions {
        let mut store = open(slots, true, session);
        let many = if session == 0 { keys } else { 1 };
        for number in 0..many {
            store.set(&number.to_be_bytes(), &[7; 100]).expect("staged");
            if number % 100 == 0 {
                store.commit(Durability::Relaxed).expect("committed");
                while store.run_slice(1 << 20).expect("a job") {}
            }
        }
        store.commit(Durability::Strict).expect("committed");
        if closes {
            store
                .fold_log()
                .and_then(|()| store.shrink(1 << 20))
                .and_then(|()| store.close())
                .expect("closed");
        }
        slots = store.into_storage().into_device();
    }
    slots
}

/// The reads of an opening and their bytes, without a search and with it.
fn reads(slots: &Counted) -> [(u64, u64); 2] {
    [false, true].map(|searches| {
        slots.reads.set((0, 0));
        open(slots.clone(), searches, 99).storage().device().reads.get()
    })
}

#[test]
fn looking_for_lost_segments_reads_nothing_while_all_pages_are_intact() {
    for (keys, sessions) in [(1000, 1), (1000, 10), (100_000, 1)] {
        for closes in [true, false] {
            let [before, after] = reads(&filled(keys, sessions, closes));
            // Of a spare slot, which has no page yet, it reads eight bytes.
            let spare = after.0 - before.0;
            assert!(spare < 4, "{keys} keys, {sessions} sessions, closed: {closes}: {spare}");
            assert_eq!(after.1 - before.1, 8 * spare, "{keys} keys, {sessions} sessions, closed: {closes}");
        }
    }
}
