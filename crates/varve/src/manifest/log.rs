//! Committing to the manifest: append an edit and sync, or rotate into the other file.
//!
//! ```text
//! file      header 64 B | record: keys ? | record: snapshot | record: edit * | record: superseded ?
//! payload   u8 1, version | u8 2, edit | u8 3, u64 rotation | u8 4, wrapped data keys      (framing: see `codec::frame`)
//! ```
//!
//! Invariant: every edit is synced before the next one is written, and its record promises this (`synced_upto` is its
//! own offset). So only the last edit of a file can be torn. After a failed write or sync, nothing more is committed:
//! the contents of the file are unknown until it is opened again.

use super::edit::Edit;
use super::header::{MANIFEST_HEADER_BYTES, ManifestHeader};
use super::record;
use super::version::Version;
use crate::codec::cipher::{Encryption, Keyring};
use crate::codec::frame::{begin_record, encrypt_records, end_record, end_record_under, record_for};
use crate::codec::hash::xxh3;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::types::{FileName, StoreId};

/// Edits may grow to this many bytes, or to the length of the snapshot if that is more, before a rotation.
const EDITS_BYTES_MAX: u64 = 64 << 10;
/// A file becomes longer than needed by this many bytes, for later edits.
const SLACK_BYTES: u64 = 8 << 10;

/// Expected length of a manifest file, in bytes.
const MANIFEST_BYTES_HINT: u64 = 60 << 10;

/// The manifest of an open store.
#[derive(Debug)]
pub struct Manifest {
    header: ManifestHeader,
    /// The one of the two files that is appended to.
    slot: u64,
    /// Where the snapshot ends.
    snapshot_end: u64,
    /// Where the next record goes.
    end: u64,
    salt_seed: u64,
    encryption: Encryption,
    origin: Origin,
    /// A write or sync has failed.
    poisoned: bool,
}

/// Where the file that is appended to comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// An earlier session: it was read, and may exist only in the operating system's memory.
    Read,
    /// An earlier session, and it is synced now.
    ReadAndSynced,
    /// This session.
    Written,
}

impl Manifest {
    /// Starts the manifest of a new store. `salt_seed` is fresh from the host.
    ///
    /// # Errors
    /// Any error of the storage. Then the files count as absent.
    pub fn create<S: Storage>(
        storage: &mut S,
        store: StoreId,
        mut encryption: Encryption,
        salt_seed: u64,
    ) -> Result<(Self, Version)> {
        encryption.keyring = encryption.keyring.of_store(store);
        storage.adopt(store);
        for file in [0, 1].map(FileName::manifest) {
            // Left over from a creation that crashed.
            if storage.list().iter().any(|(known, _)| *known == file) {
                storage.delete(file)?;
            }
        }
        for file in [0, 1].map(FileName::manifest) {
            create_blank(storage, file)?;
        }
        let version = Version::default();
        // Before the first rotation there is no old file.
        let header = ManifestHeader { rotation: 0, epoch: 1, store, salt: 0, key: 0 };
        let mut manifest = Self {
            header,
            slot: 1,
            snapshot_end: 0,
            end: 0,
            salt_seed,
            encryption,
            origin: Origin::Written,
            poisoned: false,
        };
        let (next, end) = manifest.write_snapshot(storage, &version)?;
        manifest.switch(next, end);
        if next.key > 0 {
            // Without the wrapped data keys nothing can be repaired: from the start they stand in both files.
            manifest.rotate(storage, &version)?;
        }
        Ok((manifest, version))
    }

    /// Continues from a file that was read. Nothing is written before the first commit.
    pub(super) fn resume(
        slot: u64,
        header: ManifestHeader,
        end: u64,
        encryption: Encryption,
        salt_seed: u64,
    ) -> Self {
        let origin = Origin::Read;
        Self { header, slot, snapshot_end: 0, end, salt_seed, encryption, origin, poisoned: false }
    }

    /// The identity of the store and its data keys.
    #[must_use]
    pub fn keyring(&self) -> &Keyring {
        &self.encryption.keyring
    }

    /// The wrapped data keys.
    #[must_use]
    pub fn key_slots(&self) -> &[u8] {
        &self.encryption.slots
    }

