//! Reading a segment back: where its good records end, and whether more should be there.
//!
//! ```text
//! newest segment      good | good | bad ... | nothing promised          cut: it was never acknowledged
//!                     good | good | bad ... | later record: synced > X  corrupt at X
//! an older segment    good | good | end named by its successor          whole; bytes behind it do not count
//!                     good | bad ...        | end                       corrupt
//! ```
//!
//! Invariant: `Scan::end` is a record boundary, and all bytes before it were verified.

use super::header::{SEGMENT_HEADER_BYTES, SegmentHeader, may_have_salt};
use super::record::Record;
use crate::codec::cipher::Keyring;
use crate::codec::frame::{self, Frame, FrameScan, Lost, decrypt_records};
use crate::error::{Error, Result};
use crate::types::{FileName, Sequence, StoreId};

/// The bytes after the last good record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// No bytes that were ever written as a record of this segment.
    Clean,
    /// A bad record that nothing promised to be durable: a crash cut it off.
    Torn {
        /// Number of valid records after it. They are lost with it: only a prefix of history survives.
        valid_records_after: u32,
    },
}

/// The result of scanning a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// End of the last good record, in bytes from the start of the segment.
    pub end: usize,
    /// Good records, seals included.
    pub records: u32,
    /// Whether the last good record is a seal: then a missing acknowledged byte cannot stay unnoticed.
    pub sealed: bool,
    /// The bytes that were found after `end`.
    pub tail: Tail,
    /// Sequence of the last entry.
    pub last_sequence: Option<Sequence>,
}

/// Decrypts in place the records of a whole segment that verify: everything else here works on the result. Does nothing to a segment
/// that is not encrypted.
///
/// # Errors
/// [`Error::Key`] when the key is missing, [`Error::Corrupt`] when a record does not decrypt.
pub(crate) fn decrypt_segment(keyring: &Keyring, header: &SegmentHeader, bytes: &mut [u8]) -> Result<()> {
    decrypt_span(
        keyring,
        header,
        SEGMENT_HEADER_BYTES,
        bytes.get_mut(SEGMENT_HEADER_BYTES..).unwrap_or_default(),
    )
}

/// As [`decrypt_segment`], for the bytes from `offset` on, where a record begins.
///
/// # Errors
/// As [`decrypt_segment`].
pub(crate) fn decrypt_span(
    keyring: &Keyring,
    header: &SegmentHeader,
    offset: usize,
    bytes: &mut [u8],
) -> Result<()> {
    let file = FileName::wal(header.segment);
    decrypt_records(keyring, header.key, file, offset as u64, header.salt, bytes)
}

/// Walks the records of a segment and verifies every one.
///
/// `bytes` is the whole file from its start, whatever its length. `named_end` is the end of this segment that a newer
/// segment names, `None` for the newest.
///
/// # Errors
/// `Error::Corrupt`: a record is bad before `named_end` or before the end that a later record promises; or a record's
/// checksum matches but its contents make no sense.
pub fn scan_segment(
    bytes: &[u8],
    header: &SegmentHeader,
    named_end: Option<u64>,
    file: FileName,
) -> Result<Scan> {
    let mut walk = Walk { sealed: false, last_sequence: None };
    let found = walk_records(bytes, header, named_end, file, |image, frame| walk.visit(image, &frame))?;
    let tail = if found.torn { Tail::Torn { valid_records_after: found.valid_after } } else { Tail::Clean };
    Ok(Scan {
        end: found.end,
        records: found.records,
        sealed: walk.sealed,
        tail,
        last_sequence: walk.last_sequence,
    })
}

/// Verifies the hashes of a segment's records, which need not be decrypted. Arguments and errors are those of [`scan_segment`].
pub(crate) fn verify_segment(
    bytes: &[u8],
    header: &SegmentHeader,
    named_end: Option<u64>,
    file: FileName,
) -> Result<FrameScan> {
    walk_records(bytes, header, named_end, file, |_, _| Ok(()))
}

fn walk_records<'a>(
    bytes: &'a [u8],
    header: &SegmentHeader,
    named_end: Option<u64>,
    file: FileName,
    mut visit: impl FnMut(&'a [u8], Frame<'a>) -> Result<(), Stop>,
) -> Result<FrameScan> {
    if bytes.len() < SEGMENT_HEADER_BYTES {
        return Err(Error::corrupt(file, bytes.len() as u64, "a WAL segment is shorter than its header"));
    }
    let image = match named_end {
        None => bytes,
        Some(end) => usize::try_from(end).ok().and_then(|end| bytes.get(..end)).ok_or_else(|| {
            Error::corrupt(file, bytes.len() as u64, "a WAL segment is shorter than its successor says")
        })?,
    };
    let found = frame::scan(image, SEGMENT_HEADER_BYTES, header.salt, |frame| visit(image, frame))
        .map_err(|stop: Stop| stop.into_error(file))?;
    if named_end.is_some() && found.end != image.len() {
        return Err(Error::corrupt(file, found.end as u64, "a WAL record is damaged"));
    }
    Ok(found)
}

struct Walk {
    sealed: bool,
    last_sequence: Option<Sequence>,
}

impl Walk {
    fn visit(&mut self, image: &[u8], found: &Frame<'_>) -> Result<(), Stop> {
        let record = Record::decode(image, found)
            .map_err(|_| Stop { offset: found.offset, what: "a WAL record makes no sense" })?;
        self.sealed = record.is_none();
        let Some(record) = record else { return Ok(()) };
        if self.last_sequence.is_some_and(|last| record.first_sequence <= last) {
            return Err(Stop { offset: found.offset, what: "a WAL record repeats earlier sequences" });
        }
        if record.count > 0 {
            self.last_sequence = Some(record.first_sequence + record.count - 1);
        }
        Ok(())
    }
}

struct Stop {
    offset: usize,
    what: &'static str,
}

impl Stop {
    fn into_error(self, file: FileName) -> Error {
        Error::corrupt(file, self.offset as u64, self.what)
    }
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self { offset: lost.offset, what: "a WAL record is damaged that was durable" }
    }
}

/// Whether the header of segment `segment` of `store` was damaged after it was in use: it is unreadable, yet a record of
/// this very segment follows it.
///
/// Records are written only once the header is durable, so a crash cannot cause this. Records that an earlier segment
/// left in a recycled file have the salt of that segment (see [`segment_salt`](super::segment_salt)) and do not count.
#[must_use]
pub fn header_was_lost(bytes: &[u8], segment: u64, store: &StoreId) -> bool {
    if SegmentHeader::decode(bytes).is_ok() {
        return false;
    }
    let Some(salt) = first_salt(bytes) else { return false };
    may_have_salt(store, segment, salt) && frame::record_at(bytes, SEGMENT_HEADER_BYTES, salt).is_some()
}

/// The salt that the tag behind a segment's header implies.
pub(super) fn first_salt(bytes: &[u8]) -> Option<u64> {
    let tag = bytes.get(SEGMENT_HEADER_BYTES..)?.first_chunk()?;
    Some(u64::from_le_bytes(*tag) ^ SEGMENT_HEADER_BYTES as u64)
}
