//! The manifest: which tables and WAL segments make up the store, switched atomically.
//!
//! ```text
//! slot 0   header, rotation 4 | snapshot | edit | edit | superseded by 5
//! slot 1   header, rotation 5 | snapshot | edit              <- appended to
//! ```
//!
//! Two files take turns. A commit appends one [`Edit`] and syncs. When the edits outgrow the snapshot, the whole
//! [`Version`] goes into the other file under the next rotation, is synced, and a `superseded` record that
//! names it is appended here and synced; then the other file is appended to. No rename, no third file.
//!
//! The manifest of an encrypted store begins with the wrapped data keys, which a host must read before it can open the store
//! ([`key_slots`]). They change with a rotation.
//!
//! Invariants:
//! - The highest rotation that opens is the current one. If a file names a successor that does not open, data was lost:
//!   this is reported, and an older version is never served.
//! - Undoing a commit needs nothing else: a torn edit was never acknowledged. Opening writes a fresh snapshot, so
//!   nothing is ever appended after a torn tail.
//! - Tables and WAL segments are durable before the edit that names them. They are released only after the edit that
//!   follows the one that dropped them. So the version before the last edit stays readable.

mod edit;
mod first;
mod header;
mod inspect;
mod log;
mod open;
mod version;

pub use edit::{ClientState, Edit, Floors};
pub use first::write_first_manifest;
pub use header::{MANIFEST_HEADER_BYTES, ManifestHeader};
pub(crate) use inspect::verify_manifest;
pub use inspect::{Inspection, inspect_manifest};
pub use log::Manifest;
pub use open::key_slots;
pub(crate) use open::newest_key_slots;
pub use version::{LEVELS_MAX, Version};

/// The first byte of a record's payload.
mod record {
    /// A whole version; the first record of a file, and no other.
    pub(super) const SNAPSHOT: u8 = 1;
    /// One edit.
    pub(super) const EDIT: u8 = 2;
    /// A `u64` rotation follows: the other file is the current one from then on.
    pub(super) const SUPERSEDED: u8 = 3;
    /// The wrapped data keys: the first record of an encrypted manifest, and the only one that is not encrypted.
    pub(super) const KEYS: u8 = 4;
}
