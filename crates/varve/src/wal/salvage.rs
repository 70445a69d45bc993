//! Every record of a segment that verifies, also after a damaged one.
//!
//! Recovery stops at the first bad record, because only a prefix of history survives a crash. A repair needs the rest
//! too, and a list of the missing parts in between.
//!
//! Invariant: a record is returned only if its checksum matches under the salt of this very segment.

use super::header::{SEGMENT_HEADER_BYTES, SegmentHeader, may_have_salt};
use super::record::Record;
use crate::codec::frame::record_at;
use crate::types::StoreId;

/// A piece of a segment.
#[derive(Debug, Clone)]
pub enum Piece<'a> {
    /// A record that verifies.
    Record(Record<'a>),
    /// A seal: everything before it was flushed.
    Seal {
        /// Where it starts.
        offset: usize,
    },
    /// A range of bytes that were records, or may have been. At the end of a segment without a seal, they may also be a
    /// write that a crash cut off, or bytes from an earlier use of the file.
    Gap {
        /// First byte.
        offset: usize,
        /// First byte after the range.
        end: usize,
        /// Whether a valid record lies after it.
        is_inside: bool,
    },
}

/// The salt of segment `segment` of `store`: from its header or, if that is damaged, from the first record whose tag proves it
/// (see [`segment_salt`](super::segment_salt)).
#[must_use]
pub fn find_salt(bytes: &[u8], segment: u64, store: &StoreId) -> Option<u64> {
    if let Ok(header) = SegmentHeader::decode(bytes)
        && header.segment == segment
    {
        return Some(header.salt);
    }
    (SEGMENT_HEADER_BYTES..bytes.len()).step_by(8).find_map(|at| {
        let tag = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        let salt = tag ^ at as u64;
        let proven = may_have_salt(store, segment, salt) && record_at(bytes, at, salt).is_some();
        proven.then_some(salt)
    })
}

/// All pieces of a segment up to `end`, in order.
#[must_use]
pub fn salvage_segment(bytes: &[u8], salt: u64, end: usize) -> Vec<Piece<'_>> {
    let image = &bytes[..end.min(bytes.len())];
    let (mut pieces, mut at, mut gap) = (Vec::new(), SEGMENT_HEADER_BYTES, None);
    while at < image.len() {
        let Some(frame) = record_at(image, at, salt) else {
            gap = gap.or(Some(at));
            at += 8;
            continue;
        };
        if let Some(offset) = gap.take() {
            pieces.push(Piece::Gap { offset, end: at, is_inside: true });
        }
        pieces.push(match Record::decode(image, &frame) {
            Ok(Some(record)) => Piece::Record(record),
            Ok(None) => Piece::Seal { offset: at },
            Err(_) => Piece::Gap { offset: at, end: frame.end, is_inside: true },
        });
        at = frame.end;
    }
    if let Some(offset) = gap {
        pieces.push(Piece::Gap { offset, end: image.len(), is_inside: false });
    }
    pieces
}
