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
use super::header::{HeaderError, MANIFEST_HEADER_BYTES, ManifestHeader, VERSION};
use super::log::Manifest;
use super::record;
use super::version::Version;
use crate::codec::frame::{Frame, Lost, scan};
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
    /// Its header is good, and something after it has provably changed since it was synced.
    Damaged { rotation: u64, error: Error },
}

impl Manifest {
    /// Opens the manifest in `storage`. `None` when there is no store. `salt_seed` is fresh from the host. Nothing is written:
    /// the first commit takes over as the next leader, and writes a snapshot under a higher epoch into the other file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when acknowledged edits are missing, [`Error::Version`] when the store has a newer format.
    pub fn open<S: Storage>(storage: &mut S, salt_seed: u64) -> Result<Option<(Self, Version, StoreId)>> {
        let files = storage.list();
        let mut best: Option<Opened> = None;
        let mut damaged: Option<(u64, Error)> = None;
        for slot in [0, 1] {
            let file = FileName::manifest(slot);
            let Some(&(_, len)) = files.iter().find(|(known, _)| *known == file) else { continue };
            match read_slot(storage, slot, len)? {
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
        storage.adopt(best.header.store);
        let Opened { slot, header, version, end, .. } = best;
        Ok(Some((Self::resume(slot, header, end, salt_seed), version, header.store)))
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

fn read_slot<S: Storage>(storage: &S, slot: u64, len: u64) -> Result<Content> {
    let file = FileName::manifest(slot);
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| Error::corrupt(file, 0, "impossible length"))?];
    storage.read(file, 0, &mut bytes)?;
    let header = match ManifestHeader::decode(&bytes) {
        Ok(header) => header,
        Err(HeaderError::Damaged) => return Ok(Content::Blank),
        Err(HeaderError::Version(found)) => return Err(Error::Version { found, supported: VERSION }),
    };
    Ok(match replay(&bytes, header.salt) {
        Ok(Replay { version: Some(version), end, successor }) => {
            Content::Opened(Opened { slot, header, version, end: end as u64, successor })
        }
        Ok(Replay { version: None, .. }) => Content::Blank,
        Err(Stop { offset, what }) => {
            let error = Error::corrupt(file, offset as u64, what);
            Content::Damaged { rotation: header.rotation, error }
        }
    })
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

fn replay(bytes: &[u8], salt: u64) -> Result<Replay, Stop> {
    let mut replay = Replay::default();
    let found = scan(bytes, MANIFEST_HEADER_BYTES, salt, |frame: Frame<'_>| {
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
