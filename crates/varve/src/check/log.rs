//! Verifying the live WAL segments.
//!
//! Invariant: they are judged as recovery would judge them, except for the end of the newest. An open store knows how far
//! it has written, so a torn tail there cannot come from a crash. The exception: a crash tore the log, and the storage
//! had no room to record the cut. Such a store reports that it has written nothing.

use std::collections::BTreeMap;

use super::{CheckReport, Problem, ProblemKind};
use crate::codec::cipher::Keyring;
use crate::error::{Error, Result};
use crate::types::FileName;
use crate::wal::{Chain, SegmentHeader, Tail, decrypt_segment, header_was_lost, scan_segment};

/// Checks the segments above `log_floor`, and returns those that were found. `log_end` is the number of bytes written to the newest one,
/// where that is known; 0 when it is known to have a torn tail.
///
/// # Errors
/// `Error::Version` when a newer format wrote one.
pub(super) fn check_log(
    keyring: &Keyring,
    segments: &mut BTreeMap<u64, Vec<u8>>,
    log_floor: u64,
    log_end: Option<u64>,
    report: &mut CheckReport,
) -> Result<Chain> {
    let mut chain = Chain::new();
    let mut headers = BTreeMap::new();
    for (&id, bytes) in segments.range_mut(log_floor.saturating_add(1)..) {
        match SegmentHeader::read(bytes)? {
            Some(header) if header.segment == id => {
                match decrypt_segment(keyring, &header, bytes) {
                    Err(Error::Corrupt(damage)) => add_problem(report, id, damage.offset, damage.what),
                    Err(_) => add_problem(report, id, 0, "a WAL segment under a key that is not here"),
                    Ok(()) => {}
                }
                headers.insert(id, header);
            }
            _ if header_was_lost(bytes, id, keyring.store()) => {
                add_problem(report, id, 0, "the header of a WAL segment is damaged")
            }
            // Never written: the segment of this file was not begun.
            _ => {}
        }
    }
    let mut named_end = None;
    let mut next = headers.keys().next_back().copied();
    while let Some(id) = next.filter(|&id| id > log_floor) {
        let (Some(header), Some(bytes)) = (headers.get(&id), segments.get(&id)) else {
            if !report.problems.iter().any(|problem| problem.file == FileName::wal(id)) {
                let file = FileName::wal(id);
                let what = "a WAL segment is missing";
                report.problems.push(Problem {
                    file,
                    kind: ProblemKind::Missing,
                    what,
                    offset: None,
                    level: None,
                });
            }
            return Ok(chain);
        };
        let end = check_segment(bytes, header, named_end, log_end, report);
        // Of a damaged segment, the end is not known.
        chain.push((*header, end.unwrap_or(u64::from(u32::MAX))));
        named_end = Some(header.previous_end);
        next = Some(header.previous).filter(|&previous| previous < id);
    }
    Ok(chain)
}

fn check_segment(
    bytes: &[u8],
    header: &SegmentHeader,
    named_end: Option<u64>,
    log_end: Option<u64>,
    report: &mut CheckReport,
) -> Option<u64> {
    let id = header.segment;
    report.segments += 1;
    match scan_segment(bytes, header, named_end, FileName::wal(id)) {
        Ok(scan) => {
            report.records += u64::from(scan.records);
            report.bytes += scan.end as u64;
            let is_known = log_end == Some(0);
            let is_short = named_end.is_none() && log_end.is_some_and(|end| (scan.end as u64) < end);
            if named_end.is_none() && !is_known && (is_short || matches!(scan.tail, Tail::Torn { .. })) {
                add_problem(report, id, scan.end as u64, "a WAL record that was written does not verify");
            }
            return Some(scan.end as u64);
        }
        Err(Error::Corrupt(damage)) => add_problem(report, id, damage.offset, damage.what),
        Err(_) => add_problem(report, id, 0, "a WAL segment cannot be read"),
    }
    None
}

fn add_problem(report: &mut CheckReport, segment: u64, offset: u64, what: &'static str) {
    report.problems.push(Problem {
        file: FileName::wal(segment),
        kind: ProblemKind::Log,
        what,
        offset: Some(offset),
        level: None,
    });
}
