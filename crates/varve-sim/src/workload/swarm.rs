//! The choices of one seed: which kinds of operation and how often, its keys, values, ranges, levels and faults.

use varve::options::Durability;

use crate::change::Change;
use crate::rng::Rng;
use crate::slot::{Keep, PowerLoss};
use crate::trace::{Crash, Op, Range};

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
    (Kind::AbortJob, 1),
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
    AbortJob,
    Reopen,
    Crash,
    Fuse,
    Fault,
    Full,
    Host,
    Snapshot,
}

/// The draws of a seed.
pub(super) struct Swarm {
    pub(super) rng: Rng,
    weights: Vec<u32>,
    prefix: Vec<u8>,
    keys: u64,
    key_style: u64,
    value_bytes_max: u64,
    pub(super) batch_max: u64,
    levels: Vec<Durability>,
    deletes: u64,
    range_deletes: u64,
    tears: bool,
    garbage: bool,
    keeps: Vec<Keep>,
    values: u64,
}

impl Swarm {
    pub(super) fn new(mut rng: Rng) -> Self {
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

    pub(super) fn op(&mut self) -> Op {
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
            Kind::AbortJob => Op::AbortJob,
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

    pub(super) fn change(&mut self) -> Change {
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

    /// A key of the space: fixed width, decimal text (keys that begin others), or wild bytes.
    pub(super) fn key(&mut self) -> Vec<u8> {
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

    /// Bytes that no other value of the trace has, once they are long enough to be distinct.
    pub(super) fn value(&mut self) -> Vec<u8> {
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

    pub(super) fn range(&mut self) -> Range {
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

    pub(super) fn level(&mut self) -> Durability {
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

    pub(super) fn recoveries(&mut self) -> Vec<(u64, Crash)> {
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
