//! A full storage accepts deletes whatever waits to be logged, lets them free room, and opens again.
//!
//! The story: the simulator filled the disk while records of the memory level waited for a segment that had a file. The delete that
//! followed was refused, though its reserve was whole, because it would have overtaken these records. Once it committed, flushes failed in
//! turn: they took a free slot with nothing but an old header in it rather than the reserved one, and a set did not find the slots that the
//! deletes had freed.

use varve::codec::hash::xxh3;
use varve::compact::{Job, Step};
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SlotPool, Slots, Storage};
use varve::store::{Caller, Op};
use varve::types::FileKind;

use crate::store_full_life::{FullStore, host, value};
use varve::{Durability, Error, Host, Options, RecoveryReport, Store};

const QUOTA: u64 = 1 << 20;
/// Memtables that never fill up, and some that many fit the disk.
const LARGE: usize = 2 << 20;
const SMALL: usize = 32 << 10;

fn open(
    slots: MemorySlots,
    memtable_bytes: usize,
    entropy: u64,
) -> Result<(FullStore, RecoveryReport), Error> {
    let host = Host { now_ms: 0, entropy, store_id: [5; 16] };
    let options = Options {
        memtable_bytes_min: memtable_bytes,
        memtable_bytes_max: memtable_bytes,
        ..Options::default()
    };
    Store::open(SlotPool::open(slots)?, options, host)
}

