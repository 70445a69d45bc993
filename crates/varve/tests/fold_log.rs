//! The work that a proper close saves: the next opening replays little, and no error is hidden on the way.
//!
//! The story: the first `fold_log` logged the staged data on its way to a table. On a full storage that is refused and rolled back.
//! Hosts ignore the errors of folding, and the close after it had nothing left to refuse. The simulator found that writes were
//! missing in a store that had been closed without an error (seed 9100000864).

use varve::memtable::Memtable;
use varve::storage::{MemorySlots, SlotHeader, SlotPool, Slots, Storage};
use varve::store::{Caller, Op};
use varve::types::{FileKind, FileName, Kind};
use varve::wal::SegmentHeader;
use varve::{Durability, Error, Host, Options, RecoveryReport, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;

const FIRST: usize = 64 << 10;

fn open(slots: MemorySlots, entropy: u64) -> (MemoryStore, RecoveryReport) {
    let host = Host { now_ms: 0, entropy, store_id: [6; 16] };
    let options = Options { memtable_bytes_min: FIRST, ..Options::default() };
    Store::open(SlotPool::open(slots).expect("a pool"), options, host).expect("opens")
}

/// Writes `count` entries of a little more than 1 KiB, each of them logged.
fn fill(store: &mut MemoryStore, count: u32) {
    for n in 0..count {
        store.set(&n.to_be_bytes(), &[n as u8; 1024]).expect("staged");
        store.commit(Durability::Relaxed).expect("logged");
    }
}

fn reopened(mut store: MemoryStore) -> (MemoryStore, RecoveryReport) {
    store.close().expect("closed");
    open(store.into_storage().into_device(), 2)
}

#[test]
fn a_log_of_more_than_a_quarter_of_a_memtable_is_not_replayed_again() {
    let (mut store, _) = open(MemorySlots::new(16), 1);
    fill(&mut store, 20);
    store.fold_log().expect("folded");
    let (store, report) = reopened(store);
    assert!(report.clean, "{report:?}");
    assert_eq!((report.entries, report.tables, report.sequence), (0, 1, 20));
    assert_eq!(store.get(&7u32.to_be_bytes()), Ok(Some(vec![7; 1024])));
}

#[test]
fn a_short_log_stays_one() {
    let (mut store, _) = open(MemorySlots::new(16), 1);
    fill(&mut store, 10);
    store.fold_log().expect("left alone");
    let (_, report) = reopened(store);
    assert_eq!((report.entries, report.tables, report.clean), (10, 0, true));
}

/// Without making sure first that there is room for the staged data.
#[test]
fn closing_reports_the_refusal_of_a_full_storage_when_the_log_was_folded_before() {
    let (mut store, _) = open(MemorySlots::new(16), 1);
    fill(&mut store, 20);
    let long = [Op::Set { key: b"staged", value: &[2; 1 << 20], expires: None }];
    store.stage_for(Caller::default(), &long).expect("staged");
    fill_up(&mut store);
    let _ = store.fold_log();
    assert_eq!(store.close(), Err(Error::StorageFull));
}

#[test]
fn closing_keeps_writes_that_were_staged_before_a_storage_was_full() {
    let (mut store, _) = open(MemorySlots::new(16), 1);
    fill(&mut store, 20);
    store.set(b"staged", &[2; 1 << 20]).expect("staged");
    fill_up(&mut store);
    let _ = store.fold_log();
    assert_eq!(store.close(), Ok(()));
    let (store, _) = reopened(store);
    assert_eq!(store.has(b"staged"), Ok(true));
}

fn fill_up(store: &mut MemoryStore) {
    let slots = store.storage_mut().device_mut();
    let used = slots.bytes();
    slots.set_limit(Some(used));
}

/// The store after many sessions that write one entry each. No session may replay more than 16 segments.
fn live(sessions: u32, end: impl Fn(&mut MemoryStore)) -> MemoryStore {
    let mut slots = MemorySlots::new(8);
    let mut most = 0;
    for n in 0..sessions {
        let (mut store, report) = open(std::mem::take(&mut slots), u64::from(n));
        most = most.max(report.segments);
        store.set(&n.to_be_bytes(), &[n as u8; 100]).expect("staged");
        store.commit(Durability::Relaxed).expect("a session of any length may write");
        end(&mut store);
        slots = store.into_storage().into_device();
    }
    assert!(most <= 16, "{most} segments to replay");
    assert!(slots.bytes() < 4 << 20, "{} bytes", slots.bytes());
    let (store, _) = open(slots, u64::from(sessions));
    for n in 0..sessions {
        assert_eq!(store.get(&n.to_be_bytes()), Ok(Some(vec![n as u8; 100])), "{n}");
    }
    store
}

/// The story: each session began a segment in a slot of its own, and only a long log was folded at closing. After 124 sessions of
/// one write no slot was left and every write was refused. This did not change, however often the store was opened.
#[test]
fn any_number_of_sessions_may_write_a_little_and_close() {
    let store = live(1000, |store| {
        store.fold_log().expect("folded");
        store.close().expect("closed");
    });
    assert!(store.stats().levels[0].tables <= 20, "{:?}", store.stats());
}

/// The story: of visits that wrote and ended without closing, the tenth found no spare slot in its turn.
#[test]
fn any_number_of_sessions_may_write_a_little_and_be_killed() {
    let store = live(1000, |_| {});
    assert!(store.stats().levels[0].tables <= 20, "{:?}", store.stats());
}

/// The story: an opening that found many segments merged level 0 on its way, read a damaged block there, and failed, for ever,
/// though all blocks of the store but one could be read.
#[test]
fn a_damaged_table_keeps_no_store_from_opening_that_has_many_segments() {
    let (mut store, _) = open(MemorySlots::new(40), 1);
    for n in 0..20_u32 {
        store.set(&n.to_be_bytes(), &[n as u8; 100]).expect("staged");
        store.flush().expect("flushed");
    }
    let tables = store.storage().list().into_iter().filter(|(file, _)| file.kind == FileKind::Table);
    let (damaged, _) = tables.min_by_key(|(file, _)| file.id).expect("there are tables");
    let place = store.storage().place_of(damaged).expect("it has a place");
    let mut slots = store.into_storage().into_device();
    slots.slot_mut(place.slot).expect("exists")[place.start as usize + 10] ^= 1;
    for n in 100..140_u32 {
        let (mut store, report) = open(std::mem::take(&mut slots), u64::from(n));
        assert!(report.segments <= 16, "{report:?}");
        store.set(&n.to_be_bytes(), b"written").expect("staged");
        store.commit(Durability::Relaxed).expect("logged");
        slots = store.into_storage().into_device();
    }
    let (store, _) = open(slots, 200);
    let read = |n: u32| store.get(&n.to_be_bytes());
    assert!(matches!(read(0), Err(Error::Corrupt(_))));
    assert!((1..20).chain(100..140).all(|n| matches!(read(n), Ok(Some(_)))));
}

/// The story: as above. A store in that state, with each slot in use by a segment of one write, works again once it is opened.
#[test]
fn a_store_whose_slots_all_hold_a_short_segment_heals_when_it_is_opened() {
    const SLOTS: u32 = 128;
    let (store, _) = open(MemorySlots::new(SLOTS), 1);
    let id = *store.id();
    let mut slots = store.into_storage().into_device();
    let (mut count, mut previous_end) = (0, 0);
    for slot in (0..SLOTS).filter(|slot| slots.clone().size(*slot) == 0).collect::<Vec<_>>() {
        count += 1;
        let header =
            SegmentHeader { segment: count, salt: count << 32, previous: count - 1, previous_end, key: 0 };
        let mut segment = Memtable::new(header);
        segment.begin(0, 0, count, 1);
        segment.push(Kind::Set, None, &(count as u32).to_be_bytes(), &[1; 100]);
        segment.end(0);
        previous_end = segment.image().len() as u64;
        let mut bytes = SlotHeader::whole(id, FileName::wal(count), 100 + count).encode(slot);
        bytes.extend_from_slice(segment.image());
        bytes.resize(64 << 10, 0);
        slots.slot_mut(slot).expect("a slot").clone_from(&bytes);
    }
    assert!(count > 120, "{count}");
    let (mut store, report) = open(slots, 2);
    assert_eq!((report.segments, report.entries), (count, count));
    assert!(store.storage().free_slots() > 100, "{} are free", store.storage().free_slots());
    store.set(b"again", b"set").expect("staged");
    store.commit(Durability::Strict).expect("committed");
    let (store, report) = reopened(store);
    assert!(report.segments <= 2 && store.get(b"again") == Ok(Some(b"set".to_vec())), "{report:?}");
    for n in 1..=count as u32 {
        assert_eq!(store.get(&n.to_be_bytes()), Ok(Some(vec![1; 100])), "{n}");
    }
}

/// The story: in a synchronous turn nothing creates slots, so a bulk load was refused after about 10 MB.
#[test]
fn one_turn_takes_any_number_of_writes_with_the_slots_that_are_there() {
    let host = Host { now_ms: 0, entropy: 3, store_id: [6; 16] };
    let options = Options {
        memory_bytes: 1 << 20,
        memtable_bytes_min: 64 << 10,
        memtable_bytes_max: 128 << 10,
        ..Options::default()
    };
    let pool = SlotPool::open(MemorySlots::new(8)).expect("a pool");
    let (mut store, _) = Store::open(pool, options, host).expect("opens");
    let key = |n: u32| n.wrapping_mul(2_654_435_761).to_be_bytes();
    const COUNT: u32 = 40_000;
    for n in 0..COUNT {
        store.set(&key(n), &[n as u8; 500]).expect("staged");
        store.commit(Durability::Relaxed).expect("logged");
    }
    let stats = store.stats();
    assert!(stats.levels[0].tables <= 21, "{stats:?}");
    assert!(
        store.storage().bytes_on_disk() < 3 * u64::from(COUNT) * 510,
        "{} bytes",
        store.storage().bytes_on_disk()
    );
    let (store, _) = open(store.into_storage().into_device(), 4);
    for n in 0..COUNT {
        assert_eq!(store.get(&key(n)), Ok(Some(vec![n as u8; 500])), "{n}");
    }
}
