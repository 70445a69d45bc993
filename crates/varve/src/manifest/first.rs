//! The manifest of a store whose tables are written before it: for tools that write a whole store.
//!
//! Invariant: the manifest file that counts is written last, so there is no store until it is flushed.

use super::Version;
use super::header::{MANIFEST_HEADER_BYTES, ManifestHeader};
use super::log::create_blank;
use super::record;
use crate::codec::frame::{begin_record, end_record};
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
    salt_seed: u64,
    version: &Version,
) -> Result<()> {
    storage.adopt(store);
    let salt = xxh3(b"first", salt_seed);
    let mut image = ManifestHeader { rotation: 1, epoch: 1, store, salt }.encode();
    debug_assert_eq!(image.len(), MANIFEST_HEADER_BYTES);
    let start = begin_record(&mut image);
    image.push(record::SNAPSHOT);
    version.encode(&mut image);
    end_record(&mut image, start, salt, 0);
    for file in [1, 0].map(FileName::manifest) {
        if !storage.list().iter().any(|(known, _)| *known == file) {
            create_blank(storage, file)?;
        }
    }
    let file = FileName::manifest(0);
    storage.write(file, 0, &image)?;
    storage.sync(file)
}
