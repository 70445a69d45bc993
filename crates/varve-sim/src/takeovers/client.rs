//! A client: what it sends, what it was answered, and what it has open.
//!
//! Invariant: frames are answered in their order; one that was not answered is sent again byte by byte.
//!
//! A transaction is a batch that has read the key of the client in a snapshot: it must not be done if a write of that key lies between the
//! two.

use std::collections::{BTreeMap, VecDeque};

use varve::Code;
use varve::codec::reader::{Reader, Truncated};
use varve::frame::{Operation, header, run};
use varve::options::Durability;

use super::{Outcome, Totals};
use crate::compactor::SimStore;
use crate::frames::{Answer, decode_from, put, put_item, put_u32};
use crate::rng::Rng;

/// Snapshots of a client that are open at once.
const SNAPSHOTS_MAX: usize = 3;

/// The outcome of a write, as far as the client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// Not answered.
    Open,
    /// Done; the sequence of its last operation.
    Done(u64),
    /// Refused.
    Refused,
    /// Done, and lost with the power or with the memory of a process.
    Lost,
}

/// A write. Its first operation sets a key of its own, its second, if it has several, the key of the client. Or it deletes the key of the
/// client, and asks whether the key was there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    /// How many requests of its client came before it.
    pub(super) ordinal: u64,
    pub(super) operations: u64,
    pub(super) is_delete: bool,
    pub(super) level: Durability,
    pub(super) outcome: WriteOutcome,
}

/// The kind of a request of a frame.
#[derive(Debug, Clone)]
enum Ask {
    /// By its index, as are deletes.
    Write(usize),
    Delete(usize),
    /// A write that depends on what it read in a snapshot.
    Transaction(usize, u8),
    /// Of the key of a write, by the write's ordinal.
    Read(u64),
    /// Of the client's own key.
    ReadOwn,
    Snapshot(u8),
    /// Of a key, in a snapshot.
    ReadSnapshot(u8, Vec<u8>),
    Close(u8),
}

/// A frame that is not answered.
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) response: Option<Vec<u8>>,
    first: u64,
    asks: Vec<Ask>,
    /// Earlier leaders may have run it.
    is_repeated: bool,
}

/// A snapshot that was answered.
struct OpenSnapshot {
    read_point: [u64; 2],
    /// No leader could open it again.
    is_lost: bool,
    /// The answers to its reads.
    seen: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

pub(super) struct Client {
    pub(super) id: u64,
    pub(super) lives: bool,
    pub(super) frames: VecDeque<Sent>,
    pub(super) writes: Vec<Write>,
    /// Whether it deletes its key.
    deletes: bool,
    /// Whether it has transactions.
    transacts: bool,
    first: u32,
    asked: u64,
    snapshots: BTreeMap<u8, OpenSnapshot>,
    /// Numbers of snapshots after all sent requests have run.
    open: Vec<u8>,
    next_snapshot: u8,
}

impl Client {
    pub(super) fn new(id: u64, first: u32, deletes: bool, transacts: bool) -> Self {
        Self {
            id,
            lives: true,
            frames: VecDeque::new(),
            writes: Vec::new(),
            deletes,
            transacts,
            first,
            asked: 0,
            snapshots: BTreeMap::new(),
            open: Vec::new(),
            next_snapshot: 0,
        }
    }

    /// The key that only one of its writes sets.
    pub(super) fn key_of(&self, ordinal: u64) -> Vec<u8> {
        [b"w", &self.id.to_be_bytes()[..], &ordinal.to_be_bytes()].concat()
    }

    fn own_key(&self) -> Vec<u8> {
        [b"o", &self.id.to_be_bytes()[..]].concat()
    }

    /// A write that was never answered, in words.
    pub(super) fn open_write(&self) -> Option<String> {
        let open = self.writes.iter().find(|write| write.outcome == WriteOutcome::Open)?;
        Some(format!("write {} of client {}", open.ordinal, self.id))
    }

    fn request(&self, ordinal: u64) -> u32 {
        self.first.wrapping_add(ordinal as u32)
    }

