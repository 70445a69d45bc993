//! The change feed beside the oracle: readers that continue where they stopped, that begin at the beginning, or
//! anywhere.
//!
//! Invariant under test: changes since a sequence at or behind the floor are exactly the committed history, in order, of
//! every kind. Where the history was cut, the feed returns a floor instead, and everything from that floor on is
//! complete. This holds after any crash.

use varve::store::{ChangesFound, ChangesWanted};
use varve::types::Kind;

use crate::change::{Change, range_end};
use crate::compactor::SimStore;
use crate::rng::Rng;
use crate::session::{Outcome, Session};
use crate::trace::Op;

/// Operations between two looks at the feed.
const OPS_PER_LOOK: u64 = 3;
/// Calls after which the test decides that a reader never catches up.
const CALLS_MAX: u32 = 1_000_000;

/// A change as the feed returns it.
#[derive(Debug, PartialEq, Eq)]
struct Reported {
    sequence: u64,
    kind: Kind,
    key: Vec<u8>,
    value: Vec<u8>,
    expires: Option<u64>,
}

impl Session<'_> {
    /// Checks the feed every few operations, where the store keeps history.
    pub(crate) fn look_at_changes(&mut self, op: &Op) -> Outcome {
        let is_due = self.observed.totals.ops.is_multiple_of(OPS_PER_LOOK);
        if !is_due || self.trace.options.history_bytes == Some(0) || self.is_in_doubt()? {
            return Ok(());
        }
        self.read_changes(op)
    }

    /// Reads all changes from some sequence on, and compares.
    pub(crate) fn read_changes(&mut self, op: &Op) -> Outcome {
        let mut rng = Rng::new(self.trace.seed ^ self.observed.totals.ops);
        let last = self.store()?.acknowledged();
        let is_reader = rng.chance(1, 2);
        let mut since = if is_reader { self.read_until } else { rng.pick(&[0, rng.clone().below(last + 1)]) };
        let whole = (Vec::new(), vec![0xff]);
        let (start, end) = match self.model.changes_after(since).first() {
            Some((_, Change::Set(key, _) | Change::DeleteRange(key, _)))
                if !is_reader && rng.chance(1, 2) =>
            {
                (key.clone(), [key, &[0][..]].concat())
            }
            _ => whole,
        };
        let bytes_max = rng.pick(&[1, 200, 1 << 16]);
        for _ in 0..CALLS_MAX {
            let mut reported = Vec::new();
            let wanted = ChangesWanted { since, bytes_max, start: &start, end: &end };
            let read = |store: &mut SimStore| {
                reported.clear();
                ask(store, &wanted, &mut reported)
            };
            let Some(found) = self.attempt(op, read)? else { return Ok(()) };
            self.observed.number(found.through);
            self.observed.number(reported.len() as u64);
            let acknowledged = self.store()?.acknowledged();
            if found.through > acknowledged || found.floor > acknowledged {
                return Err(format!("{op}: changes through {found:?} of a store at {acknowledged}"));
            }
            if found.through < since {
                // A crash removed changes that this reader had seen.
                if since <= acknowledged || !reported.is_empty() {
                    return Err(format!("{op}: changes since {since} went back to {}", found.through));
                }
                since = found.through;
            } else if found.floor > since {
                if !reported.is_empty() || found.through != since {
                    return Err(format!(
                        "{op}: {} changes were reported though history was cut",
                        reported.len()
                    ));
                }
                self.observed.totals.cuts += 1;
                since = found.floor;
            } else {
                self.compare_reported(op, &wanted, &reported, found.through)?;
                self.observed.totals.changes += reported.len() as u64;
                if found.through == since {
                    break;
                }
                since = found.through;
            }
        }
        // Changes that are staged and not logged wait; the feed returned all others.
        let store = self.store()?;
        if store.pending_bytes() == 0 && since != store.acknowledged() {
            return Err(format!("{op}: changes end at {since}, the store is at {}", store.acknowledged()));
        }
        if is_reader {
            self.read_until = since;
        }
        Ok(())
    }

    fn compare_reported(
        &self,
        op: &Op,
        wanted: &ChangesWanted<'_>,
        reported: &[Reported],
        through: u64,
    ) -> Outcome {
        let happened = self.model.changes_after(wanted.since).iter();
        let happened = happened.take_while(|(sequence, _)| *sequence <= through);
        let touches = |change: &Change| change.touches(wanted.start, Some(wanted.end));
        let expected: Vec<Reported> = happened
            .filter(|(_, change)| touches(change))
            .map(|(sequence, change)| {
                let (kind, key, value, expires) = match change {
                    Change::Set(key, value) => (Kind::Set, key, &value[..], None),
                    Change::SetUntil(key, value, at) => (Kind::Set, key, &value[..], Some(*at)),
                    Change::Delete(key) => (Kind::Delete, key, &[][..], None),
                    Change::DeleteRange(start, end) => (Kind::RangeDelete, start, range_end(end), None),
                };
                Reported { sequence: *sequence, kind, key: key.clone(), value: value.to_vec(), expires }
            })
            .collect();
        if reported == expected {
            return Ok(());
        }
        let at =
            reported.iter().zip(&expected).take_while(|(reported, expected)| reported == expected).count();
        let (reported_count, expected_count) = (reported.len(), expected.len());
        let of = |reported: Option<&Reported>| {
            reported
                .map(|reported| (reported.sequence, reported.kind, reported.value.len(), reported.expires))
        };
        Err(format!(
            "{op}: changes since {} through {through}: reported {reported_count}, expected {expected_count}; number {at} is {:?}, not {:?}",
            wanted.since,
            of(reported.get(at)),
            of(expected.get(at)),
        ))
    }
}

fn ask(
    store: &mut SimStore,
    wanted: &ChangesWanted<'_>,
    reported: &mut Vec<Reported>,
) -> varve::Result<ChangesFound> {
    store.changes(wanted, &mut |sequence, entry| {
        let (key, value) = (entry.key.to_vec(), entry.value.to_vec());
        reported.push(Reported { sequence, kind: entry.kind, key, value, expires: entry.expires });
    })
}
