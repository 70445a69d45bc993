//! The work of programs all day: queues that are filled at one end and emptied at the other, logs whose oldest days are
//! dropped, counters that are raised. Reads of these pass over dead entries, and must not pass over a live one.

use varve::options::Durability;

use crate::change::Change;
use crate::rng::Rng;
use crate::trace::{Op, Range};

/// Days of a log that stay.
const DAYS_KEPT: u32 = 3;
/// Entries of a day at most.
const DAY_MAX: u32 = 16;

#[derive(Debug, Clone, Copy)]
enum Life {
    Queue,
    Log,
    Counters,
}

/// In half of the traces a life goes on among the other operations.
pub(super) fn add_lives(rng: &mut Rng, ops: &mut Vec<Op>) {
    if !rng.chance(1, 2) {
        return;
    }
    let life = rng.pick(&[Life::Queue, Life::Queue, Life::Log, Life::Counters]);
    let levels = [Durability::Memory, Durability::Relaxed, Durability::Strict];
    let mut living = Living { rng, first: 0, next: 0, level: levels[0], written: 0 };
    living.level = living.rng.pick(&levels);
    let steps = living.rng.within(10, 80);
    let mut at: Vec<_> = (0..steps).map(|_| living.rng.index(ops.len() + 1)).collect();
    at.sort_unstable();
    let mut rest = std::mem::take(ops).into_iter();
    let mut used = 0;
    for at in at {
        ops.extend(rest.by_ref().take(at - used));
        used = at;
        ops.extend(living.step(life));
    }
    ops.extend(rest);
}

struct Living<'a> {
    rng: &'a mut Rng,
    /// The first entry of a queue, or the oldest day of a log.
    first: u32,
    /// The next one.
    next: u32,
    level: Durability,
    written: u64,
}

impl Living<'_> {
    fn step(&mut self, life: Life) -> Vec<Op> {
        match life {
            Life::Queue => self.queue(),
            Life::Log => self.log(),
            Life::Counters => self.counters(),
        }
    }

    fn queue(&mut self) -> Vec<Op> {
        let count = self.rng.pick(&[1, 1, 3, 12, 40]);
        match self.rng.weighted(&[4, 4, 1, 1, 4, 2, 1]) {
            0 => {
                self.next += count;
                let pushed = (self.next - count..self.next).map(|number| self.set(job(number))).collect();
                vec![self.write(pushed)]
            }
            1 => {
                let end = self.next.min(self.first + count);
                let popped = (self.first..end).map(|number| Change::Delete(job(number))).collect();
                self.first = end;
                vec![self.write(popped), look(false, Some(1))]
            }
            // A stack is emptied from the other end.
            2 => {
                let start = self.next.saturating_sub(count).max(self.first);
                let popped = (start..self.next).map(|number| Change::Delete(job(number))).collect();
                self.next = start;
                vec![self.write(popped), look(true, Some(1))]
            }
            // Puts back a job that was done.
            3 => {
                let number = self.rng.below(u64::from(self.next) + 1) as u32;
                let again = self.set(job(number));
                let mut ops = vec![look(false, Some(1)), self.write(vec![again])];
                if self.rng.chance(1, 2) {
                    // The cursor is opened before the write and must not see it; the scans behind the write must.
                    ops.swap(0, 1);
                    ops.insert(0, Op::OpenCursor(all(), 1 << 20));
                    ops.extend((0..8).map(Op::StepCursor));
                }
                ops.extend([look(false, Some(2)), look(true, None)]);
                ops
            }
            4 => {
                let limit = self.rng.pick(&[Some(1), Some(3), None]);
                vec![look(self.rng.chance(1, 3), limit)]
            }
            5 => self.refused(),
            _ => self.snapshot(),
        }
    }

    /// Jobs that were done are there again, because the disk had no room for the commit.
    fn refused(&mut self) -> Vec<Op> {
        let end = self.next.min(self.first + 20);
        let mut changes: Vec<_> = (self.first..end).map(|number| Change::Delete(job(number))).collect();
        changes.push(Change::Set(b"report".to_vec(), vec![7; 100_000]));
        let done = Op::Write { changes, batch: true, commit: None };
        let level = self.level.max(Durability::Relaxed);
        let first = look(false, Some(1));
        vec![Op::Quota(0), done, first.clone(), Op::Commit(level), first, Op::Unlimit]
    }

    fn log(&mut self) -> Vec<Op> {
        match self.rng.weighted(&[4, 1, 3, 1]) {
            0 => {
                let day = self.next;
                self.next += 1;
                let count = self.rng.within(1, u64::from(DAY_MAX)) as u32;
                let entries = (0..count).map(|number| self.set(job(day * DAY_MAX + number))).collect();
                let (start, end) = (job(0), job(day.saturating_sub(DAYS_KEPT) * DAY_MAX));
                let start = if self.rng.chance(1, 2) { start } else { job(self.first * DAY_MAX) };
                self.first = day.saturating_sub(DAYS_KEPT);
                vec![self.write(entries), self.write(vec![Change::DeleteRange(start, Some(end))])]
            }
            // An entry comes late, for a day that was dropped.
            1 => {
                let number = self.rng.below(u64::from(self.next * DAY_MAX) + 1) as u32;
                let late = self.set(job(number));
                vec![look(false, Some(1)), self.write(vec![late]), look(false, Some(5))]
            }
            2 => {
                let limit = self.rng.pick(&[Some(1), Some(10), None]);
                vec![look(self.rng.chance(1, 3), limit)]
            }
            _ => self.snapshot(),
        }
    }

    fn counters(&mut self) -> Vec<Op> {
        let raised = (0..self.rng.within(1, 60)).map(|_| {
            let number = self.rng.below(4) as u32;
            if self.rng.chance(1, 20) { Change::Delete(job(number)) } else { self.set(job(number)) }
        });
        let raised = raised.collect();
        let mut ops = vec![self.write(raised)];
        if self.rng.chance(1, 4) {
            ops.extend(self.snapshot());
        }
        ops.push(look(self.rng.chance(1, 2), None));
        ops
    }

    fn snapshot(&mut self) -> Vec<Op> {
        let range = |reverse, limit| Range { reverse, limit, ..all() };
        match self.rng.below(3) {
            0 => vec![Op::OpenSnapshot],
            1 => vec![Op::DropSnapshot(self.rng.index(4))],
            _ => {
                let at = self.rng.index(4);
                let read = |reverse, limit| Op::ReadSnapshot(at, job(0), range(reverse, limit), 1 << 20);
                vec![read(false, Some(1)), read(false, Some(1)), read(true, Some(1))]
            }
        }
    }

    fn set(&mut self, key: Vec<u8>) -> Change {
        self.written += 1;
        Change::Set(key, self.written.to_be_bytes().to_vec())
    }

    fn write(&mut self, changes: Vec<Change>) -> Op {
        let commit = self.rng.chance(5, 6).then_some(self.level);
        Op::Write { changes, batch: self.rng.chance(1, 2), commit }
    }
}

/// The key of a job, an entry or a counter.
fn job(number: u32) -> Vec<u8> {
    [b"job".as_slice(), &number.to_be_bytes()].concat()
}

/// All of them.
fn all() -> Range {
    Range { lower: b"job".to_vec(), upper: Some(b"joc".to_vec()), reverse: false, limit: None }
}

fn look(reverse: bool, limit: Option<u64>) -> Op {
    Op::Scan(Range { reverse, limit, ..all() }, 1 << 20)
}
