//! Salvaging WAL segments.
//!
//! Invariants: records that recovery cut off stay cut: those after the end that a newer segment names. If that segment's
//! header is lost, they are those whose sequences a newer segment uses again. Entries are returned in the order of a merge.

use super::files::{Files, read};
use super::{Lost, RepairReport};
use crate::codec::cipher::{KeyNumber, Keyring};
use crate::codec::frame::began_as_record;
use crate::error::{Error, Result};
use crate::storage::Slots;
use crate::types::{FileName, Kind, RangeTombstone, Sequence};
use crate::wal::{
    Piece, SEGMENT_HEADER_BYTES, SegmentHeader, decrypt_segment, decrypt_span, find_salt, salvage_segment,
};

/// One entry of a record.
#[derive(Debug, Clone)]
pub(super) struct LogEntry {
    pub(super) key: Vec<u8>,
    pub(super) sequence: Sequence,
    pub(super) kind: Kind,
    pub(super) expires: Option<u64>,
    pub(super) value: Vec<u8>,
}

/// Everything that was read from the log.
#[derive(Debug, Default)]
pub(super) struct LogEntries {
    /// By key ascending, then sequence descending.
    pub(super) entries: Vec<LogEntry>,
    pub(super) ranges: Vec<RangeTombstone>,
    pub(super) last_sequence: Sequence,
}

/// Reads all segments, newest first.
pub(super) fn salvage_log<D: Slots>(
    device: &D,
    files: &Files,
    report: &mut RepairReport,
) -> Result<LogEntries> {
    let mut log = LogEntries::default();
    let mut ceiling = Sequence::MAX;
    let mut named_end = None;
    for (&id, place) in files.segments.iter().rev() {
        let file = FileName::wal(id);
        let mut bytes = read(device, *place, 0, place.bytes)?;
        let header = SegmentHeader::read(&bytes)?.filter(|header| header.segment == id);
        let end: Option<u64> = named_end.take_if(|(previous, _)| *previous == id).map(|(_, end)| end);
        if let Some(header) = header {
            named_end = Some((header.previous, header.previous_end));
            let previous = header.previous;
            if previous > files.floors.log_floor
                && !files.segments.contains_key(&previous)
                && !report.may_resurrect
            {
                report.lost.push(Lost::of(FileName::wal(previous), "a WAL segment is missing"));
            }
        }
        let Some(salt) = find_salt(&bytes, id, files.keyring.store()) else {
            if end.is_some() || header.is_none() && began(&bytes) {
                report.lost.push(Lost::of(file, "a WAL segment has no record that can be read"));
            }
            continue;
        };
        report.segments += 1;
        let known = header.unwrap_or(SegmentHeader { segment: id, salt, ..SegmentHeader::default() });
        decrypt_readable(&files.keyring, &known, header.is_none(), &mut bytes);
        let limit = end.and_then(|end| usize::try_from(end).ok()).unwrap_or(bytes.len());
        if limit > bytes.len() {
            let lost = Lost::of(file, "the end of a WAL segment is missing");
            report.lost.push(Lost {
                offset: bytes.len() as u64,
                bytes: Some((limit - bytes.len()) as u64),
                ..lost
            });
        }
        let pieces = salvage_segment(&bytes, salt, limit);
        // Bytes at the end were left there by an earlier use of the file, unless they began as a record.
        let is_torn = match pieces.last() {
            Some(Piece::Gap { offset, .. }) => began_as_record(&bytes, *offset, salt),
            _ => false,
        };
        if files.segments.keys().next_back() == Some(&id) {
            let last = pieces.iter().rfind(|piece| is_torn || !matches!(piece, Piece::Gap { .. }));
            report.is_sealed = matches!(last, Some(Piece::Seal { .. }));
        }
        ceiling = log.take(file, pieces, ceiling, (end.is_some(), is_torn), report);
    }
    log.entries.sort_by(|a, b| a.key.cmp(&b.key).then(b.sequence.cmp(&a.sequence)));
    Ok(log)
}