    fn answered(&self) -> u32 {
        self.request(self.frames.front().map_or(self.asked, |sent| sent.first))
    }

    /// Packs a frame.
    pub(super) fn send(&mut self, rng: &mut Rng, levels: &[Durability]) {
        let (first, mut asks, mut ops) = (self.asked, Vec::new(), Vec::new());
        for _ in 0..rng.within(1, 8) {
            let ask = self.ask(rng, levels, &mut ops);
            asks.push(ask);
            self.asked += 1;
        }
        let mut bytes = header(self.id, self.answered(), asks.len() as u32).to_vec();
        if self.frames.is_empty() {
            bytes = header(self.id, self.request(first), asks.len() as u32).to_vec();
        }
        bytes.extend_from_slice(&ops);
        self.frames.push_back(Sent { bytes, response: None, first, asks, is_repeated: false });
    }

    fn ask(&mut self, rng: &mut Rng, levels: &[Durability], ops: &mut Vec<u8>) -> Ask {
        let ordinal = self.asked;
        let number = self.request(ordinal) as usize;
        let only = |weight, is_on: bool| if is_on { weight } else { 0 };
        let transactions = only(10, self.transacts && !self.open.is_empty());
        // More of what they need: snapshots, and tombstones behind them.
        let (snapshots, deletes) = if self.transacts { (3, 12) } else { (1, only(5, self.deletes)) };
        match rng.weighted(&[10, 4, 3, snapshots, 3, 1, deletes, transactions]) {
            0 => {
                let level = rng.pick(levels);
                let bytes = rng.pick(&[8, 8, 30, 400, 3000]);
                let mut value = ordinal.to_be_bytes().to_vec();
                value.resize(bytes, rng.bits() as u8);
                let operations = rng.pick(&[1, 1, 2, 5]);
                let key = self.key_of(ordinal);
                if operations == 1 {
                    put(ops, number, (Operation::Set, level as u8, 0), &key, &value);
                } else {
                    let mut batch = Vec::new();
                    put_u32(&mut batch, operations as usize);
                    put_item(&mut batch, [1, 0], &key, &value);
                    put_item(&mut batch, [1, 0], &self.own_key(), &value);
                    for _ in 2..operations {
                        let shared = [b"s", &rng.below(20).to_be_bytes()[..]].concat();
                        put_item(&mut batch, [rng.below(2) as u8, 0], &shared, b"");
                    }
                    put(ops, number, (Operation::Batch, level as u8, 0), &[], &batch);
                }
                let outcome = WriteOutcome::Open;
                self.writes.push(Write { ordinal, operations, is_delete: false, level, outcome });
                Ask::Write(self.writes.len() - 1)
            }
            6 => {
                let level = rng.pick(levels);
                put(ops, number, (Operation::Delete, level as u8, 0), &self.own_key(), b"?");
                let outcome = WriteOutcome::Open;
                self.writes.push(Write { ordinal, operations: 1, is_delete: true, level, outcome });
                Ask::Delete(self.writes.len() - 1)
            }
            7 => {
                let (level, snapshot) = (rng.pick(levels), rng.pick(&self.open));
                let (key, value) = (self.key_of(ordinal), ordinal.to_be_bytes());
                let mut batch = Vec::new();
                put_u32(&mut batch, 2);
                put_item(&mut batch, [3, 0], &self.own_key(), b"");
                put_item(&mut batch, [1, 0], &key, &value);
                put(ops, number, (Operation::Batch, level as u8, snapshot), &[], &batch);
                let outcome = WriteOutcome::Open;
                self.writes.push(Write { ordinal, operations: 1, is_delete: false, level, outcome });
                Ask::Transaction(self.writes.len() - 1, snapshot)
            }
            1 => {
                let of = (ordinal + rng.below(4)).saturating_sub(rng.below(8));
                put(ops, number, (Operation::Get, 0, 0), &self.key_of(of), &[]);
                Ask::Read(of)
            }
            3 if self.open.len() < SNAPSHOTS_MAX => {
                self.next_snapshot = self.next_snapshot % 200 + 1;
                self.open.push(self.next_snapshot);
                put(ops, number, (Operation::SnapshotOpen, 0, self.next_snapshot), &[], &[]);
                Ask::Snapshot(self.next_snapshot)
            }
            4 if !self.open.is_empty() => {
                let snapshot = rng.pick(&self.open);
                let shared = [b"s", &rng.below(20).to_be_bytes()[..]].concat();
                let key = if rng.chance(1, 2) { self.own_key() } else { shared };
                put(ops, number, (Operation::GetEntry, 0, snapshot), &key, &[]);
                Ask::ReadSnapshot(snapshot, key)
            }
            5 if !self.open.is_empty() => {
                let snapshot = self.open.remove(rng.index(self.open.len()));
                put(ops, number, (Operation::SnapshotClose, 0, snapshot), &[], &[]);
                Ask::Close(snapshot)
            }
            _ => {
                put(ops, number, (Operation::Get, 0, 0), &self.own_key(), &[]);
                Ask::ReadOwn
            }
        }
    }

