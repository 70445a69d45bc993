//! Snapshots that stay open over writes, flushes, merges and refusals, against the state when they were opened.
//!
//! Invariant: a snapshot returns what the model contained when it was opened, except for writes that the store
//! refused since.

use varve::scan::{Progress, ScanOptions, ScanRequest};

use crate::change::{State, show};
use crate::scan::Entries;
use crate::session::{Outcome, Session};
use crate::trace::Range;
use crate::waiting::patiently;

/// Snapshots open at once; the oldest is closed.
const SNAPSHOTS_MAX: usize = 4;

/// A snapshot of the store, and what it must answer.
#[derive(Debug)]
pub(crate) struct OpenSnapshot {
    pub(crate) number: u32,
    pub(crate) sequence: u64,
    pub(crate) state: State,
    now_ms: u64,
}

impl Session<'_> {
    pub(crate) fn open_snapshot(&mut self) -> Outcome {
        let number = self.store()?.open_snapshot().map_err(|error| format!("open snapshot: {error}"))?;
        let (sequence, state) = (self.model.last_sequence(), self.model.state().clone());
        let now_ms = self.store()?.now_ms();
        self.snapshots.push_back(OpenSnapshot { number, sequence, state, now_ms });
        if self.snapshots.len() > SNAPSHOTS_MAX {
            self.drop_snapshot(0)?;
        }
        Ok(())
    }

    pub(crate) fn drop_snapshot(&mut self, which: usize) -> Outcome {
        let Some(snapshot) = self.snapshots.remove(which) else { return Ok(()) };
        self.store()?.close_snapshot(snapshot.number);
        Ok(())
    }

    /// Refused writes are in no snapshot any more: all snapshots that saw them see the present.
    pub(crate) fn refuse_in_snapshots(&mut self, kept: u64) {
        for snapshot in self.snapshots.iter_mut().filter(|snapshot| snapshot.sequence > kept) {
            snapshot.sequence = kept;
            snapshot.state = self.model.state_at(snapshot.now_ms);
        }
    }

    /// Reads a key and a range of one of the snapshots, and counts the range.
    pub(crate) fn read_snapshot(&mut self, which: usize, key: &[u8], range: &Range, bytes: usize) -> Outcome {
        let Some(snapshot) = self.snapshots.get(which) else { return Ok(()) };
        let store = self.store.as_mut().ok_or("no store")?;
        let number = snapshot.number;
        if store.snapshot_sequence(number) != Ok(snapshot.sequence) {
            let found = store.snapshot_sequence(number);
            return Err(format!("snapshot of sequence {} has {found:?}", snapshot.sequence));
        }
        let found = patiently(&self.disk, || {
            store.find_in(number, key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
        });
        match found {
            Err(_) if self.disk.is_dead() => return Ok(()),
            Err(error) => return Err(format!("get {} of a snapshot: {error:?}", show(key))),
            Ok(found) if found.as_ref() != snapshot.state.get(key) => {
                return Err(format!("get {} of the snapshot at {} is wrong", show(key), snapshot.sequence));
            }
            Ok(_) => {}
        }
        let wanted: Vec<u8> = crate::scan::expected(&snapshot.state, range)
            .into_iter()
            .flat_map(|(key, value)| [key, value].concat())
            .collect();
        let entries = crate::scan::expected(&snapshot.state, range).len();
        for counting in [false, true] {
            let Range { lower, upper, reverse, limit } = range.clone();
            let request = ScanRequest {
                options: ScanOptions { lower, upper, reverse, limit },
                want_keys: !counting,
                want_values: !counting,
                want_expiries: false,
                snapshot: number,
                batch_bytes: bytes,
            };
            let cursor = store.open_cursor(request).map_err(|error| format!("scan a snapshot: {error}"))?;
            let (mut count, mut found) = (0, Vec::new());
            loop {
                let next = patiently(&self.disk, || {
                    let (progress, batch) = store.next_of_cursor(cursor, bytes)?;
                    let pairs = if counting { Ok(Entries::new()) } else { crate::scan::decode(batch) };
                    Ok((progress, batch.count() as usize, pairs))
                });
                let (progress, more, pairs) = match next {
                    Ok(next) => next,
                    Err(_) if self.disk.is_dead() => return Ok(()),
                    Err(error) => return Err(format!("scan of a snapshot: {error:?}")),
                };
                count += more;
                let pairs = pairs.map_err(|_| "a batch does not decode")?;
                found.extend(pairs.into_iter().flat_map(|(key, value)| [key, value].concat()));
                if progress == Progress::Finished {
                    break;
                }
            }
            if count != entries || (!counting && found != wanted) {
                let sequence = snapshot.sequence;
                return Err(format!("the snapshot at {sequence} gave {count} entries, wanted {entries}"));
            }
        }
        self.observed.number(entries as u64);
        self.observed.bytes(&wanted);
        Ok(())
    }
}
