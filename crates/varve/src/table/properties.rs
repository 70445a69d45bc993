//! Statistics of a whole table, in addition to its footer: nine varints, in the order of the fields. Later code may add some behind them.
//!
//! Invariant: no read result depends on these statistics, only compaction choices do.

use super::Malformed;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;

/// The properties block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// Bytes of all keys, every version counted in full.
    pub raw_key_bytes: u64,
    /// Bytes of all values.
    pub raw_value_bytes: u64,
    /// Entries that are tombstones.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// Entries with an expiry.
    pub expiring: u64,
    /// Earliest expiry in milliseconds since 1970, 0 when none expires.
    pub min_expires: u64,
    /// Latest expiry in milliseconds since 1970, 0 when none expires.
    pub max_expires: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Entries from one restart point to the next.
    pub restart_interval: u64,
}

impl Properties {
    /// Encodes the block, without trailer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [
            self.raw_key_bytes,
            self.raw_value_bytes,
            self.tombstones,
            self.range_tombstones,
            self.expiring,
            self.min_expires,
            self.max_expires,
            self.data_blocks,
            self.restart_interval,
        ] {
            put_u64(&mut bytes, number);
        }
        bytes
    }

    /// Reads the bytes of a properties block.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::read(&mut Reader::new(bytes)).map_err(|Truncated| Malformed("properties cut short"))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            raw_key_bytes: reader.varint()?,
            raw_value_bytes: reader.varint()?,
            tombstones: reader.varint()?,
            range_tombstones: reader.varint()?,
            expiring: reader.varint()?,
            min_expires: reader.varint()?,
            max_expires: reader.varint()?,
            data_blocks: reader.varint()?,
            restart_interval: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_that_later_code_added_are_passed_over() {
        let properties = Properties { raw_key_bytes: 300, restart_interval: 16, ..Properties::default() };
        let mut bytes = properties.encode();
        assert_eq!(Properties::decode(&bytes[..bytes.len() - 1]), Err(Malformed("properties cut short")));
        put_u64(&mut bytes, 9);
        assert_eq!(Properties::decode(&bytes), Ok(properties));
    }
}