    /// Takes the answer of its oldest frame, if there is one. Returns whether there was one.
    pub(super) fn receive(&mut self, totals: &mut Totals) -> Outcome<bool> {
        if self.frames.front().is_none_or(|sent| sent.response.is_none()) {
            return Ok(false);
        }
        let Some(Sent { response: Some(response), first, asks, is_repeated, .. }) = self.frames.pop_front()
        else {
            return Ok(false);
        };
        let answers = decode_from(&response, self.request(first))
            .map_err(|Truncated| format!("client {}: a response does not decode", self.id))?;
        if answers.len() != asks.len() {
            return Err(format!("{} requests got {} answers", asks.len(), answers.len()));
        }
        let (mut late, mut deletes) = (Vec::new(), Vec::new());
        // A frame with a refused request, or with a delete that was done behind the others, is answered again after the commit: its reads
        // may see writes of the frame that came after them.
        let is_done = |answer: &Answer| matches!(answer, Answer::Error(code) if *code != Code::Retry as u8);
        let is_revised = answers.iter().any(is_done) || asks.iter().any(|ask| matches!(ask, Ask::Delete(_)));
        let reads_at = is_revised.then(|| first + asks.len() as u64);
        for ((ordinal, ask), answer) in (first..).zip(&asks).zip(answers) {
            let seen = match (ask, &answer) {
                (Ask::Read(_) | Ask::ReadOwn, _) => reads_at,
                _ => None,
            };
            if let Some(seen) = seen {
                late.push((seen, ordinal, ask.clone(), answer));
                continue;
            }
            if let Ask::Delete(at) = ask {
                deletes.push((*at, matches!(answer, Answer::Missing(_))));
            }
            let checked = self.answer(ordinal, ask, answer, is_repeated, totals);
            checked.map_err(|what| format!("client {}, request {ordinal}, {ask:?}: {what}", self.id))?;
        }
        // A delete that found no room is done behind the others, so it sees writes of the frame that came after it.
        for (at, is_missing) in deletes {
            let Write { ordinal, outcome, .. } = self.writes[at];
            if let WriteOutcome::Done(sequence) = outcome
                && self.own_before(sequence).is_some() == is_missing
            {
                return Err(format!(
                    "client {}, delete {ordinal}: its key was missing: {is_missing}",
                    self.id
                ));
            }
        }
        for (end, ordinal, ask, answer) in late {
            let checked = self.answer(end, &ask, answer.clone(), is_repeated, totals);
            let checked = checked.or_else(|_| self.answer(ordinal, &ask, answer, is_repeated, totals));
            checked
                .map_err(|what| format!("client {}, after request {ordinal}, {ask:?}: {what}", self.id))?;
        }
        Ok(true)
    }

