//! The frame around every record of a WAL segment and of a manifest.
//!
//! ```text
//! u64 tag = salt ^ offset | u32 payload len | u32 synced_upto | u64 xxh3 | payload | zeros to a multiple of 8
//! 0                         8                 12                16         24
//! ```
//!
//! Bit 31 of the length shows that the payload is encrypted. It then ends with nonce and tag (see [`cipher`](super::cipher)), which
//! count in the length. [`encrypt_records`] and [`decrypt_records`] change records in place between this form and one that differs
//! only in this: the payload is readable and the hash is that of the readable bytes. Everything else works on both forms.
//!
//! xxh3 is over the first 16 bytes and the payload, seeded with the salt. The salt is fresh for every file, and the
//! offset is the record's own. So bytes left from an earlier use of the file, or written to the wrong place, are never
//! mistaken for a record. `synced_upto` promises that every byte before it was durable when the record was written.
//!
//! Invariant: records lie end to end after the file's header, at multiples of 8. [`scan`] walks them up to the first
//! bad one, and then looks for valid records after it. If one of those promises more than the walk reached,
//! acknowledged bytes were lost. Without such a proof, the bad record is a write that a crash cut off.

use super::cipher::{CIPHER_BYTES, KeyNumber, Keyring, Place};
use super::hash::xxh3;
use super::reader::{Reader, Truncated};
use crate::error::{Error, Result as EngineResult};
use crate::types::FileName;

/// Length of a record's header in bytes.
pub const RECORD_HEADER_BYTES: usize = 24;

/// Number of bytes of the header before its hash.
const HASHED_BYTES: usize = 16;

/// In the field of the payload's length: it is encrypted, or will be.
const ENCRYPTED: u32 = 1 << 31;

/// Payloads up to this length are copied to the stack for hashing, longer ones to the heap. A streaming state would save
/// that copy, but only at recovery, and would add 3 KB of compiled code.
const COPIED_BYTES_MAX: usize = 240;

/// After a bad record, [`scan`] hashes in vain at most this many times the length of the file.
const FUTILE_FACTOR_MAX: u64 = 16;

/// A record found in a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where it starts.
    pub offset: usize,
    /// Where the next one would start.
    pub end: usize,
    /// Every byte before this offset was durable when the record was written.
    pub synced_upto: u32,
    /// Its contents, without room for nonce and tag.
    pub payload: &'a [u8],
    /// The payload is encrypted on disk.
    pub encrypted: bool,
}

/// The result of [`scan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameScan {
    /// End of the last good record.
    pub end: usize,
    /// Number of good records before `end`.
    pub records: u32,
    /// Number of valid records after `end`. None of them proves a loss.
    pub valid_after: u32,
    /// The bytes at `end` began as a record of this file, or valid records follow: something was cut off.
    pub torn: bool,
}

/// A record is bad although a later one promises that it was durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Where the bad record starts.
    pub offset: usize,
}

/// Rounds up to the alignment of records.
#[inline]
#[must_use]
pub fn aligned(len: usize) -> usize {
    len.next_multiple_of(8)
}

/// Appends the header of a record. The payload is pushed next. Returns the start of the record, for [`end_record`]. The
/// image is the file's bytes from offset 0.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
pub(crate) fn begin_record(image: &mut Vec<u8>) -> usize {
    let start = image.len();
    debug_assert!(start.is_multiple_of(8), "records are 8-aligned");
    image.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
    start
}

/// Closes the record that starts at `start` and ends with the image: fills in its header and adds the padding.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
pub(crate) fn end_record(image: &mut Vec<u8>, start: usize, salt: u64, synced_upto: u32) {
    close(&mut image[start..], start as u64, salt, synced_upto, 0);
    image.resize(aligned(image.len()), 0);
}

