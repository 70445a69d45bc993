//! Entries with an expiry: absent from their time on, for good, and removed from the files by a merge.

use varve::scan::{Batch, ScanOptions};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Host, Op, Options, Store};

type TestStore = Store<SlotPool<MemorySlots>>;

fn open(slots: MemorySlots, now_ms: u64) -> TestStore {
    let pool = SlotPool::open(slots).expect("a pool opens");
    let host = Host { now_ms, entropy: 3, store_id: [7; 16] };
    Store::open(pool, Options::default(), host).expect("a store opens").0
}

fn set_until(store: &mut TestStore, key: &[u8], expires: u64) {
    store.stage(&[Op::Set { key, value: b"v", expires: Some(expires) }]).expect("staged");
    store.commit(Durability::Strict).expect("committed");
}

fn count(store: &TestStore, reverse: bool) -> u32 {
    let mut cursor = store.scan(ScanOptions { reverse, ..ScanOptions::default() }).expect("a scan");
    let mut batch = Batch::new(true, true);
    store.scan_next(&mut cursor, usize::MAX, &mut batch).expect("a batch");
    batch.count()
}

#[test]
fn an_entry_is_there_until_its_time_and_absent_from_then_on() {
    for flushed in [false, true] {
        let mut store = open(MemorySlots::new(12), 1000);
        set_until(&mut store, b"k", 2000);
        if flushed {
            store.flush().expect("flushed");
        }
        store.set_now(1999);
        assert!(store.has(b"k").expect("read"));
        assert_eq!((count(&store, false), count(&store, true)), (1, 1));
        store.set_now(2000);
        assert!(!store.has(b"k").expect("read"));
        assert_eq!(store.get(b"k"), Ok(None));
        assert_eq!((count(&store, false), count(&store, true)), (0, 0));
        assert_eq!(store.sequence_of(b"k"), Ok(0), "a condition finds it absent");
    }
}

#[test]
fn an_expired_entry_hides_what_it_replaced() {
    let mut store = open(MemorySlots::new(12), 1000);
    store.set(b"k", b"old").expect("staged");
    store.flush().expect("flushed");
    set_until(&mut store, b"k", 2000);
    store.set_now(3000);
    assert_eq!(store.get(b"k"), Ok(None));
    store.flush().expect("flushed");
    assert_eq!(store.get(b"k"), Ok(None));
    store.compact().expect("merged");
    assert_eq!(store.get(b"k"), Ok(None));
    let entries: u64 = store.stats().levels.iter().map(|level| level.entries).sum();
    assert_eq!(entries, 0, "nothing lies below: neither the entry nor a tombstone is kept");
}

/// A laptop that starts with its clock two hours ahead, and sets it right a moment later: from then on sessions were absent as soon as
/// they were written, and codes for a minute never expired, until the right time had caught up.
#[test]
fn lifetimes_are_right_again_once_a_clock_that_was_ahead_is_set_right() {
    const HOUR: u64 = 3_600_000;
    let start = 1_700_000_000_000;
    let mut store = open(MemorySlots::new(12), start);
    set_until(&mut store, b"before", start + HOUR);
    store.set_now(start + 2 * HOUR);
    assert_eq!(store.get(b"before"), Ok(None));
    for life in 0..3 {
        let now = start + 1000 * life;
        store.set_now(now);
        let clock = store.clock();
        assert_eq!(clock.to_host(clock.now_ms), now);
        assert_eq!(store.get(b"before"), Ok(None), "nothing that expired comes back");
        set_until(&mut store, b"for 5 ms", clock.now_ms + 5);
        set_until(&mut store, b"for an hour", clock.of_host(now + HOUR));
        store.set_now(now + 4);
        assert!(store.has(b"for 5 ms").expect("read"));
        store.set_now(now + 6);
        assert!(!store.has(b"for 5 ms").expect("read"));
        assert!(store.has(b"for an hour").expect("read"));
        store.flush().expect("flushed");
        // The machine is off for a while, but its clock runs on.
        store = open(store.into_storage().into_device(), now + HOUR - 1);
        assert!(store.has(b"for an hour").expect("read"));
        store.set_now(now + HOUR);
        assert!(!store.has(b"for an hour").expect("read"));
        store.set_now(start + 2 * HOUR + 10_000 * life);
    }
}

