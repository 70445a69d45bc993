//! Frames: operations of one turn run in order, writes commit together, malformed bytes are refused whole.

use proptest::prelude::*;
use varve::frame::{FRAME_MAGIC, header, run, run_part};
use varve::storage::{MemorySlots, SlotPool};
use varve::store::Op;
use varve::types::{BATCH_BYTES_MAX, VALUE_BYTES_MAX};
use varve::{Error, Host, Options, Store};

type TestStore = Store<SlotPool<MemorySlots>>;

const RELAXED: u8 = 2;
const STRICT: u8 = 3;

fn open(slots: MemorySlots) -> TestStore {
    let pool = SlotPool::open(slots).expect("a pool opens");
    let host = Host { now_ms: 1, entropy: 3, store_id: [7; 16] };
    Store::open(pool, Options::default(), host).expect("a new store opens").0
}

#[derive(Default)]
struct Frame {
    count: u32,
    ops: Vec<u8>,
    /// Where the last operation begins.
    last: usize,
}

impl Frame {
    fn op(self, operation: u8, key: &[u8], value: &[u8]) -> Self {
        self.op_of(0, operation, key, value)
    }

    /// An operation on a snapshot.
    fn op_of(mut self, snapshot: u8, operation: u8, key: &[u8], value: &[u8]) -> Self {
        self.count += 1;
        self.last = self.ops.len();
        self.ops.extend_from_slice(&self.count.to_le_bytes());
        self.ops.extend_from_slice(&[operation, RELAXED, snapshot, 0]);
        self.ops.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.ops.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.ops.extend_from_slice(key);
        self.ops.extend_from_slice(value);
        self.ops.resize(self.ops.len().next_multiple_of(4), 0);
        self
    }

    /// The last operation is to be strict.
    fn strict(mut self) -> Self {
        self.ops[self.last + 5] = STRICT;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        [&header(0, 0, self.count)[..], &self.ops].concat()
    }
}

