//! Running a frame against a store.
//!
//! Usually a frame runs once: writes are staged, reads see them, and one commit makes all of them as durable as the
//! strictest write asked. If the commit is refused, or a refused write rolled back earlier ones, the staged writes are
//! gone from the store. Then deletes get a second chance in the reserve of a full storage. The frame runs a second time,
//! and now the outcome of each write is known: reads do not see the refused writes.

mod reads;

use std::rc::Rc;

use super::request::{Batch, Frame, Operation, Request, end_of_range, parse, parse_batch};
use super::response::Responses;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::options::{Durability, Receipt};
use crate::storage::Storage;
use crate::store::{Caller, Clock, Name, Op, Store, WriteOutcome};

/// Runs a frame and writes the response frame into `out`.
///
/// # Errors
/// `InvalidArgument` for a malformed frame (nothing ran). All other errors are inside the response frame.
pub fn run<S: Storage>(store: &mut Store<S>, frame: &[u8], out: &mut Vec<u8>) -> Result<()> {
    run_part(store, frame, 0, usize::MAX, out).map(drop)
}

/// Runs the rest of a frame from its request number `from`, as if it were a whole frame, until the response has `bytes_max` bytes. Returns
/// the number of the request to continue from, or 0 when the whole frame is done.
///
/// # Errors
/// As [`run`].
pub fn run_part<S: Storage>(
    store: &mut Store<S>,
    frame: &[u8],
    from: usize,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let Frame { client, answered, requests } = parse(frame)?;
    let requests = requests.get(from..).unwrap_or_default();
    let first = requests.first().map_or(0, |request| request.request);
    let is_repeated = client != 0 && store.note_answered(client, answered, first);
    let mut runner = Runner {
        store,
        client,
        answered,
        is_repeated,
        is_strict: requests.iter().any(|request| asked(request) == Durability::Strict),
        outcomes: vec![Outcome::Open; requests.len()],
        opened: Vec::new(),
        snapshots: Vec::new(),
        dropped: Vec::new(),
        read_points: Vec::new(),
        is_revised: false,
    };
    let done = runner.pass(requests, bytes_max, out);
    let is_whole = done == requests.len();
    let requests = &requests[..done];
    match runner.commit(requests) {
        Ok(()) => runner.retry_deletes(requests),
        Err(error) => runner.after_refused_commit(requests, error),
    }
    if runner.is_revised {
        runner.pass(requests, usize::MAX, out);
    }
    runner.log_read_points(out);
    if is_repeated {
        runner.dropped.push(SNAPSHOT_AT);
    }
    for snapshot in runner.dropped {
        runner.store.close_snapshot(Name { client, number: snapshot });
    }
    Ok(if is_whole { 0 } else { from + done })
}

/// The number of the snapshot for a read at a past sequence. It is above the numbers that clients use.
const SNAPSHOT_AT: u32 = 1 << 16;

/// The outcome of a write.
#[derive(Debug, Clone)]
enum Outcome {
    /// Not tried yet, or not a write.
    Open,
    /// Staged: its last sequence, and whether it is a delete that asked for its key, which was absent.
    Staged(u64, bool),
    /// Refused. Many writes may share one error.
    Failed(Rc<Error>),
    /// A scan has advanced; this is the batch. It could not be read again.
    Continued(Vec<u8>),
}

struct Runner<'a, S: Storage> {
    store: &'a mut Store<S>,
    client: u64,
    answered: u32,
    /// Some of its requests may have been done before.
    is_repeated: bool,
    /// One of its requests is strict, perhaps in a later part. Then everything committed is strict, and is reported as strict.
    is_strict: bool,
    outcomes: Vec<Outcome>,
    /// Cursors that this frame opened: a second pass opens them again.
    opened: Vec<u32>,
    /// Snapshots that this frame took: a second pass takes them again.
    snapshots: Vec<u32>,
    /// Snapshots to close when the frame is done: a second pass reads them again, and a snapshot that it takes must not get their numbers.
    dropped: Vec<u32>,
    /// Offsets in the response of the read points of scans and snapshots.
    read_points: Vec<usize>,
    /// The response reports something about a write that is no longer true.
    is_revised: bool,
}