/// As [`end_record`], for a file whose key has this number: with room for nonce and tag, unless it is 0 or there is no payload.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
pub(crate) fn end_record_under(
    key: KeyNumber,
    image: &mut Vec<u8>,
    start: usize,
    salt: u64,
    synced_upto: u32,
) {
    if key == 0 || image.len() == start + RECORD_HEADER_BYTES {
        return end_record(image, start, salt, synced_upto);
    }
    image.extend_from_slice(&[0; CIPHER_BYTES]);
    close(&mut image[start..], start as u64, salt, synced_upto, ENCRYPTED);
    image.resize(aligned(image.len()), 0);
}

/// A whole record by itself, to be written at `offset` of its file, whose key has this number.
#[must_use]
pub fn record_for(key: KeyNumber, offset: u64, salt: u64, synced_upto: u32, payload: &[u8]) -> Vec<u8> {
    let room = Keyring::room(key);
    let mut record = Vec::with_capacity(RECORD_HEADER_BYTES + aligned(payload.len() + room));
    record.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
    record.extend_from_slice(payload);
    record.resize(record.len() + room, 0);
    close(&mut record, offset, salt, synced_upto, if key == 0 { 0 } else { ENCRYPTED });
    record.resize(aligned(record.len()), 0);
    record
}

/// Encrypts the payloads of whole records in place, before they are written. `bytes` are those from `offset` on of `file`, whose key
/// has this number; under 0 nothing happens.
pub fn encrypt_records(
    keyring: &Keyring,
    key: KeyNumber,
    file: FileName,
    offset: u64,
    salt: u64,
    bytes: &mut [u8],
) {
    if key == 0 {
        return;
    }
    let mut at = 0;
    while let Some(head) = bytes[at..].first_chunk::<RECORD_HEADER_BYTES>() {
        let field = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (marked, synced_upto) = (field(8), field(12));
        let len = (marked & !ENCRYPTED) as usize;
        let payload = at + RECORD_HEADER_BYTES;
        if marked & ENCRYPTED != 0 {
            let place = Place { file, offset: offset + at as u64, part: Place::RECORD };
            keyring.encrypt(key, place, &mut bytes[payload..payload + len]);
            close(&mut bytes[at..payload + len], place.offset, salt, synced_upto, ENCRYPTED);
        }
        at = payload + aligned(len);
    }
    debug_assert_eq!(at, bytes.len(), "whole records");
}

/// Decrypts in place all records of a file's `bytes` that verify, also those behind bad ones. `bytes` are those from `offset` on of
/// `file`, whose key has this number; under 0 nothing happens. Bad records stay as they are.
///
/// # Errors
/// [`Error::Key`] when the key is not here, [`Error::Corrupt`] when a record verifies and does not decrypt, or is not encrypted although
/// the file is.
pub fn decrypt_records(
    keyring: &Keyring,
    key: KeyNumber,
    file: FileName,
    offset: u64,
    salt: u64,
    bytes: &mut [u8],
) -> EngineResult<()> {
    if key == 0 {
        return Ok(());
    }
    if !keyring.has(key) {
        return Err(Error::NO_KEY);
    }
    let mut budget = FUTILE_FACTOR_MAX * bytes.len() as u64;
    let mut at = 0;
    while let Some(tag) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let place = Place { file, offset: offset + at as u64, part: Place::RECORD };
        if u64::from_le_bytes(*tag) != salt ^ place.offset {
            at += 8;
            continue;
        }
        let Some(frame) = record_from(&bytes[at..], place.offset as usize, salt) else {
            // As in `look_behind`, which then reports that this is no crash.
            let Some(rest) = budget.checked_sub(claimed_bytes(bytes, at)) else { return Ok(()) };
            budget = rest;
            at += 8;
            continue;
        };
        let (synced_upto, next) = (frame.synced_upto, frame.end - offset as usize);
        let end = at + RECORD_HEADER_BYTES + frame.payload.len() + CIPHER_BYTES;
        if frame.encrypted {
            keyring
                .decrypt(key, place, &mut bytes[at + RECORD_HEADER_BYTES..end])
                .map_err(|_| Error::corrupt(file, place.offset, "a record does not decrypt"))?;
            close(&mut bytes[at..end], place.offset, salt, synced_upto, ENCRYPTED);
        } else if !frame.payload.is_empty() {
            return Err(Error::corrupt(file, place.offset, "a record of an encrypted file is not encrypted"));
        }
        at = next;
    }
    Ok(())
}

