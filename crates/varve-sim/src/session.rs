//! A store, its disk and its oracle, and what each operation does to all three.
//!
//! Invariant: between operations the store is open, and returns what the model's state contains. If the outcome of an operation is
//! unknown (the machine died in it, or the store was poisoned by it), it is resolved before the next one, by recovering and asking
//! the oracle which of the possible histories came true.

use std::collections::VecDeque;

use varve::Error;
use varve::options::Durability;

use crate::change::{Group, store_op};
use crate::compactor::{Compactor, SimStore};
use crate::disk::Disk;
use crate::keys::{change_keys, look_for_values};
use crate::model::{Loss, Model};
use crate::rng::Rng;
use crate::run::Observed;
use crate::scan::{Expectation, ScanError};
use crate::snapshots::OpenSnapshot;
use crate::trace::{Crash, Op, Trace};
use crate::transactions::Read;
use crate::waiting::Fetcher;
use crate::workload::START_MS;

/// Cursors open at once; the oldest is closed.
const CURSORS_MAX: usize = 8;
/// On a disk whose reads wait, so many of a hundred reads do.
const WAITING_PERCENT: u64 = 30;
/// Attempts after which a call counts as one that never ends.
const ATTEMPTS_MAX: u32 = 100_000;

/// A failure in words.
pub type Outcome<T = ()> = Result<T, String>;

/// One run in progress.
pub struct Session<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) observed: &'a mut Observed,
    pub(crate) disk: Disk,
    pub(crate) model: Model,
    pub(crate) store: Option<SimStore>,
    pub(crate) cursors: VecDeque<Expectation>,
    pub(crate) snapshots: VecDeque<OpenSnapshot>,
    pub(crate) compactor: Option<Compactor>,
    /// The event when the fuse burns.
    pub(crate) fuse: Crash,
    /// Groups up to here were committed at some level: no refusal may undo them.
    pub(crate) committed: usize,
    /// Whether the next opening has a log.
    pub(crate) log: bool,
    pub(crate) openings: u64,
    pub(crate) now_ms: u64,
    /// Faults that make `Io` and `StorageFull` excusable since the store was opened.
    pub(crate) faults: bool,
    /// One of them was not a quota: then the reserve of a full disk proves nothing.
    pub(crate) is_faulty: bool,
    /// The position of a reader of the change feed, which outlives the store.
    pub(crate) read_until: u64,
}

