//! The reads of a frame, with scans and snapshots: each writes its answer to the response.

use super::{Outcome, Runner, SNAPSHOT_AT};
use crate::codec::bytes::append;
use crate::codec::reader::Reader;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::frame::changes::changes;
use crate::frame::request::{Operation, Request, parse_keys, parse_scan};
use crate::frame::response::{Responses, pad_to_4};
use crate::scan::Progress;
use crate::storage::Storage;
use crate::store::{Entry, Name};
use crate::table::come_upon;
use crate::types::{BATCH_BYTES_MAX, Sequence};

/// The most bytes that a response has besides a value.
const ENTRY_BYTES: usize = 24;

impl<S: Storage> Runner<'_, S> {
    pub(super) fn read(
        &mut self,
        at: usize,
        request: &Request<'_>,
        responses: &mut Responses<'_>,
    ) -> Result<()> {
        let number = request.request;
        let clock = self.store.clock();
        match request.operation {
            Operation::Get => self.find(request, responses, &|entry, out| append(out, entry.value)),
            Operation::Has => self.find(request, responses, &|_, _| {}),
            Operation::GetEntry => self.find(request, responses, &|entry, out| {
                out.extend_from_slice(&entry.sequence.to_le_bytes());
                out.extend_from_slice(&(clock.to_host(entry.expires.unwrap_or(0)) as f64).to_le_bytes());
                append(out, entry.value);
            }),
            Operation::GetMany => self.get_many(request, responses),
            Operation::ScanOpen => {
                let mut scan = parse_scan(request.value)?;
                scan.snapshot = self.snapshot_for(request, scan.snapshot)?;
                let batch_bytes = scan.batch_bytes;
                let cursor = word(request.key)?;
                let name = self.name(cursor);
                self.store.open_cursor_as(name, scan)?;
                self.opened.push(cursor);
                let read_point = self.store.read_point_of_cursor(name)?;
                let advanced = self.advance(number, cursor, batch_bytes, Some(read_point), None, responses);
                match advanced {
                    Ok(()) => self.read_points.push(responses.last_at()),
                    // Its client assumes that it was not opened. If it stayed open, it would keep its files for ever.
                    Err(_) => self.store.close_cursor(name),
                }
                advanced
            }
            Operation::ScanNext => {
                if let Outcome::Continued(answer) = &self.outcomes[at] {
                    responses.ok(number, |out| append(out, answer));
                    return Ok(());
                }
                let (cursor, bytes) = (word(request.key)?, word(request.value)?);
                // Only a write can make the frame run twice.
                let mut kept = (self.outcomes.len() > 1).then(Vec::new);
                self.advance(number, cursor, bytes as usize, None, kept.as_mut(), responses)?;
                if let Some(kept) = kept {
                    self.outcomes[at] = Outcome::Continued(kept);
                }
                Ok(())
            }
            Operation::ScanClose => {
                self.store.close_cursor(self.name(word(request.key)?));
                responses.ok(number, |_| {});
                Ok(())
            }
            Operation::SnapshotOpen => {
                let name = self.name(request.snapshot);
                match self.sequence_before(request) {
                    Some(sequence) => self.store.open_snapshot_at(name, sequence)?,
                    None => self.store.open_snapshot_as(name)?,
                }
                self.took_snapshot(number, name, responses)
            }
            Operation::SnapshotRestore => {
                let name = self.name(request.snapshot);
                let mut value = Reader::new(request.value);
                let (Ok(sequence), Ok(now_ms), true) = (value.u64(), value.u64(), value.is_empty()) else {
                    return Err(Error::InvalidArgument(
                        "A frame is malformed: a read point has the wrong size.",
                    ));
                };
                self.store.restore_snapshot(name, sequence, now_ms)?;
                self.took_snapshot(number, name, responses)
            }
            Operation::Changes => {
                let answer = changes(self.store, request.value, self.sequence_before(request))?;
                responses.try_ok(number, |out| {
                    room::reserve(out, answer.len())?;
                    append(out, &answer);
                    Ok(())
                })
            }
            Operation::SnapshotClose => {
                self.dropped.push(request.snapshot);
                responses.ok(number, |_| {});
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn find(
        &mut self,
        request: &Request<'_>,
        responses: &mut Responses<'_>,
        write: &dyn Fn(&Entry<'_>, &mut Vec<u8>),
    ) -> Result<()> {
        let snapshot = self.snapshot_for(request, request.snapshot)?;
        let answered = self.store.find_in(self.name(snapshot), request.key, |entry| match entry {
            Some(entry) => responses.try_ok(request.request, |out| {
                room::reserve(out, entry.value.len() + ENTRY_BYTES)?;
                write(&entry, out);
                Ok(())
            }),
            None => {
                responses.missing(request.request);
                Ok(())
            }
        });
        answered?
    }

    fn get_many(&mut self, request: &Request<'_>, responses: &mut Responses<'_>) -> Result<()> {
        let keys = parse_keys(request.value)?;
        let snapshot = self.snapshot_for(request, request.snapshot)?;
        let mut expires = false;
        responses.try_ok(request.request, |out| {
            out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
            let start = out.len();
            let mut add = |key| -> Result<()> {
                self.store.find_in(self.name(snapshot), key, |entry| match entry {
                    Some(entry) => {
                        expires |= entry.expires.is_some();
                        put_value(out, start, entry.value)
                    }
                    None => {
                        out.extend_from_slice(&u32::MAX.to_le_bytes());
                        Ok(())
                    }
                })?
            };
            let mut keys = keys.into_iter();
            while let Some(key) = keys.next() {
                add(key).map_err(|failure| come_upon(failure, keys.by_ref().map(&mut add)))?;
            }
            Ok(())
        })?;
        if expires {
            responses.expires();
        }
        Ok(())
    }

    /// Writes the next batch of a scan to the response, and copies it to `kept`. If there is no memory for it, the scan is closed:
    /// it has already advanced, and would skip this batch.
    fn advance(
        &mut self,
        request: u32,
        cursor: u32,
        bytes: usize,
        read_point: Option<(Sequence, u64)>,
        kept: Option<&mut Vec<u8>>,
        responses: &mut Responses<'_>,
    ) -> Result<()> {
        let name = self.name(cursor);
        let (progress, batch) = self.store.next_of_cursor(name, bytes)?;
        let more = if progress == Progress::More { cursor } else { 0 };
        let expires = batch.expires();
        let answered = responses.try_ok(request, |out| {
            if let Some(read_point) = read_point {
                put_read_point(read_point, out);
            }
            batch.reserve(out)?;
            let start = out.len();
            batch.encode(more, out);
            if let Some(kept) = kept {
                room::reserve_exact(kept, out.len() - start)?;
                kept.extend_from_slice(&out[start..]);
            }
            Ok(())
        });
        if answered.is_err() {
            self.store.close_cursor(name);
        } else if expires {
            responses.expires();
        }
        answered
    }

    /// The number of the snapshot that a read uses. If writes that were requested after it have been done already, it is a
    /// snapshot of a past sequence.
    fn snapshot_for(&mut self, request: &Request<'_>, snapshot: u32) -> Result<u32> {
        match self.sequence_before(request) {
            Some(sequence) if snapshot == 0 => {
                self.store.open_snapshot_at(self.name(SNAPSHOT_AT), sequence).map(|()| SNAPSHOT_AT)
            }
            _ => Ok(snapshot),
        }
    }

    fn sequence_before(&self, request: &Request<'_>) -> Option<Sequence> {
        if self.is_repeated { self.store.sequence_before(self.client, request.request) } else { None }
    }

    /// Everything that the client's scans and snapshots see must be in the log, so that it exists when another process opens the
    /// store. So writes of the memory level are logged now. If they are refused, the response reports it.
    pub(super) fn log_read_points(&mut self, out: &mut [u8]) {
        if self.client == 0 || self.read_points.is_empty() || self.store.log_staged(false).is_ok() {
            return;
        }
        for at in &self.read_points {
            out[*at + 8..*at + 16].fill(0);
        }
    }

    fn took_snapshot(&mut self, request: u32, name: Name, responses: &mut Responses<'_>) -> Result<()> {
        self.snapshots.push(name.number);
        // It replaced a snapshot that the frame closes.
        self.dropped.retain(|dropped| *dropped != name.number);
        let read_point = self.store.read_point_of_snapshot(name)?;
        responses.ok(request, |out| put_read_point(read_point, out));
        self.read_points.push(responses.last_at());
        Ok(())
    }
}

/// Appends a value to a response that began at `start`.
fn put_value(out: &mut Vec<u8>, start: usize, value: &[u8]) -> Result<()> {
    if out.len() - start + value.len() > BATCH_BYTES_MAX {
        return Err(Error::InvalidArgument(
            "The values of these keys take more than 256 MiB. Ask for fewer keys at a time.",
        ));
    }
    room::reserve(out, value.len() + ENTRY_BYTES)?;
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    append(out, value);
    pad_to_4(out);
    Ok(())
}

fn put_read_point((sequence, now_ms): (Sequence, u64), out: &mut Vec<u8>) {
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&now_ms.to_le_bytes());
}

fn word(bytes: &[u8]) -> Result<u32> {
    match bytes.try_into() {
        Ok(bytes) => Ok(u32::from_le_bytes(bytes)),
        Err(_) => Err(Error::InvalidArgument("A frame is malformed: a number has the wrong size.")),
    }
}
