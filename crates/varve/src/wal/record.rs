//! The contents of a record.
//!
//! ```text
//! payload: varint client | varint request | varint first sequence | varint count | entry * count
//! ```
//!
//! The low 32 bits of the request are its number. Above them is the number of earlier requests of its client without a response.
//!
//! Entry number i has sequence first + i. A record without a payload is a seal.
//!
//! Invariant: a count that was read is trusted only as far as the bytes reach: entries are decoded one at a time.

use super::entry::Entry;
use crate::codec::frame::{self, Frame, RECORD_HEADER_BYTES};
use crate::codec::reader::{Reader, Truncated};
use crate::types::{SEQUENCE_MAX, Sequence};

/// One batch as it lies in a segment.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// Where it starts, from the beginning of the segment.
    pub offset: usize,
    /// Where the next record starts.
    pub end: usize,
    /// Every byte before this offset was durable when the record was written.
    pub synced_upto: u32,
    /// The client that requested the batch.
    pub client: u64,
    /// The client's number for the request.
    pub request: u64,
    /// Sequence of the first entry.
    pub first_sequence: Sequence,
    /// How many entries.
    pub count: u64,
    /// The entries.
    pub entries: Entries<'a>,
}

impl<'a> Record<'a> {
    /// Reads the record whose frame was found in `bytes`, a segment from its start; `Ok(None)` for a seal.
    ///
    /// # Errors
    /// [`Truncated`] when the payload is not that of a record.
    pub fn decode(bytes: &'a [u8], found: &Frame<'_>) -> Result<Option<Self>, Truncated> {
        if found.payload.is_empty() {
            return Ok(None);
        }
        let start = found.offset + RECORD_HEADER_BYTES;
        let end = start + found.payload.len();
        let mut reader = Reader::new(found.payload);
        let client = reader.varint()?;
        let request = reader.varint()?;
        let first_sequence = reader.varint()?;
        let count = reader.varint()?;
        let last = first_sequence.checked_add(count).ok_or(Truncated)?;
        if first_sequence == 0 || last > SEQUENCE_MAX + 1 {
            return Err(Truncated);
        }
        let image = bytes.get(..end).ok_or(Truncated)?;
        let entries = Entries { image, at: start + reader.position(), left: count };
        let (offset, synced_upto) = (found.offset, found.synced_upto);
        Ok(Some(Self {
            offset,
            end: found.end,
            synced_upto,
            client,
            request,
            first_sequence,
            count,
            entries,
        }))
    }
}

/// The entries of a record, in order. Ends with an error when they do not fill the payload exactly.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    /// The segment up to the end of the record's payload.
    image: &'a [u8],
    at: usize,
    left: u64,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Truncated>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            if self.at == self.image.len() {
                return None;
            }
            self.at = self.image.len();
            return Some(Err(Truncated));
        }
        let Some((entry, next)) = Entry::decode(self.image, self.at) else {
            (self.at, self.left) = (self.image.len(), 0);
            return Some(Err(Truncated));
        };
        self.at = next;
        self.left -= 1;
        Some(Ok(entry))
    }
}

/// The records of a segment's bytes up to the first bad frame, seals left out. For change feeds and tools; recovery
/// uses [`scan_segment`](super::scan_segment), which also distinguishes a cut from corruption.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    salt: u64,
}

impl<'a> Records<'a> {
    /// Starts after the header of a segment whose salt is `salt`.
    #[must_use]
    pub fn new(bytes: &'a [u8], salt: u64) -> Self {
        Self { bytes, at: super::SEGMENT_HEADER_BYTES, salt }
    }

    /// Starts at the record at offset `at` instead.
    #[must_use]
    pub(crate) fn starting_at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Where the next record starts.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Truncated>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = frame::record_at(self.bytes, self.at, self.salt)?;
            self.at = found.end;
            if let Some(record) = Record::decode(self.bytes, &found).transpose() {
                return Some(record);
            }
        }
    }
}
