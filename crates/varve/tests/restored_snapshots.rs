//! Snapshots and scans that continue in another process: they see the same as before, or get an error that they cannot.

use std::sync::atomic::{AtomicU32, Ordering};

use varve::frame::{Operation, header, run};
use varve::storage::{MemorySlots, SlotPool};
use varve::store::{Dependency, Name};
use varve::{Durability, Error, Host, Options, Store};

type TestStore = Store<SlotPool<MemorySlots>>;

const CLIENT: u64 = 0x321_0000_0007;
const NUMBER: u8 = 4;
const SNAPSHOT: Name = Name { client: CLIENT, number: NUMBER as u32 };

fn open(slots: MemorySlots) -> TestStore {
    let pool = SlotPool::open(slots).expect("a pool opens");
    let host = Host { now_ms: 1000, entropy: 3, store_id: [7; 16] };
    Store::open(pool, Options::default(), host).expect("a store opens").0
}

/// Another process opens the store; this one ends without closing it.
fn taken_over(store: TestStore) -> TestStore {
    open(store.into_storage().into_device())
}

/// Numbers of requests rise across all tests.
static REQUESTS: AtomicU32 = AtomicU32::new(1);

/// Sends one operation; returns its status and payload.
fn send(store: &mut TestStore, operation: Operation, level: u8, key: &[u8], value: &[u8]) -> (u8, Vec<u8>) {
    let request = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let mut frame = header(CLIENT, request, 1).to_vec();
    frame.extend_from_slice(&request.to_le_bytes());
    frame.extend_from_slice(&[operation as u8, level, NUMBER, 0]);
    frame.extend_from_slice(&(key.len() as u32).to_le_bytes());
    frame.extend_from_slice(&(value.len() as u32).to_le_bytes());
    frame.extend_from_slice(key);
    frame.extend_from_slice(value);
    frame.resize(frame.len().next_multiple_of(4), 0);
    let mut response = Vec::new();
    run(store, &frame, &mut response).expect("a frame runs");
    let length = u32::from_le_bytes(response[16..20].try_into().expect("four bytes")) as usize;
    (response[12], response[24..24 + length].to_vec())
}

fn write(store: &mut TestStore, value: &[u8]) {
    store.set(b"k", value).expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
}

fn value(store: &TestStore) -> Option<Vec<u8>> {
    store.find_in(SNAPSHOT, b"k", |entry| entry.map(|entry| entry.value.to_vec())).expect("read")
}

#[test]
fn a_snapshot_goes_on_in_another_process() {
    let mut store = open(MemorySlots::new(12));
    write(&mut store, b"old");
    let (status, read_point) = send(&mut store, Operation::SnapshotOpen, 0, b"", b"");
    assert_eq!((status, &read_point[..]), (0, &[1_u64.to_le_bytes(), 1000_u64.to_le_bytes()].concat()[..]));
    write(&mut store, b"new");
    let mut store = taken_over(store);
    assert_eq!(send(&mut store, Operation::SnapshotRestore, 0, b"", &read_point), (0, read_point.clone()));
    write(&mut store, b"newer");
    assert_eq!(value(&store), Some(b"old".to_vec()));
    assert_eq!(send(&mut store, Operation::Get, 0, b"k", b""), (0, b"old".to_vec()));
    store.remove_client(CLIENT);
    assert!(store.read_point_of_snapshot(SNAPSHOT).is_err());
}

#[test]
fn one_whose_versions_a_flush_dropped_must_be_opened_anew() {
    let mut store = open(MemorySlots::new(12));
    write(&mut store, b"old");
    write(&mut store, b"new");
    store.flush().expect("flushed");
    let mut store = taken_over(store);
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 1000), Err(Error::Retry));
    assert_eq!(store.restore_snapshot(SNAPSHOT, 2, 1000), Ok(()), "the deletion that dropped it is in it");
    assert_eq!(value(&store), Some(b"new".to_vec()));
}

#[test]
fn a_flush_and_a_merge_that_drop_nothing_cost_no_snapshot() {
    let mut store = open(MemorySlots::new(12));
    write(&mut store, b"old");
    for key in [b"a", b"z"] {
        store.set(key, b"v").expect("staged");
        store.flush().expect("flushed");
    }
    store.compact().expect("merged");
    let mut store = taken_over(store);
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 1000), Ok(()));
    assert_eq!(value(&store), Some(b"old".to_vec()));
    let second = store.find_in(SNAPSHOT, b"a", |entry| entry.is_some());
    assert!(!second.expect("read"), "written later");
}

/// The time of a snapshot is its own: entries that expired since, and were merged away, were there for it.
#[test]
fn one_that_saw_what_a_merge_found_expired_must_be_opened_anew() {
    let mut store = open(MemorySlots::new(12));
    let expiring = varve::store::Op::Set { key: b"k", value: b"v", expires: Some(2000) };
    store.stage(&[expiring]).expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    store.open_snapshot_as(SNAPSHOT).expect("accepted");
    assert_eq!(store.read_point_of_snapshot(SNAPSHOT), Ok((1, 1000)));
    store.set_now(2000);
    store.flush().expect("flushed");
    assert_eq!(value(&store), Some(b"v".to_vec()), "its view has the memtable");
    let mut store = taken_over(store);
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 1000), Err(Error::Retry));
}

