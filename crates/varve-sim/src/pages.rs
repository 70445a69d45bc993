//! Damage to the pages that say which files a slot contains.
//!
//! Invariants under test: a closed store that lost a page, or a half of one, has the contents of before or reports that it is damaged. If it
//! reports that, or the page is an older one and the contents are wrong, a check finds a problem, too; and a repair finds everything in any
//! case, because nothing but pages was damaged.
//! And bytes of another store never count as damage.

use varve::storage::{SLOT_HEADER_BYTES, SlotHeader, SlotPool};
use varve::types::FileKind;
use varve::{Code, Durability};

use crate::change::Change;
use crate::difference::difference;
use crate::disk::Disk;
use crate::keys::keys_of;
use crate::rng::Rng;
use crate::rot::{Damage, after, calm, check, claims_of, contents_of_repaired, is_harmless, page_of, reread};
use crate::run::{Failure, Observed, run_from};
use crate::scan::ScanError;
use crate::session::Session;
use crate::slot::{Keep, PowerLoss};
use crate::trace::{Op, Trace};

/// A fault of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFault {
    /// The page contains zeros.
    Lost,
    /// The half that was written last contains zeros.
    HalfLost,
    /// The last write was lost: the page is as it was before.
    Stale,
}

/// Length of a half of a page, in bytes.
const HALF: usize = SLOT_HEADER_BYTES as usize / 2;

/// Openings of the older store, at most. A number of an opening is the identity of a store that it makes.
const OPENINGS_MAX: u64 = 100;

/// Does the operations of a trace that damage nothing, some of them on a full disk, closes the store, and damages the page of each slot
/// without a manifest in turn.
///
/// # Errors
/// The fault, in words.
pub fn damage_pages(trace: &Trace, fault: PageFault) -> Result<Damage, String> {
    let mut observed = Observed::new();
    let calm = calm(trace);
    let is_wanted = |op: &Op| is_harmless(op) || matches!(op, Op::Quota(_) | Op::Unlimit);
    let mut session = after(trace, &calm, &mut observed, is_wanted)?;
    // Writes about as long as a memtable, so that the newest segment outgrows its room.
    let mut rng = Rng::new(trace.seed ^ 0x9a6e);
    for number in 0..rng.below(8) {
        let value = vec![number as u8; rng.index(2 * trace.options.memtable_bytes_min)];
        let changes = vec![Change::Set(vec![b'l', number as u8], value)];
        session.perform(&Op::Write { changes, batch: true, commit: Some(Durability::Strict) })?;
    }
    session.disk.limit(None);
    session.close()?;
    let disk = session.disk.clone();
    let mut damage = Damage::default();
    for slot in 0..disk.sizes().len() as u32 {
        let claims = claims_of(&disk, slot);
        if claims.iter().any(|claim| claim.file.kind == FileKind::Manifest) {
            continue;
        }
        let damaged = disk.fork();
        if !strike(&damaged, slot, fault) {
            continue;
        }
        let files: Vec<_> = claims.iter().map(|claim| claim.file.to_string()).collect();
        let place = format!("{fault:?}, slot {slot} ({})", files.join(", "));
        session.disk = damaged.fork();
        let is_reported = match reread(&mut session) {
            Ok(()) => false,
            Err(ScanError::Store(error)) if error.code() == Code::Corrupt => true,
            // Such a page is intact, and an opening searches only others. A check finds it.
            Err(_) if fault == PageFault::Stale => true,
            Err(error) => return Err(format!("{place}: a wrong answer: {error:?}")),
        };
        damage.reported += u64::from(is_reported);
        damage.harmless += u64::from(!is_reported);
        let words = |error: varve::Error| format!("{place}: {error}");
        let keys = SlotPool::open(disk.fork().slots()).and_then(|pool| keys_of(&pool, trace, u64::MAX));
        let encryption = keys.map_err(words)?;
        let found = check(&damaged.fork().slots(), &encryption.keyring).map_err(words)?;
        if is_reported && found.problems.is_empty() {
            return Err(format!("{place}: a check finds nothing"));
        }
        let repaired = contents_of_repaired(&session, damaged.slots(), encryption)
            .map_err(|what| format!("{place}: {what}"))?;
        if let Some(first) = difference(session.model.state(), &repaired).into_iter().next() {
            return Err(format!("{place}: the repaired store differs: {first}"));
        }
    }
    Ok(damage)
}

/// Damages a page; `false` if it has none, or nothing of it changes.
fn strike(disk: &Disk, slot: u32, fault: PageFault) -> bool {
    let page = page_of(disk, slot);
    let Ok(Some(header)) = SlotHeader::decode(&page, slot) else { return false };
    let newest = if header.encode(slot)[..HALF] == page[..HALF] { 0 } else { HALF };
    let (at, bytes) = match fault {
        PageFault::Lost => (0, vec![0; 2 * HALF]),
        PageFault::HalfLost => (newest, vec![0; HALF]),
        PageFault::Stale => match disk.former(slot) {
            Some(former) => former,
            None => return false,
        },
    };
    disk.replace(slot, at, &bytes);
    page_of(disk, slot) != page
}

/// Runs a trace on the disk of an older store, whose pages and manifests are gone and whose other files are not.
#[must_use]
pub fn run_beneath(older: &Trace, trace: &Trace) -> Option<Failure> {
    let mut observed = Observed::new();
    let calm = calm(older);
    let disk = match Session::start(&calm, &mut observed).and_then(|mut session| {
        for op in older.ops.iter().filter(|op| is_harmless(op)) {
            session.perform(op)?;
        }
        assert!(session.openings < OPENINGS_MAX, "{} openings", session.openings);
        Ok(session.disk)
    }) {
        Ok(disk) => disk,
        Err(what) => return Some(Failure { op: 0, what }),
    };
    // All of it is durable.
    disk.lose_power(PowerLoss { keep: Keep::All, torn_sectors: false, garbage: false });
    for slot in 0..disk.sizes().len() as u32 {
        // Pages that are left would show that a manifest is missing.
        let is_of_manifest = claims_of(&disk, slot).iter().any(|claim| claim.file.kind == FileKind::Manifest);
        let size = disk.sizes()[slot as usize];
        disk.replace(slot, 0, &vec![0; if is_of_manifest { size } else { size.min(2 * HALF) }]);
    }
    run_from(trace, |trace, observed| Session::start_on(disk, OPENINGS_MAX, trace, observed)).failure
}
