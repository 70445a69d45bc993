//! Decoding of request frames.

use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::scan::{ScanOptions, ScanRequest};
use crate::storage::Storage;
use crate::store::{Clock, Condition, Dependency, Name, Op, Store};

/// First word of every frame: "VRF2".
pub const FRAME_MAGIC: u32 = 0x3246_5256;

/// Bytes before the operations of a request frame.
pub const FRAME_HEADER_BYTES: usize = 24;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Value of a key.
    Get = 1,
    /// Presence of a key.
    Has = 2,
    /// Value, sequence and expiry of a key.
    GetEntry = 3,
    /// Sets the value of a key.
    Set = 4,
    /// Removes a key.
    Delete = 5,
    /// Several writes that happen together.
    Batch = 6,
    /// Starts a scan under the number in the key. Returns its read point and its first batch.
    ScanOpen = 7,
    /// The next batch of a scan.
    ScanNext = 8,
    /// Ends a scan.
    ScanClose = 9,
    /// Values of several keys.
    GetMany = 10,
    /// Removes the keys of a range.
    DeleteRange = 11,
    /// Flushes the WAL.
    Sync = 12,
    /// Takes a snapshot under the number in the header. Returns its read point.
    SnapshotOpen = 13,
    /// Closes a snapshot.
    SnapshotClose = 14,
    /// Reopens a snapshot that was opened in another process: u64 sequence | u64 now in ms.
    SnapshotRestore = 15,
    /// The changes that were committed after a sequence.
    Changes = 16,
}

impl Operation {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Get,
            2 => Self::Has,
            3 => Self::GetEntry,
            4 => Self::Set,
            5 => Self::Delete,
            6 => Self::Batch,
            7 => Self::ScanOpen,
            8 => Self::ScanNext,
            9 => Self::ScanClose,
            10 => Self::GetMany,
            11 => Self::DeleteRange,
            12 => Self::Sync,
            13 => Self::SnapshotOpen,
            14 => Self::SnapshotClose,
            15 => Self::SnapshotRestore,
            16 => Self::Changes,
            _ => return None,
        })
    }
}

/// The start of a request frame; its operations follow.
#[must_use]
pub fn header(client: u64, answered: u32, count: u32) -> [u8; FRAME_HEADER_BYTES] {
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
    header[4..8].copy_from_slice(&count.to_le_bytes());
    header[8..16].copy_from_slice(&client.to_le_bytes());
    header[16..20].copy_from_slice(&answered.to_le_bytes());
    header
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The client that sends it; 0 for a sender that cannot ask again.
    pub client: u64,
    /// The sender has the responses to all requests before this one.
    pub answered: u32,
    /// Its operations.
    pub requests: Vec<Request<'a>>,
}

/// One operation of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The caller's number for it.
    pub request: u32,
    /// The kind of the operation.
    pub operation: Operation,
    /// The durability, for writes.
    pub durability: Option<Durability>,
    /// The snapshot that a read uses, or that a batch's transaction has read; 0 for the current state of the store.
    pub snapshot: u32,
    /// The key, or other data that the operation stores there.
    pub key: &'a [u8],
    /// The value, or other data that the operation stores there.
    pub value: &'a [u8],
}

pub(super) const MALFORMED: Error =
    Error::InvalidArgument("A frame is malformed. Page and worker may be of different versions.");

/// Decodes a frame.
///
/// # Errors
/// `InvalidArgument` when the bytes are not a frame.
pub fn parse(frame: &[u8]) -> Result<Frame<'_>> {
    let mut reader = Reader::new(frame);
    parse_requests(&mut reader).map_err(|Truncated| MALFORMED)
}

fn parse_requests<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, Truncated> {
    if reader.u32()? != FRAME_MAGIC {
        return Err(Truncated);
    }
    let count = reader.u32()? as usize;
    let (client, answered, reserved) = (reader.u64()?, reader.u32()?, reader.u32()?);
    if reserved != 0 {
        return Err(Truncated);
    }
    // An operation takes 16 bytes at least: an absurd count cannot make this allocate.
    let mut requests = Vec::with_capacity(count.min(reader.remaining() / 16));
    for _ in 0..count {
        let request = reader.u32()?;
        let operation = Operation::from_byte(reader.u8()?).ok_or(Truncated)?;
        let durability = Durability::from_byte(reader.u8()?);
        let snapshot = u32::from(reader.u16()?);
        let (key_len, value_len) = (reader.u32()? as usize, reader.u32()? as usize);
        let (key, value) = (reader.bytes(key_len)?, reader.bytes(value_len)?);
        pad(reader)?;
        requests.push(Request { request, operation, durability, snapshot, key, value });
    }
    if reader.is_empty() { Ok(Frame { client, answered, requests }) } else { Err(Truncated) }
}

/// Skips to the next multiple of four.
fn pad(reader: &mut Reader<'_>) -> Result<(), Truncated> {
    let at = reader.position();
    reader.bytes(at.next_multiple_of(4) - at).map(|_| ())
}

/// The writes of a batch, and the conditions they depend on.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// The writes, in order.
    pub ops: Vec<Op<'a>>,
    /// Conditions that must be true before any of them happens.
    pub conditions: Vec<Condition<'a>>,
    /// The keys and ranges that their transaction has read.
    pub read: Vec<Dependency<'a>>,
}

