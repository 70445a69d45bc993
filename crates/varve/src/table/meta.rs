//! The entry of a table in the manifest.
//!
//! Invariant: size and footer hash are those of the finished file, so a table is never mistaken for another that reused
//! its name. All keys that the table affects lie in `min_key..=max_key`.
//!
//! ```text
//! varint id | varint size, and above bit 48 the key number | u64 footer hash | varint entries | varint tombstones | varint range tombstones
//! varint min sequence | varint max sequence | varint raw bytes | varint skipped bytes, and 2^48 if an entry expires
//! varint len, min key | varint len, max key | { varint first expiry | varint half expiry } if an entry expires
//! ```
//!
//! A job that takes only a key range of a table leaves the rest in place. The table is then *narrowed*: its `min_key`
//! is raised to the first key that was not merged. Entries in its file before that key are obsolete and must never be
//! read again: a tombstone that hid them may already be gone.

use crate::codec::bytes::compare;
use crate::codec::cipher::KeyNumber;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::types::Sequence;

/// Bits of a size. A key number lies above, or whether an entry expires.
const SIZE_BITS: u32 = 48;

/// One table, as recorded in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableMeta {
    /// The number of its file.
    pub id: u64,
    /// Bytes of the file, below 2^48.
    pub size: u64,
    /// The number of the key that the table is encrypted under.
    pub key: KeyNumber,
    /// The checksum at the end of its footer.
    pub footer_hash: u64,
    /// Entries in data blocks: values and tombstones, every version counted.
    pub entries: u64,
    /// How many of the entries are tombstones.
    pub tombstones: u64,
    /// Range tombstones, which are not counted as entries.
    pub range_tombstones: u64,
    /// Lowest sequence of an entry or range tombstone, 0 for an empty table.
    pub min_sequence: Sequence,
    /// Highest sequence of an entry or range tombstone, 0 for an empty table.
    pub max_sequence: Sequence,
    /// Smallest key of an entry, or start of a range tombstone.
    pub min_key: Vec<u8>,
    /// Largest key of an entry, or end of a range tombstone (one key more than it deletes), inclusive.
    pub max_key: Vec<u8>,
    /// Bytes of keys and values before truncation and compression.
    pub raw_bytes: u64,
    /// Approximate bytes of the file that lie before `min_key` and are no longer read; 0 for a whole table. The counts
    /// above are estimates once this is not 0.
    pub skipped_bytes: u64,
    /// When the first of its entries expires, in milliseconds since 1970; 0 if none does.
    pub first_expiry: u64,
    /// When half of its entries have expired or are tombstones, as far as a sample shows; 0 if that never happens.
    pub half_expiry: u64,
}

impl TableMeta {
    /// Whether all its keys come before those of `other`.
    pub(crate) fn ends_before(&self, other: &Self) -> bool {
        match compare(&self.max_key, &other.min_key) {
            core::cmp::Ordering::Less => true,
            // The end of a range is exclusive.
            core::cmp::Ordering::Equal => self.range_tombstones > 0,
            core::cmp::Ordering::Greater => false,
        }
    }

    /// Approximate bytes of the file that are still read.
    #[must_use]
    pub(crate) fn live_bytes(&self) -> u64 {
        self.size.saturating_sub(self.skipped_bytes)
    }

