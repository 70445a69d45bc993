//! Reads one manifest file without opening the store: its version, and where its damage starts.
//!
//! Invariant: the returned version is the one of the file's records up to the damage, no matter how much follows.

use super::Version;
use super::header::{MANIFEST_HEADER_BYTES, ManifestHeader};
use super::open::{Replay, Stop, decrypt_manifest, keys_of};
use crate::codec::cipher::Keyring;
use crate::codec::frame::{FrameScan, Lost, scan};
use crate::error::{Error, Result};

/// The contents of one manifest file.
#[derive(Debug)]
pub struct Inspection {
    /// Its header.
    pub header: ManifestHeader,
    /// The version after the last readable record; `None` when not even the snapshot is readable.
    pub version: Option<Version>,
    /// The wrapped data keys of an encrypted store.
    pub slots: Vec<u8>,
    /// Bytes up to the first unreadable record.
    pub end: u64,
    /// The rotation that its last record (`superseded`) names: the other file is newer.
    pub successor: Option<u64>,
    /// At `end` a record was begun and does not verify: a crash cut off an edit, or the last edit is damaged.
    pub torn: bool,
    /// Where and why durable records are damaged.
    pub damage: Option<(u64, &'static str)>,
}

/// Verifies the hashes of a manifest's records, which need not be decrypted.
pub(crate) fn verify_manifest(bytes: &[u8], header: &ManifestHeader) -> Result<FrameScan, Lost> {
    scan(bytes, MANIFEST_HEADER_BYTES, header.salt, |_| Ok(()))
}

/// Reads a manifest file from its start, and decrypts it in place; `None` when its header was never written, or is damaged.
///
/// # Errors
/// [`Error::Version`] when it has another format, [`Error::Key`] when the key does not fit.
pub fn inspect_manifest(keyring: &Keyring, bytes: &mut [u8]) -> Result<Option<Inspection>> {
    let Some(header) = ManifestHeader::read(bytes)? else { return Ok(None) };
    let Some((start, slots)) = keys_of(bytes, &header) else {
        let damage = Some((MANIFEST_HEADER_BYTES as u64, "the key slots are damaged"));
        let (version, slots, end, successor, torn) =
            (None, Vec::new(), MANIFEST_HEADER_BYTES as u64, None, true);
        return Ok(Some(Inspection { header, version, slots, end, successor, torn, damage }));
    };
    let slots = slots.to_vec();
    let unreadable = match decrypt_manifest(keyring, &header, start, bytes) {
        Err(Error::Corrupt(damage)) => Some((damage.offset, damage.what)),
        done => {
            done?;
            None
        }
    };
    let mut replay = Replay::default();
    let found = scan(bytes, start, header.salt, |frame| {
        replay.step(frame.payload).map_err(|what| Stop { offset: frame.offset, what })
    });
    let (end, torn, damage) = match found {
        Ok(found) => (found.end, found.torn, None),
        Err(Stop { offset, what }) => (offset, false, Some((offset as u64, what))),
    };
    let Replay { version, successor, .. } = replay;
    let damage = unreadable.or(damage);
    Ok(Some(Inspection { header, version, slots, end: end as u64, successor, torn, damage }))
}