/// Fills in the header of `record`. `record` is header and payload, and lies at `offset` of its file.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
fn close(record: &mut [u8], offset: u64, salt: u64, synced_upto: u32, mark: u32) {
    let len = record.len() - RECORD_HEADER_BYTES;
    debug_assert!(len < ENCRYPTED as usize, "a payload is below 2 GiB");
    let mut head = [0; HASHED_BYTES];
    head[..8].copy_from_slice(&(salt ^ offset).to_le_bytes());
    head[8..12].copy_from_slice(&(len as u32 | mark).to_le_bytes());
    head[12..].copy_from_slice(&synced_upto.to_le_bytes());
    // The hashed 16 bytes are put right before the payload for a short time, so that one call hashes both.
    record[8..RECORD_HEADER_BYTES].copy_from_slice(&head);
    let hash = xxh3(&record[8..], salt);
    record[..HASHED_BYTES].copy_from_slice(&head);
    record[HASHED_BYTES..RECORD_HEADER_BYTES].copy_from_slice(&hash.to_le_bytes());
}

/// The record at `offset`, if there is a valid one.
#[must_use]
#[inline]
pub(crate) fn record_at(bytes: &[u8], offset: usize, salt: u64) -> Option<Frame<'_>> {
    record_from(bytes.get(offset..)?, offset, salt)
}

/// The record that starts `rest`, the bytes of a file from `offset` on, if there is a valid one.
#[must_use]
pub(crate) fn record_from(rest: &[u8], offset: usize, salt: u64) -> Option<Frame<'_>> {
    let tag = (salt ^ offset as u64).to_le_bytes();
    if !rest.starts_with(&tag) {
        return None;
    }
    decode(rest, offset, tag, salt).ok().flatten()
}

/// The record that starts `rest`, as if its tag were `tag`.
fn decode(rest: &[u8], offset: usize, tag: [u8; 8], salt: u64) -> Result<Option<Frame<'_>>, Truncated> {
    let mut reader = Reader::new(rest);
    let mut head: [u8; HASHED_BYTES] = reader.array()?;
    head[..8].copy_from_slice(&tag);
    let mut fields = Reader::new(&head[8..]);
    let marked = fields.u32()?;
    let (len, encrypted) = ((marked & !ENCRYPTED) as usize, marked & ENCRYPTED != 0);
    let synced_upto = fields.u32()?;
    let hash = reader.u64()?;
    let payload = reader.bytes(len)?;
    let padding = reader.bytes(aligned(len) - len)?;
    if padding.iter().any(|&byte| byte != 0) || frame_hash(&head, payload, salt) != hash {
        return Ok(None);
    }
    let end = offset + reader.position();
    let payload_end = if encrypted { len.checked_sub(CIPHER_BYTES).ok_or(Truncated)? } else { len };
    Ok(Some(Frame { offset, end, synced_upto, payload: &payload[..payload_end], encrypted }))
}

fn frame_hash(head: &[u8; HASHED_BYTES], payload: &[u8], salt: u64) -> u64 {
    if payload.len() <= COPIED_BYTES_MAX {
        let mut copy = [0; HASHED_BYTES + COPIED_BYTES_MAX];
        let len = HASHED_BYTES + payload.len();
        copy[..HASHED_BYTES].copy_from_slice(head);
        copy[HASHED_BYTES..len].copy_from_slice(payload);
        return xxh3(&copy[..len], salt);
    }
    xxh3(&[head, payload].concat(), salt)
}

/// Walks the records of `bytes` from `start` and passes each good one to `visit`. `visit` may end the walk with its own error.
///
/// # Errors
/// [`Lost`], as `E`, when a valid record after a bad one promises that the bad one was durable.
pub fn scan<'a, E: From<Lost>>(
    bytes: &'a [u8],
    start: usize,
    salt: u64,
    mut visit: impl FnMut(Frame<'a>) -> Result<(), E>,
) -> Result<FrameScan, E> {
    let mut found = FrameScan { end: start, records: 0, valid_after: 0, torn: false };
    while let Some(frame) = record_at(bytes, found.end, salt) {
        found.end = frame.end;
        found.records += 1;
        visit(frame)?;
    }
    found.valid_after = look_behind(bytes, 0, found.end + 8, salt, found.end)?;
    found.torn = found.valid_after > 0 || began_as_record(bytes, found.end, salt);
    Ok(found)
}

