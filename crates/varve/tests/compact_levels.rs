//! Levels at work in a whole store: jobs that take key ranges, tables that move or are deleted, little room, and a `compact()` that
//! leaves one run.

use std::collections::{BTreeMap, BTreeSet};

use varve::compact::{Job, Step};
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Options, Store};

use crate::fuzz::allocations::allocated;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Memory = Store<SlotPool<MemorySlots>>;

/// Levels a thousandth of the usual size.
fn options() -> Options {
    Options {
        memtable_bytes_min: 4 << 10,
        memtable_bytes_max: 4 << 10,
        block_bytes: 256,
        table_bytes: 2 << 10,
        level_base_bytes: 16 << 10,
        level_factor: 4,
        job_bytes_max: 24 << 10,
        l0_trigger: 4,
        compress: false,
        ..Options::default()
    }
}

fn open(slots: MemorySlots) -> Memory {
    open_with(slots, options())
}

fn open_with(slots: MemorySlots, options: Options) -> Memory {
    let host = Host { now_ms: 1_000, entropy: 5, store_id: [3; 16] };
    Store::open(SlotPool::open(slots).expect("slots"), options, host).expect("opens").0
}

/// Numbers below a bound, the same for the same seed.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) % below
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

/// Sets keys and lets every job that is due run.
fn fill(store: &mut Memory, model: &mut Model, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let value = format!("value {number} after {}", store.last_sequence()).into_bytes();
        store.set(&key(number), &value).expect("staged");
        model.insert(key(number), value);
        store.commit(Durability::Relaxed).expect("committed");
        while store.run_slice(1000).expect("a job") {}
    }
}

fn scan(store: &Memory, reverse: bool) -> Model {
    let mut cursor = store.scan(ScanOptions { reverse, ..ScanOptions::default() }).expect("a cursor");
    let (mut batch, mut found) = (Batch::default(), Model::new());
    loop {
        batch.reset(true, true);
        let progress = store.scan_next(&mut cursor, 1000, &mut batch).expect("read");
        found.extend(crate::scan_common::entries(&batch));
        if progress == Progress::Finished {
            return found;
        }
    }
}

fn check(store: &Memory, model: &Model) {
    assert!(scan(store, false) == *model && scan(store, true) == *model, "a scan differs");
    for number in 0..4000 {
        assert_eq!(store.get(&key(number)).expect("read").as_ref(), model.get(&key(number)), "key {number}");
    }
}

fn spread(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| number.wrapping_mul(2_654_435_761) % 4000)
}

#[test]
fn a_store_spreads_over_levels_and_reads_the_same_after_a_sweep_and_a_reopening() {
    let (mut store, mut model) = (open(MemorySlots::new(200)), Model::new());
    fill(&mut store, &mut model, spread(12_000));
    let stats = store.stats();
    let filled = stats.levels.iter().filter(|level| level.bytes > 0).count();
    assert!(filled >= 3 && stats.levels.iter().skip(1).take(5).all(|level| level.score < 1000), "{stats:?}");
    check(&store, &model);
    store.ask_for_compaction().expect("asked");
    let mut jobs = 0;
    let before = stats.compactions;
    while store.run_slice(1000).expect("a job") {
        let stats = store.stats();
        if stats.compactions > before + jobs {
            jobs = stats.compactions - before;
            check(&store, &model);
            assert!(stats.sweep_bytes > 0 && stats.sweep_bytes <= stats.sweep_bytes_max, "{stats:?}");
        }
    }
    let stats = store.stats();
    assert!(jobs > 5, "one job took {} bytes", stats.sweep_bytes_max);
    assert_eq!(stats.levels.iter().filter(|level| level.tables > 0).count(), 1, "{:?}", stats.levels);
    assert!(!stats.sweeping && stats.sweep_bytes == stats.sweep_bytes_max);
    check(&store, &model);
    check(&open(store.into_storage().into_device()), &model);
}

#[test]
fn a_narrowed_table_never_shows_what_a_job_took_even_after_a_reopening() {
    let (mut store, mut model) = (open(MemorySlots::new(200)), Model::new());
    fill(&mut store, &mut model, spread(6000));
    for number in 0..4000 {
        store.delete(&key(number)).expect("staged");
        model.remove(&key(number));
    }
    store.ask_for_compaction().expect("asked");
    // Every job of the sweep leaves tables whose files still contain the entries that it dropped, tombstones first of all.
    while store.run_slice(1000).expect("a job") {
        check(&store, &model);
    }
    check(&open(store.into_storage().into_device()), &model);
}

