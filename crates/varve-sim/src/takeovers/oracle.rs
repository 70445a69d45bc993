//! The content that must be there after a leader died, and the content that may be.
//!
//! Invariant: a write whose answer arrived has its sequence or is lost, as its level allows; each other write is there once
//! or not at all. The sequences that were given add up; a delete that is not answered may have one of them.

use varve::options::Durability;

use super::client::{Write, WriteOutcome};
use super::{Outcome, World};
use crate::trace::Crash;

impl World {
    /// Reads every write of every client back; `deaths` is what happened since the last time.
    pub(super) fn verify(&mut self, deaths: &[Crash]) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let recovered = store.last_sequence();
        let lost_power = deaths.iter().any(|death| matches!(death, Crash::Power(_)));
        let may_go = |write: &Write| match write.level {
            _ if !self.options.log => true,
            Durability::Memory => !deaths.is_empty(),
            Durability::Relaxed => lost_power,
            Durability::Strict => false,
        };
        let (mut operations, mut unknown) = (0, 0);
        for client in &mut self.clients {
            let id = client.id;
            let mut before = 0;
            for at in 0..client.writes.len() {
                let write = client.writes[at];
                if write.is_delete {
                    // It leaves nothing to read.
                    match write.outcome {
                        WriteOutcome::Done(last) if last <= recovered => operations += 1,
                        WriteOutcome::Done(_) if may_go(&write) => {
                            client.writes[at].outcome = WriteOutcome::Lost;
                            self.totals.lost += 1;
                        }
                        WriteOutcome::Done(last) => {
                            return Err(format!(
                                "delete {} of client {id} is gone; has {last}",
                                write.ordinal
                            ));
                        }
                        WriteOutcome::Open => unknown += 1,
                        WriteOutcome::Refused | WriteOutcome::Lost => {}
                    }
                    continue;
                }
                let sequence = store
                    .sequence_of(&client.key_of(write.ordinal))
                    .map_err(|error| format!("reading all: {error}"))?;
                let what = |what: &str| {
                    Err(format!("write {} of client {id} ({write:?}) {what} {sequence}", write.ordinal))
                };
                match write.outcome {
                    WriteOutcome::Done(last) if sequence == 0 => {
                        if last <= recovered || !may_go(&write) {
                            return what("is gone; has sequence");
                        }
                        client.writes[at].outcome = WriteOutcome::Lost;
                        self.totals.lost += 1;
                    }
                    WriteOutcome::Done(last) if sequence + write.operations - 1 != last => {
                        return what("happened again, at");
                    }
                    WriteOutcome::Refused | WriteOutcome::Lost if sequence != 0 => {
                        return what("is there, at");
                    }
                    _ => {}
                }
                if sequence > 0 {
                    operations += write.operations;
                    if sequence <= before {
                        return what("comes before an earlier one, at");
                    }
                    before = sequence;
                }
            }
        }
        if !(operations..=operations + unknown).contains(&recovered) {
            return Err(format!("writes of {operations} operations are there, and sequence {recovered}"));
        }
        Ok(())
    }
}