/// The story: a laptop's clock was two hours ahead, and was set right while a store was open. Then the store was closed before a memtable
/// was flushed. The next opening did not know of those hours, and a code for a minute was there for two hours.
#[test]
fn lifetimes_are_right_in_the_next_session_too() {
    let start = 1_700_000_000_000;
    let mut store = open(MemorySlots::new(12), start + 7_200_000);
    store.set_now(start);
    let in_a_minute = store.clock().of_host(start + 60_000);
    set_until(&mut store, b"code", in_a_minute);
    let store = open(store.into_storage().into_device(), start + 59_999);
    assert!(store.has(b"code").expect("read"));
    let store = open(store.into_storage().into_device(), start + 60_000);
    assert!(!store.has(b"code").expect("read"));
}

#[test]
fn a_clock_that_went_back_brings_nothing_back() {
    let mut store = open(MemorySlots::new(12), 1000);
    set_until(&mut store, b"k", 2000);
    store.set_now(5000);
    store.flush().expect("flushed");
    let mut store = open(store.into_storage().into_device(), 1500);
    assert_eq!(store.now_ms(), 5000, "the time of the last edit");
    assert_eq!(store.get(b"k"), Ok(None));
    store.set_now(1600);
    assert_eq!(store.now_ms(), 5000, "nor does it go back while the store is open");
    set_until(&mut store, b"later", 5001);
    assert!(store.has(b"later").expect("read"));
}

/// Events in the order of their time reach the deepest level alive, and nothing overlaps them there again. So they stayed for ever, and
/// `compact()` did not remove them either.
#[test]
fn a_log_whose_events_expire_does_not_grow() {
    const HOUR: u64 = 3_600_000;
    let mut now = 1_700_000_000_000;
    let host = Host { now_ms: now, entropy: 3, store_id: [7; 16] };
    let options = Options {
        memtable_bytes_min: 4 << 10,
        memtable_bytes_max: 4 << 10,
        table_bytes: 8 << 10,
        job_bytes_max: 64 << 10,
        level_base_bytes: 32 << 10,
        ..Options::default()
    };
    let pool = SlotPool::open(MemorySlots::new(200)).expect("a pool opens");
    let mut store = Store::open(pool, options, host).expect("a store opens").0;
    let entries = |store: &TestStore| store.stats().levels.iter().map(|level| level.entries).sum::<u64>();
    let idle = |store: &mut TestStore| {
        store.begin_idle().expect("idle");
        while store.run_slice(4096).expect("a job") {}
    };
    for event in 0..12 * 24 * 20 {
        now += HOUR / 20;
        store.set_now(now);
        // One in ten stays for a month: a table is not dead as a whole.
        let lifetime = if event % 10 == 0 { 720 } else { 48 };
        let key = format!("event {now}");
        store
            .stage(&[Op::Set {
                key: key.as_bytes(),
                value: &[event as u8; 90],
                expires: Some(now + lifetime * HOUR),
            }])
            .expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
        while store.run_slice(1000).expect("a job") {}
        if event % 480 == 479 {
            idle(&mut store);
            let living = u64::from(count(&store, false));
            assert!(
                entries(&store) <= 2 * living + 200,
                "{} entries for {living}, event {event}",
                entries(&store)
            );
        }
    }
    store.flush().expect("flushed");
    idle(&mut store);
    now += 48 * HOUR;
    store.set_now(now);
    idle(&mut store);
    let living = u64::from(count(&store, false));
    assert!(entries(&store) <= 2 * living + 200, "{} entries for {living} later", entries(&store));
    store.compact().expect("merged");
    assert_eq!(entries(&store), living, "nothing that has expired is left");
    now += 720 * HOUR;
    store.set_now(now);
    store.compact().expect("merged");
    assert_eq!(entries(&store), 0);
}
