//! Makes a trace from a seed.
//!
//! Swarm testing (Groce et al., 2012): every seed switches most kinds of operation off or up, and draws
//! its own key space, value sizes and store options, so that rare combinations meet often. Options are tiny on
//! purpose: a flush every few writes, a compaction every few flushes.

mod additions;
mod lives;
mod swarm;

use varve::Encryption;
use varve::options::Options;

use self::additions::{hour_ahead, through_frames, without_log};
use self::lives::add_lives;
use self::swarm::Swarm;
use crate::disk::FullStyle;
use crate::keys::add_keys;
use crate::rng::Rng;
use crate::trace::{Op, Trace};

/// The time at which every trace starts, in milliseconds.
pub const START_MS: u64 = 1_000_000;

/// Generates the trace of a seed. For one seed in five, reads wait; for one in three, the store is encrypted; for one in six, the host's
/// clock is ahead for a while.
#[must_use]
pub fn generate(seed: u64) -> Trace {
    let mut trace = unencrypted(seed);
    add_keys(&mut Rng::new(seed ^ 0xc1f), &mut trace);
    hour_ahead(&mut Rng::new(seed ^ 0x60a), &mut trace.ops);
    trace
}

/// As [`generate`], without encryption: the traces of the stories from before there was any.
#[must_use]
pub fn unencrypted(seed: u64) -> Trace {
    let (mut trace, mut swarm) = begin(seed);
    // Drawn apart, so that the rest of a seed's trace stays as it is.
    swarm.rng = Rng::new(seed ^ 0x7a);
    swarm.add_expiries(&mut trace.ops);
    swarm.add_transactions(&mut trace.ops);
    add_lives(&mut Rng::new(seed ^ 0x11fe), &mut trace.ops);
    trace.waits = Rng::new(seed ^ 0x3a17).chance(1, 5);
    trace
}

/// The trace of a seed with only the wanted operations, at most so many of them. It also has transactions, conditions,
/// expiries and steps of the clock, more of them than [`generate`] has. Nothing dies while the store is made.
#[must_use]
pub fn dense(seed: u64, drawn_max: usize, is_wanted: impl Fn(&Op) -> bool) -> Trace {
    let (mut trace, mut swarm) = begin(seed);
    trace.births.clear();
    trace.ops.retain(is_wanted);
    trace.ops.truncate(drawn_max);
    swarm.rng = Rng::new(seed ^ 0x7a);
    swarm.put_expiries(&mut trace.ops, 5);
    swarm.put_transactions(&mut trace.ops, 8);
    // Few snapshots are open at a time: let each transaction find one.
    for op in &mut trace.ops {
        if let Op::Transact { snapshot, .. } = op {
            *snapshot = 0;
        }
    }
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
    options.history_bytes = Rng::new(seed ^ 0x415).pick(&[Some(0), None, Some(3000), Some(1 << 20)]);
    options.flush_when_full = !Rng::new(seed ^ 0xf1).chance(1, 8);
    (Trace { seed, options, slots, full_style, lie: None, waits: false, births, ops }, swarm)
}

pub(crate) fn options(rng: &mut Rng) -> Options {
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
        flush_when_full: true,
        history_bytes: Some(0),
        encryption: Encryption::none(),
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
        assert_eq!(seen.len(), 40);
    }
}