#[test]
fn tables_with_nothing_in_their_way_move() {
    let (mut store, mut model) = (open(MemorySlots::new(200)), Model::new());
    fill(&mut store, &mut model, 0..4000);
    let stats = store.stats();
    assert!(stats.moves > 0 && stats.write_amplification() < 4.0, "{stats:?}");
    check(&store, &model);
}

#[test]
fn a_deleted_range_drops_whole_tables_unread_and_not_before_it_is_in_a_table() {
    let (mut store, mut model) = (open(MemorySlots::new(200)), Model::new());
    fill(&mut store, &mut model, spread(8000));
    let cursor_sees = model.clone();
    let mut cursor = store.scan(ScanOptions::default()).expect("a cursor");
    store.delete_range(b"key 0005", b"key 0035").expect("staged");
    model.retain(|key, _| key.as_slice() < &b"key 0005"[..] || key.as_slice() >= &b"key 0035"[..]);
    store.commit(Durability::Strict).expect("committed");
    while store.run_slice(1000).expect("a job") {}
    assert_eq!(store.stats().drops, 0, "the range may still be lost");
    store.freeze_active().expect("frozen");
    while store.run_slice(1000).expect("a job") {}
    let stats = store.stats();
    assert!(stats.drops > 5, "{stats:?}");
    check(&store, &model);
    // A scan that began before keeps the files.
    let (mut batch, mut found) = (Batch::default(), 0);
    while store.scan_next(&mut cursor, 1000, &mut batch).expect("read") == Progress::More {
        found += batch.count();
        batch.reset(true, true);
    }
    assert_eq!((found + batch.count()) as usize, cursor_sees.len());
    check(&open(store.into_storage().into_device()), &model);
}

#[test]
fn with_little_room_jobs_are_small() {
    let (mut store, mut model) = (open(MemorySlots::new(200)), Model::new());
    fill(&mut store, &mut model, spread(3000));
    store.storage_mut().set_room(Some(0));
    fill(&mut store, &mut model, spread(3000));
    store.compact().expect("compacted");
    check(&store, &model);
}

/// Runs jobs until none is due.
fn run_jobs(store: &mut Memory) {
    let mut slices = 0;
    while store.run_slice(usize::MAX).expect("a job") {
        slices += 1;
        assert!(slices < 20_000, "jobs never end: {:?}", store.stats().levels);
    }
}

/// Found by simulator seed 1795393515000373, which never ended. A table ended with a range tombstone exactly where newer tables begin,
/// and counted as one that they overlap. A job that was full by the end of that table wrote it unchanged, and the table was picked
/// again. The same happened at the deepest level: a narrowed table was merged with its neighbour, which was narrowed by that, and so on.
#[test]
fn jobs_come_to_an_end_where_range_tombstones_end() {
    for seed in 1..60 {
        let mut random = random(seed);
        let options = Options {
            memtable_bytes_max: 32 << 10,
            level_base_bytes: (4 << random(8)) << 10,
            level_factor: 2 + random(3),
            job_bytes_max: (1 << random(5)) << 10,
            table_bytes: (1 << random(5)) << 10,
            l0_trigger: 2,
            ..options()
        };
        let mut store = open_with(MemorySlots::new(200), options);
        // Range tombstones are kept as long as a read point before them is.
        let mut snapshot = store.open_snapshot().expect("a snapshot");
        for _ in 0..60 {
            for _ in 0..random(4) {
                let (a, b) = (random(12) as u32, random(12) as u32);
                match random(4) {
                    0 => store.delete_range(&key(a.min(b)), &key(a.max(b) + 1)).expect("staged"),
                    _ => store.set(&key(a), &vec![7; (random(8) * random(1000)) as usize]).expect("staged"),
                };
            }
            store.commit(Durability::Relaxed).expect("committed");
            store.freeze_active().expect("frozen");
            run_jobs(&mut store);
            if random(8) == 0 {
                store.close_snapshot(snapshot);
                snapshot = store.open_snapshot().expect("a snapshot");
                run_jobs(&mut store);
            }
        }
    }
}