    /// Changes the data keys, and the bytes that wrap them. Both manifest files are written anew, so that the old ones are gone.
    /// Keys that files still need must be among the new ones.
    ///
    /// # Errors
    /// As [`Manifest::commit`]. After [`Error::StorageFull`] everything is as before.
    pub fn change_keys<S: Storage>(
        &mut self,
        storage: &mut S,
        version: &Version,
        encryption: Encryption,
    ) -> Result<()> {
        if self.poisoned {
            return Err(Error::Poisoned);
        }
        self.take_over(storage, version)?;
        let keyring = encryption.keyring.of_store(self.header.store);
        self.blank_other(storage)?;
        let known = core::mem::replace(&mut self.encryption, Encryption { keyring, ..encryption });
        match self.rotate(storage, version) {
            Ok(()) => {}
            Err(error) => {
                self.encryption = known;
                return Err(error);
            }
        }
        self.blank_other(storage)?;
        match self.rotate(storage, version) {
            // The other file is blank, and as good as an old one.
            Err(Error::StorageFull) => Ok(()),
            done => done,
        }
    }

    /// Overwrites the file that is not current with zeros: a snapshot is shorter than the edits that it replaces.
    fn blank_other<S: Storage>(&mut self, storage: &mut S) -> Result<()> {
        let other = FileName::manifest(1 - self.slot);
        let len = storage.list().into_iter().find(|(known, _)| *known == other).map_or(0, |(_, len)| len);
        let zeros = room::zeros(len as usize)?;
        self.put(storage, other, 0, &zeros)
    }

    /// Syncs the file that was read, unless this was done. This must come before a log goes on.
    ///
    /// # Errors
    /// The error of the storage. Then it is unknown whether the file survives, and every later commit returns [`Error::Poisoned`].
    pub fn keep<S: Storage>(&mut self, storage: &mut S) -> Result<()> {
        if self.origin == Origin::Read {
            if !mutant::has(Mutant::ManifestNotKept) {
                self.sync(storage, self.file())?;
            }
            self.origin = Origin::ReadAndSynced;
        }
        Ok(())
    }

    /// Takes over as the next leader, unless this was done: writes `version` under a higher epoch into the other file. The first
    /// commit does it; a store that deletes files before does it first.
    ///
    /// # Errors
    /// As [`Manifest::commit`].
    pub fn take_over<S: Storage>(&mut self, storage: &mut S, version: &Version) -> Result<()> {
        if self.origin == Origin::Written {
            return Ok(());
        }
        // The other file, the only other copy, is overwritten next.
        self.keep(storage)?;
        let other = FileName::manifest(1 - self.slot);
        if !storage.list().iter().any(|(known, _)| *known == other) {
            create_blank(storage, other)?;
        }
        self.rotate(storage, version)
    }

    /// Makes `edit` durable; `version` is the one after it. When this returns, the next open finds the edit.
    ///
    /// # Errors
    /// [`Error::StorageFull`]: nothing has changed, the commit may be tried again. Any other error: it is unknown
    /// whether the edit is durable, and every later commit returns [`Error::Poisoned`].
    pub fn commit<S: Storage>(&mut self, storage: &mut S, version: &Version, edit: &Edit) -> Result<()> {
        if self.poisoned {
            return Err(Error::Poisoned);
        }
        if self.origin != Origin::Written {
            return self.take_over(storage, version);
        }
        let mut record = Vec::new();
        edit.encode(&mut record);
        let record = self.framed(record::EDIT, &record);
        let edits = self.end - self.snapshot_end + record.len() as u64;
        let snapshot = self.snapshot_end - MANIFEST_HEADER_BYTES as u64;
        if edits > EDITS_BYTES_MAX.max(snapshot) {
            match self.rotate(storage, version) {
                // No room for a snapshot: the edit may still fit here.
                Err(Error::StorageFull) => {}
                done => return done,
            }
        }
        if !edit.added.is_empty() {
            let other = FileName::manifest(1 - self.slot);
            match self.lengthen(storage, other, self.end + record.len() as u64) {
                Err(Error::StorageFull) => return self.rotate(storage, version),
                lengthened => lengthened?,
            }
        }
        let file = self.file();
        match self.put(storage, file, self.end, &record) {
            Ok(()) => {}
            // No room for an edit: the snapshot may still fit into the existing length of the other file.
            Err(Error::StorageFull) => return self.rotate(storage, version),
            Err(error) => return Err(error),
        }
        self.sync(storage, file)?;
        self.end += record.len() as u64;
        Ok(())
    }

    /// Makes one file as long as the other will be: no snapshot of the other file's contents is longer. The next open writes that
    /// snapshot there, and the storage may be full by then (seeds 1795608956000360 and, for the old file of a rotation,
    /// 1795612492000736).
    fn lengthen<S: Storage>(&mut self, storage: &mut S, file: FileName, end: u64) -> Result<()> {
        let len = storage.list().into_iter().find(|(known, _)| *known == file).map_or(0, |(_, len)| len);
        if len >= end {
            return Ok(());
        }
        let zeros = room::zeros((end - len + SLACK_BYTES) as usize)?;
        self.put(storage, file, len, &zeros)
    }

