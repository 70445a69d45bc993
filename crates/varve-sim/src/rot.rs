//! Damage: a store is written and closed, then its files are damaged in one place. A bit is flipped, or a sector contains the bytes of
//! another place (a misdirected write), or a sector contains zeros (a lost write).
//!
//! Invariant under test: a closed (and so sealed) store never gives a wrong answer. After the damage it either has the contents of before,
//! or reports that it is damaged.
//!
//! Without the sector that contains the very end of a manifest, or the beginning or the end of the newest log, the store looks as if these
//! bytes had never been written, and no check can notice it. Therefore only bit flips are tried in the newest log. The pages that say what
//! slots contain are another subject: see `pages.rs`.

use varve::check::{Check, CheckReport, CheckStep, SlotPage};
use varve::repair::{Repair, RepairOptions, RepairReport};
use varve::storage::{Claim, MemorySlots, SLOT_HEADER_BYTES, SlotHeader, SlotPool, Slots};
use varve::types::{FileKind, FileName};
use varve::{Code, Encryption, Error, Host, Keyring, Options, Store};

use crate::change::State;
use crate::difference::difference;
use crate::disk::{Disk, SimSlots};
use crate::keys::keys_of;
use crate::rng::Rng;
use crate::run::Observed;
use crate::scan::{Expectation, ScanError, contents};
use crate::session::Session;
use crate::trace::{Op, Range, Trace};
use crate::waiting::AtOnce;

/// A fault at one place of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// One bit is flipped.
    Flip,
    /// A sector contains the bytes of a sector elsewhere, of this file or another.
    Misdirected,
    /// A sector contains zeros.
    Lost,
}

/// Bytes that a disk writes as one.
const SECTOR: usize = 512;

/// The outcome of the faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damage {
    /// The store reported that it was damaged.
    pub reported: u64,
    /// The damaged bytes did not matter.
    pub harmless: u64,
}

/// Does the harmless operations of a trace, closes the store, and opens it after each of `count` single faults.
///
/// # Errors
/// A wrong answer, in words.
pub fn damage(trace: &Trace, fault: Fault, count: u32) -> Result<Damage, String> {
    let mut observed = Observed::new();
    let calm = calm(trace);
    let mut session = closed_after(trace, &calm, &mut observed)?;
    let disk = session.disk.clone();
    let mut rng = Rng::new(trace.seed);
    let mut damage = Damage::default();
    for _ in 0..count {
        session.disk = disk.fork();
        let place = match fault {
            Fault::Flip => Some(flip_one(&session.disk, &mut rng)),
            Fault::Misdirected | Fault::Lost => replace_one(&session.disk, fault, &mut rng),
        };
        let Some(place) = place else { continue };
        match reread(&mut session) {
            Ok(()) => damage.harmless += 1,
            Err(ScanError::Store(error)) if is_reported(&error) => damage.reported += 1,
            Err(ScanError::Store(error)) => return Err(format!("{place}: {error} ({error:?})")),
            Err(ScanError::Wrong(what)) => return Err(format!("{place}: a wrong answer: {what}")),
        }
    }
    Ok(damage)
}

/// Does the harmless operations of a trace and closes the store. A check must find nothing wrong with it, and a repair must give a store
/// that contains the same, sequences included. Returns how many tables there were.
///
/// # Errors
/// The finding of the check or the comparison, in words.
pub fn check_and_repair(trace: &Trace) -> Result<u64, String> {
    let mut observed = Observed::new();
    let calm = calm(trace);
    let mut session = closed_after(trace, &calm, &mut observed)?;
    let slots = session.disk.fork().slots();
    let keys = |slots| SlotPool::open(slots).and_then(|pool| keys_of(&pool, trace, u64::MAX));
    let encryption = keys(session.disk.fork().slots()).map_err(|error| error.to_string())?;
    let found = check(&slots, &encryption.keyring).map_err(|error| error.to_string())?;
    if !found.problems.is_empty() {
        return Err(format!("a sound store has problems: {:?}", found.problems));
    }
    if encryption.keyring.current() > 0 {
        let blind = check(&slots, &Keyring::plain([0; 16])).map_err(|error| error.to_string())?;
        if !blind.without_key || !blind.problems.is_empty() || blind.tables < found.tables {
            return Err(format!("without its key a sound store has problems: {blind:?}"));
        }
    }
    let after = contents_of_repaired(&session, slots, encryption)?;
    let before = contents(&session.open().map_err(|error| error.to_string())?, &AtOnce)
        .map_err(|error| format!("{error:?}"))?;
    match difference(&before, &after).into_iter().next() {
        Some(first) => Err(format!("the repaired store differs: {first}")),
        None => Ok(found.tables),
    }
}

