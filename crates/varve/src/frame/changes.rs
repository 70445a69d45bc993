//! The change feed in frames.
//!
//! ```text
//! request, value: u64 since | u32 bytes to aim at | u32 flags (1: no values) | u32 start len | u32 end len | start | end
//! answer:         u64 through | u64 floor | u32 count | u32 0 | change*
//! change:         u64 sequence | u8 kind (0 delete, 1 set, 2 delete range) | u8 flags (1: expires) | u16 0
//!                 | u32 key len | u32 value len | [f64 expires in ms since 1970] | key | value | pad to 4
//! ```
//!
//! If `since` is 2^64 - 1, there are no changes: `through` is then the sequence of the last write called before the
//! request. An empty end is the end of the users' keys. The value of a deleted range is the first key after it.
//!
//! Invariant: the response depends only on the request and on the committed data. So a request may be sent again to the
//! process that has the store by then.

use super::request::{MALFORMED, end_of_range};
use super::response::pad_to_4;
use crate::codec::bytes::append;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::room;
use crate::error::Result;
use crate::storage::Storage;
use crate::store::{ChangesWanted, Store};
use crate::types::{Kind, Sequence};

const NO_VALUES: u32 = 1;
const EXPIRES: u8 = 1;

/// The response to a request for changes. If writes that were requested after it have been done already, `before` is the
/// last sequence before them.
pub(super) fn changes<S: Storage>(
    store: &mut Store<S>,
    value: &[u8],
    before: Option<Sequence>,
) -> Result<Vec<u8>> {
    let (wanted, flags) = parse(value).map_err(|Truncated| MALFORMED)?;
    let (mut answer, mut count) = (vec![0; 24], 0u32);
    let mut lack = Ok(());
    let clock = store.clock();
    let mut found = store.changes(&wanted, &mut |sequence, entry| {
        count += 1;
        let kind = match entry.kind {
            Kind::Set => 1,
            Kind::RangeDelete => 2,
            _ => 0,
        };
        let value = if flags & NO_VALUES != 0 && kind == 1 { &[] } else { entry.value };
        if lack.is_ok() {
            lack = room::reserve(&mut answer, entry.key.len() + value.len() + 32);
        }
        if lack.is_err() {
            return;
        }
        answer.extend_from_slice(&sequence.to_le_bytes());
        answer.extend_from_slice(&[kind, if entry.expires.is_some() { EXPIRES } else { 0 }, 0, 0]);
        answer.extend_from_slice(&(entry.key.len() as u32).to_le_bytes());
        answer.extend_from_slice(&(value.len() as u32).to_le_bytes());
        if let Some(at) = entry.expires {
            answer.extend_from_slice(&(clock.to_host(at) as f64).to_le_bytes());
        }
        append(&mut answer, entry.key);
        append(&mut answer, value);
        pad_to_4(&mut answer);
    })?;
    lack?;
    if wanted.since == Sequence::MAX {
        // After the earlier writes of this frame, which are not acknowledged yet. If they are refused, the frame runs again.
        found.through = before.unwrap_or(store.last_sequence());
    }
    answer[..8].copy_from_slice(&found.through.to_le_bytes());
    answer[8..16].copy_from_slice(&found.floor.to_le_bytes());
    answer[16..20].copy_from_slice(&count.to_le_bytes());
    Ok(answer)
}

fn parse(value: &[u8]) -> Result<(ChangesWanted<'_>, u32), Truncated> {
    let mut reader = Reader::new(value);
    let (since, bytes_max, flags) = (reader.u64()?, reader.u32()? as usize, reader.u32()?);
    let (start_len, end_len) = (reader.u32()? as usize, reader.u32()? as usize);
    let (start, end) = (reader.bytes(start_len)?, reader.bytes(end_len)?);
    if !reader.is_empty() {
        return Err(Truncated);
    }
    Ok((ChangesWanted { since, bytes_max, start, end: end_of_range(end) }, flags))
}
