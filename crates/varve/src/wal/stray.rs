//! Segments in bytes that no file owns: they show that the page of a slot was damaged, or lost its newest half.
//!
//! ```text
//! page of the slot    claims of the files that it contains      damaged: the slot counts as free, or as it was before
//! bytes in no file    header | record | ...                      of a segment that is needed, or of one that was deleted
//! ```
//!
//! The claim of a segment is flushed before its first record is written, and stays until the segment is deleted, which is when it is at or
//! below the floor that is durable. So no crash leaves a record of a segment above the floor that is in no page. And a segment that
//! moves was as long as its copy: what a copy promises to be durable, the segment has.
//!
//! Invariant: nothing that a crash leaves behind counts as damage. Pages that were never written have no records behind them.

use super::header::{SEGMENT_HEADER_BYTES, SegmentHeader, may_have_salt};
use super::scan::first_salt;
use crate::codec::frame::{self, Lost, promise_more};
use crate::types::{FileName, PAGE_BYTES, StoreId};

/// The segments that are replayed, each with the end that its scan found.
pub(crate) type Chain = Vec<(SegmentHeader, u64)>;

/// The damage, in words.
pub(crate) const LOST_SEGMENT: &str = "a WAL segment, or its end, is in no slot's page";

/// The header of a segment of `store` that begins with `bytes` and has a record.
fn stray_at(bytes: &[u8], store: &StoreId) -> Option<SegmentHeader> {
    let header = SegmentHeader::decode(bytes).ok()?;
    let is_ours = may_have_salt(store, header.segment, header.salt);
    (is_ours && first_salt(bytes) == Some(header.salt)).then_some(header)
}

/// The segments of `store` that begin in `bytes` and have a record, each with its place. `bytes` begin at a page of their slot.
pub(crate) fn strays<'a>(
    bytes: &'a [u8],
    store: &'a StoreId,
) -> impl Iterator<Item = (usize, SegmentHeader)> + 'a {
    let pages = (0..bytes.len()).step_by(PAGE_BYTES as usize);
    pages.filter_map(|at| Some((at, stray_at(&bytes[at..], store)?)))
}

/// A segment above `log_floor` that `bytes` show to be lost, or to have lost its end. No needed file contains these bytes. They may lie
/// `behind` a file, and begin with its byte of this number.
pub(crate) fn lost_segment(
    bytes: &[u8],
    behind: Option<(FileName, u64)>,
    store: &StoreId,
    log_floor: u64,
    chain: &[(SegmentHeader, u64)],
) -> Option<u64> {
    for (known, end) in chain {
        if let Some((file, offset)) = behind
            && file == FileName::wal(known.segment)
            && promise_more(bytes, offset as usize, known.salt, *end as usize)
        {
            return Some(known.segment);
        }
    }
    for (at, found) in strays(bytes, store).filter(|(_, found)| found.segment > log_floor) {
        let known =
            chain.iter().find(|(known, _)| (known.segment, known.salt) == (found.segment, found.salt));
        if known.is_none_or(|(_, end)| is_longer(&bytes[at..], &found, *end as usize)) {
            return Some(found.segment);
        }
    }
    None
}

/// Where the good records of a segment end, and the first bad one begins.
pub(crate) fn end_of_segment(bytes: &[u8], header: &SegmentHeader) -> usize {
    let scan = frame::scan(bytes, SEGMENT_HEADER_BYTES, header.salt, |_| Ok(()));
    scan.map_or_else(|Lost { offset }| offset, |found| found.end)
}

/// Whether a copy of a segment promises that more of it is durable than its first `end` bytes.
pub(crate) fn is_longer(copy: &[u8], header: &SegmentHeader, end: usize) -> bool {
    promise_more(copy, 0, header.salt, end)
}
