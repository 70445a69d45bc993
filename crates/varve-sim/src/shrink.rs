//! Makes a failing trace short.
//!
//! Delta debugging without the theory: drop runs of operations, halving their length down to one; then
//! drop single changes out of writes and single crashes out of recoveries; repeat while that helps.
//! Invariant: the returned trace fails, because it was the last trace that failed.

use crate::trace::{Op, Trace};

/// A shorter trace for which `fails` still holds, tried at most `attempts_max` times.
pub fn shrink(trace: &Trace, attempts_max: u32, mut fails: impl FnMut(&Trace) -> bool) -> Trace {
    let mut best = trace.clone();
    let mut attempts = attempts_max;
    let mut keep_if_failing = |candidate: Trace, best: &mut Trace| {
        if attempts == 0 {
            return false;
        }
        attempts -= 1;
        let failing = fails(&candidate);
        if failing {
            *best = candidate;
        }
        failing
    };
    loop {
        let before = weight(&best);
        let mut length = best.ops.len().div_ceil(2).max(1);
        loop {
            let mut start = 0;
            while start < best.ops.len() {
                let mut candidate = best.clone();
                candidate.ops.drain(start..best.ops.len().min(start + length));
                if !keep_if_failing(candidate, &mut best) {
                    start += length;
                }
            }
            if length == 1 {
                break;
            }
            length = length.div_ceil(2);
        }
        for part in (0..best.births.len()).rev() {
            let mut candidate = best.clone();
            candidate.births.remove(part);
            keep_if_failing(candidate, &mut best);
        }
        for position in 0..best.ops.len() {
            let mut part = parts(&best.ops[position]);
            while part > 0 {
                part -= 1;
                let mut candidate = best.clone();
                drop_part(&mut candidate.ops[position], part);
                keep_if_failing(candidate, &mut best);
            }
        }
        if weight(&best) == before {
            return best;
        }
    }
}

/// Parts that can be dropped out of an operation and leave something.
fn parts(op: &Op) -> usize {
    match op {
        Op::Write { changes, .. } | Op::Frame { changes, .. } if changes.len() > 1 => changes.len(),
        Op::Transact { keys, ranges, changes, .. } => keys.len() + ranges.len() + changes.len(),
        Op::CommitDeletes(keys, _) if keys.len() > 1 => keys.len(),
        Op::Crash(_, recoveries) => recoveries.len(),
        _ => 0,
    }
}

fn drop_part(op: &mut Op, part: usize) {
    match op {
        Op::Write { changes, .. } | Op::Frame { changes, .. } if changes.len() > 1 => {
            changes.remove(part);
        }
        Op::CommitDeletes(keys, _) if keys.len() > 1 => {
            keys.remove(part);
        }
        Op::Transact { keys, ranges, changes, .. } => {
            if part < keys.len() {
                keys.remove(part);
            } else if part < keys.len() + ranges.len() {
                ranges.remove(part - keys.len());
            } else {
                changes.remove(part - keys.len() - ranges.len());
            }
        }
        Op::Crash(_, recoveries) => {
            recoveries.remove(part);
        }
        _ => {}
    }
}

fn weight(trace: &Trace) -> usize {
    trace.births.len() + trace.ops.iter().map(|op| 1 + parts(op)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::generate;

    #[test]
    fn only_the_operations_that_matter_are_left() {
        let mut trace = generate(1);
        trace.ops = (0..100).map(Op::AddSlots).collect();
        let fails =
            |trace: &Trace| trace.ops.contains(&Op::AddSlots(17)) && trace.ops.contains(&Op::AddSlots(90));
        assert_eq!(shrink(&trace, 1000, fails).ops, [Op::AddSlots(17), Op::AddSlots(90)]);
    }

    #[test]
    fn changes_are_dropped_out_of_a_batch() {
        let mut trace = generate(1);
        let changes = (0..9).map(|key| crate::change::Change::Delete(vec![key])).collect();
        trace.ops = vec![Op::Write { changes, batch: true, commit: None }];
        let fails = |trace: &Trace| {
            let wanted = crate::change::Change::Delete(vec![4]);
            matches!(&trace.ops[..], [Op::Write { changes, .. }] if changes.contains(&wanted))
        };
        let Op::Write { changes, .. } = &shrink(&trace, 1000, fails).ops[0] else { panic!("a write") };
        assert_eq!(changes.len(), 1);
    }

    #[test]
    fn attempts_are_bounded() {
        let mut tried = 0;
        shrink(&generate(1), 5, |_| {
            tried += 1;
            false
        });
        assert_eq!(tried, 5);
    }
}