impl Batch<'_> {
    /// Compares everything that the batch depends on with the current state of the store. `snapshot` is the one that its transaction read.
    ///
    /// # Errors
    /// As [`Store::check_conditions`] and [`Store::check_unchanged`].
    pub fn check<S: Storage>(&self, store: &Store<S>, snapshot: impl Into<Name>) -> Result<()> {
        if !self.read.is_empty() {
            store.check_unchanged(snapshot, &self.read)?;
        }
        store.check_conditions(&self.conditions)
    }
}

/// The item's value begins with a u64: milliseconds after which the entry expires.
const EXPIRES_IN: u8 = 1;
/// Used with [`EXPIRES_IN`]: the milliseconds count from 1970.
const EXPIRES_AT: u8 = 4;
/// Next in the item's value is a u64: the sequence that the key must have, 0 if the key must be absent.
const IF_SEQUENCE: u8 = 2;

/// Decodes the operations of a batch; lifetimes of entries count from now, and times of expiry are the host's.
///
/// # Errors
/// `InvalidArgument` when the bytes are not a batch.
pub fn parse_batch(bytes: &[u8], clock: Clock) -> Result<Batch<'_>> {
    let mut reader = Reader::new(bytes);
    parse_items(&mut reader, clock).map_err(|Truncated| MALFORMED)
}

fn parse_items<'a>(reader: &mut Reader<'a>, clock: Clock) -> Result<Batch<'a>, Truncated> {
    let count = reader.u32()?;
    let mut batch = Batch::default();
    batch.ops.reserve((count as usize).min(reader.remaining() / 12));
    for _ in 0..count {
        let (kind, flags) = (reader.u8()?, reader.u8()?);
        reader.u16()?;
        let (key_len, value_len) = (reader.u32()? as usize, reader.u32()? as usize);
        let key = reader.bytes(key_len)?;
        let value = reader.bytes(value_len)?;
        pad(reader)?;
        let mut value = Reader::new(value);
        let mut expires = None;
        if flags & EXPIRES_IN != 0 {
            let ms = value.u64()?;
            let is_time = flags & EXPIRES_AT != 0;
            expires = Some(if is_time { clock.of_host(ms) } else { clock.now_ms.saturating_add(ms) });
        }
        if flags & IF_SEQUENCE != 0 {
            batch.conditions.push(Condition { key, sequence: value.u64()? });
        }
        let value = value.bytes(value.remaining())?;
        batch.ops.push(match kind {
            0 => Op::Delete { key },
            1 => Op::Set { key, value, expires },
            2 => Op::DeleteRange { start: key, end: end_of_range(value) },
            3 | 4 => {
                batch.read.push(Dependency { start: key, end: (kind == 4).then(|| end_of_range(value)) });
                continue;
            }
            _ => return Err(Truncated),
        });
    }
    if reader.is_empty() { Ok(batch) } else { Err(Truncated) }
}

/// The keys of a `GetMany`.
pub(super) fn parse_keys(bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut reader = Reader::new(bytes);
    let mut parse = || -> Result<Vec<&[u8]>, Truncated> {
        let count = reader.u32()? as usize;
        let mut keys = Vec::with_capacity(count.min(reader.remaining() / 4));
        for _ in 0..count {
            let len = reader.u32()? as usize;
            keys.push(reader.bytes(len)?);
            pad(&mut reader)?;
        }
        Ok(keys)
    };
    parse().map_err(|Truncated| MALFORMED)
}

/// The end of a range in a frame: empty means "to the last key". Keys that begin with 0xff are reserved for the store's own
/// data: a range without an end ends before them.
pub(super) fn end_of_range(end: &[u8]) -> &[u8] {
    if end.is_empty() { &[0xff] } else { end }
}

/// Decodes the description of a scan.
///
/// # Errors
/// `InvalidArgument` when the bytes do not describe one.
pub fn parse_scan(bytes: &[u8]) -> Result<ScanRequest> {
    let mut reader = Reader::new(bytes);
    let mut parse = || -> Result<ScanRequest, Truncated> {
        let flags = reader.u16()?;
        let snapshot = u32::from(reader.u16()?);
        let limit = reader.u32()?;
        let batch_bytes = reader.u32()? as usize;
        let (lower_len, upper_len) = (reader.u32()? as usize, reader.u32()? as usize);
        let (lower, upper) = (reader.bytes(lower_len)?, reader.bytes(upper_len)?);
        // Bounds become `lower <= key < upper`: the key right after `k` in byte order is `k` with a zero byte.
        let after = |key: &[u8], yes: bool| if yes { [key, &[0]].concat() } else { key.to_vec() };
        Ok(ScanRequest {
            options: ScanOptions {
                lower: if flags & 8 != 0 { after(lower, flags & 16 != 0) } else { Vec::new() },
                // Without an upper bound, the scan goes up to the reserved keys.
                upper: Some(after(end_of_range(upper), flags & 32 != 0 && flags & 64 == 0)),
                reverse: flags & 1 != 0,
                limit: (limit != u32::MAX).then_some(u64::from(limit)),
            },
            want_keys: flags & 2 != 0,
            want_values: flags & 4 != 0,
            want_expiries: flags & (128 | 4 | 1) == 128 | 4,
            snapshot,
            batch_bytes,
        })
    };
    parse().map_err(|Truncated| MALFORMED)
}
