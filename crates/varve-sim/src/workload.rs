//! Makes a trace from a seed.
//!
//! Swarm testing (Groce et al., 2012): every seed switches most kinds of operation off or up, and draws
//! its own key space, value sizes and store options, so that rare combinations meet often. Options are tiny on
//! purpose: a flush every few writes, a compaction every few flushes.

use varve::options::{Durability, Options};

use crate::disk::FullStyle;
use crate::model::Change;
use crate::rng::Rng;
use crate::slot::{Keep, PowerLoss};
use crate::trace::{Crash, Guess, Op, Range, Trace};

/// The kinds of operation and how often each comes when the swarm leaves it on.
const KINDS: [(Kind, u32); 24] = [
    (Kind::Write, 40),
    (Kind::Commit, 10),
    (Kind::Get, 15),
    (Kind::Scan, 6),
    (Kind::OpenCursor, 2),
    (Kind::StepCursor, 5),
    (Kind::DropCursor, 1),
    (Kind::Sync, 2),
    (Kind::Seal, 1),
    (Kind::Flush, 2),
    (Kind::Compact, 1),
    (Kind::Freeze, 2),
    (Kind::Slice, 3),
    (Kind::Release, 1),
    (Kind::TakeJob, 4),
    (Kind::StepJob, 8),
    (Kind::AbandonJob, 1),
    (Kind::Reopen, 1),
    (Kind::Crash, 2),
    (Kind::Fuse, 2),
    (Kind::Fault, 1),
    (Kind::Full, 1),
    (Kind::Host, 1),
    (Kind::Snapshot, 5),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Commit,
    Get,
    Scan,
    OpenCursor,
    StepCursor,
    DropCursor,
    Sync,
    Seal,
    Flush,
    Compact,
    Freeze,
    Slice,
    Release,
    TakeJob,
    StepJob,
    AbandonJob,
    Reopen,
    Crash,
    Fuse,
    Fault,
    Full,
    Host,
    Snapshot,
}

/// The time at which every trace starts, in milliseconds.
pub const START_MS: u64 = 1_000_000;

/// Generates the trace of a seed.
#[must_use]
pub fn generate(seed: u64) -> Trace {
    let (mut trace, mut swarm) = begin(seed);
    // Drawn apart, so that the rest of a seed's trace stays what it is.
    swarm.rng = Rng::new(seed ^ 0x7a);
    swarm.add_expiries(&mut trace.ops);
    swarm.add_transactions(&mut trace.ops);
    trace
}

/// The trace of a seed without transactions, conditions and expiries.
#[must_use]
pub fn plain(seed: u64) -> Trace {
    begin(seed).0
}

fn begin(seed: u64) -> (Trace, Swarm) {
    let mut rng = Rng::new(seed);
    let mut options = options(&mut rng);
    let slots = rng.within(8, 40) as u32;
    let full_style = rng.pick(&[FullStyle::Refuses, FullStyle::Shortens]);
    let mut swarm = Swarm::new(rng);
    let births = if swarm.rng.chance(1, 4) { swarm.recoveries() } else { Vec::new() };
    let length = swarm.rng.pick(&[20, 60, 200, 600]);
    let mut ops: Vec<_> = (0..length).map(|_| swarm.op()).collect();
    through_frames(&mut Rng::new(seed ^ 0xf7a), &mut ops);
    without_log(&mut Rng::new(seed ^ 0x106), &mut options, &mut ops);
    (Trace { seed, options, slots, full_style, lie: None, births, ops }, swarm)
}

