//! Looking at one manifest file without opening the store: what it says, and from where on it is damaged.
//!
//! Invariant: what is answered as the version is what the file's records said up to the damage, however much comes after.

use super::Version;
use super::header::{HeaderError, MANIFEST_HEADER_BYTES, ManifestHeader};
use super::open::{Replay, Stop};
use crate::codec::frame::scan;
use crate::error::{Error, Result};

/// What one manifest file holds.
#[derive(Debug)]
pub struct Inspection {
    /// Its header.
    pub header: ManifestHeader,
    /// The version after the last record that reads; `None` when not even the snapshot does.
    pub version: Option<Version>,
    /// Bytes up to the first record that does not read.
    pub end: u64,
    /// The rotation that its farewell names: the other file is newer.
    pub successor: Option<u64>,
    /// A record there was begun and does not verify: an edit that a crash cut, or the last one damaged.
    pub torn: bool,
    /// Where and why records are damaged that were durable.
    pub damage: Option<(u64, &'static str)>,
}

/// Reads a manifest file from its start; `None` when its header was never written, or is damaged.
///
/// # Errors
/// [`Error::Version`] when it is of another format.
pub fn inspect_manifest(bytes: &[u8]) -> Result<Option<Inspection>> {
    let header = match ManifestHeader::decode(bytes) {
        Ok(header) => header,
        Err(HeaderError::Damaged) => return Ok(None),
        Err(HeaderError::Version(found)) => {
            return Err(Error::Version { found, supported: super::header::VERSION });
        }
    };
    let mut replay = Replay::default();
    let found = scan(bytes, MANIFEST_HEADER_BYTES, header.salt, |frame| {
        replay.step(frame.payload).map_err(|what| Stop { offset: frame.offset, what })
    });
    let (end, torn, damage) = match found {
        Ok(found) => (found.end, found.torn, None),
        Err(Stop { offset, what }) => (offset, false, Some((offset as u64, what))),
    };
    let Replay { version, successor, .. } = replay;
    Ok(Some(Inspection { header, version, end: end as u64, successor, torn, damage }))
}