fn name(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// A store whose last set was refused, and how many it took.
fn full(memtable_bytes: usize) -> (FullStore, u32) {
    let (mut store, _) = open(MemorySlots::with_limit(40, QUOTA), memtable_bytes, 1).expect("opens");
    assert!(store.storage().reserve_intact());
    for n in 0.. {
        let set = store.set(&name(n), &[n as u8; 1000]).and_then(|_| store.commit(Durability::Relaxed));
        if set.is_err() {
            assert_eq!(set, Err(Error::StorageFull));
            return (store, n);
        }
    }
    unreachable!("the storage has an end")
}

fn keys(store: &FullStore) -> Vec<Vec<u8>> {
    let found = (0..2000).map(name).filter(|key| store.has(key).expect("read"));
    found.collect()
}

#[test]
fn a_delete_takes_waiting_records_of_the_memory_level_along() {
    let (mut store, count) = full(LARGE);
    for n in count..count + 20 {
        let set = [Op::Set { key: &name(n), value: &[1; 1000], expires: None }];
        store.stage_for(Caller::default(), &set).expect("staged");
        store.commit(Durability::Memory).expect("promised");
    }
    assert!(store.pending_bytes() > 20_000);
    let mut cursor = store.scan(ScanOptions::default()).expect("open");

    let first = name(0);
    let receipt = store
        .stage(&[Op::Delete { key: &first }])
        .and_then(|_| store.commit(Durability::Strict))
        .expect("committed");
    assert_eq!((receipt.sequence, receipt.durability), (u64::from(count) + 21, Durability::Strict));
    assert_eq!(keys(&store), (1..count + 20).map(name).collect::<Vec<_>>());

    let mut batch = Batch::new(true, true);
    assert_eq!(store.scan_next(&mut cursor, usize::MAX, &mut batch), Ok(Progress::Finished));
    assert_eq!(batch.count(), count + 20, "a scan opened before reads the store as it was");
    drop(cursor);

    let (store, report) = open(store.into_storage().into_device(), LARGE, 2).expect("opens");
    assert_eq!(report.sequence, receipt.sequence);
    assert_eq!(keys(&store), (1..count + 20).map(name).collect::<Vec<_>>());
}

/// The story: a write that had returned as buffered was rolled back when the one after it, a large one, was refused, or at the end of its
/// turn. Staged data has its room: no commit is refused for lack of room, and a write that must be refused is refused at once.
#[test]
fn staged_writes_are_logged_however_full_the_storage_is() {
    for memtable_bytes in [SMALL, LARGE] {
        let (mut store, _) = open(MemorySlots::with_limit(40, QUOTA), memtable_bytes, 1).expect("opens");
        let mut kept = Vec::new();
        let mut refused = 0;
        for n in 0..6000_u32 {
            let length = [40, 3000, 90, 20_000, 700][n as usize % 5] + n as usize % 13;
            let staged = match n % 17 {
                16 if kept.len() > 10 => {
                    let gone: Vec<u8> = kept.swap_remove(n as usize % kept.len());
                    let deleted = store.delete(&gone);
                    if deleted.is_err() {
                        kept.push(gone);
                    }
                    deleted
                }
                _ => {
                    let set = store.set(&name(n), &vec![n as u8; length]);
                    if set.is_ok() {
                        kept.push(name(n));
                    }
                    set
                }
            };
            if let Err(error) = staged {
                assert_eq!(error, Error::StorageFull);
                refused += 1;
            }
            if n % 7 == 0 {
                store.shrink(0).expect("cut");
            }
            if n % 4 == 3 {
                let sequence = store.last_sequence();
                let receipt = store.commit(Durability::Relaxed).expect("a staged write has its room");
                assert_eq!(receipt.sequence, sequence);
            }
            if n % 50 == 0 {
                let _ = store.run_slice(usize::MAX);
            }
        }
        assert!(refused > 100, "{refused} writes were refused");
        store.commit(Durability::Strict).expect("a staged write has its room");
        kept.sort();
        let has_all = |store: &FullStore| {
            let found: Vec<_> = (0..6000).map(name).filter(|key| store.has(key).expect("read")).collect();
            assert_eq!(found, kept);
        };
        has_all(&store);
        let (store, _) = open(store.into_storage().into_device(), memtable_bytes, 2).expect("opens");
        has_all(&store);
    }
}

/// The story: a store that was idle for three seconds after a delete returned the rest of the segment in the reserve along with its spare
/// room. Other files took it, and the next delete was refused.
#[test]
fn giving_room_back_leaves_what_deletes_need() {
    let (mut store, _) = full(LARGE);
    let delete = |store: &mut FullStore, n| {
        store.delete(&name(n)).and_then(|_| store.commit(Durability::Strict)).expect("committed")
    };
    for n in 0..50 {
        delete(&mut store, n);
        store.shrink(0).expect("shrunk");
        let slots = store.storage_mut().device_mut();
        let used = slots.bytes();
        slots.set_limit(Some(used));
    }
}

#[test]
fn room_that_deletes_and_a_merge_free_takes_sets_again() {
    let (mut store, _) = full(SMALL);
    let everything = [Op::DeleteRange { start: b"key", end: b"kez" }];
    store.stage(&everything).and_then(|_| store.commit(Durability::Strict)).expect("committed");
    // The first attempt finds that free slots cannot grow, the next one takes the reserved slot.
    let _ = store.compact();
    store.compact().expect("the reserve holds what is left of a memtable");
    store.release().expect("released");
    for n in 0..100 {
        store.set(&name(n), &[2; 1000]).expect("staged");
        store.commit(Durability::Strict).expect("there is room");
    }
    assert_eq!(keys(&store).len(), 100);
    store.refill_reserve().expect("refilled");
    assert!(store.storage().reserve_intact());
}

#[test]
fn a_torn_store_opens_on_a_disk_without_room_for_another_segment() {
    let (store, count) = full(LARGE);
    let pool = store.storage();
    let segments = pool.list().into_iter().filter(|(file, _)| file.kind == FileKind::Wal);
    let newest = segments.map(|(file, _)| file).max_by_key(|file| file.id).expect("there is a log");
    let slot = pool.slot_of(newest).expect("it has a slot");
    let mut slots = store.into_storage().into_device();
    let last = [(count - 1) as u8; 900];
    let in_last = slots.slot(slot).windows(last.len()).rposition(|bytes| bytes == last);
    let at = in_last.expect("the last record is in the log");
    slots.slot_mut(slot).expect("exists")[at] ^= 1;
    // Spare slots lose the room that was written ahead, and so does the reserve.
    for slot in 0..slots.count() {
        let bytes = slots.slot_mut(slot).expect("exists");
        if bytes.iter().all(|&byte| byte == 0) {
            bytes.clear();
        }
    }
    let bytes = slots.bytes();
    slots.set_limit(Some(bytes));

    let (store, report) = open(slots, LARGE, 2).expect("opens");
    assert!(report.torn, "{report:?}");
    assert_eq!(keys(&store).len(), count as usize - 1);
    let mut slots = store.into_storage().into_device();
    slots.set_limit(None);
    let (mut store, _) = open(slots, LARGE, 3).expect("opens again");
    assert_eq!(keys(&store).len(), count as usize - 1, "the part that was cut stays cut");
    store.set(b"again", b"there is room").expect("staged");
    store.commit(Durability::Strict).expect("committed");
    let (store, report) = open(store.into_storage().into_device(), LARGE, 4).expect("opens");
    assert!(!report.torn && store.has(b"again") == Ok(true), "{report:?}");
}

/// The story: a store without a log whose flush found no room still moved its deletes to a segment in the reserve. The segment contained a
/// header and nothing else, the next one named an end far behind it, and the next opening reported the store as damaged (seed 5340).
#[test]
fn a_store_without_a_log_never_starts_one_on_a_full_disk() {
    let mut slots = MemorySlots::with_limit(40, QUOTA);
    let bare = Options {
        memtable_bytes_min: SMALL,
        memtable_bytes_max: SMALL,
        frozen_max: 1,
        log: false,
        ..Options::default()
    };
    let host = Host { now_ms: 0, entropy: 7, store_id: [5; 16] };
    let (store, _) = open(slots, SMALL, 1).expect("opens");
    slots = store.into_storage().into_device();
    let (mut store, _) = Store::open(SlotPool::open(slots).expect("opens"), bare, host).expect("opens");
    let mut count = 0;
    while store.set(&name(count), &[1; 1000]).is_ok() {
        store.commit(Durability::Memory).expect("promised");
        count += 1;
    }
    assert!(count > 0);
    // Deletes with keys of their own fill memtables too, until no flush finds room or a merge forgets them.
    for n in 0..2000 {
        let key: Vec<u8> = (0..112).flat_map(|i| xxh3(&name(n), i).to_be_bytes()).collect();
        let deleted =
            store.stage(&[Op::Delete { key: &key }]).and_then(|_| store.commit(Durability::Relaxed));
        assert_eq!(store.stats().wal_segments, 0, "delete {n}: {deleted:?}");
        assert!(matches!(deleted, Ok(_) | Err(Error::StorageFull)), "{deleted:?}");
    }
}

/// The story: a flush found no slot, the host added some, and sets were still refused until a job had flushed: where only jobs flush, a
/// write does not repeat a flush that was refused before. (Seed 1795520946000721.)
#[test]
fn a_flush_that_found_no_slot_is_tried_again_once_there_are_some() {
    let options = Options {
        log: false,
        frozen_max: 1,
        memtable_bytes_min: 512,
        memtable_bytes_max: 512,
        flush_when_full: false,
        ..Options::default()
    };
    let pool = SlotPool::open(MemorySlots::new(3)).expect("a pool");
    let (mut store, _) = Store::open(pool, options, host(1)).expect("opens");
    let mut sets = 0..;
    let mut set = |store: &mut FullStore| store.set(&name(sets.next().unwrap_or(0)), &[7; 100]);
    while set(&mut store).is_ok() {}
    assert_eq!(store.storage().free_slots(), 0);
    store.storage_mut().device_mut().add(8);
    store.storage_mut().added().expect("known format");
    set(&mut store).expect("there is a slot");
}

/// The story: the room of a full storage lay in pieces of 1 MiB, and a memtable of 2 MiB was refused its flush for ever: only merges
/// cut their outputs.
#[test]
fn a_flush_is_cut_to_the_pieces_that_are_free() {
    let options = Options { memtable_bytes_min: 4 << 20, log: false, ..Options::default() };
    let pool = SlotPool::open(MemorySlots::new(40)).expect("a pool");
    let (mut store, _) = Store::open(pool, options.clone(), host(1)).expect("opens");
    let named = |table: u32, n: u32| format!("{table:02}-{n:02}").into_bytes();
    let fill = |store: &mut FullStore, table| {
        for n in 0..10 {
            store.set(&named(table, n), &value(100 * table + n)).expect("staged");
        }
        store.flush().expect("flushed");
    };
    // Tables of 1 MiB between others, whose room is freed: pieces of different lengths, none of which fits all.
    for table in 0..7 {
        fill(&mut store, table);
    }
    for table in [1, 3, 5] {
        store.delete_range(&named(table, 0), &named(table, 99)).expect("staged");
    }
    store.flush().expect("flushed");
    while store.run_slice(usize::MAX).expect("a job") {}
    store.release().expect("released");
    assert_eq!(store.stats().levels[0].tables, 5);
    let slots = store.storage_mut().device_mut();
    let bytes = slots.bytes();
    slots.set_limit(Some(bytes));
    // Several versions of a key stay together, and a deleted range is repeated in every table.
    for n in 0..20 {
        store.set(&named(9, n), b"old").expect("staged");
        store.set(&named(9, n), &value(n)).expect("staged");
    }
    store.delete_range(&named(4, 5), &named(9, 0)).expect("staged");
    assert_eq!(store.flush(), Err(Error::StorageFull), "no piece takes it whole");
    store.flush().expect("each piece takes a part");
    let tables = store.stats().levels[0].tables;
    assert!(tables > 6, "{tables} tables");
    let mut expected = vec![(0, 10), (2, 10), (4, 5), (9, 20)];
    let found: Vec<_> = (0..10)
        .map(|table| (table, (0..20).filter(|n| store.has(&named(table, *n)) == Ok(true)).count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(found, expected);
    store.close().expect("closed");
    let (mut store, _) =
        Store::open(SlotPool::open(store.into_storage().into_device()).expect("a pool"), options, host(2))
            .expect("opens");
    store.storage_mut().device_mut().set_limit(None);
    store.compact().expect("compacted");
    for (table, count) in expected.drain(..) {
        for n in 0..count as u32 {
            let seed = if table == 9 { n } else { 100 * table + n };
            assert_eq!(store.get(&named(table, n)), Ok(Some(value(seed))), "{table} {n}");
        }
    }
}

/// Of newer tables, a purge reads only the part that lies over its own tables.
#[test]
fn a_purge_reads_no_more_than_it_needs() {
    let options = Options { memtable_bytes_min: 4 << 20, log: false, ..Options::default() };
    let pool = SlotPool::open(MemorySlots::new(40)).expect("a pool");
    let (mut store, _) = Store::open(pool, options, host(1)).expect("opens");
    store.set(&[100], &value(1)).expect("staged");
    store.flush().expect("flushed");
    for n in 0..30 {
        store.set(&[80 + n], &value(u32::from(n))).expect("staged");
    }
    store.flush().expect("flushed");
    store.want_room();
    let mut read = 0;
    let ticket = store.take_job().expect("chosen").expect("a purge");
    assert!(ticket.gives_room);
    let mut job = Job::decode(ticket.spec).expect("a job");
    loop {
        match job.step(1000).expect("works") {
            Step::Need(need) => {
                read += u64::from(need.len);
                job.feed(store.read_input(need.file.id, need.offset, need.len).expect("read"));
            }
            Step::Done => break,
            _ => drop(job.take_output()),
        }
    }
    assert!(read < 2 << 20, "{read} bytes");
}

/// The story: a session made so many tables that the manifest's snapshot outgrew the file that the next one goes to. While idle, this
/// file is made as long as the other one, but other files filled the disk before the store was idle, and the store did not open. (Seed
/// 1795608956000360.)
#[test]
fn a_store_of_many_tables_opens_on_a_disk_that_was_filled_all_at_once() {
    for more in 0..60 {
        let mut store = of_many_tables(10 + more);
        let bytes = store.storage().device().bytes();
        store.storage_mut().device_mut().set_limit(Some(bytes));
        reopen(store);
    }
}

/// The story: the last edit before the disk was full fitted only as a snapshot in the other file. The file that it left was too short for
/// the next one. (Seed 1795612492000736.)
#[test]
fn so_it_does_when_it_made_tables_until_they_were_refused() {
    for (count, spare) in (28..40).flat_map(|count| (0..48).map(move |pages| (count, pages << 12))) {
        let mut store = of_many_tables(count);
        let bytes = store.storage().device().bytes();
        store.storage_mut().device_mut().set_limit(Some(bytes + spare));
        for n in 1000.. {
            let flushed = store.set(&long_key(n), b"value").and_then(|_| store.flush());
            if flushed.is_err() {
                break;
            }
        }
        reopen(store);
    }
}

fn long_key(n: u32) -> Vec<u8> {
    [&[b'k'; 900][..], &n.to_be_bytes()].concat()
}

/// A store of so many tables, each of which takes 1.8 KB of a manifest.
fn of_many_tables(count: u32) -> FullStore {
    let options = Options { l0_trigger: 1000, l0_stall: 1000, ..Options::default() };
    let pool = SlotPool::open(MemorySlots::new(40)).expect("a pool");
    let (mut store, _) = Store::open(pool, options, host(1)).expect("opens");
    for n in 0..count {
        store.set(&long_key(n), b"value").expect("staged");
        store.flush().expect("flushed");
    }
    store
}

/// Opens it on the disk as it is, its first entry in it.
fn reopen(store: FullStore) {
    let tables = store.stats().levels[0].tables;
    let slots = store.into_storage().into_device();
    let (store, _) = open(slots, LARGE, 2).unwrap_or_else(|error| panic!("{tables} tables: {error}"));
    assert_eq!(store.get(&long_key(0)), Ok(Some(b"value".to_vec())));
}

/// The story: a file system told that it has 16 EiB. With the bytes of the store that is more than a `u64` holds, and memtables became as
/// small as on a storage that is nearly full.
#[test]
fn memtables_are_not_small_where_the_room_has_no_end() {
    let (mut store, _) = open(MemorySlots::new(8), LARGE, 1).expect("opens");
    store.storage_mut().set_room(Some(u64::MAX));
    store.set(b"key", b"value").expect("staged");
    store.freeze_active().expect("frozen");
    assert_eq!(store.stats().memtable_bytes_max, LARGE as u64);
}