    fn answer(
        &mut self,
        ordinal: u64,
        ask: &Ask,
        answer: Answer,
        is_repeated: bool,
        totals: &mut Totals,
    ) -> Outcome {
        if let Answer::Error(code) = &answer
            && *code == Code::Retry as u8
        {
            totals.retries += 1;
            // Reads of a snapshot that was lost with an earlier leader, or never opened, get this answer too.
            let is_of_lost = matches!(ask, Ask::ReadSnapshot(number, _) | Ask::Transaction(_, number) if self.snapshots.get(number).is_none_or(|snapshot| snapshot.is_lost));
            if !is_repeated && !is_of_lost {
                return Err("a request must be made again, though nothing was sent again".to_owned());
            }
        }
        match (ask, answer) {
            (
                Ask::Write(at) | Ask::Delete(at) | Ask::Transaction(at, _),
                Answer::Ok(receipt) | Answer::Missing(receipt),
            ) => {
                let mut reader = Reader::new(&receipt);
                let sequence = reader.u64().map_err(|Truncated| "a receipt is short")?;
                let level = reader.u32().map_err(|Truncated| "a receipt is short")?;
                let write = &mut self.writes[*at];
                if level < write.level as u32 && level != 1 {
                    return Err(format!("reached {level}, not {:?}", write.level));
                }
                write.outcome = WriteOutcome::Done(sequence);
                totals.writes += 1;
                totals.repeated += u64::from(is_repeated);
                match ask {
                    Ask::Transaction(_, number) => self.check_transaction(*number, sequence, totals),
                    _ => Ok(()),
                }
            }
            (Ask::Transaction(at, _), Answer::Conflict(..)) => {
                self.writes[*at].outcome = WriteOutcome::Refused;
                totals.conflicts += 1;
                Ok(())
            }
            (Ask::Write(at) | Ask::Delete(at) | Ask::Transaction(at, _), Answer::Error(code)) => {
                let known = [Code::StorageFull, Code::Retry].map(|code| code as u8);
                if !known.contains(&code) {
                    return Err(format!("refused with code {code}"));
                }
                self.writes[*at].outcome = WriteOutcome::Refused;
                totals.refused += 1;
                Ok(())
            }
            (Ask::Read(of), answer) => {
                let sets = |write: &&Write| write.ordinal == *of && !write.is_delete && write.is_there();
                let is_there = *of < ordinal && self.writes.iter().any(|write| sets(&write));
                self.compare(is_there.then_some(*of), &answer)
            }
            (Ask::ReadOwn, answer) => {
                let last = self.own_where(|write, _| write.ordinal < ordinal);
                self.compare(last, &answer)
            }
            (Ask::Snapshot(number), Answer::Ok(read_point)) => {
                let mut reader = Reader::new(&read_point);
                let mut word = || reader.u64().map_err(|Truncated| "a read point is short");
                let read_point = [word()?, word()?];
                self.snapshots
                    .insert(*number, OpenSnapshot { read_point, is_lost: false, seen: BTreeMap::new() });
                Ok(())
            }
            (Ask::ReadSnapshot(number, key), answer) => {
                let found = match answer {
                    Answer::Ok(found) => Some(found),
                    Answer::Missing(_) => None,
                    // A snapshot that was not opened, or not again.
                    _ if self.snapshots.get(number).is_none_or(|snapshot| snapshot.is_lost) => return Ok(()),
                    _ => return Err("a snapshot is not there".to_owned()),
                };
                let Some(snapshot) = self.snapshots.get_mut(number).filter(|snapshot| !snapshot.is_lost)
                else {
                    return Ok(());
                };
                let seen = snapshot.seen.entry(key.clone()).or_insert_with(|| found.clone());
                if *seen == found {
                    Ok(())
                } else {
                    Err(format!("a snapshot saw {seen:?}, and now {found:?}"))
                }
            }
            (Ask::Close(number), Answer::Ok(_)) => {
                self.snapshots.remove(number);
                Ok(())
            }
            (Ask::Snapshot(_), Answer::Error(code)) if code == Code::Retry as u8 => Ok(()),
            _ => Err("an answer of another kind".to_owned()),
        }
    }

