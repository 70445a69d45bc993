//! Blocks: the unit of reading, verifying and caching.
//!
//! ```text
//! on disk    stored bytes | trailer (16 B, see trailer.rs)
//! in memory  raw bytes, and for a data block its Layout (see layout.rs)
//! ```
//!
//! A data block's raw bytes (`entry.rs` has the picture of an entry):
//!
//! ```text
//! H t t t  H t t t  H t | u32 restart offset [n] | u32 n
//! ^------  ^------  ^--
//! a run: a head entry (H) with its whole key, then entries (t) truncated against that head
//! ```
//!
//! Keys are truncated against the head of their run, not against their predecessor: an entry is then (front of the
//! head's key, own suffix). So it can be compared in place, and reached without reading the entries in between.
//!
//! Invariant: in an opened data block, every entry decodes. In a block opened to be copied (`front.rs`), the fields and
//! key of its only entry decode.

mod builder;
mod entry;
mod front;
mod layout;
mod search;
mod trailer;
mod walk;

use core::ops::Deref;

pub use entry::Malformed;
pub use trailer::{TRAILER_BYTES, open_block, open_block_to_copy};
pub use walk::BlockEntry;

pub(super) use builder::BlockBuilder;
pub(super) use entry::Entry;
pub(super) use front::Packed;
pub(super) use trailer::{CODEC_ENCRYPTED, Writer, check_hash, verify};

use super::BlockKind;
use layout::Layout;

/// A verified, decompressed block. Derefs to its raw bytes.
#[derive(Debug)]
pub struct Block {
    kind: BlockKind,
    bytes: Vec<u8>,
    layout: Layout,
    /// See [`Block::packed`].
    packed: Option<Packed>,
}

impl Block {
    /// Takes raw bytes (without trailer) as a block and, if they are data, prepares them for reading.
    pub fn parse(kind: BlockKind, bytes: Vec<u8>) -> Result<Self, Malformed> {
        let layout = if kind == BlockKind::Data { Layout::of(&bytes)? } else { Layout::default() };
        Ok(Self { kind, bytes, layout, packed: None })
    }

    /// The kind of contents of the block.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// The compressed bytes, if [`open_block_to_copy`] left the block compressed. The raw bytes then end where the value
    /// of its one entry begins.
    pub(super) fn packed(&self) -> Option<&Packed> {
        self.packed.as_ref()
    }

    /// Bytes of memory that the block takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let packed_bytes = self.packed.as_ref().map_or(0, |packed| packed.bytes.capacity());
        size_of::<Self>() + self.bytes.capacity() + self.layout.bytes() + packed_bytes
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