fn options(rng: &mut Rng) -> Options {
    let memtable_bytes_min = rng.pick(&[512, 2048, 8192, 65_536]);
    let l0_trigger = rng.pick(&[1, 2, 4, 8]);
    Options {
        memory_bytes: rng.pick(&[16 << 10, 256 << 10, 4 << 20]),
        memtable_bytes_min,
        memtable_bytes_max: memtable_bytes_min * rng.pick(&[1, 2, 8]),
        frozen_max: rng.pick(&[1, 2, 3]),
        block_bytes: rng.pick(&[64, 256, 1024, 4096]),
        restart_interval: rng.pick(&[1, 2, 16, 64]),
        table_bytes: rng.pick(&[1 << 10, 8 << 10, 64 << 10]),
        // Few files, tiny levels and jobs: within a trace tables reach several levels, jobs take key ranges, tables move,
        // and small ones are joined.
        files_max: rng.pick(&[8, 24, 128]),
        level_base_bytes: rng.pick(&[1 << 10, 8 << 10, 64 << 10]),
        level_factor: rng.pick(&[2, 4, 10]),
        job_bytes_max: rng.pick(&[4 << 10, 20 << 10, 100 << 10, 1 << 20]),
        l0_trigger,
        l0_stall: l0_trigger + rng.pick(&[1, 4, 12]),
        compress: rng.chance(1, 2),
        log: true,
    }
}