    /// Checks that nothing changed the client's key between the snapshot of a transaction and its commit, whose last sequence is given.
    fn check_transaction(&self, number: u8, commit: u64, totals: &mut Totals) -> Outcome {
        // If an earlier leader did it and its answers were lost, the snapshot may not be opened again to say what it saw.
        let Some(snapshot) = self.snapshots.get(&number) else { return Ok(()) };
        let [since, _] = snapshot.read_point;
        let missed = self.changes_of_own().find(|(last, _)| (since + 1..commit).contains(last));
        totals.transactions += 1;
        match missed {
            None => Ok(()),
            Some((last, write)) => Err(format!(
                "it committed, though its key was written by request {} at {last}, after its snapshot at {since}",
                write.ordinal
            )),
        }
    }

    /// The writes of the client's key that were done, with their last sequences.
    fn changes_of_own(&self) -> impl Iterator<Item = (u64, &Write)> {
        let writes = self.writes.iter().filter(|write| write.is_delete || write.operations > 1);
        writes.filter_map(|write| match write.outcome {
            WriteOutcome::Done(last) => Some((last, write)),
            _ => None,
        })
    }

    /// The ordinal of the write that set the client's key before a sequence, if it was not deleted since.
    fn own_before(&self, sequence: u64) -> Option<u64> {
        self.own_where(|_, last| last < sequence)
    }

    /// The ordinal of the write that set the client's key, after the given writes; they get their last sequences.
    fn own_where(&self, is_before: impl Fn(&Write, u64) -> bool) -> Option<u64> {
        let done = self.changes_of_own().filter(|(last, write)| is_before(write, *last));
        let (_, last) = done.max_by_key(|(last, _)| *last)?;
        (!last.is_delete).then_some(last.ordinal)
    }

    /// A read that begins with the ordinal of a write.
    fn compare(&self, wanted: Option<u64>, answer: &Answer) -> Outcome {
        let found = match answer {
            Answer::Ok(value) => value.get(..8).map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes)),
            Answer::Missing(_) => None,
            // Its condition used data that is not there any more.
            Answer::Error(code) if *code == Code::Retry as u8 => return Ok(()),
            _ => return Err("a read failed".to_owned()),
        };
        if found == wanted { Ok(()) } else { Err(format!("read {found:?}, not {wanted:?}")) }
    }

    /// Another leader is there: opens the snapshots again that are known to be open, and keeps the rest to be sent again.
    pub(super) fn restore(&mut self, store: &mut SimStore, totals: &mut Totals) -> Outcome {
        for sent in &mut self.frames {
            sent.response = None;
            sent.is_repeated = true;
        }
        for number in self.snapshots.keys().copied().collect::<Vec<_>>() {
            let mut frame = header(self.id, self.answered(), 1).to_vec();
            let request = self.request(self.asked);
            let read_point = self.snapshots[&number].read_point.map(u64::to_le_bytes).concat();
            put(&mut frame, request as usize, (Operation::SnapshotRestore, 0, number), &[], &read_point);
            let answers = self.ask_now(store, &frame, request)?;
            let is_restored = match answers.first() {
                Some(Answer::Ok(again)) if *again == read_point => true,
                Some(Answer::Error(code)) if *code == Code::Retry as u8 => false,
                _ => return Err("a snapshot is not opened again, for no known reason".to_owned()),
            };
            totals.restored += u64::from(is_restored);
            if let Some(snapshot) = self.snapshots.get_mut(&number) {
                snapshot.is_lost |= !is_restored;
            }
        }
        Ok(())
    }

    /// Reports that all its requests have their answers.
    pub(super) fn acknowledge(&mut self, store: &mut SimStore) -> Outcome {
        let request = self.request(self.asked);
        let mut frame = header(self.id, request, 1).to_vec();
        put(&mut frame, request as usize, (Operation::Get, 0, 0), b"x", &[]);
        self.ask_now(store, &frame, request).map(|_| ())
    }

    fn ask_now(&self, store: &mut SimStore, frame: &[u8], request: u32) -> Outcome<Vec<Answer>> {
        let mut response = Vec::new();
        run(store, frame, &mut response).map_err(|error| format!("a frame was refused whole: {error}"))?;
        decode_from(&response, request).map_err(|Truncated| "a response does not decode".to_owned())
    }
}

impl Write {
    pub(super) fn is_there(&self) -> bool {
        matches!(self.outcome, WriteOutcome::Done(_))
    }
}
