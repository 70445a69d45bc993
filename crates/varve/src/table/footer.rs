//! The last 96 bytes of a table: where its blocks are, and its totals.
//!
//! ```text
//!  0  handle filter            u64 offset | u32 len
//! 12  handle range tombstones  u64 offset | u32 len
//! 24  handle index             u64 offset | u32 len
//! 36  handle properties        u64 offset | u32 len
//! 48  u64 entries | u64 min sequence | u64 max sequence | u64 file id
//! 80  u16 version: 1, or 2 under a key | u16 key number | "VRVS"
//! 88  u64 xxh3 of the 88 bytes before, seeded with xxh3(store id)
//! ```
//!
//! Invariant: the hash is also in the manifest, so a table that was swapped for another valid one is detected.

use super::{BlockHandle, BlockKind};
use crate::codec::cipher::KeyNumber;
use crate::codec::hash::xxh3;
use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::types::{FileName, Sequence, StoreId};

/// Bytes of a footer.
pub const FOOTER_BYTES: usize = 96;
/// The format of a table that is not encrypted.
const PLAIN_VERSION: u16 = 1;
/// The format of an encrypted table, the newest that this code writes and reads.
const TABLE_VERSION: u16 = 2;

const MAGIC: &[u8; 4] = b"VRVS";
const HASHED_BYTES: usize = FOOTER_BYTES - 8;

/// A decoded footer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footer {
    /// The filter block; length 0 when the table has no entries.
    pub filter: BlockHandle,
    /// The range tombstone block; length 0 when there are none.
    pub range_tombstones: BlockHandle,
    /// The index block.
    pub index: BlockHandle,
    /// The properties block.
    pub properties: BlockHandle,
    /// Entries in data blocks.
    pub entries: u64,
    /// Lowest sequence in the table.
    pub min_sequence: Sequence,
    /// Highest sequence in the table.
    pub max_sequence: Sequence,
    /// The number of the file.
    pub file_id: u64,
    /// The number of the key that its blocks are encrypted under.
    pub key: KeyNumber,
}

impl Footer {
    /// Encodes the footer; the last 8 bytes are its hash.
    #[must_use]
    pub fn encode(&self, store: &StoreId) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        for handle in [self.filter, self.range_tombstones, self.index, self.properties] {
            bytes.extend_from_slice(&handle.offset.to_le_bytes());
            bytes.extend_from_slice(&handle.len.to_le_bytes());
        }
        for number in [self.entries, self.min_sequence, self.max_sequence, self.file_id] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let version = if self.key == 0 { PLAIN_VERSION } else { TABLE_VERSION };
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&self.key.to_le_bytes());
        bytes.extend_from_slice(MAGIC);
        let hash = xxh3(&bytes, xxh3(store, 0));
        bytes.extend_from_slice(&hash.to_le_bytes());
        let mut footer = [0; FOOTER_BYTES];
        footer.copy_from_slice(&bytes);
        footer
    }

    /// Verifies and reads the last bytes of a table. `offset` is where they begin in the file. Returns the footer and its hash.
    pub fn decode(bytes: &[u8], store: &StoreId, file: FileName, offset: u64) -> Result<(Self, u64)> {
        let corrupt = |what| Error::corrupt(file, offset, what);
        let (hashed, hash) =
            bytes.split_at_checked(HASHED_BYTES).ok_or_else(|| corrupt("footer cut short"))?;
        let hash: [u8; 8] = hash.try_into().map_err(|_| corrupt("footer cut short"))?;
        let hash = u64::from_le_bytes(hash);
        if xxh3(hashed, xxh3(store, 0)) != hash {
            return Err(corrupt("footer checksum"));
        }
        let mut reader = Reader::new(hashed);
        let mut footer = Self::read(&mut reader).map_err(|Truncated| corrupt("footer cut short"))?;
        let (version, key) = (reader.u16(), reader.u16());
        if reader.bytes(MAGIC.len()) != Ok(MAGIC) {
            return Err(corrupt("footer magic"));
        }
        match (version, key) {
            (Ok(PLAIN_VERSION), Ok(0)) => {}
            (Ok(TABLE_VERSION), Ok(key @ 1..)) => footer.key = key,
            (Ok(PLAIN_VERSION | TABLE_VERSION), _) => return Err(corrupt("footer key")),
            (Ok(found), _) => return Err(Error::Version { found, supported: TABLE_VERSION }),
            (Err(Truncated), _) => return Err(corrupt("footer cut short")),
        }
        Ok((footer, hash))
    }

    /// The blocks after the data, in the order of the file.
    #[must_use]
    pub fn blocks(&self) -> Vec<(BlockKind, BlockHandle)> {
        let all = [
            (BlockKind::Filter, self.filter),
            (BlockKind::RangeTombstones, self.range_tombstones),
            (BlockKind::Index, self.index),
            (BlockKind::Properties, self.properties),
        ];
        all.into_iter().filter(|(_, handle)| handle.len > 0).collect()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let mut handle = || Ok(BlockHandle { offset: reader.u64()?, len: reader.u32()? });
        let (filter, range_tombstones, index, properties) = (handle()?, handle()?, handle()?, handle()?);
        Ok(Self {
            filter,
            range_tombstones,
            index,
            properties,
            entries: reader.u64()?,
            min_sequence: reader.u64()?,
            max_sequence: reader.u64()?,
            file_id: reader.u64()?,
            key: 0,
        })
    }
}
