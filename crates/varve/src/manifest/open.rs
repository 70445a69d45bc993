//! Opening: which of the two manifest files is the current one, and its contents.
//!
//! ```text
//! both open                      the higher rotation
//! one opens, names no successor  that one: the other was being written when the power went, or never was
//! one opens, names a successor   corrupt: acknowledged edits were in the other
//! one opens, the other is newer
//!   and has provably lost edits  corrupt
//! none opens                     corrupt if there is a table or WAL segment, else no store
//! ```
//!
//! Invariant: the returned version is that of the last acknowledged edit, or of the edit being written when the power
//! failed. If the very last edit is damaged, it is the version of the edit before it, whose files are still kept.

use super::edit::Edit;
use super::header::{MANIFEST_HEADER_BYTES, ManifestHeader};
use super::log::Manifest;
use super::record;
use super::version::Version;
use crate::codec::cipher::{Encryption, Keyring};
use crate::codec::frame::{Frame, Lost, decrypt_records, record_at, scan};
use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::types::{FileKind, FileName, StoreId};

/// A manifest file that opens.
#[derive(Debug)]
struct Opened {
    slot: u64,
    header: ManifestHeader,
    version: Version,
    end: u64,
    /// The wrapped data keys.
    slots: Vec<u8>,
    /// The rotation that a `superseded` record names.
    successor: Option<u64>,
}

/// The state of a manifest file.
#[derive(Debug)]
enum Content {
    /// It opens.
    Opened(Opened),
    /// It has no header, or no snapshot after it: never written, being written, or damaged.
    Blank,
    /// Its header is good, and something after it has provably changed since it was synced; or its key is not here.
    Damaged { rotation: u64, error: Error },
}

/// The wrapped data keys of the store in `storage`: the bytes that the host gave with [`Encryption::slots`](crate::Encryption::slots)
/// last. `None` when there is no store, or it is not encrypted.
///
/// # Errors
/// Those of the storage, and [`Error::Version`] when the store has a newer format.
pub fn key_slots<S: Storage>(storage: &S) -> Result<Option<Vec<u8>>> {
    let manifests = storage.list().into_iter().filter(|(file, _)| file.kind == FileKind::Manifest);
    newest_key_slots(manifests.map(|(file, len)| read_whole(storage, file, len)))
}

/// The wrapped data keys in the newest of these manifest files.
pub(crate) fn newest_key_slots(manifests: impl Iterator<Item = Result<Vec<u8>>>) -> Result<Option<Vec<u8>>> {
    let mut newest: Option<(u64, Option<Vec<u8>>)> = None;
    for bytes in manifests {
        let bytes = bytes?;
        let Some(header) = ManifestHeader::read(&bytes)? else { continue };
        let Some((start, slots)) = keys_of(&bytes, &header) else { continue };
        if record_at(&bytes, start, header.salt).is_some()
            && newest.as_ref().is_none_or(|(rotation, _)| *rotation < header.rotation)
        {
            newest = Some((header.rotation, (header.key > 0).then(|| slots.to_vec())));
        }
    }
    Ok(newest.and_then(|(_, slots)| slots))
}

/// Where the snapshot of a manifest file begins, and the wrapped data keys before it.
pub(super) fn keys_of<'a>(bytes: &'a [u8], header: &ManifestHeader) -> Option<(usize, &'a [u8])> {
    if header.key == 0 {
        return Some((MANIFEST_HEADER_BYTES, &[]));
    }
    let found = record_at(bytes, MANIFEST_HEADER_BYTES, header.salt).filter(|found| !found.encrypted)?;
    let (&record::KEYS, slots) = found.payload.split_first()? else { return None };
    Some((found.end, slots))
}

impl Manifest {
    /// Opens the manifest in `storage`. `None` when there is no store. `salt_seed` is fresh from the host. Nothing is written:
    /// the first commit takes over as the next leader, and writes a snapshot under a higher epoch into the other file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when acknowledged edits are missing, [`Error::Version`] when the store has a newer format, [`Error::Key`] when
    /// the keys do not fit.
    pub fn open<S: Storage>(
        storage: &mut S,
        keyring: &Keyring,
        salt_seed: u64,
    ) -> Result<Option<(Self, Version, StoreId)>> {
        let files = storage.list();
        let mut best: Option<Opened> = None;
        let mut damaged: Option<(u64, Error)> = None;
        for slot in [0, 1] {
            let file = FileName::manifest(slot);
            let Some(&(_, len)) = files.iter().find(|(known, _)| *known == file) else { continue };
            match read_slot(storage, keyring, slot, len)? {
                Content::Blank => {}
                Content::Damaged { rotation, error } => damaged = Some((rotation, error)),
                Content::Opened(opened) => best = Some(newer(best, opened)?),
            }
        }
        if let Some((rotation, error)) = damaged
            && best.as_ref().is_none_or(|best| best.header.rotation < rotation)
        {
            return Err(error);
        }
        let Some(best) = best else {
            return match files.iter().find(|(file, _)| file.kind != FileKind::Manifest) {
                Some((file, _)) => Err(Error::corrupt(*file, 0, "no manifest opens, but there is a file")),
                None => Ok(None),
            };
        };
        if best.successor.is_some() {
            let lost = FileName::manifest(1 - best.slot);
            return Err(Error::corrupt(lost, 0, "the newer manifest does not open"));
        }
        if best.header.key == 0 && keyring.current() > 0 {
            return Err(Error::NOT_ENCRYPTED);
        }
        storage.adopt(best.header.store);
        let Opened { slot, header, version, end, slots, .. } = best;
        let encryption = Encryption { keyring: keyring.of_store(header.store), slots };
        Ok(Some((Self::resume(slot, header, end, encryption, salt_seed), version, header.store)))
    }
}

