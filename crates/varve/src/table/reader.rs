//! An open table: everything but its data blocks is in memory.
//!
//! Opening takes two reads: the footer, and in one piece everything between the data and the footer. A get checks the
//! filter, finds in the index the only block that can have the key, and searches it.
//!
//! A table of the lowest level can work without its filter, which takes most of its memory where entries are small:
//! nearly every get that reaches that level finds its key. Such a table is lean until a caller makes it read the filter.
//! From RocksDB (`optimize_filters_for_hits`), which writes no filter for such tables.
//!
//! Invariant: the parts of the file lie one after the other without a gap, so a checksum covers each of its bytes; opening checks that.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use super::block::{Malformed, verify};
use super::{
    Block, BlockHandle, BlockKind, Blocks, FOOTER_BYTES, Filter, Footer, Index, Properties, RangeTombstones,
    TableMeta, hash_key,
};
use crate::codec::cipher::{KeyNumber, Keyring};
use crate::error::{Error, Result};
use crate::types::{FileName, Kind, RangeTombstone, Sequence};

/// A table that can be read.
#[derive(Debug)]
pub struct Table {
    id: u64,
    size: u64,
    footer: Footer,
    properties: Properties,
    index: Index,
    filter: OnceCell<Filter>,
    range_tombstones: RangeTombstones,
    /// Whether the table was used since the cache last checked.
    used: Cell<bool>,
}

/// The version of a key that a get found. It keeps its block alive.
#[derive(Debug, Clone)]
pub struct TableValue {
    /// The version's sequence.
    pub sequence: Sequence,
    /// Whether it is a value or a tombstone.
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The block that contains the value.
    pub block: Rc<Block>,
    /// Where in the block the value begins.
    pub start: u32,
    /// Bytes of the value.
    pub len: u32,
}

impl TableValue {
    /// The value; empty for a tombstone.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.block[self.start as usize..][..self.len as usize]
    }
}

impl Table {
    /// Opens the table that `meta` describes.
    pub fn open(keyring: &Keyring, meta: &TableMeta, blocks: &dyn Blocks) -> Result<Self> {
        Self::open_as(keyring, meta, blocks, false)
    }

    /// As [`Table::open`], without the filter when there is no room for it (see [`Blocks::has_room`]) and it is most of the bytes to read.
    pub(crate) fn open_lean(keyring: &Keyring, meta: &TableMeta, blocks: &dyn Blocks) -> Result<Self> {
        Self::open_as(keyring, meta, blocks, true)
    }

    fn open_as(keyring: &Keyring, meta: &TableMeta, blocks: &dyn Blocks, may_be_lean: bool) -> Result<Self> {
        let file = FileName::table(meta.id);
        if !keyring.has(meta.key) {
            return Err(Error::Key("The key of a table is not here."));
        }
        let start = meta.size.checked_sub(FOOTER_BYTES as u64);
        let start = start.ok_or_else(|| Error::corrupt(file, 0, "table cut short"))?;
        let bytes = blocks.raw(meta.id, start, FOOTER_BYTES as u32)?;
        let (footer, hash) = Footer::decode(&bytes, keyring.store(), file, start)?;
        if hash != meta.footer_hash || (footer.file_id, footer.key) != (meta.id, meta.key) {
            return Err(Error::corrupt(file, start, "another table than the manifest names"));
        }
        let mut parts = footer.blocks();
        let tail_start = parts.first().map_or(start, |(_, handle)| handle.offset);
        let mut end = tail_start;
        for (_, handle) in &parts {
            let follows = handle.offset == end && handle.end() <= start;
            end = if follows { handle.end() } else { start + 1 };
        }
        let len = start.checked_sub(tail_start).and_then(|len| u32::try_from(len).ok());
        let (Some(len), true) = (len, end == start) else {
            return Err(Error::corrupt(file, start, "footer handles"));
        };
        let may_be_lean = may_be_lean && footer.filter.len > len / 2;
        let is_lean = may_be_lean && !blocks.has_room(len as usize);
        let (read_start, len) = if is_lean {
            parts.retain(|(kind, _)| *kind != BlockKind::Filter);
            (footer.filter.end(), len - footer.filter.len)
        } else {
            (tail_start, len)
        };
        let mut tail = blocks.raw(meta.id, read_start, len)?;
        if tail.len() != len as usize {
            return Err(Error::corrupt(file, read_start, "table cut short"));
        }
        let mut table = Self {
            id: meta.id,
            size: meta.size,
            properties: Properties::default(),
            index: Index::default(),
            filter: OnceCell::new(),
            range_tombstones: RangeTombstones::default(),
            used: Cell::new(false),
            footer,
        };
        for (kind, handle) in parts {
            let at = (handle.offset - read_start) as usize;
            let stored = &mut tail[at..at + handle.len as usize];
            verify(keyring, meta.id, meta.key, handle.offset, stored, kind)
                .and_then(|raw| table.load(kind, raw))
                .map_err(|Malformed(what)| Error::corrupt(file, handle.offset, what))?;
        }
        let has_filter = table.filter.get().is_some() || is_lean || table.index.is_empty();
        if table.index.data_end() != tail_start || !has_filter {
            return Err(Error::corrupt(file, tail_start, "index and footer disagree"));
        }
        // An index takes more room than its block.
        if may_be_lean && !blocks.has_room(table.resident_bytes()) {
            table.filter.take();
        }
        Ok(table)
    }

