//! Jobs of a session: chosen, carried out step by step beside everything else, aborted.

use varve::store::Stats;

use crate::compactor::{Compactor, SimStore};
use crate::session::{Outcome, Session};
use crate::trace::Op;

impl Session<'_> {
    /// Merges everything. A job that took in all data leaves only what can be read: no older version, no tombstone,
    /// nothing past its expiry, unless a snapshot keeps some.
    pub(crate) fn compact(&mut self, op: &Op) -> Outcome {
        let bytes = |stats: &Stats| stats.levels.iter().map(|level| level.bytes).sum::<u64>();
        let before = self.store()?.stats();
        if self.attempt(op, SimStore::compact)?.is_none() || !self.snapshots.is_empty() {
            return Ok(());
        }
        let after = self.store()?.stats();
        let all = bytes(&before) + after.flush_bytes - before.flush_bytes;
        let is_whole = after.compactions == before.compactions + 1
            && after.compaction_bytes_read - before.compaction_bytes_read >= all;
        let entries: u64 = after.levels.iter().map(|level| level.entries).sum();
        let alive = self.model.state().len() as u64;
        if is_whole && entries != alive {
            return Err(format!("merged, tables have {entries} entries for {alive} keys"));
        }
        Ok(())
    }

    /// Notes what a step did to the levels of the store.
    pub(crate) fn counting_edits(&mut self, step: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let edits = |stats: &varve::store::Stats| stats.moves + stats.drops;
        let before = edits(&self.store()?.stats());
        step(self)?;
        let stats = self.store()?.stats();
        self.observed.totals.edits += edits(&stats) - before;
        let levels = stats.levels.iter().filter(|level| level.tables > 0).count() as u64;
        self.observed.totals.levels = self.observed.totals.levels.max(levels);
        Ok(())
    }

    pub(crate) fn take_job(&mut self, op: &Op) -> Outcome {
        if self.compactor.is_none()
            && let Some(Some(ticket)) = self.attempt(op, SimStore::take_job)?
        {
            self.observed.number(ticket.first_output);
            let started = Compactor::start(ticket, &self.disk);
            self.compactor = Some(started.map_err(|error| format!("a job does not start: {error}"))?);
        }
        Ok(())
    }

    pub(crate) fn step_job(&mut self, op: &Op, steps: u32, budget: usize) -> Outcome {
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
                    return self.abort_job();
                }
            }
        }
        self.compactor = Some(compactor);
        Ok(())
    }

    pub(crate) fn abort_job(&mut self) -> Outcome {
        let Some(compactor) = self.compactor.take() else { return Ok(()) };
        let disk = self.disk.clone();
        compactor.abort(self.store()?, &disk).map_err(|error| format!("abort job: {error}"))
    }
}
