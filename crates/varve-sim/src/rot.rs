//! Damage: a store is written and closed, then bytes of its files are flipped, one at a time.
//!
//! Invariant under test: a closed (and so sealed) store never gives a wrong answer. After a flip it either holds
//! what it held before, or says that it is damaged.

use varve::storage::{SLOT_HEADER_BYTES, SlotHeader, Slots};
use varve::{Code, Error};

use crate::disk::Disk;
use crate::model::difference;
use crate::rng::Rng;
use crate::run::Observed;
use crate::scan::{Expectation, ScanError, contents};
use crate::session::Session;
use crate::trace::{Op, Range, Trace};

/// What the flips came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damage {
    /// The store said that it was damaged.
    pub told: u64,
    /// The flipped byte did not matter.
    pub harmless: u64,
}

/// Does the harmless operations of a trace, closes the store, and opens it after each of `flips` single flips.
///
/// # Errors
/// A wrong answer, in words.
pub fn flip_bytes(trace: &Trace, flips: u32) -> Result<Damage, String> {
    let mut observed = Observed::new();
    let calm = Trace { births: Vec::new(), ops: Vec::new(), ..trace.clone() };
    let mut session = Session::start(&calm, &mut observed)?;
    for op in trace.ops.iter().filter(|op| is_harmless(op)) {
        session.perform(op)?;
    }
    session.close()?;
    let disk = session.disk.clone();
    let mut rng = Rng::new(trace.seed);
    let mut damage = Damage::default();
    for _ in 0..flips {
        session.disk = disk.fork();
        let place = flip_one(&session.disk, &mut rng);
        match reread(&mut session) {
            Ok(()) => damage.harmless += 1,
            Err(ScanError::Store(error)) if tells(&error) => damage.told += 1,
            Err(ScanError::Store(error)) => return Err(format!("{place}: {error} ({error:?})")),
            Err(ScanError::Wrong(what)) => return Err(format!("{place}: a wrong answer: {what}")),
        }
    }
    Ok(damage)
}

fn is_harmless(op: &Op) -> bool {
    matches!(
        op,
        Op::Write { .. }
            | Op::Commit(_)
            | Op::Sync
            | Op::Seal
            | Op::Flush
            | Op::Compact
            | Op::Freeze
            | Op::Slice(_)
            | Op::Release
            | Op::TakeJob
            | Op::StepJob(..)
            | Op::Reopen
    )
}

/// A damaged version field may read as a newer format.
fn tells(error: &Error) -> bool {
    matches!(error.code(), Code::Corrupt | Code::Version)
}

fn flip_one(disk: &Disk, rng: &mut Rng) -> String {
    let sizes = disk.sizes();
    let used: Vec<u32> = (0..sizes.len() as u32).filter(|&slot| sizes[slot as usize] > 0).collect();
    let slot = rng.pick(&used);
    let size = sizes[slot as usize];
    // Most of a slot is zeros grown ahead of need: nearly always flip a byte that says something.
    let mut offset = rng.index(size);
    for _ in 0..rng.below(1000) {
        let mut byte = [0];
        if disk.slots().read(slot, offset as u64, &mut byte).is_ok() && byte[0] != 0 {
            break;
        }
        offset = rng.index(size);
    }
    let mask = 1 << rng.below(8);
    let mut page = [0; SLOT_HEADER_BYTES as usize];
    let file = match disk.slots().read(slot, 0, &mut page).map(|_| SlotHeader::decode(&page)) {
        Ok(Ok(Some(SlotHeader { file: Some(file), .. }))) => file.to_string(),
        _ => "no file".to_owned(),
    };
    disk.flip(slot, offset, mask);
    format!("slot {slot} ({file}), byte {offset} of {size}, mask {mask:#04x}")
}

/// Opens the store and reads everything, both ways.
fn reread(session: &mut Session<'_>) -> Result<(), ScanError> {
    let store = session.open().map_err(ScanError::Store)?;
    let found = contents(&store)?;
    if let Some(first) = difference(session.model.state(), &found).into_iter().next() {
        return Err(ScanError::Wrong(first));
    }
    let backward = Range { lower: Vec::new(), upper: None, reverse: true, limit: None };
    let scan =
        Expectation::open(&store, session.model.state(), &backward, 1 << 20).map_err(ScanError::Store)?;
    scan.finish(&store).map(|_| ())
}
