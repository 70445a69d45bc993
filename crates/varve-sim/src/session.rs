//! A store, its disk and its oracle, and what each operation does to all three.
//!
//! Invariant: between operations the store is open, and answers what the model's state says. An operation whose
//! outcome is unknown (the machine died in it, or the store was poisoned by it) is settled before the next one,
//! by recovering and asking the oracle which of the possible pasts came true.

use std::collections::VecDeque;

use varve::options::Durability;
use varve::{Error, Op as StoreOp};

use crate::compactor::{Compactor, SimStore};
use crate::disk::Disk;
use crate::model::{Change, Group, Loss, Model, show};
use crate::run::Observed;
use crate::scan::{Expectation, ScanError, contents};
use crate::snapshots::Held;
use crate::trace::{Crash, Op, Trace};
use crate::transactions::Read;
use crate::workload::START_MS;

/// Cursors held at once; the oldest goes.
const CURSORS_MAX: usize = 8;

/// Times that a commit is tried while it waits for slots.
const COMMITS_MAX: u32 = 3;

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
    pub(crate) snapshots: VecDeque<Held>,
    pub(crate) compactor: Option<Compactor>,
    /// What happens when the fuse burns.
    pub(crate) fuse: Crash,
    /// Groups up to here were committed at some level: no refusal may take them back.
    pub(crate) committed: usize,
    /// Whether the next opening has a log.
    pub(crate) log: bool,
    pub(crate) openings: u64,
    pub(crate) now_ms: u64,
    /// Faults that make `Io` and `StorageFull` excusable since the store was opened.
    pub(crate) faults: bool,
    /// One of them was no quota: the reserve of a full disk proves nothing then.
    pub(crate) is_faulty: bool,
}

impl<'a> Session<'a> {
    /// Makes the disk, and the store on it.
    ///
    /// # Errors
    /// What was wrong.
    pub fn start(trace: &'a Trace, observed: &'a mut Observed) -> Outcome<Self> {
        let disk = Disk::new(trace.slots, trace.full_style, trace.seed ^ 0x5eed);
        if let Some(kind) = trace.lie {
            disk.lie_about(kind);
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
            openings: 0,
            now_ms: START_MS,
            faults: false,
            is_faulty: false,
        };
        session.recover(Loss::Process, &trace.births)?;
        Ok(session)
    }

    /// Reads everything once more, and once more after a close.
    ///
    /// # Errors
    /// What was wrong.
    pub fn finish(&mut self) -> Outcome {
        self.disk.disarm_fuse();
        self.disk.limit(None);
        self.perform(&Op::Reopen)?;
        self.perform(&Op::Compact)?;
        self.compare_all()?;
        let counts = self.disk.counts();
        for number in [counts.reads, counts.writes, counts.flushes, counts.bytes_written] {
            self.observed.number(number);
        }
        Ok(())
    }

