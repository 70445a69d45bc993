//! Which writes of which client were carried out, as long as the client may send them again.
//!
//! A client whose leader died sends its unanswered requests again. A write that is known here then gets its response and is not done twice.
//! This knowledge is stored with the write itself: its record in the log carries the client and the request, and the edit of the manifest
//! that installs a flushed memtable carries the outcomes of that memtable's writes. With every frame a client reports which of its requests
//! have their responses; their outcomes are removed.
//!
//! ```text
//! WAL     request: u32 request | u31 requests before it that were not answered << 32 | bit 63: the key that it deletes was absent
//! edit    one item for each outcome: { client, first request | (operations - 1) << 32, last sequence, u8 flags }
//!         flags: bit 0: as many requests of one operation each, not one request; bits 1 to 6: openings since the client spoke;
//!         bit 7: the keys that they delete were absent
//! ```
//!
//! Invariant: an outcome is exactly as durable as its write. Outcomes of a client are in the order of its requests, which are
//! compared as serial numbers (RFC 1982): they wrap.

use super::Store;
use crate::manifest::ClientState;
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::types::Sequence;

/// A client that sends nothing for this many openings is considered gone.
const OPENINGS_MAX: u8 = 16;
/// In the log: the request asked whether the key that it deletes was there, and the key was absent.
const ABSENT: u64 = 1 << 63;
/// The same in the manifest.
const ABSENT_FLAG: u8 = 1 << 7;

/// The client and the request that a write comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// The client; 0 for a caller that cannot ask again.
    pub client: u64,
    /// The client's number for the request.
    pub request: u32,
    /// All its requests before this one have their responses.
    pub answered: u32,
    /// It asks whether the key that it deletes is there, and the key is absent.
    pub is_absent: bool,
}

impl Caller {
    /// The request as a record of the log stores it.
    pub(super) fn logged(self) -> u64 {
        let waiting =
            if is_before(self.answered, self.request) { self.request.wrapping_sub(self.answered) } else { 0 };
        (u64::from(self.request) | u64::from(waiting) << 32) & !ABSENT
            | if self.is_absent { ABSENT } else { 0 }
    }

    /// The caller that such a record stores.
    fn of_record(client: u64, logged: u64) -> Self {
        let request = logged as u32;
        let waiting = ((logged & !ABSENT) >> 32) as u32;
        Self { client, request, answered: request.wrapping_sub(waiting), is_absent: logged & ABSENT != 0 }
    }
}

/// The outcome of a write that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing is known: it was not done.
    Unknown,
    /// It was done: the sequence of its last operation, and whether it is a delete that asked for its key, which was absent.
    Done(Sequence, bool),
    /// It was not done, but a later write of the same client was: so it was refused.
    Refused,
}

/// Requests that were carried out: one, or several of one operation each, their sequences without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    request: u32,
    requests: u32,
    first: Sequence,
    last: Sequence,
    /// The keys that they delete were absent.
    is_absent: bool,
}

impl Outcome {
    /// The index of `request` among its requests, if it is one of them.
    fn index_of(&self, request: u32) -> Option<u32> {
        Some(request.wrapping_sub(self.request)).filter(|index| *index < self.requests)
    }

    /// The first sequence of its request number `index`.
    fn first_of(&self, index: u32) -> Sequence {
        if self.requests > 1 { self.first + Sequence::from(index) } else { self.first }
    }

    /// Whether this request, done directly after it, can be added to it.
    fn goes_on(&self, Caller { request, is_absent, .. }: Caller, first: Sequence, last: Sequence) -> bool {
        let is_plain = self.last - self.first + 1 == Sequence::from(self.requests);
        is_plain
            && first == last
            && first == self.last + 1
            && request == self.request.wrapping_add(self.requests)
            && is_absent == self.is_absent
    }
}

#[derive(Debug)]
struct Client {
    id: u64,
    outcomes: Vec<Outcome>,
    /// Openings since it last sent a frame.
    silent: u8,
}

impl Client {
    fn new(id: u64) -> Self {
        Self { id, outcomes: Vec::new(), silent: 0 }
    }

