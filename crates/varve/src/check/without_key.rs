//! Verifying an encrypted store without its key.
//!
//! Hashes are over ciphertext, so they show damage to every byte that was written. But the manifest, which lists what is in
//! use, cannot be read. Therefore every file is verified that a slot names.
//!
//! ```text
//! manifest   the newest: its records          table   footer, the blocks that it names, then data blocks from the start
//! log        records of each segment, up to the end that the next segment names
//! ```
//!
//! Order, filters and counts are not verified, and a whole file that is gone is not noticed: what has no block of a table was
//! never written, or was overwritten when the table was deleted. Nor is a segment that is in no slot's page: without the floor of the log
//! it may be one that was deleted. A table that has blocks and no footer is reported, although it may
//! be one that a crash left unfinished: only the manifest tells the two apart.

use std::collections::BTreeMap;

use super::{CheckReport, Problem, ProblemKind};
use crate::codec::cipher::Keyring;
use crate::codec::frame::Lost;
use crate::error::{Error, Result};
use crate::manifest::{MANIFEST_HEADER_BYTES, ManifestHeader, verify_manifest};
use crate::table::{FOOTER_BYTES, Footer, find_table, intact_blocks, is_intact, salvage_table};
use crate::types::{FileKind, FileName, StoreId};
use crate::wal::{SegmentHeader, header_was_lost, verify_segment};

/// Records of a manifest that opens: the wrapped keys, and the snapshot.
const MANIFEST_RECORDS_MIN: u32 = 2;

/// Verifies the newest manifest and the log. Returns false, and does nothing, if the store is not encrypted or there are keys.
///
/// # Errors
/// `Error::Version` when a newer format wrote one of them.
pub(super) fn check(
    keyring: &Keyring,
    fetched: &BTreeMap<FileName, Vec<u8>>,
    log_end: Option<u64>,
    report: &mut CheckReport,
) -> Result<bool> {
    let mut newest: Option<(FileName, &Vec<u8>, ManifestHeader)> = None;
    for (file, bytes) in fetched.iter().filter(|(file, _)| file.kind == FileKind::Manifest) {
        if let Some(header) = ManifestHeader::read(bytes)?
            && newest.is_none_or(|(_, _, newest)| newest.rotation <= header.rotation)
        {
            newest = Some((*file, bytes, header));
        }
    }
    let Some((file, bytes, header)) =
        newest.filter(|(_, _, header)| header.key > 0 && keyring.current() == 0)
    else {
        return Ok(false);
    };
    report.without_key = true;
    check_manifest(file, bytes, &header, report);
    for id in [0, 1].map(FileName::manifest).into_iter().filter(|id| !fetched.contains_key(id)) {
        add_problem(report, id, ProblemKind::Missing, "a manifest file is missing", None);
    }
    check_log(fetched, keyring.store(), log_end, report)?;
    Ok(true)
}

fn check_manifest(file: FileName, bytes: &[u8], header: &ManifestHeader, report: &mut CheckReport) {
    let mut wrong = |offset: usize, what| {
        add_problem(report, file, ProblemKind::Manifest, what, Some(offset as u64));
    };
    match verify_manifest(bytes, header) {
        Err(Lost { offset: MANIFEST_HEADER_BYTES }) => {
            wrong(MANIFEST_HEADER_BYTES, "the key slots are damaged")
        }
        Err(Lost { offset }) => wrong(offset, "an edit that was durable is damaged"),
        Ok(found) if found.records < MANIFEST_RECORDS_MIN => {
            wrong(found.end, "the key slots or the snapshot do not verify");
        }
        Ok(found) => {
            if found.torn {
                wrong(found.end, "the last edit does not verify");
            }
            report.bytes += found.end as u64;
        }
    }
}

fn check_log(
    fetched: &BTreeMap<FileName, Vec<u8>>,
    store: &StoreId,
    log_end: Option<u64>,
    report: &mut CheckReport,
) -> Result<()> {
    let segments = || fetched.iter().filter(|(file, _)| file.kind == FileKind::Wal);
    let mut headers = Vec::new();
    for (&file, bytes) in segments() {
        match SegmentHeader::read(bytes)? {
            Some(header) if header.segment == file.id => headers.push((file, bytes, header)),
            _ if header_was_lost(bytes, file.id, store) => {
                add_problem(
                    report,
                    file,
                    ProblemKind::Log,
                    "the header of a WAL segment is damaged",
                    Some(0),
                );
            }
            _ => {}
        }
    }
    let newest = headers.last().map(|(file, _, _)| *file);
    for (file, bytes, header) in &headers {
        let next = headers.iter().find(|(_, _, next)| next.previous == file.id);
        let named_end = next.map(|(_, _, next)| next.previous_end);
        report.segments += 1;
        match verify_segment(bytes, header, named_end, *file) {
            Ok(found) => {
                report.records += u64::from(found.records);
                report.bytes += found.end as u64;
                if found.torn && Some(*file) == newest && log_end != Some(0) {
                    let what = "a WAL record that was written does not verify";
                    add_problem(report, *file, ProblemKind::Log, what, Some(found.end as u64));
                }
            }
            Err(Error::Corrupt(damage)) => {
                add_problem(report, *file, ProblemKind::Log, damage.what, Some(damage.offset));
            }
            Err(_) => {
                add_problem(report, *file, ProblemKind::Log, "a WAL segment cannot be read", None);
            }
        }
    }
    Ok(())
}

/// Verifies a table. `bytes` begin with it, and may end after it.
///
/// # Errors
/// `Error::Version` when a newer format wrote it.
pub(super) fn check_table(keyring: &Keyring, id: u64, bytes: &[u8], report: &mut CheckReport) -> Result<()> {
    let file = FileName::table(id);
    let footer = find_table(bytes, keyring.store(), id)?.and_then(|meta| {
        let image = bytes.get(..usize::try_from(meta.size).ok()?)?;
        let start = image.len().checked_sub(FOOTER_BYTES)?;
        let (footer, _) = Footer::decode(&image[start..], keyring.store(), file, start as u64).ok()?;
        Some((image, footer))
    });
    let Some((image, footer)) = footer else {
        if !intact_blocks(bytes, keyring.store(), id, None).blocks.is_empty() {
            let what = "a table has no footer: it is damaged, or a crash left it unfinished";
            add_problem(report, file, ProblemKind::Footer, what, None);
        }
        return Ok(());
    };
    report.tables += 1;
    report.bytes += image.len() as u64;
    let blocks = footer.blocks();
    for &(_, handle) in &blocks {
        if !is_intact(image, keyring.store(), id, handle) {
            report.bytes -= u64::from(handle.len);
            add_problem(report, file, ProblemKind::Footer, "block checksum", Some(handle.offset));
        }
    }
    let remains = if footer.key == 0 {
        salvage_table(image, keyring, id, Some(0), false)?
    } else {
        let end = blocks.first().map_or(0, |(_, handle)| handle.offset as usize);
        intact_blocks(&image[..end.min(image.len())], keyring.store(), id, Some(footer.key))
    };
    report.blocks += remains.blocks.len() as u64;
    for gap in remains.gaps {
        report.bytes -= u64::from(gap.len);
        add_problem(report, file, ProblemKind::Block, "block checksum", Some(gap.offset));
    }
    Ok(())
}

fn add_problem(
    report: &mut CheckReport,
    file: FileName,
    kind: ProblemKind,
    what: &'static str,
    offset: Option<u64>,
) {
    report.problems.push(Problem { file, kind, what, offset, level: None });
}
