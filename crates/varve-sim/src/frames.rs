//! Operations through the frame protocol, as the page sends them: each change a request of its own or all of them one
//! batch, and reads between them.
//!
//! Invariant under test: a write that the response acknowledges is in the history at the sequence in that response. A
//! refused write is not in the history. Reads of a frame without a refusal see the writes of the frame before them. A delete that asks
//! whether its key was there gets the answer of the history before it.

use varve::codec::reader::{Reader, Truncated};
use varve::frame::{FRAME_MAGIC, Operation, header, run};
use varve::options::Durability;
use varve::{Code, Error};

use crate::change::{Change, Group};
use crate::session::{Outcome, Session};
use crate::trace::Op;

const OK: u8 = 0;
const MISSING: u8 = 1;

/// The report of a response about one request.
#[derive(Clone)]
pub(crate) enum Answer {
    Ok(Vec<u8>),
    /// Of a delete that asked for its key: the receipt.
    Missing(Vec<u8>),
    Error(u8),
    /// The sequence found and the key.
    Conflict(u64, Vec<u8>),
}

impl Session<'_> {
    /// Sends a frame: the changes, and a read of each change's key behind it.
    pub(crate) fn frame(&mut self, op: &Op, changes: &[Change], batch: bool, level: Durability) -> Outcome {
        // Without this, data that was staged outside a frame would be committed along with it.
        if !self.commit_staged()? {
            return Ok(());
        }
        let changes = &framed(changes, self.store()?.now_ms());
        let groups: Vec<&[Change]> = if batch { vec![changes] } else { changes.chunks(1).collect() };
        let now_ms = self.store()?.now_ms();
        let frame = encode(&groups, level, now_ms);
        let (must_delete, before) = (self.has_reserve()?, self.store()?.last_sequence());
        let answers = self.run_frame(op, &frame)?;
        if answers.len() != 2 * groups.len() {
            return Err(format!("{op}: {} requests got {} answers", 2 * groups.len(), answers.len()));
        }
        let reached = self.reached(level)?;
        let mut written: Vec<(u64, &[Change])> = Vec::new();
        let mut existed: Vec<(u64, bool)> = Vec::new();
        let mut refusal = None;
        let mut unknown: Vec<(u8, &[Change])> = Vec::new();
        for (number, (group, answer)) in groups.iter().zip(answers.iter().step_by(2)).enumerate() {
            match answer {
                Answer::Ok(receipt) => {
                    let sequence = sequence_of(op, receipt, reached)?;
                    written.push((sequence, group));
                    if asks(number, group) {
                        existed.push((sequence, true));
                    }
                }
                Answer::Missing(receipt) if asks(number, group) => {
                    let sequence = sequence_of(op, receipt, reached)?;
                    written.push((sequence, group));
                    existed.push((sequence, false));
                }
                Answer::Missing(_) | Answer::Conflict(..) => {
                    return Err(format!("{op}: a write was answered with missing or a conflict"));
                }
                Answer::Error(code) => {
                    let is_set = |change: &Change| matches!(change, Change::Set(..) | Change::SetUntil(..));
                    let only_deletes = !group.iter().any(is_set);
                    if *code == Code::StorageFull as u8 && only_deletes && must_delete && !self.disk.is_dead()
                    {
                        return Err(format!("{op}: a delete was refused though its reserve is whole"));
                    }
                    let in_doubt = [Code::Io as u8, Code::Poisoned as u8].contains(code);
                    if in_doubt {
                        unknown.push((*code, group));
                    }
                    refusal = Some(*code);
                }
            }
        }
        self.compare_existed(op, &written, &existed)?;
        self.record_frame(op, before, written, unknown, reached)?;
        match refusal {
            None => self.compare_reads(op, &groups, &answers),
            Some(code) if code == Code::StorageFull as u8 => self.excuse(op, Error::StorageFull),
            Some(code) if code == Code::Poisoned as u8 => self.excuse(op, Error::Poisoned),
            Some(code) if code == Code::Io as u8 => self.excuse(op, Error::Io("in a frame")),
            Some(code) => Err(format!("{op}: a write was refused with code {code}")),
        }
    }

    /// Runs a frame as a host does: as a whole, or where reads wait one request after the other, each until no bytes are missing.
    pub(crate) fn run_frame(&mut self, op: &Op, frame: &[u8]) -> Outcome<Vec<Answer>> {
        let refused = |error: Error| format!("{op}: a frame was refused whole: {error}");
        let undecoded = |Truncated| format!("{op}: the response does not decode");
        let mut response = Vec::new();
        if !self.trace.waits {
            run(self.store()?, frame, &mut response).map_err(refused)?;
            self.observed.bytes(&response);
            return decode(&response).map_err(undecoded);
        }
        let mut answers = Vec::new();
        for (number, request) in requests(frame).map_err(undecoded)?.into_iter().enumerate() {
            let frame = [&header(0, 0, 1)[..], request].concat();
            let ran = self.make(|store| {
                run(store, &frame, &mut response)?;
                match decode_from(&response, number as u32).map(|mut answers| answers.pop()) {
                    Ok(Some(Answer::Error(code))) if code == Code::Pending as u8 => Err(Error::Pending),
                    Ok(Some(Answer::Error(code))) if code == Code::StorageFull as u8 => {
                        Err(Error::StorageFull)
                    }
                    answer => Ok(answer),
                }
            })?;
            self.observed.bytes(&response);
            answers.extend(match ran {
                Err(Error::StorageFull) => Some(Answer::Error(Code::StorageFull as u8)),
                ran => ran.map_err(refused)?.map_err(undecoded)?,
            });
        }
        Ok(answers)
    }

    /// Reports to the oracle which changes of a frame happened, and which may have.
    pub(crate) fn record_frame(
        &mut self,
        op: &Op,
        before: u64,
        mut written: Vec<(u64, &[Change])>,
        unknown: Vec<(u8, &[Change])>,
        reached: Durability,
    ) -> Outcome {
        written.sort_by_key(|(last, _)| *last);
        let mut at = before;
        for &(last, group) in &written {
            if last != at + group.len() as u64 {
                return Err(format!("{op}: {} changes after sequence {at} got sequence {last}", group.len()));
            }
            self.model.stage(Group { changes: group.to_vec(), first_sequence: at + 1 });
            at = last;
        }
        if !written.is_empty() {
            self.acknowledge(reached);
        }
        if self.is_in_doubt()? {
            let failed = |code| code == Code::Io as u8;
            self.model
                .doubt(unknown.into_iter().map(|(code, group)| (failed(code), group.to_vec())).collect());
        } else if self.store()?.last_sequence() != at {
            let found = self.store()?.last_sequence();
            return Err(format!("{op}: answered up to sequence {at}, and the store is at {found}"));
        }
        Ok(())
    }

    /// Compares what deletes found with the state before them, in the order of the sequences: `existed` has those that asked, by sequence.
    fn compare_existed(&mut self, op: &Op, written: &[(u64, &[Change])], existed: &[(u64, bool)]) -> Outcome {
        if existed.is_empty() || self.disk.is_dead() {
            return Ok(());
        }
        let now_ms = self.store()?.now_ms();
        let mut state = self.model.state_at(now_ms);
        let mut written = written.to_vec();
        written.sort_by_key(|(last, _)| *last);
        for (last, group) in written {
            let found = existed.iter().find(|(sequence, _)| *sequence == last);
            if found.is_some_and(|(_, found)| *found != state.contains_key(key_of(group))) {
                return Err(format!("{op}: a delete did not report whether its key was there"));
            }
            Group { changes: group.to_vec(), first_sequence: last + 1 - group.len() as u64 }
                .apply(&mut state);
            if let [Change::SetUntil(key, _, at)] = group
                && *at <= now_ms
            {
                state.remove(key);
            }
        }
        Ok(())
    }

    /// Every read of a frame comes right behind the write of its key. Where a delete had to be tried again on a full disk,
    /// reads were answered again after the commit: they may see writes of the frame that came after them.
    fn compare_reads(&mut self, op: &Op, groups: &[&[Change]], answers: &[Answer]) -> Outcome {
        for (group, answer) in groups.iter().zip(answers.iter().skip(1).step_by(2)) {
            let wanted = match group.last() {
                Some(Change::Set(_, value)) => Some(value),
                Some(Change::SetUntil(_, value, at)) if *at > self.store()?.now_ms() => Some(value),
                _ => None,
            };
            let agrees = match (wanted, answer) {
                (Some(value), Answer::Ok(found)) => value == found,
                (None, Answer::Missing(_)) => true,
                // A range may end before it begins, and any key may be its first.
                (None, Answer::Ok(_)) => {
                    matches!(group.last(), Some(Change::DeleteRange(start, Some(end))) if start >= end)
                }
                _ => self.disk.is_dead(),
            };
            let key = key_of(group);
            let agrees_later = match (self.model.state().get(key), answer) {
                (Some((value, _)), Answer::Ok(found)) => value == found,
                (None, Answer::Missing(_)) => true,
                _ => false,
            };
            if !agrees && !agrees_later {
                return Err(format!("{op}: a read did not see the write before it"));
            }
        }
        Ok(())
    }
}