/// Whether valid records in `bytes`, which are those from `offset` on of a file, promise that more of the file is durable than its first
/// `end` bytes.
pub(crate) fn promise_more(bytes: &[u8], offset: usize, salt: u64, end: usize) -> bool {
    look_behind(bytes, offset, 0, salt, end).is_err()
}

/// Looks for valid records from `bytes[at]` on, and counts them. `bytes` are those from `offset` on of a file whose first bad record lies
/// at `end`.
fn look_behind(bytes: &[u8], offset: usize, mut at: usize, salt: u64, end: usize) -> Result<u32, Lost> {
    let mut budget = FUTILE_FACTOR_MAX * bytes.len() as u64;
    let mut valid = 0;
    while let Some(tag) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        if u64::from_le_bytes(*tag) != salt ^ (offset + at) as u64 {
            at += 8;
            continue;
        }
        let Some(frame) = record_from(&bytes[at..], offset + at, salt) else {
            // No crash leaves half records that claim more than this. Someone made them, so nothing here can be
            // trusted. (A group of many small records that lost its sectors claims each byte once.)
            let futile = claimed_bytes(bytes, at);
            budget = budget.checked_sub(futile).ok_or(Lost { offset: end })?;
            at += 8;
            continue;
        };
        if frame.synced_upto as usize > end {
            return Err(Lost { offset: end });
        }
        valid += 1;
        at = frame.end - offset;
    }
    Ok(valid)
}

/// The cost of verifying the bad record at `offset`: the bytes it claims, if the file has them.
fn claimed_bytes(bytes: &[u8], offset: usize) -> u64 {
    let claimed = bytes
        .get(offset + 8..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |len| u32::from_le_bytes(*len) & !ENCRYPTED);
    let rest = (bytes.len() - offset).saturating_sub(RECORD_HEADER_BYTES) as u64;
    let hashed = if u64::from(claimed) <= rest { u64::from(claimed) } else { 0 };
    hashed + RECORD_HEADER_BYTES as u64
}

