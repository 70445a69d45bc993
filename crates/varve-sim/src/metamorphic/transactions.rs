//! Snapshots, transactions over them, and writes with a condition, in a run whose answers are compared with other runs'.

use varve::Error;
use varve::options::Durability;
use varve::scan::{ScanOptions, ScanRequest};
use varve::store::Condition;

use super::{Answer, Runner};
use crate::change::Change;
use crate::trace::{Guess, Range};
use crate::transactions::Read;
use crate::waiting::next_batch;

/// Snapshots open at once; the oldest is closed.
const SNAPSHOTS_MAX: usize = 4;

impl Runner<'_> {
    pub(super) fn open_snapshot(&mut self) {
        let number = self.store().open_snapshot().expect("a snapshot opens");
        self.snapshots.push_back(number);
        if self.snapshots.len() > SNAPSHOTS_MAX
            && let Some(oldest) = self.snapshots.pop_front()
        {
            self.store().close_snapshot(oldest);
        }
    }

    /// Reads a key of a snapshot, and scans a range of it.
    pub(super) fn read_snapshot(&mut self, which: usize, key: &[u8], range: &Range, batch_bytes: usize) {
        let Some(&number) = self.snapshots.get(which) else { return };
        self.find_in(number, key);
        let Range { lower, upper, reverse, limit } = range.clone();
        let request = ScanRequest {
            options: ScanOptions { lower, upper, reverse, limit },
            want_keys: true,
            want_values: true,
            want_expiries: false,
            snapshot: number,
            batch_bytes,
        };
        let cursor = self.store().open_cursor(request).expect("a cursor opens");
        let mut entries = Vec::new();
        loop {
            let store = self.store.as_mut().expect("a store is open");
            let (found, more) = next_batch(store, &self.reads, cursor, batch_bytes);
            entries.extend(found);
            if !more {
                break;
            }
        }
        self.run.answers.push(Answer::Entries(entries));
    }

    fn find_in(&mut self, number: u32, key: &[u8]) {
        let found = self.act(|store| {
            store.find_in(number, key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
        });
        self.run.answers.push(Answer::Point(found));
    }

    /// Commits a transaction over one of the snapshots, unless something that it read was written since. The snapshot is
    /// closed.
    pub(super) fn transact(&mut self, which: usize, read: &Read<'_>, changes: &[Change], level: Durability) {
        let Some(number) = self.snapshots.remove(which) else { return };
        read.keys.iter().for_each(|key| self.find_in(number, key));
        let checked = self.make(|store| store.check_unchanged(number, &read.dependencies()));
        self.store().close_snapshot(number);
        self.commit_if(checked, changes, level);
    }

    /// Sets a key if it has the sequence that is guessed.
    pub(super) fn set_if(&mut self, key: &[u8], value: &[u8], guess: Guess, level: Durability) {
        let has = self.act(|store| store.sequence_of(key));
        let sequence = match guess {
            Guess::Right => has,
            Guess::Absent => 0,
            Guess::TooHigh => has + 1,
        };
        let checked = self.make(|store| store.check_conditions(&[Condition { key, sequence }]));
        self.commit_if(checked, &[Change::Set(key.to_vec(), value.to_vec())], level);
    }

    fn commit_if(&mut self, checked: Result<(), Error>, changes: &[Change], level: Durability) {
        let answer = match checked {
            Ok(()) => {
                self.write(changes, true);
                self.commit(level);
                Answer::Committed(self.store().last_sequence())
            }
            Err(Error::Conflict(_)) => Answer::Conflict,
            Err(error) => panic!("{error}"),
        };
        self.run.answers.push(answer);
    }
}