pub(crate) fn sequence_of(op: &Op, receipt: &[u8], reached: Durability) -> Outcome<u64> {
    let mut reader = Reader::new(receipt);
    let mut parse = || Ok((reader.u64()?, reader.u32()?));
    let (sequence, level) = parse().map_err(|Truncated| format!("{op}: a receipt does not decode"))?;
    if level != reached as u32 {
        return Err(format!("{op}: reached {level}, not {reached:?}"));
    }
    Ok(sequence)
}

/// Changes in the form that a frame allows: a lifetime begins when it runs, so nothing expires before that.
pub(crate) fn framed(changes: &[Change], now_ms: u64) -> Vec<Change> {
    let mut framed = changes.to_vec();
    for change in &mut framed {
        if let Change::SetUntil(_, _, at) = change {
            *at = now_ms.max(*at);
        }
    }
    framed
}

/// The key of a group's last change.
fn key_of(group: &[Change]) -> &[u8] {
    match &group[group.len() - 1] {
        Change::Set(key, _)
        | Change::SetUntil(key, ..)
        | Change::Delete(key)
        | Change::DeleteRange(key, _) => key,
    }
}

/// Whether a group of a frame is a delete that asks for its key: every other one does.
fn asks(number: usize, group: &[Change]) -> bool {
    number % 2 == 1 && matches!(group, [Change::Delete(_)])
}

