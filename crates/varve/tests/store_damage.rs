//! A store with a damaged byte returns `Corrupt`, at open or at a read, or the right answer: never a wrong value. A
//! store that crashed may instead have dropped unflushed data, and then reports that.
//!
//! Every written byte of every slot is damaged, one at a time, in three ways: one bit, all bits, and zeroed.

use std::collections::BTreeMap;

use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotError, SlotPool, Slots};
use varve::types::FileName;
use varve::{Code, Durability, Error, Host, Options, RecoveryReport, Store};

use crate::same_as::same_as;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const SLOTS: u32 = 20;
/// Behind the written part of a slot, one byte is damaged at every this many bytes.
const EMPTY_STRIDE: usize = 16_411;
/// The same for the padding of a slot's header page.
const PADDING_STRIDE: usize = 331;

/// Small enough for two levels, many blocks and two WAL segments within some kilobytes.
fn options() -> Options {
    Options {
        memory_bytes: 64 << 10,
        memtable_bytes_min: 2000,
        memtable_bytes_max: 2000,
        block_bytes: 256,
        restart_interval: 4,
        table_bytes: 1500,
        l0_trigger: 2,
        ..Options::default()
    }
}

fn open(slots: MemorySlots, entropy: u64) -> Result<(Store<SlotPool<MemorySlots>>, RecoveryReport), Error> {
    Store::open(SlotPool::open(slots)?, options(), Host { now_ms: 0, entropy, store_id: [9; 16] })
}

/// The bytes on the disk, and the contents that a store opened from it may have.
struct Built {
    slots: MemorySlots,
    /// The store after the last flush and after each commit behind it.
    states: Vec<Model>,
}

/// Writes key `number` in generation `round`, so that every value shows both.
fn write(
    store: &mut Store<SlotPool<MemorySlots>>,
    model: &mut Model,
    round: u32,
    number: u32,
    level: Durability,
) {
    let key = format!("key {number:03}").into_bytes();
    let value =
        format!("value {number:03} of round {round}, {}", ".".repeat((number % 23) as usize)).into_bytes();
    if (number + round) % 7 == 3 {
        store.delete(&key).expect("staged");
        model.remove(&key);
    } else {
        store.set(&key, &value).expect("staged");
        model.insert(key, value);
    }
    store.commit(level).expect("committed");
}

/// A store with tables in two levels, manifests that rotated, and two WAL segments; closed, or left as a crash would.
fn build(closed: bool) -> Built {
    let mut slots = MemorySlots::new(SLOTS);
    let mut model = Model::new();
    for round in 0..3 {
        let (mut store, _) = open(slots, u64::from(round)).expect("opens");
        for number in (0..60).filter(|number| number % (round + 1) == 0) {
            write(&mut store, &mut model, round, number, Durability::Relaxed);
            while store.run_slice(1000).expect("a job") {}
        }
        let range = (b"key 010".to_vec(), b"key 014".to_vec());
        store.delete_range(&range.0, &range.1).expect("staged");
        model.retain(|key, _| *key < range.0 || *key >= range.1);
        store.close().expect("closed");
        slots = store.into_storage().into_device();
    }
    let (mut store, _) = open(slots, 3).expect("opens");
    while store.run_slice(1000).expect("a job") {}
    for number in 0..12 {
        write(&mut store, &mut model, 3, number, Durability::Strict);
    }
    store.flush().expect("flushed");
    for number in 12..20 {
        write(&mut store, &mut model, 3, number, Durability::Strict);
    }
    store.freeze_active().expect("frozen");
    for number in 20..26 {
        write(&mut store, &mut model, 3, number, Durability::Strict);
    }
    let mut states = vec![model.clone()];
    for number in 26..29 {
        write(&mut store, &mut model, 3, number, Durability::Relaxed);
        states.push(model.clone());
    }
    let stats = store.stats();
    let deepest = stats.levels.last().map_or(0, |level| level.tables);
    assert!(stats.levels[0].tables > 0 && deepest > 1, "{:?}", stats.levels);
    assert!(stats.wal_segments > 1, "{stats:?}");
    if closed {
        states.drain(..3);
        store.close().expect("closed");
    }
    Built { slots: store.into_storage().into_device(), states }
}

/// The result of a damaged store: its contents with its report, or the damage.
enum Answer {
    Corrupt,
    Holds(Model, RecoveryReport),
}

