//! The first 64 bytes of a manifest file.
//!
//! ```text
//! "VRVM" | u16 version | u16 key | u64 rotation | u64 epoch | store id 16 B | u64 salt | u64 required | u64 xxh3
//! 0        4             6       8              16          24              40         48             56   .. 64
//! ```
//!
//! xxh3 is over the 56 bytes before it, seed 0. Invariant: the salt is never the one of an earlier rotation, so that
//! bytes of that rotation that remain in the file are not mistaken for records of this one. `key` is the number of the data key
//! that encrypts the records, and the one for new files. Version 1 has 0 there: nothing is encrypted. A bit of `required` stands for
//! something in the store that code must know to read or change it. None is defined yet: code that finds one refuses the store.

use crate::codec::cipher::KeyNumber;
use crate::codec::hash::xxh3;
use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::types::{FileName, StoreId};

/// Length of the header in bytes; the first record starts here.
pub const MANIFEST_HEADER_BYTES: usize = 64;

/// Limit for rotations and opens, which are counted from 0. No store reaches it, and the next number always fits.
const COUNT_MAX: u64 = u64::MAX >> 8;

/// The highest format version that this code reads; it writes it for encrypted stores, and 1 for others.
const VERSION: u16 = 2;

const MAGIC: &[u8; 4] = b"VRVM";

/// The header of a manifest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestHeader {
    /// Counts the rotations of the store, from 1.
    pub rotation: u64,
    /// Counts the leaders of the store, from 1: each open makes a new leader.
    pub epoch: u64,
    /// The store's identity.
    pub store: StoreId,
    /// Seeds the records that follow.
    pub salt: u64,
    /// The number of the data key that encrypts the records that follow, 0 for none.
    pub key: KeyNumber,
}

/// The version of a file whose key has this number.
fn version_under(key: KeyNumber) -> u16 {
    if key == 0 { 1 } else { VERSION }
}

impl ManifestHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MANIFEST_HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&version_under(self.key).to_le_bytes());
        bytes.extend_from_slice(&self.key.to_le_bytes());
        bytes.extend_from_slice(&self.rotation.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.store);
        bytes.extend_from_slice(&self.salt.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&xxh3(&bytes, 0).to_le_bytes());
        bytes
    }

    /// The file that its encrypted records are bound to. A rotation happens once, while the two files are used again and again.
    pub(super) fn file(&self) -> FileName {
        FileName::manifest(self.rotation)
    }

    /// The header of a manifest file that begins with `bytes`; `None` if it was never written, or is torn or damaged.
    ///
    /// # Errors
    /// [`Error::Version`] when it is intact and has another format version, or requires something that this code does not know.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let Ok(Some((version, required, header))) = Self::fields(bytes) else { return Ok(None) };
        let found = if required == 0 { version } else { version.max(VERSION + 1) };
        if found != version_under(header.key) {
            return Err(Error::Version { found, supported: VERSION });
        }
        Ok(Some(header).filter(|header| header.rotation.max(header.epoch) <= COUNT_MAX))
    }

    fn fields(bytes: &[u8]) -> Result<Option<(u16, u64, Self)>, Truncated> {
        let mut reader = Reader::new(bytes);
        let hashed = reader.bytes(MANIFEST_HEADER_BYTES - 8)?;
        if xxh3(hashed, 0) != reader.u64()? || !hashed.starts_with(MAGIC) {
            return Ok(None);
        }
        let mut reader = Reader::new(&hashed[MAGIC.len()..]);
        let (version, key) = (reader.u16()?, reader.u16()?);
        let (rotation, epoch) = (reader.u64()?, reader.u64()?);
        let header = Self { rotation, epoch, store: reader.array()?, salt: reader.u64()?, key };
        Ok(Some((version, reader.u64()?, header)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: ManifestHeader =
        ManifestHeader { rotation: 7, epoch: 3, store: [9; 16], salt: 0xfeed, key: 0 };

    /// History: the fuzzer made a header with the highest possible rotation, and the next one was not higher.
    #[test]
    fn counts_that_leave_no_next_one_are_no_header() {
        for header in
            [ManifestHeader { rotation: u64::MAX, ..HEADER }, ManifestHeader { epoch: u64::MAX, ..HEADER }]
        {
            assert_eq!(ManifestHeader::read(&header.encode()), Ok(None));
        }
    }

    #[test]
    fn any_flipped_bit_or_cut_is_found() {
        let bytes = HEADER.encode();
        assert_eq!(ManifestHeader::read(&bytes), Ok(Some(HEADER)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ManifestHeader::read(&flipped), Ok(None), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(ManifestHeader::read(&bytes[..len]), Ok(None), "{len} bytes");
        }
    }

    #[test]
    fn another_format_version_and_every_bit_that_a_store_requires_are_reported() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = HEADER.encode();
            bytes[at] = byte;
            let hash = xxh3(&bytes[..56], 0);
            bytes[56..].copy_from_slice(&hash.to_le_bytes());
            ManifestHeader::read(&bytes)
        };
        assert_eq!(changed(4, 9), Err(Error::Version { found: 9, supported: VERSION }));
        for bit in 0..64 {
            let found = changed(48 + bit / 8, 1 << (bit % 8));
            assert_eq!(found, Err(Error::Version { found: 3, supported: VERSION }), "bit {bit}");
        }
    }
}
