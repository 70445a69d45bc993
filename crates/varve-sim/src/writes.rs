//! Writes of a session: staged, committed, and reported to the oracle.
//!
//! Invariant: accepted writes are in the history at the sequence that the store returned, and refused writes are not.

use varve::options::Durability;

use crate::change::{Change, Group, range_end, store_op};
use crate::session::{Outcome, Session};
use crate::trace::Op;

/// Times that a commit is tried while it waits for slots.
const COMMITS_MAX: u32 = 3;

impl Session<'_> {
    pub(crate) fn acknowledge(&mut self, level: Durability) {
        self.observed.totals.commits += 1;
        match level {
            Durability::Memory => {}
            Durability::Relaxed => self.model.acknowledge_relaxed(),
            Durability::Strict => self.model.acknowledge_strict(),
        }
        self.committed = self.model.position();
    }

    /// The level that a commit reaches: a store without a log keeps its writes in memory until a flush.
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
        let staged = self.make(|store| match changes {
            [Change::Set(key, value)] if !batch => store.set(key, value),
            [Change::Delete(key)] if !batch => store.delete(key),
            [Change::DeleteRange(start, end)] if !batch => store.delete_range(start, range_end(end)),
            _ => store.stage(&changes.iter().map(store_op).collect::<Vec<_>>()),
        })?;
        let before = self.model.last_sequence();
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

    /// Commits staged data, ahead of something that might roll it back along with its own. A commit that only waits for a
    /// slot leaves it staged and is tried again. `false` when the outcome is in doubt, or the commit stays impossible.
    pub(crate) fn commit_staged(&mut self) -> Outcome<bool> {
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
}