/// The answers of a response frame: status and payload.
fn answers(response: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(response[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(word(0), FRAME_MAGIC);
    let mut at = 8;
    let mut answers = Vec::new();
    for number in 1..=word(4) {
        assert_eq!(word(at), number, "answers come in the order of their requests");
        let length = word(at + 8) as usize;
        answers.push((response[at + 4], response[at + 16..at + 16 + length].to_vec()));
        at += 16 + length.next_multiple_of(4);
    }
    assert_eq!(at, response.len());
    answers
}

fn send(store: &mut TestStore, frame: Frame) -> Vec<(u8, Vec<u8>)> {
    let mut response = Vec::new();
    run(store, &frame.bytes(), &mut response).expect("a well-formed frame runs");
    answers(&response)
}

#[test]
fn reads_see_what_the_frame_wrote_before_them() {
    let mut store = open(MemorySlots::new(12));
    let frame = Frame::default()
        .op(1, b"k", b"")
        .op(4, b"k", b"v")
        .op(1, b"k", b"")
        .op(5, b"k", b"")
        .op(2, b"k", b"");
    let answers = send(&mut store, frame);
    assert_eq!(answers[0], (1, vec![]), "not there before");
    assert_eq!(answers[2], (0, b"v".to_vec()));
    assert_eq!(answers[4].0, 1, "deleted again");
    assert_eq!(store.acknowledged(), 2);
}

#[test]
fn all_writes_of_a_frame_are_one_append() {
    let mut store = open(MemorySlots::new(12));
    let mut frame = Frame::default();
    for number in 0..100_u32 {
        frame = frame.op(4, &number.to_be_bytes(), b"value");
    }
    send(&mut store, frame);
    assert_eq!(store.stats().writes, 100);
    assert_eq!(store.stats().wal_syncs, 0, "a relaxed frame flushes nothing");
}

/// A batch of one set, of `key` to `key`, with a lifetime (flags 1) or a time to expire at (flags 5).
fn expiring_set(flags: u8, time: u64, key: &[u8]) -> Vec<u8> {
    let mut item = vec![1, 0, 0, 0, 1, flags, 0, 0];
    item.extend_from_slice(&(key.len() as u32).to_le_bytes());
    item.extend_from_slice(&(8 + key.len() as u32).to_le_bytes());
    item.extend_from_slice(key);
    item.extend_from_slice(&time.to_le_bytes());
    item.extend_from_slice(key);
    item.resize(item.len().next_multiple_of(4), 0);
    item
}

/// The number of a scan.
const CURSOR: [u8; 4] = [9, 0, 0, 0];
/// The read point of a scan or a snapshot, which stands before the rest of its answer.
const READ_POINT_BYTES: usize = 16;

/// A scan of everything: its flags, no limit, a batch of 1000 bytes, no bounds.
fn scan(flags: u8) -> Vec<u8> {
    [&[flags, 0, 0, 0, 255, 255, 255, 255, 232, 3, 0, 0][..], &[0; 8]].concat()
}

#[test]
fn a_scan_brings_expiries_and_a_set_takes_one_as_it_was() {
    let mut store = open(MemorySlots::new(12));
    let frame = Frame::default()
        .op(6, b"", &expiring_set(5, 9_000, b"at"))
        .op(6, b"", &expiring_set(1, 9_000, b"in"))
        .op(6, b"", &expiring_set(5, u64::MAX, b"late"))
        .op(6, b"", &expiring_set(5, 1, b"over"))
        .op(4, b"plain", b"plain")
        .op(7, &CURSOR, &scan(128 | 4 | 2))
        .op(7, &CURSOR, &scan(128 | 4 | 2 | 1))
        .op(7, &CURSOR, &scan(128 | 2));
    let answers = send(&mut store, frame);
    assert!(answers.iter().all(|answer| answer.0 == 0));
    let values = |answer: usize, count: u32| {
        let payload = &answers[answer].1[READ_POINT_BYTES..];
        let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((word(0), word(4)), (0, count), "all in one batch");
        payload[payload.len() - (word(12) as usize).next_multiple_of(4)..][..word(12) as usize].to_vec()
    };
    let entry = |expires: u64, value: &[u8]| [&expires.to_le_bytes()[..], value].concat();
    let with =
        [entry(9_000, b"at"), entry(9_001, b"in"), entry(u64::MAX, b"late"), entry(0, b"plain")].concat();
    assert_eq!(values(5, 4), with, "the time is 1 at the opening; what expired at 1 is no more");
    assert_eq!(values(6, 4), b"plainlateinat", "a scan that goes backward brings values alone");
    assert_eq!(values(7, 4), b"", "and one without values nothing");
}

#[test]
fn an_answer_says_whether_an_entry_in_it_expires() {
    let mut store = open(MemorySlots::new(12));
    let keys = |names: &[&[u8; 4]]| {
        let mut list = (names.len() as u32).to_le_bytes().to_vec();
        for name in names {
            list.extend_from_slice(&[&4_u32.to_le_bytes()[..], &name[..]].concat());
        }
        list
    };
    let frame = Frame::default()
        .op(4, b"last", b"plain")
        .op(10, b"", &keys(&[b"at__", b"last"]))
        .op(7, &CURSOR, &scan(4))
        .op(6, b"", &expiring_set(5, 9_000, b"at__"))
        .op(10, b"", &keys(&[b"none", b"last"]))
        .op(10, b"", &keys(&[b"at__", b"last"]))
        .op(7, &CURSOR, &scan(2 | 4))
        .op(7, &CURSOR, &scan(1 | 2))
        .op(7, &CURSOR, &scan(0));
    let mut response = Vec::new();
    run(&mut store, &frame.bytes(), &mut response).expect("a well-formed frame runs");
    let mut expires = Vec::new();
    let mut at = 8;
    while at < response.len() {
        assert_eq!(response[at + 4], 0);
        expires.push(response[at + 5]);
        let length = u32::from_le_bytes(response[at + 8..at + 12].try_into().expect("four bytes"));
        at += 16 + (length as usize).next_multiple_of(4);
    }
    assert_eq!(expires, [0, 0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn a_full_storage_refuses_sets_and_takes_deletes() {
    let mut store = open(MemorySlots::with_limit(12, 2 << 20));
    let value = vec![9; 50_000];
    let mut kept = Vec::new();
    let refused = loop {
        let key = (kept.len() as u32).to_be_bytes();
        let answer = send(&mut store, Frame::default().op(4, &key, &value)).remove(0);
        if answer.0 == 2 {
            break answer;
        }
        kept.push(key);
        assert!(kept.len() < 1000, "the limit was never reached");
    };
    assert_eq!(refused.1[..4], 2_u32.to_le_bytes(), "the code of a full storage");
    let lost = (kept.len() as u32).to_be_bytes();
    let mixed =
        Frame::default().op(4, &lost, &value).op(5, &kept[0], b"").op(2, &lost, b"").op(2, &kept[0], b"");
    // A delete that asks is done a second time after the refusal, and its key was there before both.
    let mixed = mixed.op(5, &kept[1], b"?").op(5, &kept[1], b"?").op(5, &lost, b"?");
    let answers = send(&mut store, mixed);
    assert_eq!(answers.iter().map(|answer| answer.0).collect::<Vec<_>>(), [2, 0, 1, 1, 0, 1, 1]);
    for key in &kept[2..] {
        assert_eq!(store.get(key), Ok(Some(value.clone())), "acknowledged data is intact");
    }
    // There is room again: sets are accepted.
    store.storage_mut().device_mut().set_limit(None);
    assert_eq!(send(&mut store, Frame::default().op(4, &lost, &value))[0].0, 0);
    assert_eq!(store.get(&lost), Ok(Some(value)));
}

/// The story: on a full storage, staging a write that needs a new memtable logs the data that the frame staged before, and that was
/// refused and rolled back. A later delete of the frame fitted, so the frame's commit succeeded, and the response still reported the
/// rolled-back writes as kept. The simulator found it once frames went through it (seeds 88, 223 and 600).
#[test]
fn a_write_rolled_back_by_a_later_one_of_its_frame_is_not_acknowledged() {
    let mut store = open(MemorySlots::with_limit(12, 2 << 20));
    let mut kept = 0_u32;
    loop {
        let refused = send(&mut store, Frame::default().op(4, &kept.to_be_bytes(), &[1; 10_000]))[0].0 != 0;
        if refused {
            break;
        }
        kept += 1;
    }
    let big = vec![2; 2 << 20];
    let frame = Frame::default()
        .op(4, b"first", &[3; 20_000])
        .op(4, b"second, in a memtable of its own", &big)
        .op(5, &0_u32.to_be_bytes(), b"")
        .op(2, b"first", b"");
    let statuses: Vec<u8> = send(&mut store, frame).iter().map(|answer| answer.0).collect();
    assert_eq!(statuses, [2, 2, 0, 1], "refused, refused, deleted, not there");
    assert_eq!(store.has(b"first"), Ok(false));
    let store = open(store.into_storage().into_device());
    assert_eq!((store.has(b"first"), store.has(&0_u32.to_be_bytes())), (Ok(false), Ok(false)));
    assert_eq!(store.has(&1_u32.to_be_bytes()), Ok(true));
}

#[test]
fn a_scan_comes_in_batches_and_ends_with_cursor_zero() {
    let mut store = open(MemorySlots::new(12));
    for number in 0..1000_u32 {
        store.set(&number.to_be_bytes(), b"0123456789").expect("room");
    }
    let mut scan = vec![2 | 4, 0, 0, 0];
    for word in [u32::MAX, 1000, 0, 0] {
        scan.extend_from_slice(&word.to_le_bytes());
    }
    let mut answer =
        send(&mut store, Frame::default().op(7, &CURSOR, &scan)).remove(0).1.split_off(READ_POINT_BYTES);
    let word = |answer: &[u8], at: usize| u32::from_le_bytes(answer[at..at + 4].try_into().expect("four"));
    let mut seen = word(&answer, 4);
    let mut rounds = 1;
    while word(&answer, 0) != 0 {
        assert_eq!(answer[..4], CURSOR);
        answer = send(&mut store, Frame::default().op(8, &CURSOR, &5000_u32.to_le_bytes())).remove(0).1;
        seen += word(&answer, 4);
        rounds += 1;
    }
    assert_eq!(seen, 1000);
    assert!(rounds > 2, "{rounds} rounds");
    assert_eq!(store.stats().cursors, 0);
}

#[test]
fn a_long_response_ends_early_and_the_frame_goes_on_in_another() {
    let mut store = open(MemorySlots::new(12));
    let long = [7; 100];
    send(&mut store, Frame::default().op(4, b"long", &long));
    let frame = Frame::default().op(1, b"long", b"").op(4, b"k", b"v").op(1, b"long", b"").op(1, b"k", b"");
    let mut got = Vec::new();
    let mut from = 0;
    let mut parts = 0;
    loop {
        let mut out = Vec::new();
        from = run_part(&mut store, &frame.bytes(), from, 100, &mut out).expect("a well-formed frame runs");
        got.push(out);
        parts += 1;
        if from == 0 {
            break;
        }
    }
    assert_eq!(parts, 3);
    let counts: Vec<u8> = got.iter().map(|part| part[4]).collect();
    assert_eq!(counts, [1, 2, 1], "each part gives its number of answers");
    let numbers: Vec<u8> = got.iter().map(|part| part[8]).collect();
    assert_eq!(numbers, [1, 2, 4], "and goes on where the one before ended");
    assert!(got[1].ends_with(&long) && got[2].ends_with(b"v\0\0\0"));
    assert_eq!(store.last_sequence(), 2, "each write was written once");
    assert_eq!(store.acknowledged(), 2);
}

/// The story: the receipt depended on the whole frame, but the flush on the part that was sent: a relaxed write was reported as strict
/// long before the strict one behind it was flushed.
#[test]
fn a_part_of_a_frame_is_as_durable_as_its_receipts_say() {
    let mut store = open(MemorySlots::new(12));
    send(&mut store, Frame::default().op(4, b"long", &[7; 100]));
    let syncs = store.stats().wal_syncs;
    let frame = Frame::default().op(4, b"a", b"1").op(1, b"long", b"").op(4, b"b", b"2").strict();
    let mut part = Vec::new();
    assert_eq!(run_part(&mut store, &frame.bytes(), 0, 100, &mut part), Ok(2));
    // The first answer: 8 bytes of the frame, 16 of the answer, the sequence.
    assert_eq!(part[8 + 16 + 8], STRICT);
    assert_eq!(store.stats().wal_syncs, syncs + 1, "a write that is reported as strict was flushed");
}

#[test]
fn a_write_beside_a_refused_strict_one_is_as_durable_as_its_receipt_says() {
    let mut store = open(MemorySlots::new(12));
    let long = vec![0; 70_000];
    let syncs = store.stats().wal_syncs;
    let answers = send(&mut store, Frame::default().op(4, b"a", b"1").op(4, &long, b"2").strict());
    assert_eq!((answers[0].0, answers[1].0), (0, 2));
    assert_eq!(answers[0].1[8] == STRICT, store.stats().wal_syncs > syncs);
}

#[test]
fn values_and_batches_that_are_too_long_are_refused_and_leave_nothing() {
    let mut store = open(MemorySlots::new(12));
    let value = vec![0; VALUE_BYTES_MAX + 1];
    assert!(matches!(store.set(b"k", &value), Err(Error::InvalidValue(text)) if text.contains("128 MiB")));
    let op = Op::Set { key: b"k", value: &value[1..], expires: None };
    assert!(matches!(store.stage(&[op, op]), Err(Error::InvalidArgument(text)) if text.contains("256 MiB")));
    assert_eq!((VALUE_BYTES_MAX, BATCH_BYTES_MAX), (128 << 20, 256 << 20), "as in the messages");
    assert_eq!(store.last_sequence(), 0);
    assert_eq!(send(&mut store, Frame::default().op(4, b"k", b"v").op(1, b"k", b""))[1], (0, b"v".to_vec()));
}

#[test]
fn a_frame_of_another_kind_is_refused() {
    let mut store = open(MemorySlots::new(12));
    let mut out = Vec::new();
    assert!(matches!(
        run(&mut store, b"VRF1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &mut out),
        Err(Error::InvalidArgument(_))
    ));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut store = open(MemorySlots::new(12));
        let mut out = Vec::new();
        let _ = run(&mut store, &bytes, &mut out);
        let framed = [&header(0, 0, 1)[..], &bytes].concat();
        let _ = run(&mut store, &framed, &mut out);
    }

    #[test]
    fn damaged_frames_never_panic(at in 0_usize..400, byte in any::<u8>()) {
        let mut store = open(MemorySlots::new(12));
        let frame = Frame::default().op(4, b"key", b"value").op(1, b"key", b"").op(7, &CURSOR, &[6; 24]).op(6, b"", &[1; 40]);
        let mut bytes = frame.bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        let _ = run(&mut store, &bytes, &mut Vec::new());
    }
}

const CONFLICT: u32 = 5;

/// One item of a batch: kind, flags, key, and a value that begins with the fields that the flags announce.
fn item(kind: u8, flags: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags, 0, 0];
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn batch(items: &[Vec<u8>]) -> Vec<u8> {
    [&(items.len() as u32).to_le_bytes()[..], &items.concat()].concat()
}

/// A set with the condition that `key` has `sequence`, 0 for none.
fn set_if(key: &[u8], sequence: u64, value: &[u8]) -> Vec<u8> {
    item(1, 2, key, &[&sequence.to_le_bytes()[..], value].concat())
}

fn conflict(found: u64, key: &[u8]) -> (u8, Vec<u8>) {
    (2, [&CONFLICT.to_le_bytes()[..], &found.to_le_bytes(), key].concat())
}

#[test]
fn a_condition_sees_what_the_frame_wrote_before_it() {
    let mut store = open(MemorySlots::new(12));
    let frame = Frame::default()
        .op(6, b"", &batch(&[set_if(b"k", 0, b"first")]))
        .op(6, b"", &batch(&[set_if(b"k", 0, b"second")]))
        .op(6, b"", &batch(&[set_if(b"k", 1, b"third")]))
        .op(6, b"", &batch(&[item(0, 2, b"k", &1_u64.to_le_bytes())]));
    let answers = send(&mut store, frame);
    assert_eq!((answers[0].0, answers[2].0), (0, 0));
    assert_eq!(answers[1], conflict(1, b"k"));
    assert_eq!(answers[3], conflict(2, b"k"));
    assert_eq!(store.get(b"k"), Ok(Some(b"third".to_vec())));
    assert_eq!(store.last_sequence(), 2, "a refused write takes no sequence");
}

#[test]
fn one_condition_that_does_not_hold_refuses_the_whole_batch() {
    let mut store = open(MemorySlots::new(12));
    store.set(b"used", b"v").expect("staged");
    let items = [set_if(b"free", 0, b"v"), item(1, 0, b"plain", b"v"), set_if(b"used", 0, b"w")];
    let answers = send(&mut store, Frame::default().op(6, b"", &batch(&items)));
    assert_eq!(answers[0], conflict(1, b"used"));
    assert_eq!((store.has(b"free"), store.has(b"plain")), (Ok(false), Ok(false)));
}

#[test]
fn conditions_of_a_batch_look_at_the_store_before_it() {
    let mut store = open(MemorySlots::new(12));
    let items = [set_if(b"k", 0, b"one"), set_if(b"k", 0, b"two")];
    let answers = send(&mut store, Frame::default().op(6, b"", &batch(&items)));
    assert_eq!(answers[0].0, 0);
    assert_eq!(store.get(b"k"), Ok(Some(b"two".to_vec())));
}

#[test]
fn an_expired_entry_is_absent_to_a_condition() {
    let mut store = open(MemorySlots::new(12));
    let lives_10_ms = item(1, 1, b"k", &[&10_u64.to_le_bytes()[..], b"v"].concat());
    send(&mut store, Frame::default().op(6, b"", &batch(&[lives_10_ms])));
    assert!(store.has(b"k").expect("read"));
    let answers = send(&mut store, Frame::default().op(6, b"", &batch(&[set_if(b"k", 0, b"w")])));
    assert_eq!(answers[0], conflict(1, b"k"));
    store.set_now(11);
    let answers = send(&mut store, Frame::default().op(6, b"", &batch(&[set_if(b"k", 0, b"w")])));
    assert_eq!(answers[0].0, 0);
    assert_eq!(store.get(b"k"), Ok(Some(b"w".to_vec())));
}

/// A conflict with a write of its own frame that the storage then refused is no conflict: that write does not exist. The request gets
/// the same error as the write.
#[test]
fn a_conflict_with_a_write_that_was_refused_gets_the_refusal() {
    let mut slots = MemorySlots::new(12);
    slots = open(slots).into_storage().into_device();
    let mut store = open(slots);
    store.set(b"before", b"v").expect("staged");
    store.commit(varve::Durability::Strict).expect("committed");
    store.storage_mut().device_mut().set_limit(Some(0));
    let huge = vec![7; 1 << 20];
    let frame = Frame::default().op(4, b"k", &huge).op(6, b"", &batch(&[set_if(b"k", 0, b"mine")]));
    let answers = send(&mut store, frame);
    let full = Error::StorageFull.code() as u32;
    for (status, payload) in answers {
        assert_eq!((status, &payload[..4]), (2, &full.to_le_bytes()[..]));
    }
    assert_eq!(store.has(b"k"), Ok(false));
}

#[test]
fn a_snapshot_stands_where_its_frame_took_it() {
    let mut store = open(MemorySlots::new(12));
    let frame = Frame::default().op(4, b"k", b"old").op_of(7, 13, b"", b"").op(4, b"k", b"new");
    let opened = send(&mut store, frame).swap_remove(1);
    assert_eq!(opened, (0, [1_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat()), "sequence 1, at the time 1");
    let count = [0, 0, 7, 0, 255, 255, 255, 255, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let frame = Frame::default()
        .op_of(7, 1, b"k", b"")
        .op(1, b"k", b"")
        .op(7, &CURSOR, &count)
        .op_of(7, 14, b"", b"");
    let answers = send(&mut store, frame);
    assert_eq!(answers[0], (0, b"old".to_vec()));
    assert_eq!(answers[1], (0, b"new".to_vec()));
    assert_eq!(answers[2].1[READ_POINT_BYTES..][..8], [0, 0, 0, 0, 1, 0, 0, 0], "finished, one entry");
    assert_eq!(answers[3].0, 0);
    let answers = send(&mut store, Frame::default().op_of(7, 1, b"k", b""));
    assert_eq!(answers[0].0, 2, "closed, and not known any more");
}

/// A frame whose write was refused runs twice. Once, its second run found the snapshots closed that its first run had closed. It also
/// closed a snapshot that it had just opened, which had got the number of a closed one.
#[test]
fn a_frame_that_runs_twice_closes_snapshots_once() {
    let mut store = open(MemorySlots::new(12));
    store.set(b"k", b"v").expect("staged");
    store.commit(varve::Durability::Strict).expect("committed");
    let (first, second) =
        (store.open_snapshot().expect("accepted"), store.open_snapshot().expect("accepted"));
    assert_eq!((first, second), (1, 2));
    store.storage_mut().device_mut().set_limit(Some(0));
    let frame = Frame::default().op_of(5, 13, b"", b"").op_of(1, 1, b"k", b"").op_of(1, 14, b"", b"").op(
        4,
        b"huge",
        &vec![7; 1 << 20],
    );
    let answers = send(&mut store, frame);
    assert_eq!(answers.iter().map(|answer| answer.0).collect::<Vec<_>>(), [0, 0, 0, 2]);
    let answers = send(&mut store, Frame::default().op_of(5, 1, b"k", b"").op_of(1, 1, b"k", b""));
    assert_eq!((answers[0].0, answers[1].0), (0, 2), "the one that was opened is there, the other is not");
}

#[test]
fn a_batch_is_refused_when_its_transaction_read_what_was_written_since() {
    let mut store = open(MemorySlots::new(12));
    store.set(b"a", b"v").expect("staged");
    let snapshot = 1;
    send(&mut store, Frame::default().op_of(snapshot, 13, b"", b""));
    let write = item(1, 0, b"mine", b"v");
    let commit = |store: &mut TestStore, reads: &[Vec<u8>]| {
        let items = [reads, std::slice::from_ref(&write)].concat();
        send(store, Frame::default().op_of(snapshot, 6, b"", &batch(&items))).remove(0)
    };
    let (read_b, read_a_to_c, read_b_on) =
        (item(3, 0, b"b", b""), item(4, 0, b"a", b"c"), item(4, 0, b"b", b""));
    send(&mut store, Frame::default().op(4, b"c", b"v"));
    assert_eq!(commit(&mut store, &[read_b.clone(), read_a_to_c.clone()]).0, 0, "c is not in it");
    assert_eq!(store.has(b"mine"), Ok(true));
    assert_eq!(commit(&mut store, &[read_b_on]), conflict(2, b"c"));
    send(&mut store, Frame::default().op(11, b"a", b"bb"));
    assert_eq!(commit(&mut store, &[read_b]), conflict(0, b"b"), "deleted with a range");
    assert_eq!(commit(&mut store, &[read_a_to_c]), conflict(0, b"a"));
    assert_eq!(commit(&mut store, &[item(3, 0, b"d", b"")]).0, 0);
    let gone = Frame::default().op_of(9, 6, b"", &batch(&[item(3, 0, b"d", b""), write.clone()]));
    assert_eq!(send(&mut store, gone)[0].0, 2, "there is no such snapshot");
}

/// A full storage accepts a transaction that only deletes, and still compares what it read.
#[test]
fn a_transaction_of_deletes_is_compared_on_a_full_storage_too() {
    let mut store = open(MemorySlots::new(12));
    store.set(b"k", b"v").expect("staged");
    store.commit(varve::Durability::Strict).expect("committed");
    store.storage_mut().device_mut().set_limit(Some(0));
    let snapshot = store.open_snapshot().expect("accepted") as u8;
    let huge = vec![7; 1 << 20];
    let items = batch(&[item(3, 0, b"k", b""), item(0, 0, b"k", b"")]);
    let frame = || Frame::default().op(4, b"huge", &huge).op_of(snapshot, 6, b"", &items);
    assert_eq!(send(&mut store, frame()).iter().map(|answer| answer.0).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(store.has(b"k"), Ok(false));
    assert_eq!(send(&mut store, frame())[1], conflict(0, b"k"));
}

/// A frame whose write was refused runs twice: the batches of a scan that it continued were skipped.
#[test]
fn a_frame_that_runs_twice_skips_nothing_of_a_scan() {
    let mut store = open(MemorySlots::new(12));
    for key in [b"a", b"b", b"c"] {
        store.set(key, b"v").expect("staged");
    }
    store.commit(varve::Durability::Strict).expect("committed");
    let by_one = [2, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let opened =
        send(&mut store, Frame::default().op(7, &CURSOR, &by_one)).remove(0).1.split_off(READ_POINT_BYTES);
    store.storage_mut().device_mut().set_limit(Some(0));
    let frame = Frame::default().op(8, &CURSOR, &1_u32.to_le_bytes()).op(4, b"huge", &vec![7; 1 << 20]);
    let next = send(&mut store, frame).remove(0).1;
    assert_eq!((opened[20], next[20]), (b'a', b'b'));
}

/// A request for changes since a sequence, values or not.
fn changes_since(since: u64, flags: u32) -> Vec<u8> {
    let words = [1 << 16, flags, 1, 0];
    let words = words.iter().flat_map(|word: &u32| word.to_le_bytes());
    since.to_le_bytes().into_iter().chain(words).chain(*b"a").collect()
}

#[test]
fn changes_are_reported_behind_a_sequence_and_since_none_only_where_the_store_is() {
    let mut store = open(MemorySlots::new(12));
    let batch = [
        &3u32.to_le_bytes()[..],
        &[1, 4 | 1, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, b'k'],
        &4_000_000u64.to_le_bytes()[..],
        b"v\0\0",
        &[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'x', 0, 0, 0],
        &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'A', 0, 0, 0],
    ]
    .concat();
    let now = changes_since(u64::MAX, 0);
    let answers = send(&mut store, Frame::default().op(16, b"", &now).op(6, b"", &batch).op(16, b"", &now));
    let through = |answer: &(u8, Vec<u8>)| u64::from_le_bytes(answer.1[..8].try_into().expect("8 bytes"));
    // The first read comes before the writes of its frame, the second one after them.
    assert_eq!((through(&answers[0]), through(&answers[2])), (0, 3));
    let set =
        [&1u64.to_le_bytes()[..], &[1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], &4e6f64.to_le_bytes(), b"kv\0\0"]
            .concat();
    let cut = [&2u64.to_le_bytes()[..], &[2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], b"x\xff\0\0"].concat();
    let head = |through: u64, count: u32| {
        [&through.to_le_bytes()[..], &[0; 8], &count.to_le_bytes(), &[0; 4]].concat()
    };
    let asked = Frame::default().op(16, b"", &changes_since(0, 0)).op(16, b"", &changes_since(1, 1));
    // `A` lies before the range; the end of a range without one is where the reserved keys begin.
    let reported = [head(3, 2), set, cut.clone()].concat();
    assert_eq!(send(&mut store, asked), [(0, reported), (0, [head(3, 1), cut].concat())]);
    for bad in [&b""[..], &changes_since(0, 0)[1..], &[&now[..], b"x"].concat()] {
        assert_eq!(send(&mut store, Frame::default().op(16, b"", bad))[0].0, 2);
    }
}
