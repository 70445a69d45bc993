//! The manifest of a store whose tables are written before it: for tools that write a whole store.
//!
//! Invariant: the manifest file that counts is written last, so there is no store until it is flushed.

use super::Version;
use super::header::ManifestHeader;
use super::log::{create_blank, snapshot_image};
use crate::codec::cipher::Encryption;
use crate::codec::hash::xxh3;
use crate::error::Result;
use crate::storage::Storage;
use crate::types::{FileName, StoreId};

/// Makes a store that can be opened from `version`, whose tables are durable. `salt_seed` is fresh from the host.
///
/// # Errors
/// Any error of the storage. Then there is no store, and this may be called again.
pub fn write_first_manifest<S: Storage>(
    storage: &mut S,
    store: StoreId,
    encryption: &Encryption,
    salt_seed: u64,
    version: &Version,
) -> Result<()> {
    storage.adopt(store);
    let (salt, key) = (xxh3(b"first", salt_seed), encryption.keyring.current());
    let header = ManifestHeader { rotation: 1, epoch: 1, store, salt, key };
    let encryption = Encryption { keyring: encryption.keyring.of_store(store), ..encryption.clone() };
    let image = snapshot_image(&header, &encryption, version);
    for file in [1, 0].map(FileName::manifest) {
        if !storage.list().iter().any(|(known, _)| *known == file) {
            create_blank(storage, file)?;
        }
    }
    let file = FileName::manifest(0);
    storage.write(file, 0, &image)?;
    storage.sync(file)
}