/// Opens the store and reads everything in every way; the ways must agree.
fn read(slots: MemorySlots, keys: &[Vec<u8>]) -> Answer {
    match try_read(slots, keys) {
        Ok((model, report)) => Answer::Holds(model, report),
        Err(Error::Corrupt(_)) => Answer::Corrupt,
        Err(other) => panic!("{other}"),
    }
}

fn try_read(slots: MemorySlots, keys: &[Vec<u8>]) -> Result<(Model, RecoveryReport), Error> {
    let (store, report) = open(slots, 99)?;
    let forward = scan(&store, false)?;
    let mut backward = scan(&store, true)?;
    backward.reverse();
    assert_eq!(forward, backward, "the two directions differ");
    let model: Model = forward.into_iter().collect();
    for key in keys {
        assert_eq!(store.get(key)?.as_ref(), model.get(key), "get and scan differ");
    }
    Ok((model, report))
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn scan(store: &Store<SlotPool<MemorySlots>>, reverse: bool) -> Result<Pairs, Error> {
    let mut cursor = store.scan(ScanOptions { reverse, ..ScanOptions::default() })?;
    let mut entries = Vec::new();
    loop {
        let mut batch = Batch::new(true, true);
        let progress = store.scan_next(&mut cursor, 1 << 20, &mut batch)?;
        entries.extend(crate::scan_common::entries(&batch));
        if progress == Progress::Finished {
            return Ok(entries);
        }
    }
}

/// The bytes of a slot to damage: all written ones, and samples of the empty room around them.
fn places(bytes: &[u8]) -> Vec<usize> {
    let page = (SLOT_HEADER_BYTES as usize).min(bytes.len());
    let used = bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    let is_padding = |at: usize| at < page && at % (page / 2) >= 64;
    (0..page)
        .filter(|&at| !is_padding(at) || at % PADDING_STRIDE == 0)
        .chain(page..used.max(page) + 64)
        .chain((used.max(page) + 64..bytes.len()).step_by(EMPTY_STRIDE))
        .filter(|&at| at < bytes.len())
        .collect()
}

/// Damages every byte with `damage` and judges the result.
fn sweep(built: &Built, damage: impl Fn(usize, u8) -> u8) -> (u32, u32, u32) {
    let full = built.states.last().expect("a state");
    let keys: Vec<Vec<u8>> = (0..62).map(|number| format!("key {number:03}").into_bytes()).collect();
    let (mut right, mut corrupt, mut torn) = (0, 0, 0);
    for slot in 0..built.slots.count() {
        let bytes = built.slots.slot(slot);
        for at in places(bytes) {
            if damage(at, bytes[at]) == bytes[at] {
                continue;
            }
            let mut slots = built.slots.clone();
            slots.slot_mut(slot).expect("exists")[at] = damage(at, bytes[at]);
            match read(slots, &keys) {
                Answer::Corrupt => corrupt += 1,
                Answer::Holds(found, _) if found == *full => right += 1,
                Answer::Holds(found, report) if report.torn && built.states.contains(&found) => torn += 1,
                Answer::Holds(found, report) => panic!(
                    "slot {slot}, byte {at}: wrong, {report:?}, {} entries instead of {}",
                    found.len(),
                    full.len()
                ),
            }
        }
    }
    (right, corrupt, torn)
}

fn one_bit(at: usize, byte: u8) -> u8 {
    byte ^ 1 << (at % 8)
}

#[test]
fn an_undamaged_store_is_clean_when_closed_and_replayed_whole_when_not() {
    for closed in [true, false] {
        let built = build(closed);
        let Answer::Holds(found, report) = read(built.slots, &[]) else { panic!("corrupt") };
        assert_eq!(Some(&found), built.states.last());
        assert_eq!((report.clean, report.torn), (closed, false), "{report:?}");
    }
}

#[test]
fn a_closed_store_with_a_flipped_bit_is_corrupt_or_right() {
    let (right, corrupt, _) = sweep(&build(true), one_bit);
    assert!(right > 1000 && corrupt > 4000, "{right} right, {corrupt} corrupt");
}

#[test]
fn a_closed_store_with_an_inverted_byte_is_corrupt_or_right() {
    let (right, corrupt, _) = sweep(&build(true), |_, byte| !byte);
    assert!(right > 1000 && corrupt > 4000, "{right} right, {corrupt} corrupt");
}

#[test]
fn a_closed_store_with_a_zeroed_byte_is_corrupt_or_right() {
    let (right, corrupt, _) = sweep(&build(true), |_, _| 0);
    assert!(right > 100 && corrupt > 2000, "{right} right, {corrupt} corrupt");
}

#[test]
fn a_crashed_store_with_a_flipped_bit_may_also_say_that_it_lost_what_was_not_flushed() {
    let (right, corrupt, torn) = sweep(&build(false), one_bit);
    assert!(right > 1000 && corrupt > 4000 && torn > 100, "{right} right, {corrupt} corrupt, {torn} torn");
}

/// Slots in memory, one of which cannot be read.
pub struct OneUnreadable {
    pub slots: MemorySlots,
    pub bad: u32,
}

impl Slots for OneUnreadable {
    same_as!(slots: count is_open size write flush truncate);

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        if slot == self.bad { Err(SlotError::Io) } else { self.slots.read(slot, offset, into) }
    }
}