impl<'a> Session<'a> {
    /// Makes the disk, and the store on it.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn start(trace: &'a Trace, observed: &'a mut Observed) -> Outcome<Self> {
        let disk = Disk::new(trace.slots, trace.full_style, trace.seed ^ 0x5eed);
        Self::start_on(disk, 0, trace, observed)
    }

    /// As [`Session::start`], on a disk that may have slots of another store, which was opened so many times.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn start_on(
        disk: Disk,
        openings: u64,
        trace: &'a Trace,
        observed: &'a mut Observed,
    ) -> Outcome<Self> {
        if let Some(kind) = trace.lie {
            disk.lie_about(kind);
        }
        if trace.waits {
            disk.let_reads_wait(WAITING_PERCENT);
        }
        let mut session = Self {
            trace,
            observed,
            disk,
            model: Model::default(),
            store: None,
            cursors: VecDeque::new(),
            snapshots: VecDeque::new(),
            compactor: None,
            fuse: Crash::Process,
            committed: 0,
            log: trace.options.log,
            openings,
            now_ms: START_MS,
            faults: false,
            is_faulty: false,
            read_until: 0,
        };
        session.recover(Loss::Process, &trace.births)?;
        Ok(session)
    }

    /// Reads everything once more, and once more after a close.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn finish(&mut self) -> Outcome {
        self.disk.disarm_fuse();
        self.disk.limit(None);
        self.perform(&Op::Reopen)?;
        self.read_changes(&Op::Reopen)?;
        self.perform(&Op::Compact)?;
        self.compare_all()?;
        look_for_values(self.trace, &self.disk, &self.model)?;
        self.look_for_plain_values()?;
        let counts = self.disk.counts();
        for number in [counts.reads, counts.writes, counts.flushes, counts.bytes_written] {
            self.observed.number(number);
        }
        self.observed.totals.again = self.disk.again();
        Ok(())
    }

    /// Carries out one operation and compares.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn perform(&mut self, op: &Op) -> Outcome {
        self.observed.totals.ops += 1;
        match op {
            Op::Write { changes, batch, commit } => self.write(changes, *batch, *commit)?,
            Op::Frame { changes, batch, level } => self.frame(op, changes, *batch, *level)?,
            Op::Commit(level) => self.commit(*level)?,
            Op::Get(key) => self.get(key)?,
            Op::Scan(range, batch_bytes) => {
                let store = self.store.as_ref().ok_or("no store")?;
                let opened = Expectation::open(store, self.model.state(), range, *batch_bytes);
                let entries =
                    opened.map_err(ScanError::Store).and_then(|scan| scan.finish(store, &self.disk));
                self.scanned(entries)?;
            }
            Op::OpenCursor(range, batch_bytes) => {
                let store = self.store.as_ref().ok_or("no store")?;
                let opened = Expectation::open(store, self.model.state(), range, *batch_bytes);
                self.cursors.push_back(opened.map_err(|error| format!("open cursor: {error}"))?);
                if self.cursors.len() > CURSORS_MAX {
                    self.cursors.pop_front();
                }
            }
            Op::StepCursor(which) => self.step_cursor(*which)?,
            Op::DropCursor(which) => {
                self.cursors.remove(*which);
            }
            Op::OpenSnapshot => self.open_snapshot()?,
            Op::ReadSnapshot(which, key, range, bytes) => self.read_snapshot(*which, key, range, *bytes)?,
            Op::DropSnapshot(which) => self.drop_snapshot(*which)?,
            Op::Begin => self.open_snapshot()?,
            Op::Transact { snapshot, keys, ranges, changes, level, framed } => {
                let read = Read { keys, ranges };
                self.transact(op, *snapshot, &read, changes, (*level, *framed))?;
            }
            Op::SetIf(key, value, guess, level) => self.set_if(key, value, *guess, *level)?,
            Op::ClockBack(ms) => self.now_ms = self.now_ms.saturating_sub(*ms),
            Op::Sync => {
                if self.attempt(op, SimStore::sync)?.is_some() {
                    self.model.acknowledge_sync();
                }
            }
            Op::Seal => {
                if self.attempt(op, SimStore::seal)?.is_some() {
                    let level = self.reached(Durability::Strict)?;
                    if level == Durability::Strict {
                        self.acknowledge(level);
                    }
                }
            }
            Op::Flush => {
                // Everything lies in flushed tables then, with or without a log.
                if self.attempt(op, SimStore::flush)?.is_some() {
                    self.acknowledge(Durability::Strict);
                }
            }
            Op::Compact => self.compact(op)?,
            Op::Freeze => self.attempt(op, SimStore::freeze_active).map(|_| ())?,
            Op::Slice(budget) => self.counting_edits(|session| {
                session.attempt(op, |store| store.run_slice(*budget)).map(|_| ())
            })?,
            Op::Release => self
                .attempt(op, |store| {
                    store.begin_idle()?;
                    store.shrink(64 << 10)
                })
                .map(|_| ())?,
            Op::Shrink(keep_bytes) => self.attempt(op, |store| store.shrink(*keep_bytes)).map(|_| ())?,
            Op::ChangeKeys => {
                let seed = self.openings << 32 | self.disk.counts().writes;
                self.counting_edits(|session| {
                    session.attempt(op, |store| change_keys(store, seed | 1 << 63)).map(|_| ())
                })?;
            }
            Op::AskForCompaction => self.attempt(op, SimStore::ask_for_compaction).map(|_| ())?,
            Op::TakeJob => self.counting_edits(|session| session.take_job(op))?,
            Op::StepJob(steps, budget) => self.step_job(op, *steps, *budget)?,
            Op::AbortJob => self.abort_job()?,
            Op::Reopen => self.reopen(op)?,
            Op::Crash(crash, recoveries) => return self.crash(*crash, recoveries),
            Op::Fuse(calls, crash) => {
                self.disk.arm_fuse(*calls);
                self.fuse = *crash;
            }
            Op::Quota(spare_bytes) => {
                self.disk.limit(Some(*spare_bytes));
                self.faults = true;
            }
            Op::Unlimit => self.disk.limit(None),
            Op::ShortWrite(writes) => {
                self.disk.arm_short_write(*writes);
                self.faults = true;
                self.is_faulty = true;
            }
            Op::FlushFailure(flushes) => {
                self.disk.arm_flush_failure(*flushes);
                self.faults = true;
                self.is_faulty = true;
            }
            Op::SwitchLog => self.log = !self.log,
            Op::FreeRoom => self.free_room(op)?,
            Op::CommitDeletes(keys, level) => self.commit_deletes(op, keys, *level)?,
            Op::AddSlots(count) => self.add_slots(op, *count)?,
            Op::Wait(ms) => {
                self.now_ms += ms;
                let now_ms = self.now_ms;
                self.store()?.set_now(now_ms);
                let now_ms = self.store()?.now_ms();
                self.model.set_time(now_ms);
            }
        }
        self.recover_if_down()?;
        self.look_at_changes(op)?;
        self.recover_if_down()
    }

    pub(crate) fn store(&mut self) -> Outcome<&mut SimStore> {
        self.store.as_mut().ok_or_else(|| "no store".to_owned())
    }

    /// Whether only a recovery can show the outcome of the last operation.
    pub(crate) fn is_in_doubt(&mut self) -> Outcome<bool> {
        Ok(self.disk.is_dead() || self.store()?.is_poisoned())
    }

    /// Runs something that may fail for an excusable reason: `Ok(None)`.
    pub(crate) fn attempt<T>(
        &mut self,
        op: &Op,
        act: impl FnMut(&mut SimStore) -> varve::Result<T>,
    ) -> Outcome<Option<T>> {
        let result = self.make(act)?;
        self.excused(op, result)
    }

    /// The value of a call, or `None` after an error that is excusable.
    pub(crate) fn excused<T>(&mut self, op: &Op, result: varve::Result<T>) -> Outcome<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.excuse(op, error).map(|()| None),
        }
    }

    /// Makes a call until no bytes are missing. Between two attempts the store must be as it was before the first, for others that read.
    pub(crate) fn make<T>(
        &mut self,
        mut call: impl FnMut(&mut SimStore) -> varve::Result<T>,
    ) -> Outcome<varve::Result<T>> {
        self.disk.begin();
        for attempt in 0..ATTEMPTS_MAX {
            let result = call(self.store()?);
            if !self.disk.is_again(&result) {
                self.disk.end();
                return Ok(result);
            }
            self.disk.fetch();
            self.stage_again()?;
            self.look_between(attempt)?;
        }
        Err("a call never ends".to_owned())
    }

    /// Stages again what an attempt without enough room rolled back, as a host makes a frame again from its beginning.
    fn stage_again(&mut self) -> Outcome {
        let mut groups = VecDeque::from(self.rolled_back()?);
        while let Some(group) = groups.pop_front() {
            let ops: Vec<_> = group.changes.iter().map(store_op).collect();
            let staged = self.store()?.stage(&ops);
            if staged.is_ok() {
                self.model.stage(group);
            } else if self.disk.is_again(&staged) {
                self.disk.fetch();
                groups.push_front(group);
                self.rolled_back()?.into_iter().rev().for_each(|group| groups.push_front(group));
            } else {
                let op = Op::Write { changes: group.changes, batch: true, commit: None };
                return self.excused(&op, staged).map(|_| ());
            }
        }
        Ok(())
    }

    /// Removes from the model what the store rolled back, and returns it.
    fn rolled_back(&mut self) -> Outcome<Vec<Group>> {
        if self.is_in_doubt()? {
            return Ok(Vec::new());
        }
        let kept = self.store()?.last_sequence();
        let position = self.model.position_of(kept);
        if position < self.committed {
            return Err(format!("acknowledged groups were rolled back to sequence {kept}"));
        }
        let refused = self.model.refuse(position);
        self.refuse_in_snapshots(kept);
        self.cursors.retain(|cursor| cursor.snapshot() <= kept);
        Ok(refused)
    }

    /// Reads a key between two attempts of a call. Its bytes may be missing, too: they may come for the next attempt, or later.
    fn look_between(&mut self, attempt: u32) -> Outcome {
        let mut rng = Rng::new(self.trace.seed ^ self.observed.totals.ops << 20 ^ u64::from(attempt));
        let store = self.store.as_ref().ok_or("no store")?;
        let (state, last) = (self.model.state(), store.last_sequence());
        if self.disk.is_dead() || store.is_poisoned() || last != self.model.last_sequence() {
            return Ok(());
        }
        let Some(key) = state.keys().nth(rng.index(state.len())) else { return Ok(()) };
        match store.find(key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence))) {
            Err(Error::Pending) => Ok(()),
            Ok(found) if found.as_ref() == state.get(key) => Ok(()),
            found => {
                let found = found.map(|found| found.map(|(value, sequence)| (value.len(), sequence)));
                Err(format!("between two attempts of a call, {} is {found:?}", crate::change::show(key)))
            }
        }
    }

    /// Accepts an error that a fault explains, and removes from the model what the store rolled back.
    pub(crate) fn excuse(&mut self, op: &Op, error: Error) -> Outcome {
        self.observed.number(u64::from(error.code() as u8));
        let excusable = match error {
            // Files of a process that died are closed, as those are that the host opens anew.
            Error::StorageFull => self.disk.is_dead() || self.add_missing_slots()? || self.faults,
            Error::Io(_) | Error::Poisoned => self.faults || self.disk.is_dead(),
            _ => false,
        };
        if !excusable {
            return Err(format!("{op}: {error} ({error:?})"));
        }
        self.observed.totals.refused += 1;
        self.rolled_back().map(|_| ()).map_err(|what| format!("{op}: {error}, and {what}"))
    }

    fn add_slots(&mut self, op: &Op, count: u32) -> Outcome {
        self.disk.add_slots(count);
        self.attempt(op, |store| store.storage_mut().added()).map(|_| ())
    }

    /// The work of a host between turns: where no slot is spare, it adds some. Returns whether it added any: tiny tables can take
    /// all the places that slots have for files.
    fn add_missing_slots(&mut self) -> Outcome<bool> {
        let pool = self.store()?.storage_mut();
        if pool.free_slots() > 0 {
            return Ok(false);
        }
        let wanted = pool.wanted_slots();
        self.disk.add_slots(wanted);
        self.attempt_added()?;
        Ok(true)
    }

    fn attempt_added(&mut self) -> Outcome {
        match self.store()?.storage_mut().added() {
            Err(error) if !self.disk.is_dead() => Err(format!("slots were added: {error}")),
            _ => Ok(()),
        }
    }
}