/// Repairs a store of which nothing is lost.
pub(crate) fn contents_of_repaired(
    session: &Session<'_>,
    slots: SimSlots,
    encryption: Encryption,
) -> Result<State, String> {
    let (repaired, report) = repair(slots, encryption.clone()).map_err(|error| error.to_string())?;
    if !report.lost.is_empty() || report.may_resurrect {
        return Err(format!("something is lost that is there: {report:?}"));
    }
    let host = Host { now_ms: session.now_ms, entropy: 3, store_id: [0xee; 16] };
    let pool = SlotPool::open(repaired).map_err(|error| error.to_string())?;
    let options = Options { encryption, ..session.trace.options.clone() };
    let (store, _) = Store::open(pool, options, host).map_err(|error| error.to_string())?;
    contents(&store, &AtOnce).map_err(|error| format!("{error:?}"))
}

/// A trace like this one, without its crashes, its faults and its waits.
pub(crate) fn calm(trace: &Trace) -> Trace {
    Trace { waits: false, births: Vec::new(), ops: Vec::new(), ..trace.clone() }
}

/// The session after the harmless operations of `trace`, its store closed.
fn closed_after<'a>(
    trace: &Trace,
    calm: &'a Trace,
    observed: &'a mut Observed,
) -> Result<Session<'a>, String> {
    let mut session = after(trace, calm, observed, is_harmless)?;
    session.close()?;
    Ok(session)
}

/// The session after the wanted operations of `trace`.
pub(crate) fn after<'a>(
    trace: &Trace,
    calm: &'a Trace,
    observed: &'a mut Observed,
    is_wanted: impl Fn(&Op) -> bool,
) -> Result<Session<'a>, String> {
    let mut session = Session::start(calm, observed)?;
    for op in trace.ops.iter().filter(|op| is_wanted(op)) {
        session.perform(op)?;
    }
    Ok(session)
}

/// Checks what is on a device.
pub(crate) fn check<S: Slots>(slots: &S, keyring: &Keyring) -> varve::Result<CheckReport> {
    let read = |slot: u32, offset: u64, len: u32| {
        let mut bytes = vec![0; len as usize];
        let read = slots.read(slot, offset, &mut bytes).unwrap_or(0);
        bytes.truncate(read);
        bytes
    };
    let page =
        |slot| SlotPage { slot, bytes: slots.size(slot), page: read(slot, 0, SLOT_HEADER_BYTES as u32) };
    let pages: Vec<_> = (0..slots.count()).map(page).collect();
    let mut check = Check::new(&pages, None, keyring)?.of_closed_store();
    loop {
        match check.step()? {
            CheckStep::Working => {}
            CheckStep::Need { slot, offset, len } => check.feed(read(slot, offset, len)),
            CheckStep::Done => return Ok(check.report().clone()),
        }
    }
}

pub(crate) fn repair(slots: SimSlots, encryption: Encryption) -> varve::Result<(MemorySlots, RepairReport)> {
    let options =
        RepairOptions { drop_older: true, store_id: [0xee; 16], entropy: 5, files_max: 64, encryption };
    let mut repair = Repair::new(slots, MemorySlots::new(64), options)?;
    while repair.step()? {}
    let report = repair.report().clone();
    Ok((repair.into_target(), report))
}

pub(crate) fn is_harmless(op: &Op) -> bool {
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
            | Op::ChangeKeys
            | Op::TakeJob
            | Op::StepJob(..)
            | Op::Reopen
    )
}

/// A damaged version field may read as a newer format.
pub(crate) fn is_reported(error: &Error) -> bool {
    matches!(error.code(), Code::Corrupt | Code::Version)
}

fn flip_one(disk: &Disk, rng: &mut Rng) -> String {
    let sizes = disk.sizes();
    let used: Vec<u32> = (0..sizes.len() as u32).filter(|&slot| sizes[slot as usize] > 0).collect();
    let slot = rng.pick(&used);
    let size = sizes[slot as usize];
    // Most of a slot is zeros, grown ahead of need: nearly always flip a byte that carries data.
    let mut offset = rng.index(size);
    for _ in 0..rng.below(1000) {
        let mut byte = [0];
        if disk.slots().read(slot, offset as u64, &mut byte).is_ok() && byte[0] != 0 {
            break;
        }
        offset = rng.index(size);
    }
    let mask = 1 << rng.below(8);
    let file = name(claim_at(&claims_of(disk, slot), offset).map(|claim| claim.file));
    disk.flip(slot, offset, mask);
    format!("slot {slot} ({file}), byte {offset} of {size}, mask {mask:#04x}")
}