/// Of two files that open, the one that counts.
fn newer(known: Option<Opened>, other: Opened) -> Result<Opened> {
    let Some(known) = known else { return Ok(other) };
    if known.header.store != other.header.store || known.header.rotation == other.header.rotation {
        let file = FileName::manifest(other.slot);
        return Err(Error::corrupt(file, 0, "the two manifest files are not of one store"));
    }
    Ok(if known.header.rotation > other.header.rotation { known } else { other })
}

fn read_whole<S: Storage>(storage: &S, file: FileName, len: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| Error::corrupt(file, 0, "impossible length"))?];
    storage.read(file, 0, &mut bytes)?;
    Ok(bytes)
}

fn read_slot<S: Storage>(storage: &S, keyring: &Keyring, slot: u64, len: u64) -> Result<Content> {
    let file = FileName::manifest(slot);
    let mut bytes = read_whole(storage, file, len)?;
    let Some(header) = ManifestHeader::read(&bytes)? else { return Ok(Content::Blank) };
    let (rotation, salt) = (header.rotation, header.salt);
    let Some((start, slots)) = keys_of(&bytes, &header) else { return Ok(Content::Blank) };
    let slots = slots.to_vec();
    if record_at(&bytes, start, salt).is_some()
        && let Err(error) = decrypt_manifest(keyring, &header, start, &mut bytes)
    {
        return Ok(Content::Damaged { rotation, error });
    }
    Ok(match replay(&bytes, start, salt) {
        Ok(Replay { version: Some(version), end, successor }) => {
            Content::Opened(Opened { slot, header, version, end: end as u64, slots, successor })
        }
        Ok(Replay { version: None, .. }) => Content::Blank,
        Err(Stop { offset, what }) => {
            Content::Damaged { rotation, error: Error::corrupt(file, offset as u64, what) }
        }
    })
}

/// Decrypts the records of a manifest file from its snapshot on, which begins at `start`.
///
/// # Errors
/// [`Error::Key`] when the key is missing or does not decrypt the snapshot, [`Error::Corrupt`] when it does not decrypt a later record.
pub(super) fn decrypt_manifest(
    keyring: &Keyring,
    header: &ManifestHeader,
    start: usize,
    bytes: &mut [u8],
) -> Result<()> {
    let keyring = keyring.of_store(header.store);
    if !keyring.has(header.key) {
        return Err(Error::NO_KEY);
    }
    let done =
        decrypt_records(&keyring, header.key, header.file(), start as u64, header.salt, &mut bytes[start..]);
    match done {
        Err(Error::Corrupt(damage)) if damage.offset == start as u64 => Err(Error::WRONG_KEY),
        done => done,
    }
}

/// The contents of a file's records up to its end.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) version: Option<Version>,
    end: usize,
    pub(super) successor: Option<u64>,
}

/// Why the records make no sense.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) offset: usize,
    pub(super) what: &'static str,
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self { offset: lost.offset, what: "an edit that was durable is damaged" }
    }
}

fn replay(bytes: &[u8], start: usize, salt: u64) -> Result<Replay, Stop> {
    let mut replay = Replay::default();
    let found = scan(bytes, start, salt, |frame: Frame<'_>| {
        let offset = frame.offset;
        replay.step(frame.payload).map_err(|what| Stop { offset, what })
    })?;
    replay.end = found.end;
    Ok(replay)
}

impl Replay {
    pub(super) fn step(&mut self, payload: &[u8]) -> Result<(), &'static str> {
        let mut reader = Reader::new(payload);
        let truncated = |Truncated| "a record ends early";
        if self.successor.is_some() {
            return Err("a record follows the farewell");
        }
        match (reader.u8().map_err(truncated)?, &mut self.version) {
            (record::SNAPSHOT, version @ None) => {
                *version = Some(Version::decode(&mut reader).map_err(misfit)?);
            }
            (record::EDIT, Some(version)) => {
                let edit = Edit::decode(&mut reader).map_err(truncated)?;
                *version = version.apply(&edit).map_err(misfit)?;
            }
            (record::SUPERSEDED, Some(_)) => self.successor = Some(reader.u64().map_err(truncated)?),
            _ => return Err("a record is of the wrong kind"),
        }
        if reader.is_empty() { Ok(()) } else { Err("a record is too long") }
    }
}

fn misfit(error: Error) -> &'static str {
    match error {
        Error::Corrupt(damage) => damage.what,
        _ => "an edit does not fit",
    }
}