    /// Whether entries have expired by a time.
    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.first_expiry > 0 && self.first_expiry <= now_ms
    }

    /// Whether half of its entries are tombstones or have expired by a time.
    pub(crate) fn is_half_dead(&self, now_ms: u64) -> bool {
        let is_expired = self.half_expiry > 0 && self.half_expiry <= now_ms;
        is_expired || (self.tombstones > 0 && self.tombstones * 2 >= self.entries)
    }

    /// Whether a job took the keys before `min_key`.
    #[must_use]
    pub(crate) fn is_narrowed(&self) -> bool {
        self.skipped_bytes > 0
    }

    /// The rest of the table once a job took all keys before `key`, which lie in the file's first `skipped` bytes.
    ///
    /// Each time the table is narrowed, the number of skipped bytes rises, by one if the bounds moved inside a block. So
    /// file and number together identify a table with its bounds.
    #[must_use]
    pub fn rest(&self, key: &[u8], skipped: u64) -> Self {
        let skipped_bytes = skipped.min(self.size).max(self.skipped_bytes + 1);
        let (rest, before) = (self.size.saturating_sub(skipped_bytes), self.live_bytes().max(1));
        let share = |count: u64| (count as f64 * (rest as f64 / before as f64)) as u64;
        Self {
            entries: share(self.entries),
            tombstones: share(self.tombstones),
            raw_bytes: share(self.raw_bytes),
            min_key: key.to_vec(),
            skipped_bytes,
            ..self.clone()
        }
    }

    /// Appends the encoded meta.
    pub fn encode(&self, into: &mut Vec<u8>) {
        put_u64(into, self.id);
        put_u64(into, self.size | u64::from(self.key) << SIZE_BITS);
        into.extend_from_slice(&self.footer_hash.to_le_bytes());
        for number in [
            self.entries,
            self.tombstones,
            self.range_tombstones,
            self.min_sequence,
            self.max_sequence,
            self.raw_bytes,
            self.skipped_bytes | u64::from(self.first_expiry > 0) << SIZE_BITS,
        ] {
            put_u64(into, number);
        }
        for key in [&self.min_key, &self.max_key] {
            put_u64(into, key.len() as u64);
            into.extend_from_slice(key);
        }
        if self.first_expiry > 0 {
            put_u64(into, self.first_expiry);
            put_u64(into, self.half_expiry);
        }
    }

    /// Reads one encoded meta.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let (id, size) = (reader.varint()?, reader.varint()?);
        let below = (1 << SIZE_BITS) - 1;
        let mut meta = Self {
            id,
            size: size & below,
            key: (size >> SIZE_BITS) as KeyNumber,
            footer_hash: reader.u64()?,
            entries: reader.varint()?,
            tombstones: reader.varint()?,
            range_tombstones: reader.varint()?,
            min_sequence: reader.varint()?,
            max_sequence: reader.varint()?,
            raw_bytes: reader.varint()?,
            skipped_bytes: reader.varint()?,
            min_key: reader.prefixed()?.to_vec(),
            max_key: reader.prefixed()?.to_vec(),
            ..Self::default()
        };
        if meta.skipped_bytes > below {
            meta.skipped_bytes -= below + 1;
            if meta.skipped_bytes > below {
                return Err(Truncated);
            }
            (meta.first_expiry, meta.half_expiry) = (reader.varint()?, reader.varint()?);
        }
        Ok(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableMeta {
        TableMeta { size: 1000, entries: 100, tombstones: 10, raw_bytes: 2000, ..TableMeta::default() }
    }

    #[test]
    fn a_narrowed_table_counts_only_its_rest() {
        let rest = table().rest(b"m", 400);
        assert_eq!((rest.live_bytes(), rest.entries, rest.tombstones, rest.raw_bytes), (600, 60, 6, 1200));
        assert_eq!((rest.min_key.as_slice(), rest.size), (&b"m"[..], 1000));
        assert_eq!(rest.rest(b"n", 700).entries, 30);
        let huge = TableMeta { size: 1 << 60, raw_bytes: 1 << 62, ..table() };
        assert_eq!(huge.rest(b"m", 1 << 59).raw_bytes, 1 << 61);
    }

    #[test]
    fn bits_above_those_of_skipped_bytes_are_refused() {
        let decoded = |skipped_bytes, first_expiry| {
            let meta = TableMeta { skipped_bytes, first_expiry, ..table() };
            let mut bytes = Vec::new();
            meta.encode(&mut bytes);
            TableMeta::decode(&mut Reader::new(&bytes)).map(|found| found == meta)
        };
        for first_expiry in [0, 9] {
            assert_eq!(decoded((1 << SIZE_BITS) - 1, first_expiry), Ok(true));
            for bit in SIZE_BITS + 1..64 {
                assert_eq!(decoded(1 << bit, first_expiry), Err(Truncated), "bit {bit}");
            }
        }
    }

    /// Bounds that moved twice inside one block once left the same number of skipped bytes, and the view continued with
    /// the wider bounds: reads showed entries that a later job had replaced (simulator, seed 91).
    #[test]
    fn a_table_narrowed_again_is_never_taken_for_what_it_was() {
        let mut table = table();
        for key in [b"a", b"b", b"c"] {
            let rest = table.rest(key, 0);
            assert!(rest.skipped_bytes > table.skipped_bytes);
            table = rest;
        }
    }
}