/// In some traces, writes that commit at once go through frames. Drawn apart, as the log is.
fn through_frames(rng: &mut Rng, ops: &mut [Op]) {
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

/// Some stores have no log, and some change their mind. Drawn apart, so that the rest of a seed's trace stays what it is.
fn without_log(rng: &mut Rng, options: &mut Options, ops: &mut Vec<Op>) {
    options.log = !rng.chance(1, 8);
    if rng.chance(1, 6) {
        for _ in 0..rng.within(1, 6) {
            let at = rng.index(ops.len() + 1);
            ops.insert(at, Op::SwitchLog);
            // Most traces end in the middle of a session: let it come to an opening.
            ops.insert(rng.within(at as u64 + 1, ops.len() as u64) as usize, Op::Reopen);
        }
    }
}

struct Swarm {
    rng: Rng,
    weights: Vec<u32>,
    prefix: Vec<u8>,
    keys: u64,
    key_style: u64,
    value_bytes_max: u64,
    batch_max: u64,
    levels: Vec<Durability>,
    deletes: u64,
    range_deletes: u64,
    tears: bool,
    garbage: bool,
    keeps: Vec<Keep>,
    values: u64,
}

impl Swarm {
    fn new(mut rng: Rng) -> Self {
        let weights = KINDS
            .iter()
            .map(|&(kind, weight)| match rng.below(4) {
                _ if kind == Kind::Write => weight,
                0 | 1 => weight,
                2 => weight * 3,
                _ => 0,
            })
            .collect();
        let prefix_bytes = rng.pick(&[0, 0, 7, 8, 20, 300]);
        let levels = [Durability::Memory, Durability::Relaxed, Durability::Strict];
        let levels = levels[rng.index(2)..=rng.within(1, 2) as usize].to_vec();
        let keeps = [Keep::None, Keep::All, Keep::Sectors, Keep::Prefix];
        Self {
            weights,
            prefix: (0..prefix_bytes).map(|at| b'a' + (at % 5) as u8).collect(),
            keys: rng.pick(&[3, 30, 300, 3000]),
            key_style: rng.below(3),
            value_bytes_max: rng.pick(&[0, 20, 200, 2000, 40_000]),
            batch_max: rng.pick(&[1, 3, 40]),
            levels,
            deletes: rng.pick(&[0, 1, 4]),
            range_deletes: rng.pick(&[0, 0, 1, 2]),
            tears: rng.chance(1, 2),
            garbage: rng.chance(1, 3),
            keeps: keeps[rng.index(3)..].to_vec(),
            values: 0,
            rng,
        }
    }

    fn op(&mut self) -> Op {
        let (kind, _) = KINDS[self.rng.weighted(&self.weights)];
        match kind {
            Kind::Write => self.write(),
            Kind::Commit => Op::Commit(self.level()),
            Kind::Get => Op::Get(self.key()),
            Kind::Scan => Op::Scan(self.range(), self.batch_bytes()),
            Kind::OpenCursor => Op::OpenCursor(self.range(), self.batch_bytes()),
            Kind::StepCursor => Op::StepCursor(self.rng.index(8)),
            Kind::DropCursor => Op::DropCursor(self.rng.index(8)),
            Kind::Snapshot => match self.rng.weighted(&[2, 5, 1]) {
                0 => Op::OpenSnapshot,
                1 => Op::ReadSnapshot(self.rng.index(4), self.key(), self.range(), self.batch_bytes()),
                _ => Op::DropSnapshot(self.rng.index(4)),
            },
            Kind::Sync => Op::Sync,
            Kind::Seal => Op::Seal,
            Kind::Flush => Op::Flush,
            Kind::Compact => Op::Compact,
            Kind::TakeJob => Op::TakeJob,
            Kind::StepJob => Op::StepJob(self.rng.pick(&[1, 4, 1000]), self.rng.pick(&[1, 30, 4000])),
            Kind::Freeze => Op::Freeze,
            Kind::Slice => Op::Slice(self.rng.pick(&[1, 30, 4000])),
            Kind::Release => match self.rng.below(3) {
                0 => Op::Release,
                1 => Op::Shrink(self.rng.pick(&[0, 100_000])),
                _ => Op::AskForCompaction,
            },
            Kind::AbandonJob => Op::AbandonJob,
            Kind::Reopen => Op::Reopen,
            Kind::Crash => self.crash_now(),
            Kind::Fuse => Op::Fuse(self.calls(), self.crash()),
            Kind::Fault => self.fault(),
            Kind::Full => self.full(),
            Kind::Host => match self.rng.below(2) {
                0 => Op::AddSlots(self.rng.within(1, 4) as u32),
                _ => Op::Wait(self.rng.pick(&[1, 100, 100_000])),
            },
        }
    }

    fn write(&mut self) -> Op {
        let count = self.rng.within(1, self.batch_max);
        let changes = (0..count).map(|_| self.change()).collect();
        let commit = self.rng.chance(2, 3).then(|| self.level());
        Op::Write { changes, batch: self.rng.chance(1, 2), commit }
    }

    fn change(&mut self) -> Change {
        match self.rng.weighted(&[10, self.deletes as u32, self.range_deletes as u32]) {
            0 => Change::Set(self.key(), self.value()),
            1 => Change::Delete(self.key()),
            _ => {
                let (start, end) = (self.key(), self.key());
                let end = (!self.rng.chance(1, 20)).then_some(end);
                match end {
                    Some(end) if end < start => Change::DeleteRange(end, Some(start)),
                    end => Change::DeleteRange(start, end),
                }
            }
        }
    }

    /// In some traces values expire, and the clock goes now and then, also back.
    fn add_expiries(&mut self, ops: &mut Vec<Op>) {
        if !self.rng.chance(1, 3) {
            return;
        }
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
        for _ in 0..ops.len() / 12 {
            let at = self.rng.index(ops.len() + 1);
            let ms = self.rng.pick(&[1, 100, 1000]);
            ops.insert(at, if self.rng.chance(1, 4) { Op::ClockBack(ms) } else { Op::Wait(ms) });
        }
    }

    /// In most traces snapshots are taken for transactions, and these committed a while later; and there are writes with
    /// conditions.
    fn add_transactions(&mut self, ops: &mut Vec<Op>) {
        if self.rng.chance(1, 3) {
            return;
        }
        for _ in 0..ops.len() / 10 {
            let begin = self.rng.index(ops.len() + 1);
            ops.insert(begin, Op::Begin);
            let last = (begin + 25).min(ops.len()) as u64;
            let commit = self.rng.within(begin as u64 + 1, last) as usize;
            ops.insert(commit, self.transaction());
        }
        for _ in 0..ops.len() / 20 {
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

    /// A key of the space: fixed width, decimal text (keys that begin others), or wild bytes.
    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.keys);
        let mut key = self.prefix.clone();
        match self.key_style {
            0 => key.extend_from_slice(&(number as u32).to_be_bytes()),
            1 => key.extend_from_slice(number.to_string().as_bytes()),
            _ => {
                let mut wild = Rng::new(number);
                let bytes = 1 + wild.index(24);
                // Keys begin with the byte of a type, none of which is 0xff.
                key.push(wild.pick(&[0x10, 0x20, b'k', 0x7f, 0xfe]));
                key.extend((1..bytes).map(|_| wild.pick(&[0, 1, b'k', 0x7f, 0x80, 0xff])));
            }
        }
        key
    }

    /// Bytes that no other value of the trace has, once they are long enough to tell.
    fn value(&mut self) -> Vec<u8> {
        self.values += 1;
        let bytes = match self.rng.below(4) {
            0 => self.rng.below(self.value_bytes_max + 1),
            1 => 0,
            _ => self.rng.below(self.value_bytes_max / 10 + 12),
        };
        let mut value = self.values.to_le_bytes().to_vec();
        let compressible = self.rng.chance(1, 2);
        value.extend((8..bytes).map(|at| if compressible { at as u8 / 64 } else { self.rng.bits() as u8 }));
        value.truncate(bytes as usize);
        value
    }

    fn range(&mut self) -> Range {
        let (mut lower, mut upper) = (self.key(), self.key());
        if upper < lower && !self.rng.chance(1, 10) {
            std::mem::swap(&mut lower, &mut upper);
        }
        Range {
            lower: if self.rng.chance(1, 3) { Vec::new() } else { lower },
            upper: (!self.rng.chance(1, 3)).then_some(upper),
            reverse: self.rng.chance(1, 2),
            limit: self.rng.chance(1, 3).then(|| self.rng.below(20)),
        }
    }

    fn batch_bytes(&mut self) -> usize {
        self.rng.pick(&[1, 100, 5000, 1 << 20])
    }

    fn level(&mut self) -> Durability {
        self.rng.pick(&self.levels)
    }

    fn calls(&mut self) -> u64 {
        let most = self.rng.pick(&[2, 6, 30, 200]);
        self.rng.below(most)
    }

    fn crash(&mut self) -> Crash {
        if self.rng.chance(1, 3) {
            return Crash::Process;
        }
        let torn_sectors = self.tears && self.rng.chance(1, 2);
        let garbage = self.garbage && self.rng.chance(1, 2);
        Crash::Power(PowerLoss { keep: self.rng.pick(&self.keeps), torn_sectors, garbage })
    }

    fn crash_now(&mut self) -> Op {
        Op::Crash(self.crash(), self.recoveries())
    }

    fn recoveries(&mut self) -> Vec<(u64, Crash)> {
        let count = self.rng.pick(&[0, 0, 1, 1, 3]);
        (0..count).map(|_| (self.calls(), self.crash())).collect()
    }

    fn fault(&mut self) -> Op {
        match self.rng.weighted(&[1, 1, 2]) {
            0 => Op::ShortWrite(self.calls()),
            1 => Op::FlushFailure(self.calls()),
            _ => self.full(),
        }
    }

    /// A disk that has no room, and what is done about it.
    fn full(&mut self) -> Op {
        match self.rng.weighted(&[4, 4, 6, 1]) {
            0 => Op::Quota(self.rng.pick(&[0, 100, 10_000, 300_000])),
            1 => Op::Unlimit,
            2 => {
                let count = self.rng.within(1, self.batch_max);
                Op::CommitDeletes((0..count).map(|_| self.key()).collect(), self.level())
            }
            _ => Op::FreeRoom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_makes_the_same_trace() {
        assert_eq!(generate(11), generate(11));
        assert_ne!(generate(11).ops, generate(12).ops);
    }

    #[test]
    fn the_first_hundred_seeds_use_every_kind_of_operation() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..100 {
            seen.extend(generate(seed).ops.iter().map(std::mem::discriminant));
        }
        assert_eq!(seen.len(), 39);
    }
}
