//! The first 48 bytes of a segment.
//!
//! ```text
//! "VRVL" | u16 version | u16 key | u64 segment | u64 salt | u64 previous segment | u64 its end | u64 xxh3
//! 0        4             6       8             16         24                     32            40
//! ```
//!
//! xxh3 is over the first 40 bytes, seed 0. `previous` is 0 in a store's first segment. `key` is the number of the data key that
//! encrypts the records. Version 1 has 0 there: it is not encrypted.
//!
//! Invariant: the salt's lower half follows from its upper half, the segment's number and the store. So even without a readable
//! header, the first record shows which segment it belongs to, and a segment that is in no slot's page shows whose it is.

use crate::codec::cipher::KeyNumber;
use crate::codec::hash::xxh3;
use crate::codec::reader::{Reader, Truncated};
use crate::error::Error;
use crate::mutant::{self, Mutant};
use crate::types::StoreId;

/// Length of a segment's header in bytes.
pub const SEGMENT_HEADER_BYTES: usize = 48;

/// The highest format version that this code reads; it writes it where records are encrypted, and 1 elsewhere.
pub const SEGMENT_VERSION: u16 = 2;

const MAGIC: [u8; 4] = *b"VRVL";
const HASHED_BYTES: usize = 40;

/// Of a salt: the number of the segment, and the store behind it.
const SEGMENT_BYTES: usize = 8;
const SALTED_BYTES: usize = SEGMENT_BYTES + size_of::<StoreId>();

/// The header of a segment. It describes this segment and the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentHeader {
    /// This segment's number.
    pub segment: u64,
    /// Distinguishes this segment's records from older contents of the file: see [`segment_salt`].
    pub salt: u64,
    /// The segment before this one, 0 for none.
    pub previous: u64,
    /// Where that one ends: its length in bytes when this one was begun.
    pub previous_end: u64,
    /// The number of the data key that encrypts the records, 0 for none.
    pub key: KeyNumber,
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// It was never written, or written only in part, or it is damaged.
    Torn,
    /// It is intact, but in a format version that this code does not know.
    Version(u16),
}

/// The salt for a segment: half from the host's `entropy`, half a hash of that half, the segment's number and the store.
#[must_use]
pub fn segment_salt(store: &StoreId, segment: u64, entropy: u64) -> u64 {
    let hashed = if mutant::has(Mutant::StoreNotInSalt) { SEGMENT_BYTES } else { SALTED_BYTES };
    let upper = (entropy ^ entropy << 32) & !0xffff_ffff;
    let mut bytes = [0; SALTED_BYTES];
    bytes[..SEGMENT_BYTES].copy_from_slice(&segment.to_le_bytes());
    bytes[SEGMENT_BYTES..].copy_from_slice(store);
    upper | xxh3(&bytes[..hashed], upper) >> 32
}

/// Whether a segment of this number and store may have this salt.
pub(crate) fn may_have_salt(store: &StoreId, segment: u64, salt: u64) -> bool {
    segment_salt(store, segment, salt >> 32) == salt
}

/// The version of a file whose key has this number.
fn version_under(key: KeyNumber) -> u16 {
    if key == 0 { 1 } else { SEGMENT_VERSION }
}

impl SegmentHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&version_under(self.key).to_le_bytes());
        bytes[6..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.segment.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.previous.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.previous_end.to_le_bytes());
        let hash = xxh3(&bytes[..HASHED_BYTES], 0);
        bytes[HASHED_BYTES..].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of a segment's bytes.
    ///
    /// # Errors
    /// [`HeaderError::Torn`] unless the checksum matches, then [`HeaderError::Version`] for an unknown version.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let header = bytes.first_chunk::<SEGMENT_HEADER_BYTES>().ok_or(HeaderError::Torn)?;
        let (version, found) = Self::fields(header).map_err(|Truncated| HeaderError::Torn)?;
        let found = found.ok_or(HeaderError::Torn)?;
        if version == version_under(found.key) { Ok(found) } else { Err(HeaderError::Version(version)) }
    }

    /// As [`decode`](Self::decode), with `None` for a torn header.
    ///
    /// # Errors
    /// [`Error::Version`] for an unknown version.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, Error> {
        match Self::decode(bytes) {
            Err(HeaderError::Version(found)) => Err(Error::Version { found, supported: SEGMENT_VERSION }),
            header => Ok(header.ok()),
        }
    }

    fn fields(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<(u16, Option<Self>), Truncated> {
        let mut reader = Reader::new(bytes);
        let magic: [u8; 4] = reader.array()?;
        let version = reader.u16()?;
        let key = reader.u16()?;
        let header = Self {
            segment: reader.u64()?,
            salt: reader.u64()?,
            previous: reader.u64()?,
            previous_end: reader.u64()?,
            key,
        };
        let whole = magic == MAGIC && reader.u64()? == xxh3(&bytes[..HASHED_BYTES], 0);
        Ok((version, whole.then_some(header)))
    }
}
