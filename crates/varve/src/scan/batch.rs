//! A batch of scanned entries, laid out so that JavaScript can decode all keys at once.
//!
//! ```text
//! u32 cursor (0 = finished) | u32 count | u32 keys bytes | u32 values bytes
//! | u32 key end * count | u32 value end * count | keys, padded to 4 | values, padded to 4
//! ```
//!
//! If expiries were requested, a value begins with its entry's expiry: u64 milliseconds, 0 for none.
//!
//! Invariant: ends are cumulative and relative to their blob; a blob that was not requested is empty, and its ends are absent.

use crate::codec::bytes::append;
use crate::codec::room;
use crate::error::Result;

/// Collects entries and encodes them.
#[derive(Debug, Default)]
pub struct Batch {
    want_keys: bool,
    want_values: bool,
    want_expiries: bool,
    /// Subtracted from expiries: the host's time is that much behind the store's.
    pub(crate) ahead_ms: u64,
    expires: bool,
    count: u32,
    keys: Vec<u8>,
    values: Vec<u8>,
    key_ends: Vec<u8>,
    value_ends: Vec<u8>,
}

impl Batch {
    /// An empty batch that collects keys, values, or both.
    #[must_use]
    pub fn new(want_keys: bool, want_values: bool) -> Self {
        Self { want_keys, want_values, ..Self::default() }
    }

    /// Empties the batch, keeping its memory, for another scan.
    pub fn reset(&mut self, want_keys: bool, want_values: bool) {
        self.want_keys = want_keys;
        self.want_values = want_values;
        self.want_expiries = false;
        self.expires = false;
        self.count = 0;
        self.keys.clear();
        self.values.clear();
        self.key_ends.clear();
        self.value_ends.clear();
    }

    /// Sets whether values begin with the expiries of their entries.
    pub fn want_expiries(&mut self, want: bool) {
        self.want_expiries = want;
    }

    /// Notes the expiry of the entry that is pushed next, and adds it before its value if it is wanted.
    #[inline]
    pub(crate) fn push_expiry(&mut self, expires: Option<u64>) {
        self.expires |= expires.is_some();
        if self.want_expiries {
            let at = expires.unwrap_or(0).saturating_sub(self.ahead_ms);
            self.values.extend_from_slice(&at.to_le_bytes());
        }
    }

    /// Makes room for the value that is pushed next, or fails if memory is short.
    #[inline]
    pub(crate) fn make_room(&mut self, value_bytes: usize) -> Result<()> {
        room::reserve(&mut self.values, if self.want_values { value_bytes + 8 } else { 0 })
    }

    /// Adds an entry.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        if self.want_keys {
            append(&mut self.keys, key);
            self.key_ends.extend_from_slice(&(self.keys.len() as u32).to_le_bytes());
        }
        if self.want_values {
            append(&mut self.values, value);
            self.value_ends.extend_from_slice(&(self.values.len() as u32).to_le_bytes());
        }
    }

    /// Whether an entry expires.
    #[must_use]
    pub fn expires(&self) -> bool {
        self.expires
    }

    /// The entries, in the order of the scan: key and value. A part that was not requested is empty.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut at = (0, 0);
        (0..self.count as usize).map(move |entry| {
            let end = (end_of(&self.key_ends, entry), end_of(&self.value_ends, entry));
            let (key, value) = (self.keys.get(at.0..end.0), self.values.get(at.1..end.1));
            at = end;
            (key.unwrap_or_default(), value.unwrap_or_default())
        })
    }

    /// Entries so far.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of keys and values so far. For a batch that only counts, the number of entries, so that its size limits the time it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        if !self.want_keys && !self.want_values {
            return self.count as usize;
        }
        self.keys.len() + self.values.len()
    }

    /// Makes room for the encoded batch at the end of `out`.
    ///
    /// # Errors
    /// [`Error::NO_MEMORY`](crate::error::Error::NO_MEMORY).
    pub fn reserve(&self, out: &mut Vec<u8>) -> Result<()> {
        let ends = self.key_ends.len() + self.value_ends.len();
        room::reserve(out, 16 + ends + self.keys.len() + self.values.len() + 8)
    }

    /// Appends the encoded batch to `out`; `cursor` 0 means that the scan is finished.
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn encode(&self, cursor: u32, out: &mut Vec<u8>) {
        for word in [cursor, self.count, self.keys.len() as u32, self.values.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.key_ends);
        out.extend_from_slice(&self.value_ends);
        for blob in [&self.keys, &self.values] {
            out.extend_from_slice(blob);
            out.extend_from_slice(&[0; 3][..blob.len().next_multiple_of(4) - blob.len()]);
        }
    }
}

/// Where a part of an entry ends in its blob; 0 if that part was not requested.
fn end_of(ends: &[u8], entry: usize) -> usize {
    let end = ends.get(4 * entry..).and_then(|ends| ends.first_chunk());
    end.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}