pub(crate) fn encode(groups: &[&[Change]], level: Durability, now_ms: u64) -> Vec<u8> {
    let mut frame = header(0, 0, 2 * groups.len() as u32).to_vec();
    for (number, group) in groups.iter().enumerate() {
        let (operation, key, value) = match group {
            [Change::Set(key, value)] => (Operation::Set, &key[..], value.clone()),
            [Change::Delete(key)] => (Operation::Delete, &key[..], vec![1; usize::from(asks(number, group))]),
            [Change::DeleteRange(start, end)] => {
                (Operation::DeleteRange, &start[..], end.clone().unwrap_or_default())
            }
            _ => (Operation::Batch, &[][..], batch_of(group, now_ms)),
        };
        put(&mut frame, 2 * number, (operation, level as u8, 0), key, &value);
        put(&mut frame, 2 * number + 1, (Operation::Get, 0, 0), key_of(group), &[]);
    }
    frame
}

/// The bytes of a batch; lifetimes count from `now_ms`.
pub(crate) fn batch_of(changes: &[Change], now_ms: u64) -> Vec<u8> {
    let mut batch = Vec::new();
    put_u32(&mut batch, changes.len());
    for change in changes {
        let lifetime = match change {
            Change::SetUntil(_, _, at) => (at - now_ms).to_le_bytes().to_vec(),
            _ => Vec::new(),
        };
        let (kind, key, value) = match change {
            Change::Delete(key) => (0, key, &[][..]),
            Change::Set(key, value) | Change::SetUntil(key, value, _) => (1, key, &value[..]),
            Change::DeleteRange(start, end) => (2, start, end.as_deref().unwrap_or_default()),
        };
        put_item(&mut batch, [kind, u8::from(!lifetime.is_empty())], key, &[&lifetime[..], value].concat());
    }
    batch
}