    /// Carries out one operation and compares.
    ///
    /// # Errors
    /// What was wrong.
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
                let entries = opened.map_err(ScanError::Store).and_then(|scan| scan.finish(store));
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
                // Everything lies in flushed tables then, log or no log.
                if self.attempt(op, SimStore::flush)?.is_some() {
                    self.acknowledge(Durability::Strict);
                }
            }
            Op::Compact => self.attempt(op, SimStore::compact).map(|_| ())?,
            Op::Freeze => self.attempt(op, SimStore::freeze_active).map(|_| ())?,
            Op::Slice(budget) => self.counting_edits(|session| {
                session.attempt(op, |store| store.run_slice(*budget)).map(|_| ())
            })?,
            Op::Release => self.attempt(op, |store| store.shrink(64 << 10)).map(|_| ())?,
            Op::Shrink(keep_bytes) => self.attempt(op, |store| store.shrink(*keep_bytes)).map(|_| ())?,
            Op::AskForCompaction => self.attempt(op, SimStore::ask_for_compaction).map(|_| ())?,
            Op::TakeJob => self.counting_edits(|session| session.take_job(op))?,
            Op::StepJob(steps, budget) => self.step_job(op, *steps, *budget)?,
            Op::AbandonJob => self.abandon_job()?,
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
        self.settle()
    }

    pub(crate) fn store(&mut self) -> Outcome<&mut SimStore> {
        self.store.as_mut().ok_or_else(|| "no store".to_owned())
    }

    /// Whether only a recovery can tell what became of the last operation.
    pub(crate) fn is_in_doubt(&mut self) -> Outcome<bool> {
        Ok(self.disk.is_dead() || self.store()?.is_poisoned())
    }

    /// Runs something that may fail for an excusable reason: `Ok(None)`.
    pub(crate) fn attempt<T>(
        &mut self,
        op: &Op,
        act: impl FnOnce(&mut SimStore) -> varve::Result<T>,
    ) -> Outcome<Option<T>> {
        match act(self.store()?) {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.excuse(op, error).map(|()| None),
        }
    }

    /// Accepts an error that a fault explains, and takes back what the store took back.
    pub(crate) fn excuse(&mut self, op: &Op, error: Error) -> Outcome {
        self.observed.number(u64::from(error.code() as u8));
        let excusable = match error {
            Error::Busy => {
                self.add_wanted_slots()?;
                true
            }
            Error::StorageFull => self.faults,
            Error::Io(_) | Error::Poisoned => self.faults || self.disk.is_dead(),
            _ => false,
        };
        if !excusable {
            return Err(format!("{op}: {error} ({error:?})"));
        }
        self.observed.totals.refused += 1;
        if self.is_in_doubt()? {
            return Ok(());
        }
        let kept = self.store()?.last_sequence();
        let position = self.model.position_of(kept);
        if position < self.committed {
            return Err(format!(
                "{op}: {error}, and acknowledged groups were rolled back to sequence {kept}"
            ));
        }
        self.model.refuse(position);
        self.refuse_in_snapshots(kept);
        self.cursors.retain(|cursor| cursor.snapshot() <= kept);
        Ok(())
    }

    pub(crate) fn acknowledge(&mut self, level: Durability) {
        self.observed.totals.commits += 1;
        match level {
            Durability::Memory => {}
            Durability::Relaxed => self.model.acknowledge_relaxed(),
            Durability::Strict => self.model.acknowledge_strict(),
        }
        self.committed = self.model.position();
    }

    /// What a commit reaches: a store without a log keeps its writes in memory until a flush.
    pub(crate) fn reached(&mut self, level: Durability) -> Outcome<Durability> {
        Ok(if self.store()?.is_logged() { level } else { Durability::Memory })
    }

    pub(crate) fn write(&mut self, changes: &[Change], batch: bool, commit: Option<Durability>) -> Outcome {
        if batch {
            self.stage(changes, true)?;
        } else {
            for change in changes {
                self.stage(std::slice::from_ref(change), false)?;
                if self.is_in_doubt()? {
                    return Ok(());
                }
            }
        }
        match commit {
            Some(level) if !self.is_in_doubt()? => self.commit(level),
            _ => Ok(()),
        }
    }

    fn stage(&mut self, changes: &[Change], batch: bool) -> Outcome {
        let store = self.store()?;
        let before = store.last_sequence();
        let staged = match changes {
            [Change::Set(key, value)] if !batch => store.set(key, value),
            [Change::Delete(key)] if !batch => store.delete(key),
            [Change::DeleteRange(start, end)] if !batch => store.delete_range(start, range_end(end)),
            _ => store.stage(&changes.iter().map(store_op).collect::<Vec<_>>()),
        };
        match staged {
            Ok(last) if last == before + changes.len() as u64 => {
                self.observed.number(last);
                self.model.stage(Group { changes: changes.to_vec(), first_sequence: before + 1 });
                Ok(())
            }
            Ok(last) => Err(format!("{} changes after sequence {before} got sequence {last}", changes.len())),
            Err(error) => self.excuse(&Op::Write { changes: changes.to_vec(), batch, commit: None }, error),
        }
    }

    pub(crate) fn commit(&mut self, level: Durability) -> Outcome {
        let Some(receipt) = self.attempt(&Op::Commit(level), |store| store.commit(level))? else {
            return Ok(());
        };
        let reached = self.reached(level)?;
        if receipt.sequence != self.model.last_sequence() || receipt.durability != reached {
            let wanted = self.model.last_sequence();
            return Err(format!("commit {level:?} of sequence {wanted} was answered with {receipt:?}"));
        }
        self.observed.number(receipt.sequence);
        self.acknowledge(reached);
        Ok(())
    }

    /// Commits what is staged, ahead of something that might take it back along with its own. A commit that only waits for
    /// a slot leaves it staged and is tried again. `false` when the outcome is in doubt, or nothing settles it.
    pub(crate) fn settle_staged(&mut self) -> Outcome<bool> {
        for _ in 0..=COMMITS_MAX {
            if self.is_in_doubt()? {
                return Ok(false);
            }
            if self.model.position() == self.committed {
                return Ok(true);
            }
            self.commit(Durability::Relaxed)?;
        }
        Ok(false)
    }

    fn get(&mut self, key: &[u8]) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let found = store.find(key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)));
        let found = match found {
            Ok(found) => found,
            Err(_) if self.disk.is_dead() => return Ok(()),
            Err(error) => return Err(format!("get {}: {error:?}", show(key))),
        };
        if found.as_ref() != self.model.state().get(key) {
            let short =
                |value: Option<(Vec<u8>, u64)>| value.map(|(value, sequence)| (value.len(), sequence));
            let (found, wanted) = (short(found), short(self.model.state().get(key).cloned()));
            return Err(format!("get {}: {found:?}, not {wanted:?} (bytes, sequence)", show(key)));
        }
        let (value, sequence) = found.unwrap_or_default();
        self.observed.bytes(&value);
        self.observed.number(sequence);
        Ok(())
    }

    fn scanned(&mut self, entries: Result<crate::scan::Entries, ScanError>) -> Outcome {
        match entries {
            Ok(entries) => {
                for (key, value) in entries {
                    self.observed.bytes(&key);
                    self.observed.bytes(&value);
                }
                Ok(())
            }
            Err(ScanError::Store(_)) if self.disk.is_dead() => Ok(()),
            Err(ScanError::Store(error)) => Err(format!("scan: {error}")),
            Err(ScanError::Wrong(what)) => Err(what),
        }
    }

    fn step_cursor(&mut self, which: usize) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let Some(cursor) = self.cursors.get_mut(which) else { return Ok(()) };
        let stepped = cursor.step(store);
        if matches!(stepped, Ok((_, false))) {
            self.cursors.remove(which);
        }
        self.scanned(stepped.map(|(entries, _)| entries)).map_err(|what| format!("held cursor: {what}"))
    }

    /// Notes what a step did to the levels of the store.
    fn counting_edits(&mut self, step: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let edits = |stats: &varve::store::Stats| stats.moves + stats.drops;
        let before = edits(&self.store()?.stats());
        step(self)?;
        let stats = self.store()?.stats();
        self.observed.totals.edits += edits(&stats) - before;
        let levels = stats.levels.iter().filter(|level| level.tables > 0).count() as u64;
        self.observed.totals.levels = self.observed.totals.levels.max(levels);
        Ok(())
    }

    fn take_job(&mut self, op: &Op) -> Outcome {
        if self.compactor.is_none()
            && let Some(Some(ticket)) = self.attempt(op, SimStore::take_job)?
        {
            self.observed.number(ticket.first_output);
            let started = Compactor::start(ticket, &self.disk);
            self.compactor = Some(started.map_err(|error| format!("a job does not start: {error}"))?);
        }
        Ok(())
    }

    fn step_job(&mut self, op: &Op, steps: u32, budget: usize) -> Outcome {
        let Some(mut compactor) = self.compactor.take() else { return Ok(()) };
        for _ in 0..steps {
            let disk = self.disk.clone();
            match compactor.step(self.store()?, &disk, budget) {
                Ok(false) => {}
                Ok(true) => {
                    self.observed.totals.jobs += 1;
                    return Ok(());
                }
                Err(error) => {
                    self.compactor = Some(compactor);
                    self.excuse(op, error)?;
                    return self.abandon_job();
                }
            }
        }
        self.compactor = Some(compactor);
        Ok(())
    }

    pub(crate) fn abandon_job(&mut self) -> Outcome {
        let Some(compactor) = self.compactor.take() else { return Ok(()) };
        let disk = self.disk.clone();
        compactor.abandon(self.store()?, &disk).map_err(|error| format!("abandon job: {error}"))
    }

    fn add_slots(&mut self, op: &Op, count: u32) -> Outcome {
        self.disk.add_slots(count);
        self.attempt(op, |store| store.storage_mut().added()).map(|_| ())
    }

    /// What a host does once the turn is over: it replenishes the spare slots.
    pub(crate) fn add_wanted_slots(&mut self) -> Outcome {
        let pool = self.store()?.storage_mut();
        let wanted = pool.wanted_slots().max(1);
        self.disk.add_slots(wanted);
        let store = self.store()?;
        store.storage_mut().added().map_err(|error| format!("slots were added: {error}"))?;
        Ok(())
    }

    fn compare_all(&mut self) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let found = contents(store).map_err(|error| format!("reading all: {error:?}"))?;
        let differences = crate::model::difference(self.model.state(), &found);
        differences.into_iter().next().map_or(Ok(()), Err)
    }
}

pub(crate) fn store_op(change: &Change) -> StoreOp<'_> {
    match change {
        Change::Set(key, value) => StoreOp::Set { key, value, expires: None },
        Change::SetUntil(key, value, at) => StoreOp::Set { key, value, expires: Some(*at) },
        Change::Delete(key) => StoreOp::Delete { key },
        Change::DeleteRange(start, end) => StoreOp::DeleteRange { start, end: range_end(end) },
    }
}

/// No key of a workload begins with the highest byte.
pub(crate) fn range_end(end: &Option<Vec<u8>>) -> &[u8] {
    end.as_deref().unwrap_or(&[0xff])
}