/// Found by simulator seed 1795405604001039. A table of values that compress well reached beyond the first key of newer tables. A job
/// that was full before that key only narrowed the table. Because there were many files, the rest of it was joined with the output of the
/// job, for ever.
#[test]
fn jobs_come_to_an_end_whatever_the_options_and_the_room() {
    for seed in 1..200 {
        let mut random = random(seed);
        let options = Options {
            memtable_bytes_max: 64 << 10,
            block_bytes: 256 << (2 * random(3)),
            level_base_bytes: (4 << random(8)) << 10,
            level_factor: 2 + random(4),
            job_bytes_max: (1 << random(6)) << 10,
            table_bytes: (1 << random(6)) << 10,
            files_max: (8 << random(5)) + random(6),
            l0_trigger: 1 + random(4) as usize,
            compress: random(2) == 0,
            ..options()
        };
        let (keys, value_bytes) = ([6, 12, 60, 400][random(4) as usize], [10, 300, 1500][random(3) as usize]);
        let mut store = open_with(MemorySlots::new(900), options);
        let mut snapshot = store.open_snapshot().expect("a snapshot");
        for _ in 0..15 {
            if random(2) == 0 {
                let is_known = random(2) == 0;
                let bytes = random(200) << 10;
                store.storage_mut().set_room(is_known.then_some(bytes));
            }
            for _ in 0..random(14) {
                for _ in 0..random(6) {
                    write_any(&mut store, keys, value_bytes, &mut random);
                }
                store.commit(Durability::Relaxed).expect("committed");
                store.freeze_active().expect("frozen");
                // Jobs may be far behind.
                while random(4) > 0 && store.run_slice(usize::MAX).expect("a job") {}
            }
            if random(3) > 0 {
                store.close_snapshot(snapshot);
                snapshot = store.open_snapshot().expect("a snapshot");
            }
            run_jobs(&mut store);
        }
    }
}

/// Stages a set, of bytes that compress or do not, a delete or a delete of a range.
fn write_any(store: &mut Memory, keys: u64, value_bytes: u64, random: &mut impl FnMut(u64) -> u64) {
    let (a, b) = (random(keys) as u32, random(keys) as u32);
    match random(12) {
        0 => store.delete_range(&key(a.min(b)), &key(a.max(b) + 1)),
        1 | 2 => store.delete(&key(a)),
        kind => {
            let length = random(8) * random(value_bytes);
            let value: Vec<u8> =
                (0..length).map(|_| if kind % 2 == 0 { 7 } else { random(256) as u8 }).collect();
            store.set(&key(a), &value)
        }
    }
    .expect("staged");
}

/// A turn has only the slots that it began with. Tables become larger as it writes, so that their number stays below the number of places
/// for files, also while a snapshot keeps the tables of its read point.
#[test]
fn one_turn_writes_as_much_as_it_likes_into_eight_slots() {
    for (in_order, with_snapshot) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut store = open_with(MemorySlots::new(8), Options { files_max: 1000, ..options() });
        let (mut random, entries) = (random(7), 15_000);
        let mut snapshot = None;
        for number in 0..entries {
            if with_snapshot && number == entries / 3 {
                snapshot = Some(store.open_snapshot().expect("a snapshot"));
            }
            let number = if in_order { number } else { random(1 << 40) };
            store.set(&number.to_be_bytes(), &[7; 200]).expect("staged");
            store.commit(Durability::Relaxed).expect("committed");
        }
        assert!(store.stats().levels.iter().map(|level| level.bytes).sum::<u64>() > 2 << 20);
        if let Some(snapshot) = snapshot {
            store.close_snapshot(snapshot);
        }
    }
}