impl<S: Storage> Runner<'_, S> {
    /// Runs requests until the response is long. Returns how many were run.
    fn pass(&mut self, requests: &[Request<'_>], bytes_max: usize, out: &mut Vec<u8>) -> usize {
        let client = self.client;
        for number in self.opened.drain(..) {
            self.store.close_cursor(Name { client, number });
        }
        for number in self.snapshots.drain(..) {
            self.store.close_snapshot(Name { client, number });
        }
        self.read_points.clear();
        let mut responses = Responses::new(out, requests.len());
        for (at, request) in requests.iter().enumerate() {
            match request.operation {
                Operation::Set
                | Operation::Delete
                | Operation::DeleteRange
                | Operation::Batch
                | Operation::Sync => self.write(at, request, &mut responses),
                _ => {
                    if let Err(error) = self.read(at, request, &mut responses) {
                        responses.error(request.request, &error);
                    }
                }
            }
            if responses.bytes() >= bytes_max {
                responses.count(at + 1);
                return at + 1;
            }
        }
        requests.len()
    }

    /// Stages a write unless its outcome is known, and writes the response that it will have.
    fn write(&mut self, at: usize, request: &Request<'_>, responses: &mut Responses<'_>) {
        if matches!(self.outcomes[at], Outcome::Open) {
            let acknowledged = self.store.acknowledged();
            let staged = ops_of(request, self.store.clock()).and_then(|ops| {
                let ops_of_it = ops.as_slice();
                if self.is_repeated && !ops_of_it.is_empty() {
                    match self.store.outcome_of(self.client, request.request) {
                        WriteOutcome::Done(last, is_absent) => return Ok((last, is_absent)),
                        WriteOutcome::Refused => return Err(Error::Retry),
                        WriteOutcome::Unknown => {}
                    }
                }
                ops.check(self.store, self.name(request.snapshot))?;
                let is_absent = self.is_absent(request)?;
                Ok((self.store.stage_for(self.caller(request, is_absent), ops_of_it)?, is_absent))
            });
            self.outcomes[at] = match staged {
                Ok((sequence, is_absent)) => Outcome::Staged(sequence, is_absent),
                Err(error) => {
                    let error = Rc::new(error);
                    // Making room may have failed and rolled back the earlier staged writes of this frame.
                    self.fail_staged_after(acknowledged, &error);
                    Outcome::Failed(error)
                }
            };
        }
        match &self.outcomes[at] {
            Outcome::Staged(sequence, is_absent) => {
                let durability =
                    if self.store.is_logged() { self.level(request) } else { Durability::Memory };
                responses.receipt(request.request, Receipt { sequence: *sequence, durability }, *is_absent);
            }
            Outcome::Failed(error) => responses.error(request.request, error),
            Outcome::Open | Outcome::Continued(_) => responses.error(request.request, &Error::Closed),
        }
    }

    /// If the store rolled back, writes staged after `acknowledged` are gone: marks them as failed.
    fn fail_staged_after(&mut self, acknowledged: u64, error: &Rc<Error>) {
        let kept = self.store.last_sequence().max(acknowledged);
        self.fail_where(error, |_, sequence| sequence > kept);
    }

    fn commit(&mut self, requests: &[Request<'_>]) -> Result<()> {
        if !self.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Staged(..))) {
            return Ok(());
        }
        let writes =
            requests.iter().zip(&self.outcomes).filter(|(_, outcome)| matches!(outcome, Outcome::Staged(..)));
        let durability = writes.map(|(request, _)| self.level(request)).max().unwrap_or(Durability::Relaxed);
        self.store.commit(durability).map(|_| ())
    }

    /// After a refused commit: writes that an earlier append of this frame had logged remain, the others failed.
    fn after_refused_commit(&mut self, requests: &[Request<'_>], error: Error) {
        self.is_revised = true;
        let kept = self.store.acknowledged();
        self.fail_where(&Rc::new(error), |_, sequence| sequence > kept);
        self.retry_deletes(requests);
        let is_strict = |at: usize| asked(&requests[at]) == Durability::Strict;
        // The remaining writes become as durable as the strictest of them asks.
        self.is_strict =
            (0..requests.len()).any(|at| is_strict(at) && matches!(self.outcomes[at], Outcome::Staged(..)));
        if self.is_strict
            && let Err(error) = self.store.sync()
        {
            self.is_strict = false;
            self.fail_where(&Rc::new(error), |at, _| is_strict(at));
        }
    }

    /// The durability that a write reaches.
    fn level(&self, request: &Request<'_>) -> Durability {
        if self.is_strict { Durability::Strict } else { asked(request) }
    }

    fn fail_where(&mut self, error: &Rc<Error>, is_lost: impl Fn(usize, u64) -> bool) {
        let mut some_lost = false;
        for (at, outcome) in self.outcomes.iter_mut().enumerate() {
            // A conflict after a lost write may be a conflict with that same write, which never happened.
            let lost = match outcome {
                Outcome::Staged(sequence, _) => is_lost(at, *sequence),
                Outcome::Failed(earlier) => some_lost && matches!(**earlier, Error::Conflict(_)),
                _ => false,
            };
            if lost {
                *outcome = Outcome::Failed(error.clone());
                self.is_revised = true;
                some_lost = true;
            }
        }
    }

    fn retry_deletes(&mut self, requests: &[Request<'_>]) {
        for (at, request) in requests.iter().enumerate() {
            if !matches!(&self.outcomes[at], Outcome::Failed(error) if matches!(**error, Error::StorageFull))
            {
                continue;
            }
            let Ok(writes) = ops_of(request, Clock::default()) else { continue };
            let ops = writes.as_slice();
            if ops.is_empty() || !ops.iter().all(Op::is_delete) {
                continue;
            }
            let checked = writes.check(self.store, self.name(request.snapshot));
            let staged = checked.and_then(|()| {
                let is_absent = self.is_absent(request)?;
                self.store.stage_for(self.caller(request, is_absent), ops)?;
                Ok((self.store.commit(self.level(request))?, is_absent))
            });
            match staged {
                Ok((receipt, is_absent)) => self.outcomes[at] = Outcome::Staged(receipt.sequence, is_absent),
                Err(error) => {
                    // A delete that only waits for a file would be committed together with another caller's write.
                    self.store.discard_staged();
                    self.outcomes[at] = Outcome::Failed(Rc::new(error));
                }
            }
            self.is_revised = true;
        }
    }

    /// Whether a delete asks if its key is there, by having a value, and the key is absent.
    fn is_absent(&mut self, request: &Request<'_>) -> Result<bool> {
        let asks = request.operation == Operation::Delete && !request.value.is_empty();
        if !asks || mutant::has(Mutant::AbsentKeysFound) {
            return Ok(false);
        }
        self.store.find(request.key, |entry| entry.is_none())
    }

    fn caller(&self, request: &Request<'_>, is_absent: bool) -> Caller {
        Caller { client: self.client, request: request.request, answered: self.answered, is_absent }
    }

    /// The name of `number` for the frame's client.
    fn name(&self, number: u32) -> Name {
        Name { client: self.client, number }
    }
}

/// The operations of a write. Most writes have one, which needs no allocation.
enum Ops<'a> {
    One(Op<'a>),
    Many(Batch<'a>),
}

impl<'a> Ops<'a> {
    fn as_slice(&self) -> &[Op<'a>] {
        match self {
            Self::One(op) => std::slice::from_ref(op),
            Self::Many(batch) => &batch.ops,
        }
    }

    fn check<S: Storage>(&self, store: &Store<S>, snapshot: Name) -> Result<()> {
        match self {
            Self::One(_) => Ok(()),
            Self::Many(batch) => batch.check(store, snapshot),
        }
    }
}

fn ops_of<'a>(request: &Request<'a>, clock: Clock) -> Result<Ops<'a>> {
    Ok(Ops::One(match request.operation {
        Operation::Set => Op::Set { key: request.key, value: request.value, expires: None },
        Operation::Delete => Op::Delete { key: request.key },
        Operation::DeleteRange => Op::DeleteRange { start: request.key, end: end_of_range(request.value) },
        Operation::Batch => return parse_batch(request.value, clock).map(Ops::Many),
        _ => return Ok(Ops::Many(Batch::default())),
    }))
}

/// The durability that a write asks for; relaxed is the default, and a sync is strict by nature.
fn asked(request: &Request<'_>) -> Durability {
    match request.operation {
        Operation::Sync => Durability::Strict,
        _ => request.durability.unwrap_or(Durability::Relaxed),
    }
}