    /// Forgets requests before `answered`.
    fn prune(&mut self, answered: u32) {
        if mutant::has(Mutant::OutcomesKeptForever) {
            return;
        }
        let is_over =
            |outcome: &Outcome| !is_before(answered, outcome.request.wrapping_add(outcome.requests));
        let over = self.outcomes.iter().take_while(|outcome| is_over(outcome)).count();
        self.outcomes.drain(..over);
        if let Some(outcome) = self.outcomes.first_mut()
            && outcome.requests > 1
            && is_before(outcome.request, answered)
        {
            let over = answered.wrapping_sub(outcome.request);
            outcome.request = answered;
            outcome.requests -= over;
            outcome.first += Sequence::from(over);
        }
    }

    fn add(&mut self, caller: Caller, first: Sequence, last: Sequence) {
        if let Some(outcome) = self.outcomes.last_mut()
            && outcome.goes_on(caller, first, last)
        {
            outcome.requests += 1;
            outcome.last = last;
            return;
        }
        // Nearly always the end: only deletes that found no room and went to the reserve come late.
        let Caller { request, is_absent, .. } = caller;
        self.outcomes.insert(self.after(request), Outcome { request, requests: 1, first, last, is_absent });
    }

    /// The index of the first outcome that begins after a request.
    fn after(&self, request: u32) -> usize {
        self.outcomes.partition_point(|outcome| !is_before(request, outcome.request))
    }

    fn outcome(&self, request: u32) -> WriteOutcome {
        let after = self.after(request);
        let found = after.checked_sub(1).and_then(|at| {
            let outcome = &self.outcomes[at];
            let last = |index| if outcome.requests > 1 { outcome.first_of(index) } else { outcome.last };
            outcome.index_of(request).map(|index| WriteOutcome::Done(last(index), outcome.is_absent))
        });
        match found {
            Some(done) => done,
            None if after < self.outcomes.len() => WriteOutcome::Refused,
            None => WriteOutcome::Unknown,
        }
    }

    /// The first sequence of the writes of later requests. A delete that went to the reserve has a later one than those behind it.
    fn next_sequence(&self, request: u32) -> Option<Sequence> {
        let after = self.after(request);
        let within = after.checked_sub(1).and_then(|at| {
            let outcome = &self.outcomes[at];
            let next = request.wrapping_add(1);
            outcome.index_of(next).map(|index| outcome.first_of(index))
        });
        within.into_iter().chain(self.outcomes[after..].iter().map(|outcome| outcome.first)).min()
    }

    /// Removes the outcomes of writes after `last`.
    fn roll_back(&mut self, last: Sequence) {
        self.outcomes.retain_mut(|outcome| {
            if outcome.last > last && outcome.first <= last {
                outcome.requests -= (outcome.last - last) as u32;
                outcome.last = last;
            }
            outcome.last <= last
        });
    }
}

/// The clients that may send requests again.
#[derive(Debug, Default)]
pub(super) struct Clients {
    known: Vec<Client>,
}

impl Clients {
    /// The clients that an earlier process left in the manifest.
    pub(super) fn of_manifest(states: &[ClientState]) -> Self {
        let mut clients = Self::default();
        for state in states {
            let silent = ((state.flags & !ABSENT_FLAG) >> 1) + 1;
            if silent > OPENINGS_MAX {
                continue;
            }
            let more = state.request >> 32;
            let outcome = Outcome {
                request: state.request as u32,
                requests: if state.flags & 1 == 0 { 1 } else { (more as u32).saturating_add(1) },
                first: state.sequence.saturating_sub(more),
                last: state.sequence,
                is_absent: state.flags & ABSENT_FLAG != 0,
            };
            let client = clients.of(state.client);
            client.silent = silent;
            client.outcomes.push(outcome);
        }
        clients
    }

    /// Adds the outcome of a record of the log.
    pub(super) fn replay(&mut self, client: u64, logged: u64, first: Sequence, count: u64) {
        if client == 0 || count == 0 || mutant::has(Mutant::OutcomesNotReplayed) {
            return;
        }
        let caller = Caller::of_record(client, logged);
        let client = self.of(client);
        client.prune(caller.answered);
        client.add(caller, first, first + count - 1);
    }

