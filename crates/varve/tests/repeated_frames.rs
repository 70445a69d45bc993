//! Frames that are sent again to another process: done requests are answered and not done twice, and refused ones stay
//! refused.

use varve::frame::{Operation, header, run};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Code, Durability, Host, Options, Store};

type TestStore = Store<SlotPool<MemorySlots>>;

const CLIENT: u64 = 0x321_0000_0007;
const RELAXED: u8 = Durability::Relaxed as u8;
const STRICT: u8 = Durability::Strict as u8;

fn open(slots: MemorySlots) -> TestStore {
    let pool = SlotPool::open(slots).expect("a pool opens");
    let host = Host { now_ms: 1000, entropy: 3, store_id: [7; 16] };
    Store::open(pool, Options::default(), host).expect("a store opens").0
}

/// Another process opens the store; this one ends without closing it.
fn taken_over(store: TestStore) -> TestStore {
    open(store.into_storage().into_device())
}

/// A frame of requests from number `first` on; all before are answered, unless `answered` gives another number.
fn frame(first: u32, answered: u32, ops: &[(Operation, u8, &[u8], &[u8])]) -> Vec<u8> {
    let mut frame = header(CLIENT, answered, ops.len() as u32).to_vec();
    for (number, (operation, level, key, value)) in (first..).zip(ops) {
        frame.extend_from_slice(&number.to_le_bytes());
        frame.extend_from_slice(&[*operation as u8, *level, 0, 0]);
        frame.extend_from_slice(&(key.len() as u32).to_le_bytes());
        frame.extend_from_slice(&(value.len() as u32).to_le_bytes());
        frame.extend_from_slice(key);
        frame.extend_from_slice(value);
        frame.resize(frame.len().next_multiple_of(4), 0);
    }
    frame
}

/// Statuses and payloads of the answers.
fn send(store: &mut TestStore, frame: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut response = Vec::new();
    run(store, frame, &mut response).expect("a frame runs");
    let word = |at: usize| u32::from_le_bytes(response[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut at, mut answers) = (8, Vec::new());
    while at < response.len() {
        answers.push((response[at + 4], response[at + 16..at + 16 + word(at + 8)].to_vec()));
        at += 16 + word(at + 8).next_multiple_of(4);
    }
    answers
}

fn receipt(sequence: u64, level: u8) -> (u8, Vec<u8>) {
    (0, [&sequence.to_le_bytes()[..], &u32::from(level).to_le_bytes()].concat())
}

#[test]
fn writes_that_were_done_are_answered_with_their_sequences_and_reads_see_what_they_would_have_seen() {
    let mut store = open(MemorySlots::new(12));
    let frame = frame(
        5,
        5,
        &[
            (Operation::Get, 0, b"k", b""),
            (Operation::Set, RELAXED, b"k", b"one"),
            (Operation::Get, 0, b"k", b""),
            (Operation::Set, RELAXED, b"k", b"two"),
            (Operation::Get, 0, b"k", b""),
        ],
    );
    let first = send(&mut store, &frame);
    assert_eq!(first[1..4], [receipt(1, RELAXED), (0, b"one".to_vec()), receipt(2, RELAXED)]);
    store = taken_over(store);
    assert_eq!(send(&mut store, &frame), first);
    assert_eq!(store.last_sequence(), 2);
    // Flushed, so that only the manifest knows it; the flush drops the data that the first read saw.
    store.flush().expect("flushed");
    store = taken_over(taken_over(store));
    let again = send(&mut store, &frame);
    assert_eq!((&again[1], &again[3], &again[4]), (&first[1], &first[3], &first[4]));
    assert_eq!((again[0].1[0], again[2].1[0]), (Code::Retry as u8, Code::Retry as u8));
    assert_eq!(store.last_sequence(), 2);
}

#[test]
fn a_delete_that_was_done_says_again_whether_its_key_was_there() {
    let mut store = open(MemorySlots::new(12));
    send(&mut store, &frame(1, 1, &[(Operation::Set, RELAXED, b"k", b"one")]));
    let frame = frame(
        2,
        2,
        &[
            (Operation::Delete, RELAXED, b"k", b"?"),
            (Operation::Delete, RELAXED, b"k", b"?"),
            (Operation::Delete, RELAXED, b"k", b""),
            (Operation::Set, RELAXED, b"k", b"two"),
            (Operation::Delete, RELAXED, b"k", b"?"),
        ],
    );
    let first = send(&mut store, &frame);
    let absent = (1, receipt(3, RELAXED).1);
    assert_eq!(first[..3], [receipt(2, RELAXED), absent, receipt(4, RELAXED)]);
    assert_eq!(first[4], receipt(6, RELAXED));
    store = taken_over(store);
    assert_eq!(send(&mut store, &frame), first);
    // The flush drops what the deletes found.
    store.flush().expect("flushed");
    store = taken_over(taken_over(store));
    assert_eq!(send(&mut store, &frame), first);
    assert_eq!(store.last_sequence(), 6);
}

#[test]
fn a_write_that_an_earlier_leader_refused_is_not_done_after_its_successor() {
    let mut store = open(MemorySlots::new(12));
    let long = vec![b'k'; varve::types::KEY_BYTES_MAX + 1];
    let frame = frame(
        1,
        1,
        &[
            (Operation::Set, RELAXED, &long, b"refused"),
            (Operation::Set, RELAXED, b"k", b"done"),
            (Operation::Set, RELAXED, b"l", b"done"),
        ],
    );
    assert_eq!(send(&mut store, &frame)[0].1[0], Code::InvalidKey as u8);
    store = taken_over(store);
    let again = send(&mut store, &frame);
    assert_eq!((again[0].0, again[0].1[0]), (2, Code::Retry as u8));
    assert_eq!(again[1..], [receipt(1, RELAXED), receipt(2, RELAXED)]);
}

#[test]
fn a_strict_write_that_was_done_is_flushed_before_it_is_answered() {
    let mut store = open(MemorySlots::new(12));
    send(&mut store, &frame(1, 1, &[(Operation::Set, RELAXED, b"k", b"v")]));
    assert!(store.is_unsynced());
    assert_eq!(
        send(&mut store, &frame(1, 1, &[(Operation::Set, STRICT, b"k", b"v")]))[0],
        receipt(1, STRICT)
    );
    assert!(!store.is_unsynced());
}

#[test]
fn outcomes_with_responses_and_those_of_gone_clients_are_removed() {
    let mut store = open(MemorySlots::new(12));
    let write = |request, answered| frame(request, answered, &[(Operation::Set, RELAXED, b"k", b"v")]);
    send(&mut store, &write(1, 1));
    send(&mut store, &write(9, 1));
    assert_eq!(store.outcomes(), 2);
    send(&mut store, &write(10, 9));
    assert_eq!(store.outcomes(), 1, "two in a row, the one before is answered");
    store = taken_over(store);
    assert_eq!(store.outcomes(), 1, "the log has this as well");
    store.remove_client(CLIENT);
    assert_eq!(store.outcomes(), 0);
    store.flush().expect("flushed");
    store.release().expect("released");
    assert_eq!(taken_over(store).outcomes(), 0);
}
