//! Transactions over open snapshots, and writes with a condition, compared with the oracle.
//!
//! Other operations come between a snapshot and the transaction that read it. So writes interleave in any order, memtables are
//! flushed and tables merged meanwhile, and the power may go at any call.
//!
//! Invariant under test: a transaction is refused exactly when something that it read was written after its snapshot, and the
//! conflict names such a key; a refused transaction or write changes nothing.

use varve::frame::{Operation, header};
use varve::options::Durability;
use varve::store::{Condition, Dependency};
use varve::{Code, Error};

use crate::change::{Change, range_end, show};
use crate::frames::{Answer, batch_of, framed, put, put_item, sequence_of};
use crate::session::{Outcome, Session};
use crate::snapshots::OpenSnapshot;
use crate::trace::{Guess, Op};

/// The reads of a transaction.
pub(crate) struct Read<'a> {
    pub(crate) keys: &'a [Vec<u8>],
    pub(crate) ranges: &'a [(Vec<u8>, Option<Vec<u8>>)],
}

impl Read<'_> {
    /// Keys and ranges in the engine's form.
    pub(crate) fn dependencies(&self) -> Vec<Dependency<'_>> {
        let keys = self.keys.iter().map(|key| Dependency { start: key, end: None });
        let ranges = self.ranges.iter().map(|(start, end)| Dependency { start, end: Some(range_end(end)) });
        keys.chain(ranges).collect()
    }
}

/// The batch of a transaction and the close of its snapshot, as one frame; lifetimes count from `now_ms`.
pub(crate) fn frame_of(
    read: &Read<'_>,
    changes: &[Change],
    now_ms: u64,
    level: Durability,
    snapshot: u8,
) -> Vec<u8> {
    let mut items = Vec::new();
    for key in read.keys {
        put_item(&mut items, [3, 0], key, &[]);
    }
    for (start, end) in read.ranges {
        // An empty key means the end of the store.
        put_item(&mut items, [4, 0], start, end.as_deref().unwrap_or_default());
    }
    let mut batch = batch_of(changes, now_ms);
    let count = changes.len() + read.keys.len() + read.ranges.len();
    batch[..4].copy_from_slice(&(count as u32).to_le_bytes());
    batch.extend_from_slice(&items);
    let mut frame = header(0, 0, 2).to_vec();
    put(&mut frame, 0, (Operation::Batch, level as u8, snapshot), &[], &batch);
    put(&mut frame, 1, (Operation::SnapshotClose, 0, snapshot), &[], &[]);
    frame
}