    /// Their states for the manifest, for an edit after which all writes up to `last` are in tables.
    pub(super) fn states(&self, last: Sequence) -> Vec<ClientState> {
        let mut states = Vec::new();
        if mutant::has(Mutant::OutcomesNotCarried) {
            return states;
        }
        for client in &self.known {
            for outcome in client.outcomes.iter().filter(|outcome| outcome.first <= last) {
                // A memtable may end within a run.
                let end = outcome.last.min(last);
                states.push(ClientState {
                    client: client.id,
                    request: u64::from(outcome.request) | (end - outcome.first) << 32,
                    sequence: end,
                    flags: client.silent << 1
                        | u8::from(outcome.requests > 1)
                        | if outcome.is_absent { ABSENT_FLAG } else { 0 },
                });
            }
        }
        states
    }

    pub(super) fn note(&mut self, caller: Caller, first: Sequence, last: Sequence) {
        self.of(caller.client).add(caller, first, last);
    }

    pub(super) fn roll_back(&mut self, last: Sequence) {
        if mutant::has(Mutant::OutcomesOfRefusedKept) {
            return;
        }
        self.known.iter_mut().for_each(|client| client.roll_back(last));
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.known.retain(|client| client.id != id);
    }

    /// Takes over what another store of this process knew: how long ago each client last sent a frame.
    pub(super) fn adopt(&mut self, former: &Self) {
        for client in &mut self.known {
            if let Some(spoke) = former.get(client.id) {
                client.silent = spoke.silent;
            }
        }
    }

    fn get(&self, id: u64) -> Option<&Client> {
        self.known.iter().find(|client| client.id == id)
    }

    fn of(&mut self, id: u64) -> &mut Client {
        let at = self.known.iter().position(|client| client.id == id).unwrap_or_else(|| {
            self.known.push(Client::new(id));
            self.known.len() - 1
        });
        &mut self.known[at]
    }
}

impl<S: Storage> Store<S> {
    /// Notes a frame of a client: its requests before `answered` have their responses. Returns whether any of its
    /// requests from `request` on may have been carried out already.
    pub(crate) fn note_answered(&mut self, client: u64, answered: u32, request: u32) -> bool {
        let Some(client) = self.clients.known.iter_mut().find(|known| known.id == client) else {
            return false;
        };
        client.silent = 0;
        client.prune(answered);
        client
            .outcomes
            .last()
            .is_some_and(|last| is_before(request, last.request.wrapping_add(last.requests)))
    }

    /// The outcome of a write that a client asks for.
    pub fn outcome_of(&self, client: u64, request: u32) -> WriteOutcome {
        match self.clients.get(client) {
            Some(_) if mutant::has(Mutant::OutcomesIgnored) => WriteOutcome::Unknown,
            Some(client) => client.outcome(request),
            None => WriteOutcome::Unknown,
        }
    }

    /// The sequence at which a client's read must see the store, if later writes of that client were carried out already; `None` when there
    /// are no such writes.
    pub(crate) fn sequence_before(&self, client: u64, request: u32) -> Option<Sequence> {
        if mutant::has(Mutant::ReadsOfThePresent) {
            return None;
        }
        let client = self.clients.get(client)?;
        let before = client.outcomes[..client.after(request)].iter().map(|outcome| outcome.last).max();
        // A delete of an earlier request that went to the reserve is seen, even if writes of later requests were done before it.
        Some((client.next_sequence(request)? - 1).max(before.unwrap_or(0)))
    }

    /// How many outcomes are kept for clients, for tests and statistics.
    pub fn outcomes(&self) -> usize {
        self.clients.known.iter().map(|client| client.outcomes.len()).sum()
    }
}

