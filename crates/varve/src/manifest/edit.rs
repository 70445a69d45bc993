//! One change of the store's shape: tables added and removed, and the numbers that are valid after it.
//!
//! ```text
//! edit     floors | clients | varint count, { u8 level, table meta }* | varint count, { varint table id }*
//! floors   7 varints, in the order of the fields
//! clients  varint count, { varint client | varint request | varint sequence | u8 flags }*
//! ```
//!
//! Invariant: tables are written as a difference. Everything else is written in full, as it is after the edit. So an
//! edit has one meaning, independent of what was known before.

use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::table::TableMeta;
use crate::types::Sequence;

/// Numbers that only ever rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Floors {
    /// WAL segments up to this one are no longer needed: their entries are in tables.
    pub log_floor: u64,
    /// WAL segments up to this one are not kept, not even for the change feed.
    pub history_floor: u64,
    /// The highest watermark a compaction has used: a snapshot below it is lost.
    pub gc_sequence: Sequence,
    /// Every sequence up to this one may be in use.
    pub last_sequence: Sequence,
    /// Every table id below this one may be in use.
    pub next_table: u64,
    /// Every WAL segment id below this one may be in use.
    pub next_segment: u64,
    /// The highest time of the store, in milliseconds since 1970.
    pub clock_ms: u64,
    /// How far that time is ahead of the host's. It is no floor: it may fall.
    pub ahead_ms: u64,
}

/// Writes of a client that were done, so that the client can get the result again after a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientState {
    /// The client.
    pub client: u64,
    /// The first request in the low 32 bits; above them the number of operations, minus one.
    pub request: u64,
    /// The sequence of the last operation.
    pub sequence: Sequence,
    /// Bit 0: these are that many requests of one operation each. Bits 1 to 6: number of opens since the client's last request. Bit 7: the
    /// keys that they delete were absent.
    pub flags: u8,
}

/// One commit to the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    /// New tables with their level. A table that moves to another level is removed and added in one edit.
    pub added: Vec<(u8, TableMeta)>,
    /// Ids of the tables that were removed.
    pub removed: Vec<u64>,
    /// All floors as they are after the edit.
    pub floors: Floors,
    /// The requests that clients may ask for again, as they are after the edit. Missing ones are removed.
    pub clients: Vec<ClientState>,
}

impl Floors {
    /// Whether no floor is lower than it was in `before`.
    #[must_use]
    pub(crate) fn rose_from(&self, before: &Self) -> bool {
        self.numbers().iter().zip(before.numbers()).all(|(now, before)| *now >= before)
    }

    fn numbers(&self) -> [u64; 7] {
        [
            self.log_floor,
            self.history_floor,
            self.gc_sequence,
            self.last_sequence,
            self.next_table,
            self.next_segment,
            self.clock_ms,
        ]
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        for number in self.numbers() {
            put_u64(into, number);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            log_floor: reader.varint()?,
            history_floor: reader.varint()?,
            gc_sequence: reader.varint()?,
            last_sequence: reader.varint()?,
            next_table: reader.varint()?,
            next_segment: reader.varint()?,
            clock_ms: reader.varint()?,
            ahead_ms: 0,
        })
    }
}

/// Appends `ahead_ms`, which is left out in a store whose clock was never set back.
pub(super) fn encode_ahead(ahead_ms: u64, into: &mut Vec<u8>) {
    if ahead_ms > 0 {
        put_u64(into, ahead_ms);
    }
}

pub(super) fn decode_ahead(reader: &mut Reader<'_>) -> Result<u64, Truncated> {
    match if reader.is_empty() { Ok(None) } else { reader.varint().map(Some) }? {
        Some(0) => Err(Truncated),
        ahead_ms => Ok(ahead_ms.unwrap_or(0)),
    }
}

impl ClientState {
    fn encode(&self, into: &mut Vec<u8>) {
        put_u64(into, self.client);
        put_u64(into, self.request);
        put_u64(into, self.sequence);
        into.push(self.flags);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            client: reader.varint()?,
            request: reader.varint()?,
            sequence: reader.varint()?,
            flags: reader.u8()?,
        })
    }
}

impl Edit {
    /// Appends the encoded edit.
    pub fn encode(&self, into: &mut Vec<u8>) {
        self.floors.encode(into);
        encode_clients(&self.clients, into);
        put_u64(into, self.added.len() as u64);
        for (level, meta) in &self.added {
            into.push(*level);
            meta.encode(into);
        }
        put_u64(into, self.removed.len() as u64);
        for id in &self.removed {
            put_u64(into, *id);
        }
        encode_ahead(self.floors.ahead_ms, into);
    }

    /// Reads one encoded edit.
    ///
    /// # Errors
    /// [`Truncated`] when the bytes end before the edit does.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let mut edit = Self {
            floors: Floors::decode(reader)?,
            clients: decode_clients(reader)?,
            added: decode_list(reader, |reader| Ok((reader.u8()?, TableMeta::decode(reader)?)))?,
            removed: decode_list(reader, Reader::varint)?,
        };
        edit.floors.ahead_ms = decode_ahead(reader)?;
        Ok(edit)
    }
}

pub(super) fn encode_clients(clients: &[ClientState], into: &mut Vec<u8>) {
    put_u64(into, clients.len() as u64);
    for client in clients {
        client.encode(into);
    }
}

pub(super) fn decode_clients(reader: &mut Reader<'_>) -> Result<Vec<ClientState>, Truncated> {
    decode_list(reader, ClientState::decode)
}

/// Reads a count and as many items. The count alone allocates nothing: every item must be present.
pub(super) fn decode_list<'a, T>(
    reader: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<T, Truncated>,
) -> Result<Vec<T>, Truncated> {
    let count = reader.varint()?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(reader)?);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit() -> Edit {
        let meta = |id| TableMeta {
            id,
            size: 900,
            min_key: vec![1],
            max_key: vec![id as u8; 3],
            skipped_bytes: id % 2,
            first_expiry: id / 7 * 5,
            half_expiry: id * 3,
            ..TableMeta::default()
        };
        Edit {
            added: vec![(0, meta(7)), (3, meta(300))],
            removed: vec![1, 2, 1 << 40],
            floors: Floors {
                log_floor: 3,
                last_sequence: 1 << 50,
                clock_ms: 1_700_000_000_000,
                ..Floors::default()
            },
            clients: vec![ClientState { client: u64::MAX, request: 5, sequence: 6, flags: 2 }],
        }
    }

    #[test]
    fn an_edit_comes_back_and_every_cut_is_found() {
        for edit in [edit(), Edit::default()] {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(Edit::decode(&mut reader), Ok(edit));
            assert!(reader.is_empty());
            for len in 0..bytes.len() {
                assert_eq!(Edit::decode(&mut Reader::new(&bytes[..len])), Err(Truncated), "{len} bytes");
            }
        }
    }

    #[test]
    fn a_count_without_its_items_allocates_nothing() {
        let mut bytes = vec![0; 7];
        put_u64(&mut bytes, u64::MAX);
        assert_eq!(Edit::decode(&mut Reader::new(&bytes)), Err(Truncated));
    }

    #[test]
    fn floors_that_fall_are_seen() {
        let before = edit().floors;
        assert!(before.rose_from(&before) && before.rose_from(&Floors::default()));
        assert!(!Floors { clock_ms: 1, ..before }.rose_from(&before));
    }
}
