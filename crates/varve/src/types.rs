//! The small types that all parts of the engine share.

use core::fmt;

/// The position of a write in history: 56 bits. 1 is the first write of a store; 0 means "before everything".
pub type Sequence = u64;

/// The highest sequence number a store can reach.
pub const SEQUENCE_MAX: Sequence = (1 << 56) - 1;

/// Longest encoded key in bytes: 64 KiB of content and one type byte.
pub const KEY_BYTES_MAX: usize = 65_537;

/// Longest encoded value in bytes (128 MiB). WebAssembly has 4 GiB for a store. A merge or a scan may keep one value of each table of level
/// 0 (20 at most) and one of each level. A writer may keep three memtables of one batch each.
pub const VALUE_BYTES_MAX: usize = 1 << 27;

/// Longest batch in bytes, and longest response to one request (256 MiB).
pub const BATCH_BYTES_MAX: usize = 1 << 28;

/// Files begin at multiples of this many bytes of their slot.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Identifies a store. It seeds the checksums of the store's tables, so that a block of another store is never mistaken
/// for one of this store.
pub type StoreId = [u8; 16];

/// The effect of an entry on its key. On disk, bit 7 of the kind byte means that an expiry follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A tombstone: the key is gone from this sequence on.
    Delete = 0,
    /// The key has this value from this sequence on.
    Set = 1,
    /// All keys from the entry's key up to its value (exclusive) are gone from this sequence on.
    RangeDelete = 2,
}

impl Kind {
    /// Bit 7 of a kind byte: an expiry in milliseconds since 1970 follows.
    pub(crate) const EXPIRES: u8 = 0x80;

    /// Converts a kind byte without its expiry bit to its kind; `None` for an unknown byte. 3 (merge) and 4 (blob
    /// reference) are reserved.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Delete),
            1 => Some(Self::Set),
            2 => Some(Self::RangeDelete),
            _ => None,
        }
    }
}

/// One deleted range: keys in `start..end` with a lower sequence are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First key of the range.
    pub start: Vec<u8>,
    /// First key after the range.
    pub end: Vec<u8>,
    /// The sequence at which the range was deleted.
    pub sequence: Sequence,
}

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// One of the two manifest slots.
    Manifest = 1,
    /// A WAL segment.
    Wal = 2,
    /// An SSTable.
    Table = 3,
}

impl FileKind {
    /// Converts the byte that slot headers and frames carry to its kind; `None` for any other byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Manifest),
            2 => Some(Self::Wal),
            3 => Some(Self::Table),
            _ => None,
        }
    }
}

/// The name of a file: its kind and a number that is never used twice for that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// The purpose of the file.
    pub kind: FileKind,
    /// Its number.
    pub id: u64,
}

impl FileName {
    /// A manifest slot, 0 or 1.
    #[must_use]
    pub fn manifest(id: u64) -> Self {
        Self { kind: FileKind::Manifest, id }
    }

    /// A WAL segment.
    #[must_use]
    pub fn wal(id: u64) -> Self {
        Self { kind: FileKind::Wal, id }
    }

    /// An SSTable.
    #[must_use]
    pub fn table(id: u64) -> Self {
        Self { kind: FileKind::Table, id }
    }

    /// The name of the file in messages, such as `table 7`.
    #[must_use]
    pub(crate) fn label(&self) -> String {
        let kind = match self.kind {
            FileKind::Manifest => "manifest ",
            FileKind::Wal => "WAL segment ",
            FileKind::Table => "table ",
        };
        let mut label = kind.to_owned();
        label.push_str(&decimal(self.id));
        label
    }
}

/// A number in digits.
pub(crate) fn decimal(number: u64) -> String {
    let mut digits = if number < 10 { String::new() } else { decimal(number / 10) };
    digits.push(char::from(b'0' + (number % 10) as u8));
    digits
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}
