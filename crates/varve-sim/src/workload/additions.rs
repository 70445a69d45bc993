//! Additions to a trace whose operations are drawn: frames, stores without a log, expiries, transactions.
//!
//! Each addition draws from a generator of its own, or after everything else, so that the rest of a seed's trace stays what
//! it is.

use varve::options::Options;

use super::START_MS;
use super::swarm::Swarm;
use crate::change::Change;
use crate::rng::Rng;
use crate::trace::{Guess, Op, Range};

const HOUR_MS: u64 = 3_600_000;

/// In some traces, writes that commit at once go through frames. Drawn apart, as the log is.
pub(super) fn through_frames(rng: &mut Rng, ops: &mut [Op]) {
    if !rng.chance(1, 3) {
        return;
    }
    for op in ops {
        if let Op::Write { changes, batch, commit: Some(level) } = op
            && rng.chance(2, 3)
        {
            *op = Op::Frame { changes: std::mem::take(changes), batch: *batch, level: *level };
        }
    }
}

/// Some stores have no log, and some switch. Drawn apart, so that the rest of a seed's trace stays as it is.
pub(super) fn without_log(rng: &mut Rng, options: &mut Options, ops: &mut Vec<Op>) {
    options.log = !rng.chance(1, 8);
    if rng.chance(1, 6) {
        for _ in 0..rng.within(1, 6) {
            let at = rng.index(ops.len() + 1);
            ops.insert(at, Op::SwitchLog);
            // Most traces end in the middle of a session: insert an opening after the switch.
            ops.insert(rng.within(at as u64 + 1, ops.len() as u64) as usize, Op::Reopen);
        }
    }
}

/// In some traces the host's clock is an hour ahead for a while. The store's time does not go back when it is set right: lifetimes of all
/// later entries count from there. Drawn apart.
pub(super) fn hour_ahead(rng: &mut Rng, ops: &mut Vec<Op>) {
    if !rng.chance(1, 6) {
        return;
    }
    let from = rng.index(ops.len() + 1);
    for op in &mut ops[from..] {
        if let Op::Write { changes, .. } | Op::Frame { changes, .. } = op {
            for change in changes {
                if let Change::SetUntil(.., at) = change {
                    *at += HOUR_MS;
                }
            }
        }
    }
    ops.insert(from, Op::Wait(HOUR_MS));
    ops.insert(from + 1 + rng.index(ops.len() - from), Op::ClockBack(HOUR_MS));
}

impl Swarm {
    /// In some traces values expire, and the clock moves now and then, sometimes back.
    pub(super) fn add_expiries(&mut self, ops: &mut Vec<Op>) {
        if self.rng.chance(1, 3) {
            self.put_expiries(ops, 12);
        }
    }

    /// Values that expire, and a step of the clock for so many operations.
    pub(super) fn put_expiries(&mut self, ops: &mut Vec<Op>, ops_per_step: usize) {
        let mut now_ms = START_MS;
        for op in ops.iter_mut() {
            match op {
                Op::Wait(ms) => now_ms += *ms,
                Op::Write { changes, .. } | Op::Frame { changes, .. } => {
                    for change in changes {
                        if let Change::Set(key, value) = change
                            && self.rng.chance(1, 3)
                        {
                            let at = now_ms + self.rng.within(1, 2000);
                            *change = Change::SetUntil(std::mem::take(key), std::mem::take(value), at);
                        }
                    }
                }
                _ => {}
            }
        }
        for _ in 0..ops.len() / ops_per_step {
            let at = self.rng.index(ops.len() + 1);
            let ms = self.rng.pick(&[1, 100, 1000]);
            ops.insert(at, if self.rng.chance(1, 4) { Op::ClockBack(ms) } else { Op::Wait(ms) });
        }
    }

    /// In most traces snapshots are opened for transactions, and these committed a while later; and there are writes with
    /// conditions.
    pub(super) fn add_transactions(&mut self, ops: &mut Vec<Op>) {
        if !self.rng.chance(1, 3) {
            self.put_transactions(ops, 10);
        }
    }

    /// A transaction for so many operations, and half as many writes with a condition.
    pub(super) fn put_transactions(&mut self, ops: &mut Vec<Op>, ops_per_transaction: usize) {
        for _ in 0..ops.len() / ops_per_transaction {
            let begin = self.rng.index(ops.len() + 1);
            ops.insert(begin, Op::Begin);
            let last = (begin + 25).min(ops.len()) as u64;
            let commit = self.rng.within(begin as u64 + 1, last) as usize;
            ops.insert(commit, self.transaction());
        }
        for _ in 0..ops.len() / (2 * ops_per_transaction) {
            let at = self.rng.index(ops.len() + 1);
            let guess = self.rng.pick(&[Guess::Right, Guess::Right, Guess::Absent, Guess::TooHigh]);
            ops.insert(at, Op::SetIf(self.key(), self.value(), guess, self.level()));
        }
    }

    fn transaction(&mut self) -> Op {
        let (keys, ranges) = (self.rng.below(4), self.rng.below(3));
        let changes = self.rng.within(1, self.batch_max.min(5));
        Op::Transact {
            snapshot: self.rng.index(4),
            keys: (0..keys).map(|_| self.key()).collect(),
            ranges: (0..ranges)
                .map(|_| {
                    let Range { lower, upper, .. } = self.range();
                    (lower, upper)
                })
                .collect(),
            changes: (0..changes).map(|_| self.change()).collect(),
            level: self.level(),
            framed: self.rng.chance(1, 2),
        }
    }
}