/// Replaces a sector by another or by zeros; `None` where the result looks like an end that was never written.
fn replace_one(disk: &Disk, fault: Fault, rng: &mut Rng) -> Option<String> {
    let slots: Vec<Vec<u8>> = (0..disk.sizes().len() as u32).map(|slot| bytes_of(disk, slot)).collect();
    // Sectors that carry data.
    let sectors: Vec<(usize, usize)> = slots
        .iter()
        .enumerate()
        .flat_map(|(slot, bytes)| (0..bytes.len() / SECTOR).map(move |sector| (slot, sector * SECTOR)))
        .filter(|&(slot, at)| slots[slot][at..at + SECTOR].iter().any(|&byte| byte != 0))
        .collect();
    let (slot, at) = rng.pick(&sectors);
    let claims: Vec<Vec<Claim>> = (0..slots.len() as u32).map(|slot| claims_of(disk, slot)).collect();
    let claim = claim_at(&claims[slot], at);
    let file = claim.map(|claim| claim.file);
    let end = claim.map_or(usize::MAX, |claim| claim.start.saturating_add(claim.room) as usize);
    let end = end.min(slots[slot].len());
    let last = slots[slot][..end].iter().rposition(|&byte| byte != 0).unwrap_or(0);
    let is_end = (at..at + SECTOR).contains(&last) && file.is_some_and(|file| file.kind != FileKind::Table);
    // In a slot that contained something longer, the end of the newest log is not the last data there.
    let is_log = |claim: &&Claim| claim.file.kind == FileKind::Wal;
    let newest = claims.iter().flatten().filter(is_log).map(|claim| claim.file).max();
    let is_newest_log = newest.is_some() && file == newest;
    if is_end || is_newest_log {
        return None;
    }
    let (from_slot, from) = rng.pick(&sectors);
    let new = if fault == Fault::Lost { &[0; SECTOR][..] } else { &slots[from_slot][from..from + SECTOR] };
    disk.replace(slot as u32, at, new);
    let source = claim_at(&claims[from_slot], from).map(|claim| claim.file);
    let (file, source) = (name(file), name(source));
    Some(format!(
        "slot {slot} ({file}), sector at {at}, {fault:?} (slot {from_slot}, {source}, sector at {from})"
    ))
}

pub(crate) fn bytes_of(disk: &Disk, slot: u32) -> Vec<u8> {
    let mut bytes = vec![0; disk.sizes()[slot as usize]];
    let count = disk.slots().read(slot, 0, &mut bytes).unwrap_or(0);
    bytes.truncate(count);
    bytes
}

/// The first page of a slot, and zeros where the slot is shorter.
pub(crate) fn page_of(disk: &Disk, slot: u32) -> Vec<u8> {
    let mut page = vec![0; SLOT_HEADER_BYTES as usize];
    let _ = disk.slots().read(slot, 0, &mut page);
    page
}

pub(crate) fn claims_of(disk: &Disk, slot: u32) -> Vec<Claim> {
    let header = SlotHeader::decode(&page_of(disk, slot), slot).ok().flatten();
    header.map_or_else(Vec::new, |header| header.claims)
}

/// The file that a byte of a slot belongs to; for a byte in the page, the file that was claimed last.
fn claim_at(claims: &[Claim], at: usize) -> Option<&Claim> {
    let at = at as u64;
    let holds = |claim: &&Claim| (claim.start..claim.start.saturating_add(claim.room)).contains(&at);
    let newest = || claims.iter().filter(|_| at < SLOT_HEADER_BYTES).max_by_key(|claim| claim.generation);
    claims.iter().find(holds).or_else(newest)
}

fn name(file: Option<FileName>) -> String {
    file.map_or_else(|| "no file".to_owned(), |file| file.to_string())
}

/// Opens the store and reads everything, both ways.
pub(crate) fn reread(session: &mut Session<'_>) -> Result<(), ScanError> {
    let store = session.open().map_err(ScanError::Store)?;
    let found = contents(&store, &AtOnce)?;
    if let Some(first) = difference(session.model.state(), &found).into_iter().next() {
        return Err(ScanError::Wrong(first));
    }
    let backward = Range { lower: Vec::new(), upper: None, reverse: true, limit: None };
    let scan =
        Expectation::open(&store, session.model.state(), &backward, 1 << 20).map_err(ScanError::Store)?;
    scan.finish(&store, &AtOnce).map(|_| ())
}