    /// The leader epoch: it rises with the first commit after each opening.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.header.epoch
    }

    /// Number of snapshots that the store has written.
    #[must_use]
    pub fn rotation(&self) -> u64 {
        self.header.rotation
    }

    /// Bytes used in the file that is appended to.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> StoreId {
        self.header.store
    }

    fn file(&self) -> FileName {
        FileName::manifest(self.slot)
    }

    /// Moves to the other file: writes and syncs a snapshot there, then a `superseded` record here.
    fn rotate<S: Storage>(&mut self, storage: &mut S, version: &Version) -> Result<()> {
        let (next, end) = self.write_snapshot(storage, version)?;
        let file = self.file();
        let farewell = self.framed(record::SUPERSEDED, &next.rotation.to_le_bytes());
        match self.put(storage, file, self.end, &farewell) {
            // Overwriting needs no room. Without a header, this file cannot be mistaken for the current one.
            Err(Error::StorageFull) => {
                if self.put(storage, file, 0, &[0; MANIFEST_HEADER_BYTES]).is_err() {
                    self.poisoned = true;
                    return Err(Error::Io("a manifest file can no longer be written"));
                }
            }
            done => done?,
        }
        self.sync(storage, file)?;
        self.switch(next, end);
        Ok(())
    }

    /// Writes `version` as the next rotation into the other file and syncs it. Returns its header and end.
    fn write_snapshot<S: Storage>(
        &mut self,
        storage: &mut S,
        version: &Version,
    ) -> Result<(ManifestHeader, u64)> {
        let rotation = self.header.rotation + 1;
        let mut mixed = rotation.to_le_bytes().to_vec();
        mixed.extend_from_slice(&self.header.epoch.to_le_bytes());
        let epoch = self.header.epoch + u64::from(self.origin != Origin::Written);
        let (salt, key) = (xxh3(&mixed, self.salt_seed), self.encryption.keyring.current());
        let next = ManifestHeader { rotation, epoch, salt, key, ..self.header };
        let other = FileName::manifest(1 - self.slot);
        let image = snapshot_image(&next, &self.encryption, version);
        // An open continues with whatever fits.
        if self.snapshot_end > 0 {
            self.lengthen(storage, self.file(), image.len() as u64)?;
        }
        self.put(storage, other, 0, &image)?;
        self.sync(storage, other)?;
        Ok((next, image.len() as u64))
    }

    /// From now on the other file is appended to.
    fn switch(&mut self, next: ManifestHeader, end: u64) {
        self.header = next;
        self.origin = Origin::Written;
        self.slot = 1 - self.slot;
        self.snapshot_end = end;
        self.end = end;
    }

    /// A record for the end of the current file.
    fn framed(&self, kind: u8, body: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(1 + body.len());
        payload.push(kind);
        payload.extend_from_slice(body);
        let ManifestHeader { salt, key, .. } = self.header;
        let mut record = record_for(key, self.end, salt, self.end as u32, &payload);
        encrypt_records(&self.encryption.keyring, key, self.header.file(), self.end, salt, &mut record);
        record
    }

    fn put<S: Storage>(&mut self, storage: &mut S, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        let done = storage.write(file, offset, bytes);
        self.poisoned |= !matches!(done, Ok(()) | Err(Error::StorageFull));
        done
    }

    fn sync<S: Storage>(&mut self, storage: &mut S, file: FileName) -> Result<()> {
        let done = storage.sync(file);
        self.poisoned |= done.is_err();
        done
    }
}

/// The bytes of a manifest file that contains a version and nothing else.
pub(super) fn snapshot_image(header: &ManifestHeader, encryption: &Encryption, version: &Version) -> Vec<u8> {
    let (key, salt) = (header.key, header.salt);
    let mut image = header.encode();
    if key > 0 {
        let start = begin_record(&mut image);
        image.push(record::KEYS);
        image.extend_from_slice(&encryption.slots);
        end_record(&mut image, start, salt, 0);
    }
    let start = begin_record(&mut image);
    image.push(record::SNAPSHOT);
    version.encode(&mut image);
    end_record_under(key, &mut image, start, salt, 0);
    encrypt_records(&encryption.keyring, key, header.file(), start as u64, salt, &mut image[start..]);
    image
}

/// Creates a manifest file that does not open, whatever its slot contained before.
pub(super) fn create_blank<S: Storage>(storage: &mut S, file: FileName) -> Result<()> {
    storage.create(file, MANIFEST_BYTES_HINT)?;
    storage.write(file, 0, &[0; MANIFEST_HEADER_BYTES])?;
    storage.sync(file)
}