/// A disk that failed once while the store was opened, under the newest segment: nothing missed it, the store opened as clean, and
/// the next opening deleted the segment as an orphan.
#[test]
fn a_slot_that_cannot_be_read_is_an_error_and_not_an_empty_slot() {
    let Built { slots, .. } = build(true);
    for bad in 0..slots.count() {
        let device = OneUnreadable { slots: slots.clone(), bad };
        let opened = SlotPool::open(device).map(|_| ()).map_err(|error| error.code());
        assert_eq!(opened, Err(Code::Io), "slot {bad}");
    }
}

/// One damaged block, and a program that goes on writing: every merge into its table failed, and the same merge was chosen again. Level 0
/// grew with every write (417 tables and 1.3 GB, of 6 MB), and reads took 8 ms. Now tables are merged around it.
#[test]
fn a_damaged_table_does_not_keep_others_from_being_merged() {
    let mut store = open(MemorySlots::new(60), 1).expect("opens").0;
    let mut model = Model::new();
    let mut random = 7_u64;
    let mut number = move |most: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % most
    };
    let key = |number: u32| format!("key {number:04}").into_bytes();
    let mut round = |store: &mut Store<SlotPool<MemorySlots>>, model: &mut Model, writes: u32| {
        for at in 0..writes {
            let from = number(1000);
            match number(20) {
                0 => {
                    let (start, end) = (key(from), key(from + number(30)));
                    store.delete_range(&start, &end).expect("staged");
                    model.retain(|key, _| *key < start || *key >= end);
                }
                1 | 2 => {
                    store.delete(&key(from)).expect("staged");
                    model.remove(&key(from));
                }
                _ => {
                    let value = vec![number(256) as u8; 40];
                    store.set(&key(from), &value).expect("staged");
                    model.insert(key(from), value);
                }
            }
            store.commit(Durability::Relaxed).expect("committed");
            if at % 8 == 0 {
                // The host tries again later when a job fails.
                let _ = store.run_slice(10_000);
            }
        }
    };
    round(&mut store, &mut model, 6000);
    store.compact().expect("merged");
    store.release().expect("released");
    store.close().expect("closed");
    let pool = store.into_storage();
    let tables = (1..5000).map(FileName::table).filter(|table| pool.slot_of(*table).is_some());
    let tables: Vec<_> = tables.collect();
    let place = pool.place_of(tables[tables.len() / 2]).expect("a table");
    let mut slots = pool.into_device();
    slots.slot_mut(place.slot).expect("a slot")[place.start as usize + 100] ^= 1;
    let mut store = open(slots, 2).expect("opens").0;
    for _ in 0..6 {
        round(&mut store, &mut model, 1000);
        let stats = store.stats();
        let (tables, bytes) =
            (stats.levels[0].tables, stats.levels.iter().map(|level| level.bytes).sum::<u64>());
        assert!(tables < 24 && bytes < 400_000, "{tables} tables in level 0, {bytes} bytes");
    }
    let mut damaged = 0;
    for number in 0..1030 {
        match store.get(&key(number)) {
            Err(Error::Corrupt(_)) => damaged += 1,
            found => assert_eq!(found.as_ref(), Ok(&model.get(&key(number)).cloned()), "{number}"),
        }
    }
    assert!(damaged < 10, "{damaged}");
}