impl Session<'_> {
    /// Commits a transaction over one of the snapshots, which is closed by that.
    pub(crate) fn transact(
        &mut self,
        op: &Op,
        which: usize,
        read: &Read<'_>,
        changes: &[Change],
        (level, in_frame): (Durability, bool),
    ) -> Outcome {
        // Data that is staged before it may be refused later: a frame commits it first, and so does this.
        if which >= self.snapshots.len() || !self.commit_staged()? {
            return Ok(());
        }
        let Some(snapshot) = self.snapshots.remove(which) else { return Ok(()) };
        self.read_in_transaction(&snapshot, read)?;
        if in_frame {
            // The frame closes the snapshot.
            return self.transact_in_frame(op, &snapshot, read, changes, level);
        }
        let dependencies = read.dependencies();
        let checked = self.make(|store| store.check_unchanged(snapshot.number, &dependencies))?;
        self.store()?.close_snapshot(snapshot.number);
        match checked {
            Ok(()) => {
                self.expect_no_conflict(op, &snapshot, read)?;
                self.observed.totals.transactions += 1;
                self.write(changes, true, Some(level))
            }
            Err(Error::Conflict(conflict)) => {
                self.expect_conflict(op, &snapshot, read, (&conflict.key, conflict.found))
            }
            Err(_) if self.disk.is_dead() => Ok(()),
            Err(error) => Err(format!("{op}: {error} ({error:?})")),
        }
    }

    fn read_in_transaction(&mut self, snapshot: &OpenSnapshot, read: &Read<'_>) -> Outcome {
        for key in read.keys {
            let found = self.make(|store| {
                store.find_in(snapshot.number, key, |entry| {
                    entry.map(|entry| (entry.value.to_vec(), entry.sequence))
                })
            })?;
            match found {
                Ok(found) if found.as_ref() == snapshot.state.get(key) => {}
                Err(_) if self.disk.is_dead() => return Ok(()),
                found => return Err(format!("a transaction read {} as {found:?}", show(key))),
            }
        }
        Ok(())
    }

    /// Sends the batch of a transaction and the close of its snapshot as one frame.
    fn transact_in_frame(
        &mut self,
        op: &Op,
        snapshot: &OpenSnapshot,
        read: &Read<'_>,
        changes: &[Change],
        level: Durability,
    ) -> Outcome {
        let now_ms = self.store()?.now_ms();
        let changes = &framed(changes, now_ms)[..];
        let frame = frame_of(read, changes, now_ms, level, snapshot.number as u8);
        let before = self.store()?.last_sequence();
        let answers = self.run_frame(op, &frame)?;
        let reached = self.reached(level)?;
        match answers.first() {
            Some(Answer::Ok(receipt)) => {
                self.expect_no_conflict(op, snapshot, read)?;
                self.observed.totals.transactions += 1;
                let sequence = sequence_of(op, receipt, reached)?;
                self.record_frame(op, before, vec![(sequence, changes)], Vec::new(), reached)
            }
            Some(Answer::Conflict(found, key)) => self.expect_conflict(op, snapshot, read, (key, *found)),
            Some(Answer::Error(code)) => {
                let doubt = [Code::Io as u8, Code::Poisoned as u8].contains(code);
                let unknown = if doubt { vec![(*code, changes)] } else { Vec::new() };
                self.record_frame(op, before, Vec::new(), unknown, reached)?;
                match *code {
                    code if code == Code::StorageFull as u8 => self.excuse(op, Error::StorageFull),
                    code if code == Code::Poisoned as u8 => self.excuse(op, Error::Poisoned),
                    code if code == Code::Io as u8 => self.excuse(op, Error::Io("in a frame")),
                    code => Err(format!("{op}: a transaction was refused with code {code}")),
                }
            }
            _ => Err(format!("{op}: a transaction got no answer")),
        }
    }

    fn expect_no_conflict(&self, op: &Op, snapshot: &OpenSnapshot, read: &Read<'_>) -> Outcome {
        for Dependency { start, end } in read.dependencies() {
            if let Some((sequence, _)) = self.model.written_since(snapshot.sequence, start, end).next() {
                let (start, snapshot) = (show(start), snapshot.sequence);
                return Err(format!(
                    "{op}: committed, though sequence {sequence} wrote what begins at {start} after snapshot {snapshot}"
                ));
            }
        }
        Ok(())
    }

    /// The conflict names a key that was read, and a write of it after the snapshot.
    fn expect_conflict(
        &mut self,
        op: &Op,
        snapshot: &OpenSnapshot,
        read: &Read<'_>,
        (key, found): (&[u8], u64),
    ) -> Outcome {
        self.observed.totals.conflicts += 1;
        let is_read = read
            .dependencies()
            .iter()
            .any(|read| read.start <= key && read.end.map_or(key == read.start, |end| key < end));
        let mut since = self.model.written_since(snapshot.sequence, key, None);
        let is_written = since.any(|(sequence, change)| {
            let is_set = matches!(change, Change::Set(..) | Change::SetUntil(..));
            if found == 0 {
                !is_set || matches!(change, Change::SetUntil(..))
            } else {
                is_set && *sequence == found
            }
        });
        if is_read && is_written {
            return Ok(());
        }
        Err(format!(
            "{op}: a conflict with {} at sequence {found}, after snapshot {} (read {is_read}, written {is_written})",
            show(key),
            snapshot.sequence
        ))
    }

    /// Sets a key if it has the sequence that is guessed.
    pub(crate) fn set_if(&mut self, key: &[u8], value: &[u8], guess: Guess, level: Durability) -> Outcome {
        if !self.commit_staged()? {
            return Ok(());
        }
        let has = self.model.state().get(key).map_or(0, |(_, sequence)| *sequence);
        let wanted = match guess {
            Guess::Right => has,
            Guess::Absent => 0,
            Guess::TooHigh => has + 1,
        };
        let checked = self.make(|store| store.check_conditions(&[Condition { key, sequence: wanted }]))?;
        match checked {
            Ok(()) if wanted == has => {
                self.write(&[Change::Set(key.to_vec(), value.to_vec())], true, Some(level))
            }
            Err(Error::Conflict(conflict))
                if wanted != has && conflict.key == key && conflict.found == has =>
            {
                self.observed.totals.conflicts += 1;
                Ok(())
            }
            Err(_) if self.disk.is_dead() => Ok(()),
            other => Err(format!("{} has sequence {has}; asked for {wanted}: {other:?}", show(key))),
        }
    }
}