#[test]
fn while_idle_little_is_kept_of_what_was_overwritten() {
    let mut model = Model::new();
    let mut store = open(MemorySlots::new(64));
    let bytes = |store: &Memory| store.stats().levels.iter().map(|level| level.bytes).sum::<u64>();
    fill(&mut store, &mut model, 0..1500);
    store.compact().expect("compacted");
    let data_bytes = bytes(&store);
    let mut most_bytes = 0;
    for round in 0..4 {
        for part in 0..15 {
            fill(&mut store, &mut model, (part * 100..(part + 1) * 100).map(|at| (at * 7 + round) % 1500));
            most_bytes = most_bytes.max(bytes(&store));
        }
    }
    assert!(most_bytes < data_bytes * 3 / 2, "{most_bytes} bytes of {data_bytes}");
    fill(&mut store, &mut model, (0..300).map(|at| at * 5));
    store.flush().expect("flushed");
    while store.run_slice(1000).expect("a job") {}
    let before_bytes = bytes(&store);
    store.begin_idle().expect("idle");
    while store.run_slice(1000).expect("a job") {}
    let idle_bytes = bytes(&store);
    assert!(
        idle_bytes < before_bytes && idle_bytes <= data_bytes * 9 / 8,
        "{before_bytes}, then {idle_bytes} bytes of {data_bytes}"
    );
    check(&store, &model);
    // The next memtable ends it: level 0 may then contain as much as before.
    fill(&mut store, &mut model, 0..70);
    store.flush().expect("flushed");
    while store.run_slice(1000).expect("a job") {}
    assert!(store.stats().levels[0].tables > 0);
}

#[test]
fn an_idle_store_flushes_a_memtable_that_is_a_quarter_full_and_gives_its_log_back() {
    let mut model = Model::new();
    let mut store = open(MemorySlots::new(64));
    fill(&mut store, &mut model, 0..2);
    store.begin_idle().expect("idle");
    assert_eq!(store.stats().frozen, 0);
    let quarter = store.stats().memtable_bytes_max / 4;
    while store.stats().memtable_bytes <= quarter {
        fill(&mut store, &mut model, 0..1);
    }
    let log_bytes = store.stats().wal_segment_bytes;
    store.begin_idle().expect("idle");
    while store.run_slice(1000).expect("a job") {}
    let left_bytes = store.stats().wal_segment_bytes;
    assert!(left_bytes < log_bytes / 4, "{left_bytes} bytes of {log_bytes}");
    check(&store, &model);
}

/// The story: whenever a job had to read something, it opened the first blocks of all its inputs again. So a `compact()` of 670 tables ran
/// for ten minutes. (Seed 1795878818000051.)
#[test]
fn a_job_opens_each_input_once() {
    const TABLES: u32 = 100;
    const BYTES: usize = 8000;
    let options = Options {
        l0_trigger: 1000,
        l0_stall: 1000,
        table_bytes: 1 << 20,
        job_bytes_max: 64 << 20,
        ..options()
    };
    let mut store = open_with(MemorySlots::new(400), options);
    for number in 0..TABLES {
        store.set(&key(number), &[number as u8; BYTES]).expect("staged");
        store.flush().expect("flushed");
    }
    store.ask_for_compaction().expect("asked");
    let ticket = store.take_job().expect("chosen").expect("a merge");
    let mut job = Job::decode(ticket.spec).expect("a job");
    let mut tables = BTreeSet::new();
    let allocated = allocated(|| {
        loop {
            match job.step(1000).expect("works") {
                Step::Need(need) => {
                    tables.insert(need.file.id);
                    job.feed(store.read_input(need.file.id, need.offset, need.len).expect("read"));
                }
                Step::Done => break,
                _ => drop(job.take_output()),
            }
        }
    });
    assert_eq!(tables.len(), TABLES as usize, "one job merges all");
    assert!(allocated < 10 * TABLES as usize * BYTES, "{allocated} bytes");
}

/// 9,000 of 10,000 documents of 10 KB were deleted, and their 90 MB stayed until somebody called `compact()`: tombstones are a few bytes, so
/// neither a memtable nor level 0 ever seemed worth a merge.
#[test]
fn an_idle_store_gives_back_the_room_of_what_was_deleted() {
    let mut store = open_with(MemorySlots::new(64), Options::default());
    let bytes = |store: &Memory| store.stats().levels.iter().map(|level| level.bytes).sum::<u64>();
    let key = |number: u32| format!("document {number:05}").into_bytes();
    let mut random = random(1);
    for number in 0..1000 {
        // Not to be compressed.
        let value: Vec<u8> = (0..20_000).map(|_| random(256) as u8).collect();
        store.set(&key(number), &value).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
    }
    store.flush().expect("flushed");
    store.compact().expect("compacted");
    let all_bytes = bytes(&store);
    for number in 0..900 {
        store.delete(&key(number)).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
    }
    store.begin_idle().expect("idle");
    while store.run_slice(1000).expect("a job") {}
    assert!(bytes(&store) < all_bytes / 8, "{} bytes of {all_bytes}", bytes(&store));
    assert_eq!(store.stats().levels[0].tables, 0);
}
