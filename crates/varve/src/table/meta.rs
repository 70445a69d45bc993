//! What the manifest knows of a table.
//!
//! Invariant: size and footer hash are those of the finished file, so that a table is never mistaken for
//! another that reused its name; all keys that the table says anything about lie in `min_key..=max_key`.
//!
//! ```text
//! varint id | varint size | u64 footer hash | varint entries | varint tombstones | varint range tombstones
//! varint min sequence | varint max sequence | varint raw bytes | varint len, min key | varint len, max key
//! ```

use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::types::Sequence;

/// One table, as the manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableMeta {
    /// The number of its file.
    pub id: u64,
    /// Bytes of the file.
    pub size: u64,
    /// The checksum that closes its footer.
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
}

impl TableMeta {
    /// Appends the encoded meta.
    pub fn encode(&self, into: &mut Vec<u8>) {
        put_u64(into, self.id);
        put_u64(into, self.size);
        into.extend_from_slice(&self.footer_hash.to_le_bytes());
        for number in [
            self.entries,
            self.tombstones,
            self.range_tombstones,
            self.min_sequence,
            self.max_sequence,
            self.raw_bytes,
        ] {
            put_u64(into, number);
        }
        for key in [&self.min_key, &self.max_key] {
            put_u64(into, key.len() as u64);
            into.extend_from_slice(key);
        }
    }

    /// Reads one encoded meta.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            id: reader.varint()?,
            size: reader.varint()?,
            footer_hash: reader.u64()?,
            entries: reader.varint()?,
            tombstones: reader.varint()?,
            range_tombstones: reader.varint()?,
            min_sequence: reader.varint()?,
            max_sequence: reader.varint()?,
            raw_bytes: reader.varint()?,
            min_key: reader.prefixed()?.to_vec(),
            max_key: reader.prefixed()?.to_vec(),
        })
    }
}