/// Whether one serial number comes before another one.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE_WRAP: u32 = u32::MAX - 1;

    fn client(outcomes: &[(u32, Sequence, Sequence)]) -> Client {
        let mut client = Client::new(7);
        for &(request, first, last) in outcomes {
            client.add(Caller { client: 7, request, ..Caller::default() }, first, last);
        }
        client
    }

    #[test]
    fn single_writes_in_a_row_are_one_outcome_and_each_is_found() {
        let mut client =
            client(&[(BEFORE_WRAP, 5, 5), (u32::MAX, 6, 6), (0, 7, 7), (1, 8, 8), (3, 9, 9), (4, 10, 12)]);
        assert_eq!(client.outcomes.len(), 3);
        let outcomes = |client: &Client| {
            [BEFORE_WRAP, u32::MAX, 0, 1, 2, 3, 4, 5].map(|request| client.outcome(request))
        };
        let done = |last| WriteOutcome::Done(last, false);
        let all = [
            done(5),
            done(6),
            done(7),
            done(8),
            WriteOutcome::Refused,
            done(9),
            done(12),
            WriteOutcome::Unknown,
        ];
        assert_eq!(outcomes(&client), all);
        let next =
            [BEFORE_WRAP - 1, BEFORE_WRAP, u32::MAX, 1, 2, 3, 4].map(|request| client.next_sequence(request));
        assert_eq!(next, [Some(5), Some(6), Some(7), Some(9), Some(9), Some(10), None]);
        client.prune(0);
        assert_eq!((client.outcome(0), client.outcome(1), client.outcomes.len()), (done(7), done(8), 3));
        client.roll_back(9);
        assert_eq!((client.outcome(3), client.outcome(4)), (done(9), WriteOutcome::Unknown));
        client.roll_back(7);
        assert_eq!((client.outcome(0), client.outcome(1)), (done(7), WriteOutcome::Unknown));
        client.prune(2);
        assert_eq!(client.outcomes, []);
    }

    #[test]
    fn a_write_that_came_late_is_found_in_its_place() {
        let client = client(&[(1, 1, 1), (4, 2, 2), (5, 3, 3), (2, 4, 6)]);
        let found = [1, 2, 3, 4, 5, 6].map(|request| client.outcome(request));
        let wanted = [
            WriteOutcome::Done(1, false),
            WriteOutcome::Done(6, false),
            WriteOutcome::Refused,
            WriteOutcome::Done(2, false),
            WriteOutcome::Done(3, false),
            WriteOutcome::Unknown,
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn outcomes_that_the_manifest_keeps_come_back_and_end_where_the_tables_end() {
        let mut clients = Clients { known: vec![client(&[(1, 1, 1), (2, 2, 2), (3, 3, 3), (9, 4, 8)])] };
        let kept = |clients: &Clients, last| Clients::of_manifest(&clients.states(last));
        assert_eq!(kept(&clients, 8).known[0].outcomes, clients.known[0].outcomes);
        assert_eq!(kept(&clients, 0).known.len(), 0);
        let cut = kept(&clients, 2);
        assert_eq!(
            [1, 2, 3].map(|request| cut.known[0].outcome(request)),
            [WriteOutcome::Done(1, false), WriteOutcome::Done(2, false), WriteOutcome::Unknown]
        );
        for _ in 0..OPENINGS_MAX {
            clients = kept(&clients, 8);
            assert_eq!(clients.known.len(), 1);
        }
        assert_eq!(kept(&clients, 8).known.len(), 0, "it sent nothing for too long");
    }

    #[test]
    fn the_log_says_how_many_requests_wait() {
        for is_absent in [true, false] {
            let caller = Caller { client: 7, request: 1, answered: BEFORE_WRAP, is_absent };
            assert_eq!(Caller::of_record(7, caller.logged()), caller);
        }
        let mut clients = Clients::default();
        for (request, answered) in [(1, 1), (2, 1), (3, 3)] {
            let logged = Caller { client: 7, request, answered, is_absent: false }.logged();
            clients.replay(7, logged, u64::from(request) * 10, 2);
        }
        assert_eq!(
            clients.known[0].outcomes,
            [Outcome { request: 3, requests: 1, first: 30, last: 31, is_absent: false }]
        );
    }

    #[test]
    fn deletes_of_absent_keys_are_kept_apart_from_other_requests_also_in_the_manifest() {
        let mut client = Client::new(7);
        let found = [false, true, true, false];
        for (request, is_absent) in (1..).zip(found) {
            let sequence = Sequence::from(request);
            client.add(Caller { client: 7, request, answered: 1, is_absent }, sequence, sequence);
        }
        assert_eq!(client.outcomes.len(), 3);
        let clients = Clients { known: vec![client] };
        let kept = Clients::of_manifest(&clients.states(4));
        assert_eq!(kept.known[0].silent, 1);
        for (request, is_absent) in (1..).zip(found) {
            let done = WriteOutcome::Done(Sequence::from(request), is_absent);
            assert_eq!(kept.known[0].outcome(request), done);
        }
    }
}
