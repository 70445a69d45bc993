//! How a session ends and begins again: closing, dying, recovering, and judging what is left.
//!
//! Invariant: `Session::recover` returns with an open store whose contents the oracle has accepted, or with a
//! failure; the faults of the disk are gone by then, a quota aside.

use varve::options::{Durability, Host, Options};
use varve::storage::SlotPool;
use varve::{Error, Store};

use crate::compactor::SimStore;
use crate::keys::{keys_of, look_for_values};
use crate::model::Loss;
use crate::scan::{ScanError, contents};
use crate::session::{Outcome, Session};
use crate::trace::{Crash, Op};
use crate::waiting::patiently;

/// Attempts to open a store, not counting the crashes of a trace.
const OPENINGS_MAX: u32 = 10;

impl Session<'_> {
    pub(crate) fn reopen(&mut self, op: &Op) -> Outcome {
        self.abort_job()?;
        self.cursors.clear();
        self.snapshots.clear();
        let result = self.close_store()?;
        let closed = self.excused(op, result)?;
        if self.disk.is_dead() {
            return Ok(());
        }
        self.disk.kill_process();
        if closed.is_some() {
            self.acknowledge(Durability::Strict);
            return self.recover(Loss::Nothing, &[]);
        }
        self.recover(Loss::Process, &[])
    }

    /// Closes the store for good; every job is given up before.
    pub(crate) fn close(&mut self) -> Outcome {
        self.abort_job()?;
        self.cursors.clear();
        self.snapshots.clear();
        self.close_store()?.map_err(|error| format!("close: {error}"))?;
        self.store = None;
        Ok(())
    }

    /// Closes the store as hosts do.
    fn close_store(&mut self) -> Outcome<varve::Result<()>> {
        // If this is refused, `close` gets the same refusal; nothing is lost by it.
        let _ = self.make(SimStore::fold_log)?;
        self.make(SimStore::close)
    }

    /// After an operation: deals with a burned fuse or a poisoned store.
    pub(crate) fn recover_if_down(&mut self) -> Outcome {
        if self.disk.is_dead() {
            let crash = self.fuse;
            return self.crash(crash, &[]);
        }
        if self.store()?.is_poisoned() {
            self.observed.totals.poisoned += 1;
            match self.store()?.set(b"k", b"after the poison") {
                Err(Error::Poisoned) => {}
                other => return Err(format!("a poisoned store answered a write with {other:?}")),
            }
            self.disk.kill_process();
            return self.recover(Loss::Process, &[]);
        }
        Ok(())
    }

    pub(crate) fn crash(&mut self, crash: Crash, recoveries: &[(u64, Crash)]) -> Outcome {
        let loss = self.go_down(crash);
        self.recover(loss, recoveries)
    }

    fn go_down(&mut self, crash: Crash) -> Loss {
        self.observed.totals.crashes += 1;
        match crash {
            Crash::Process => {
                self.disk.kill_process();
                Loss::Process
            }
            Crash::Power(loss) => {
                self.disk.lose_power(loss);
                Loss::Power
            }
        }
    }

    /// Opens the store, dying in the middle as often as asked, and lets the oracle judge what it contains.
    pub(crate) fn recover(&mut self, mut loss: Loss, recoveries: &[(u64, Crash)]) -> Outcome {
        // The power loss may remove bytes that were written ahead, because nothing flushes them.
        let must_open = loss != Loss::Power && self.store.is_some() && !self.is_faulty;
        self.cursors.clear();
        self.snapshots.clear();
        self.compactor = None;
        self.store = None;
        let mut recoveries = recoveries.iter();
        let mut attempts = 0;
        loop {
            let death = recoveries.next().copied();
            if let Some((calls, _)) = death {
                self.disk.arm_fuse(calls);
            }
            // An attempt that found bytes missing is a process that died, to the next one.
            let disk = self.disk.clone();
            let opened = patiently(&disk, || self.open());
            if self.disk.is_dead() {
                let crash = death.map_or(Crash::Process, |(_, crash)| crash);
                self.observed.totals.recovery_crashes += 1;
                if self.go_down(crash) == Loss::Power {
                    loss = Loss::Power;
                }
                continue;
            }
            self.disk.disarm_fuse();
            match opened {
                Ok(store) => {
                    self.store = Some(store);
                    break;
                }
                Err(Error::StorageFull) if must_open && loss != Loss::Power => {
                    return Err("a store does not open because the disk is full".to_owned());
                }
                Err(Error::StorageFull) if self.disk.is_limited() => self.disk.limit(None),
                Err(error) => return Err(format!("open after {loss:?} loss: {error} ({error:?})")),
            }
            attempts += 1;
            if attempts > OPENINGS_MAX {
                return Err("the store does not open however often it is tried".to_owned());
            }
            self.disk.kill_process();
        }
        self.faults = self.disk.is_limited();
        self.is_faulty = false;
        self.judge(loss)
    }

    /// Opens what is on the disk now.
    pub(crate) fn open(&mut self) -> varve::Result<SimStore> {
        self.openings += 1;
        let host = Host {
            now_ms: self.now_ms,
            entropy: self.trace.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.openings,
            store_id: [self.openings as u8; 16],
        };
        let mut pool = SlotPool::open(self.disk.slots())?;
        // Within a trace, merges return room to the disk, unless it may be needed.
        pool.set_spare(self.trace.options.table_bytes);
        if !self.trace.ops.iter().any(|op| matches!(op, Op::Quota(_))) {
            pool.set_room(Some(1 << 40));
        }
        let encryption = keys_of(&pool, self.trace, self.openings)?;
        let options = Options { log: self.log, encryption, ..self.trace.options.clone() };
        let (store, report) = Store::open(pool, options, host)?;
        self.observed.totals.torn += u64::from(report.torn);
        for number in [report.records, report.entries, report.tables, report.orphans, report.sequence] {
            self.observed.number(number);
        }
        Ok(store)
    }

    fn judge(&mut self, loss: Loss) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let found = match contents(store, &self.disk) {
            Ok(found) => found,
            Err(ScanError::Store(error)) => return Err(format!("reading all after {loss:?} loss: {error}")),
            Err(ScanError::Wrong(what)) => return Err(format!("after {loss:?} loss: {what}")),
        };
        self.model.set_time(store.now_ms());
        let lost = self.model.recover(&found, store.last_sequence(), loss);
        self.observed.totals.groups_lost += lost.map_err(|mismatch| mismatch.to_string())? as u64;
        self.committed = self.model.position();
        look_for_values(self.trace, &self.disk, &self.model)
    }
}