/// Decrypts all records that can be decrypted; the others no longer verify. Where the header is lost, and with it the number of the
/// key, that is the one that decrypts all.
fn decrypt_readable(keyring: &Keyring, header: &SegmentHeader, is_headless: bool, bytes: &mut [u8]) {
    let fits = |key: &KeyNumber| {
        decrypt_segment(keyring, &SegmentHeader { key: *key, ..*header }, &mut bytes.to_vec()).is_ok()
    };
    let found = if is_headless { keyring.numbers().find(fits) } else { None };
    let header = SegmentHeader { key: found.unwrap_or(header.key), ..*header };
    let mut from = SEGMENT_HEADER_BYTES;
    while let Some(rest) = bytes.get_mut(from..)
        && let Err(Error::Corrupt(damage)) = decrypt_span(keyring, &header, from, rest)
    {
        from = damage.offset as usize + 8;
        bytes[from - 8..from].fill(0);
    }
}

/// Whether anything was ever written where the first record would be.
fn began(bytes: &[u8]) -> bool {
    bytes.get(SEGMENT_HEADER_BYTES..).is_some_and(|rest| rest.iter().take(64).any(|&byte| byte != 0))
}

/// Lists gaps in which only writes behind sequence `last` and up to `until` can be missing.
fn list_gaps(gaps: &mut Vec<Lost>, last: Option<Sequence>, until: Sequence, report: &mut RepairReport) {
    let first = last.map_or(1, |last| last + 1);
    // If no sequence is missing, only a seal was damaged.
    let is_data = last.is_none() || first <= until;
    report.lost.extend(gaps.drain(..).map(|lost| Lost { sequences: Some((first, until)), is_data, ..lost }));
}

impl LogEntries {
    /// Adds the pieces of one segment. Returns the first sequence it uses.
    fn take(
        &mut self,
        file: FileName,
        pieces: Vec<Piece<'_>>,
        ceiling: Sequence,
        (has_end, is_torn): (bool, bool),
        report: &mut RepairReport,
    ) -> Sequence {
        let (mut last, mut gaps, mut floor) = (None, Vec::new(), ceiling);
        for piece in pieces {
            match piece {
                Piece::Gap { offset, end, is_inside } => {
                    if is_inside || has_end || is_torn {
                        gaps.push(Lost {
                            offset: offset as u64,
                            bytes: Some((end - offset) as u64),
                            ..Lost::of(file, "records of a WAL segment do not verify")
                        });
                    }
                }
                Piece::Seal { .. } => {}
                Piece::Record(record) => {
                    if record.first_sequence >= ceiling {
                        continue;
                    }
                    list_gaps(&mut gaps, last, record.first_sequence - 1, report);
                    report.records += 1;
                    floor = floor.min(record.first_sequence);
                    let mut sequence = record.first_sequence;
                    let end = sequence + record.count;
                    for entry in record.entries.map_while(Result::ok) {
                        self.add(&entry, sequence);
                        sequence += 1;
                    }
                    last = Some(sequence - 1);
                    if sequence < end {
                        report.lost.push(Lost {
                            offset: record.offset as u64,
                            bytes: Some((record.end - record.offset) as u64),
                            sequences: Some((sequence, end - 1)),
                            ..Lost::of(file, "a record of a WAL segment has entries that cannot be read")
                        });
                    }
                }
            }
        }
        list_gaps(&mut gaps, last, ceiling - 1, report);
        floor
    }

    fn add(&mut self, entry: &crate::wal::Entry<'_>, sequence: Sequence) {
        self.last_sequence = self.last_sequence.max(sequence);
        let (key, value) = (entry.key.to_vec(), entry.value.to_vec());
        if entry.kind == Kind::RangeDelete {
            self.ranges.push(RangeTombstone { start: key, end: value, sequence });
        } else {
            let (kind, expires) = (entry.kind, entry.expires);
            self.entries.push(LogEntry { key, sequence, kind, expires, value });
        }
    }
}