/// Whether the bytes at `offset`, which are not a valid record, were one or the start of one. That is so when the tag
/// is right as far as it goes, or when only the tag is wrong.
pub(crate) fn began_as_record(bytes: &[u8], offset: usize, salt: u64) -> bool {
    let rest = bytes.get(offset..).unwrap_or_default();
    let tag = (salt ^ offset as u64).to_le_bytes();
    let shown = rest.len().min(tag.len());
    if shown > 0 && rest[..shown] == tag[..shown] {
        return true;
    }
    matches!(decode(rest, offset, tag, salt), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u64 = 0x0123_4567_89ab_cdef;
    const START: usize = 16;

    /// Appends a whole record.
    fn encode_record(image: &mut Vec<u8>, salt: u64, synced_upto: u32, payload: &[u8]) {
        let start = begin_record(image);
        image.extend_from_slice(payload);
        end_record(image, start, salt, synced_upto);
    }

    /// Three records; the second and third promise all before them when `synced`.
    fn image(synced: bool) -> Vec<u8> {
        let mut image = vec![0xee; START];
        for len in [5, 0, 300] {
            let upto = if synced { image.len() as u32 } else { 0 };
            encode_record(&mut image, SALT, upto, &vec![len as u8; len]);
        }
        image
    }

    fn lengths(bytes: &[u8]) -> Result<(Vec<usize>, FrameScan), Lost> {
        let mut lengths = Vec::new();
        let found = scan(bytes, START, SALT, |frame| {
            lengths.push(frame.payload.len());
            Ok::<(), Lost>(())
        })?;
        Ok((lengths, found))
    }

    #[test]
    fn records_come_back_and_stale_bytes_end_the_walk() {
        let mut bytes = image(true);
        let end = bytes.len();
        let expected = Ok((vec![5, 0, 300], FrameScan { end, records: 3, valid_after: 0, torn: false }));
        assert_eq!(lengths(&bytes), expected);
        // A record of an earlier use of the file, under another salt, and one from another place.
        encode_record(&mut bytes, SALT ^ 1, u32::MAX, b"stale");
        let elsewhere = bytes[START..START + 32].to_vec();
        bytes.extend_from_slice(&elsewhere);
        assert_eq!(lengths(&bytes), expected);
    }

    #[test]
    fn every_flipped_byte_ends_the_walk_there_or_proves_a_loss() {
        let clean = image(true);
        let starts = [START, START + 32, START + 56];
        for byte in START..clean.len() {
            let mut bytes = clean.clone();
            bytes[byte] ^= 0x40;
            let hit = starts.iter().rposition(|&start| start <= byte).unwrap();
            match lengths(&bytes) {
                Err(lost) => assert!(hit < 2 && lost.offset == starts[hit], "byte {byte}"),
                Ok((_, found)) => assert!(hit == 2 && found.end == starts[2] && found.torn, "byte {byte}"),
            }
        }
    }

    #[test]
    fn without_a_promise_a_bad_record_is_a_cut_and_what_follows_is_counted() {
        let mut bytes = image(false);
        bytes[START + RECORD_HEADER_BYTES] ^= 1;
        assert_eq!(
            lengths(&bytes),
            Ok((vec![], FrameScan { end: START, records: 0, valid_after: 2, torn: true }))
        );
    }

    #[test]
    fn every_cut_is_clean_to_the_last_whole_record() {
        let bytes = image(true);
        for len in 0..bytes.len() {
            let records = [START + 32, START + 56].iter().filter(|&&end| end <= len).count();
            assert_eq!(lengths(&bytes[..len]).unwrap().1.records as usize, records, "{len} bytes");
        }
    }

    #[test]
    fn a_file_of_half_records_ends_the_search_early() {
        // A tag every 8 bytes. Each is also the length that the previous record claims: 8, 16, 24, ...
        let salt = SALT & !0xffff_ffff;
        let mut bytes = vec![0; 1 << 20];
        for at in (START..bytes.len()).step_by(8) {
            bytes[at..at + 8].copy_from_slice(&(salt ^ at as u64).to_le_bytes());
        }
        let found = scan(&bytes, START, salt, |_| Ok::<(), Lost>(()));
        assert_eq!(found, Err(Lost { offset: START }));
    }

    #[test]
    fn a_group_of_many_records_that_lost_its_sectors_is_a_cut() {
        let mut bytes = vec![0; START];
        for _ in 0..5000 {
            encode_record(&mut bytes, SALT, 0, &[7; 300]);
        }
        // Every sector but the first of three: all tags are there, no record is whole.
        for sector in bytes.chunks_mut(512).skip(1).step_by(3) {
            sector[100..].fill(0);
        }
        bytes[START + RECORD_HEADER_BYTES] ^= 1;
        assert_eq!(lengths(&bytes).map(|(_, found)| found.end), Ok(START));
    }

    #[test]
    fn a_record_by_itself_is_the_one_of_the_image() {
        let image = image(true);
        let first = record_for(0, START as u64, SALT, START as u32, &[5; 5]);
        assert_eq!(first, image[START..START + 32]);
    }

    #[test]
    fn golden_record() {
        let mut bytes = Vec::new();
        encode_record(&mut bytes, 0x1122_3344_5566_7788, 7, b"varve");
        let head: Vec<u8> = vec![0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 5, 0, 0, 0, 7, 0, 0, 0];
        assert_eq!(bytes[..16], head);
        let mut hashed = head;
        hashed.extend_from_slice(b"varve");
        assert_eq!(bytes[16..24], xxh3(&hashed, 0x1122_3344_5566_7788).to_le_bytes());
        assert_eq!(bytes[24..], *b"varve\0\0\0");
    }
}