/// Appends an item of a batch: its kind and flags, its key, its value.
pub(crate) fn put_item(batch: &mut Vec<u8>, [kind, flags]: [u8; 2], key: &[u8], value: &[u8]) {
    batch.extend_from_slice(&[kind, flags, 0, 0]);
    put_parts(batch, key, value);
}

/// Appends a request: its operation, its level, its snapshot.
pub(crate) fn put(
    frame: &mut Vec<u8>,
    number: usize,
    (operation, level, snapshot): (Operation, u8, u8),
    key: &[u8],
    value: &[u8],
) {
    put_u32(frame, number);
    frame.extend_from_slice(&[operation as u8, level, snapshot, 0]);
    put_parts(frame, key, value);
}

fn put_parts(bytes: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    put_u32(bytes, key.len());
    put_u32(bytes, value.len());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The requests of a frame.
fn requests(frame: &[u8]) -> Result<Vec<&[u8]>, Truncated> {
    const PREFIX_BYTES: usize = 16;
    let mut rest = frame.get(header(0, 0, 0).len()..).ok_or(Truncated)?;
    let mut requests = Vec::new();
    while !rest.is_empty() {
        let mut lengths = Reader::new(rest.get(8..).ok_or(Truncated)?);
        let parts = lengths.u32()? as usize + lengths.u32()? as usize;
        let (request, others) =
            rest.split_at_checked(PREFIX_BYTES + parts.next_multiple_of(4)).ok_or(Truncated)?;
        requests.push(request);
        rest = others;
    }
    Ok(requests)
}

pub(crate) fn put_u32(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&(number as u32).to_le_bytes());
}

pub(crate) fn decode(response: &[u8]) -> Result<Vec<Answer>, Truncated> {
    decode_from(response, 0)
}

/// The answers of a response, to requests from number `first` on.
pub(crate) fn decode_from(response: &[u8], first: u32) -> Result<Vec<Answer>, Truncated> {
    let mut reader = Reader::new(response);
    let (magic, count) = (reader.u32()?, reader.u32()?);
    let mut answers = Vec::new();
    for number in 0..count {
        let (request, status) = (reader.u32()?, reader.u8()?);
        if magic != FRAME_MAGIC || request != first.wrapping_add(number) {
            return Err(Truncated);
        }
        reader.bytes(3)?;
        let length = reader.u32()? as usize;
        reader.u32()?;
        let payload = reader.bytes(length)?.to_vec();
        reader.bytes(length.next_multiple_of(4) - length)?;
        answers.push(match status {
            OK => Answer::Ok(payload),
            MISSING => Answer::Missing(payload),
            _ if payload.first() == Some(&(Code::Conflict as u8)) => {
                let mut reader = Reader::new(&payload);
                reader.u32()?;
                Answer::Conflict(reader.u64()?, reader.bytes(reader.remaining())?.to_vec())
            }
            _ => Answer::Error(payload.first().copied().unwrap_or_default()),
        });
    }
    Ok(answers)
}