    fn load(&mut self, kind: BlockKind, raw: &[u8]) -> Result<(), Malformed> {
        match kind {
            BlockKind::Data => {}
            BlockKind::Filter => self.filter = OnceCell::from(Filter::decode(raw)?),
            BlockKind::RangeTombstones => self.range_tombstones = RangeTombstones::decode(raw)?,
            BlockKind::Index => self.index = Index::decode(raw)?,
            BlockKind::Properties => self.properties = Properties::decode(raw)?,
        }
        Ok(())
    }

    /// The newest version of `key` at or below `snapshot`, tombstones included. Range tombstones are queried
    /// separately: [`Table::tombstone_over`].
    pub fn get(&self, key: &[u8], snapshot: Sequence, blocks: &dyn Blocks) -> Result<Option<TableValue>> {
        if self.may_contain(hash_key(key)) { self.get_admitted(key, snapshot, blocks) } else { Ok(None) }
    }

    /// [`Table::get`] for a key that the filter did not exclude: see [`Table::may_contain`].
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn get_admitted(
        &self,
        key: &[u8],
        snapshot: Sequence,
        blocks: &dyn Blocks,
    ) -> Result<Option<TableValue>> {
        let at = self.index.find(key, snapshot);
        if at == self.index.len() {
            return Ok(None);
        }
        let handle = self.index.handle(at);
        let block = blocks.block(self.id, self.key(), handle)?;
        let found = block.find(key, snapshot).map_err(|error| self.corrupt(handle, error))?;
        let Some(entry) = found else {
            return Ok(None);
        };
        Ok(Some(TableValue {
            sequence: entry.sequence,
            kind: entry.kind,
            expires: entry.expires,
            start: entry.value,
            len: entry.next - entry.value,
            block,
        }))
    }

    /// False when the table surely has no version of the key with this [`hash_key`].
    #[inline]
    #[must_use]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.filter.get().map_or(self.footer.filter.len > 0, |filter| filter.may_contain(hash))
    }

    /// Whether the table has a filter that was not read yet.
    #[inline]
    #[must_use]
    pub(crate) fn is_lean(&self) -> bool {
        self.filter.get().is_none() && self.footer.filter.len > 0
    }

    /// Reads the filter of a lean table.
    #[cold]
    pub(crate) fn read_filter(&self, keyring: &Keyring, blocks: &dyn Blocks) -> Result<()> {
        let handle = self.footer.filter;
        let mut stored = blocks.raw(self.id, handle.offset, handle.len)?;
        let filter = verify(keyring, self.id, self.key(), handle.offset, &mut stored, BlockKind::Filter)
            .and_then(Filter::decode)
            .map_err(|error| self.corrupt(handle, error))?;
        self.filter.get_or_init(|| filter);
        Ok(())
    }

    /// The highest sequence at or below `snapshot` of a range tombstone that covers `key`, 0 if none does.
    #[inline]
    #[must_use]
    pub fn tombstone_over(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        self.range_tombstones.over(key, snapshot)
    }

    /// The range tombstones, by start ascending, then sequence descending.
    #[must_use]
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        self.range_tombstones.as_slice()
    }

    /// The number of the table's file.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of the key that the table is encrypted under.
    #[inline]
    #[must_use]
    pub fn key(&self) -> KeyNumber {
        self.footer.key
    }

    /// Bytes of the table's file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The footer.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Statistics of the table.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The index: the data blocks and their places.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Approximate bytes of data blocks before `key`: the offset of the block where the key would be.
    #[must_use]
    pub(crate) fn offset_of(&self, key: &[u8]) -> u64 {
        let at = self.index.find(key, Sequence::MAX);
        if at < self.index.len() { self.index.handle(at).offset } else { self.index.data_end() }
    }

    /// Marks the table as used.
    #[inline]
    pub fn touch(&self) {
        self.used.set(true);
    }

    /// Whether the table was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.replace(false)
    }

    /// Bytes of memory that the open table takes.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let filter = self.filter.get().map_or(0, Filter::bytes);
        size_of::<Self>() + filter + self.index.bytes() + self.range_tombstones.bytes()
    }

    pub(super) fn corrupt(&self, handle: BlockHandle, Malformed(what): Malformed) -> Error {
        Error::corrupt(FileName::table(self.id), handle.offset, what)
    }
}