#[test]
fn one_that_was_never_there_must_be_opened_anew() {
    let mut store = open(MemorySlots::new(12));
    write(&mut store, b"v");
    let mut store = taken_over(store);
    write(&mut store, b"w");
    assert_eq!(
        store.restore_snapshot(SNAPSHOT, 2, 1000),
        Err(Error::Retry),
        "another write has sequence 2 now"
    );
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 0), Err(Error::Retry), "it was reported as lost");
    let short = send(&mut store, Operation::SnapshotRestore, 0, b"", &[0; 15]);
    assert_eq!((short.0, short.1[0]), (2, varve::Code::InvalidArgument as u8));
}

/// The writes that a snapshot saw may be promised in memory alone. They are logged before the snapshot is answered; if there
/// is no room, the answer reports it.
#[test]
fn writes_that_a_snapshot_sees_are_logged_first() {
    let mut store = open(MemorySlots::new(12));
    assert_eq!(send(&mut store, Operation::Set, Durability::Memory as u8, b"k", b"v").0, 0);
    assert!(store.pending_bytes() > 0);
    let (_, read_point) = send(&mut store, Operation::SnapshotOpen, 0, b"", b"");
    assert_eq!(store.pending_bytes(), 0);
    let mut store = taken_over(store);
    assert_eq!(send(&mut store, Operation::SnapshotRestore, 0, b"", &read_point).0, 0);
    assert_eq!(value(&store), Some(b"v".to_vec()));

    store.storage_mut().device_mut().set_limit(Some(0));
    let large = vec![7; 1 << 20];
    assert_eq!(send(&mut store, Operation::Set, Durability::Memory as u8, b"l", &large).0, 0);
    let (status, read_point) = send(&mut store, Operation::SnapshotOpen, 0, b"", b"");
    assert_eq!((status, &read_point[..]), (0, &[2_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat()[..]));
    assert_eq!(store.get(b"l"), Ok(Some(large)), "the promise stands");
}

/// The story: a client had read k in a transaction, and another one deleted k. Their leader died. The next one waited two seconds for the
/// first client, then began a flush, and as no snapshot was open, the deletion was not needed. The client had only been frozen. It came back
/// while the flush ran, and its snapshot was accepted: nothing was dropped so far. When the flush had ended, the deletion was nowhere, so
/// the transaction committed, although k had changed.
#[test]
fn one_that_is_older_than_tombstones_that_a_running_job_drops_must_be_opened_anew() {
    let mut store = open(MemorySlots::new(12));
    write(&mut store, b"old");
    store.delete(b"k").expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    let mut store = taken_over(store);
    let read = [Dependency { start: b"k", end: None }];
    let conflict = Err(Error::conflict(b"k", 0));

    store.freeze_active().expect("frozen");
    let job = store.take_job().expect("no edit").expect("a flush");
    assert_eq!(
        store.restore_snapshot(SNAPSHOT, 1, 1000),
        Err(Error::Retry),
        "the flush would drop the deletion"
    );
    assert_eq!(store.restore_snapshot(SNAPSHOT, 2, 1000), Ok(()), "the deletion is in it");
    store.close_snapshot(SNAPSHOT);
    store.fail_job(job.id, false);

    // The next job knows of the snapshot, and leaves what its transaction may ask for.
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 1000), Ok(()));
    store.flush().expect("flushed");
    assert_eq!(value(&store), Some(b"old".to_vec()));
    assert_eq!(store.check_unchanged(SNAPSHOT, &read), conflict);
}

/// The same while tables are merged. Where older versions may lie below, a flush drops no tombstone, and costs no snapshot.
#[test]
fn only_jobs_that_drop_tombstones_keep_snapshots_from_being_opened_again() {
    let mut store = open(MemorySlots::new(12));
    write(&mut store, b"old");
    store.flush().expect("flushed");
    store.delete(b"k").expect("staged");
    store.freeze_active().expect("frozen");
    let mut store = taken_over(store);
    let job = store.take_job().expect("no edit").expect("a flush");
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 1000), Ok(()), "a table lies below");
    store.close_snapshot(SNAPSHOT);
    store.fail_job(job.id, false);

    store.flush().expect("flushed");
    let mut store = taken_over(store);
    store.ask_for_compaction().expect("asked");
    let merge = store.take_job().expect("no edit").expect("a job");
    assert_eq!(store.restore_snapshot(SNAPSHOT, 1, 1000), Err(Error::Retry), "{:?}", merge.kind);
    assert_eq!(store.restore_snapshot(SNAPSHOT, 2, 1000), Ok(()), "it is as new as all tables");
}

/// The story: k was in a table, and z only in the log when a snapshot was taken. Then k expired, and the table was merged, which asked for
/// snapshots from behind k to be opened anew. But this one was newer: behind z, and at a time when k was there. It was accepted by the next
/// process, where k was missing.
#[test]
fn one_that_is_newer_than_what_a_merge_found_expired_but_at_an_earlier_time_must_be_opened_anew() {
    let mut store = open(MemorySlots::new(12));
    let expiring = varve::store::Op::Set { key: b"k", value: b"v", expires: Some(2000) };
    store.stage(&[expiring]).expect("staged");
    store.compact().expect("merged");
    store.set(b"z", b"v").expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    store.open_snapshot_as(SNAPSHOT).expect("accepted");
    assert_eq!(store.read_point_of_snapshot(SNAPSHOT), Ok((2, 1000)));
    store.set_now(2000);
    while store.run_slice(1000).expect("a job") {}
    assert_eq!(store.stats().levels.iter().map(|level| level.tables).sum::<u64>(), 0, "k is merged away");
    assert_eq!(value(&store), Some(b"v".to_vec()), "its view has the table");
    let mut store = taken_over(store);
    let restored = store.restore_snapshot(SNAPSHOT, 2, 1000);
    assert_eq!(restored, Err(Error::Retry), "k would be {:?} there", value(&store));
}
