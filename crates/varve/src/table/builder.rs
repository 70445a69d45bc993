//! Builds a table from sorted entries, in one pass and in little memory.
//!
//! Blocks are finished as entries come, and wait in a buffer until they are drained. Only one open block, one separator
//! per block, one hash per key and the range tombstones stay in memory until the end.
//!
//! Invariant: the same entries and options give the same bytes, however often they are drained. The exception is blocks
//! that are copied compressed: they keep the bytes of their original compressor.

use core::cmp::Ordering;
use std::rc::Rc;

use super::block::{Block, BlockBuilder, Packed, Writer};
use super::{
    BlockHandle, BlockKind, FOOTER_BYTES, FilterBuilder, Footer, IndexBuilder, Properties, RangeTombstones,
    TableMeta, hash_key,
};
use crate::codec::bytes;
use crate::codec::cipher::Keyring;
use crate::types::{Kind, RangeTombstone, Sequence};

/// Approximate bytes of the fields of an entry besides key and value.
const ENTRY_FIELD_BYTES: usize = 8;

/// The layout options of a table. Readers do not need them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// A data block ends before the entry that would make it larger than this many raw bytes. A single larger entry
    /// becomes a block of its own.
    pub block_bytes: usize,
    /// Entries from one restart point to the next.
    pub restart_interval: usize,
    /// Bits of the filter per key: 10 give about 1% false positives, 14 about 0.2%.
    pub bits_per_key: u32,
    /// Whether data blocks are compressed where that saves at least 12%.
    pub compress: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { block_bytes: 4096, restart_interval: 16, bits_per_key: 10, compress: false }
    }
}

/// A table under construction.
///
/// ```
/// use varve::codec::cipher::Keyring;
/// use varve::table::{TableBuilder, TableOptions};
/// use varve::types::Kind;
///
/// let mut builder = TableBuilder::new(&Keyring::plain([7; 16]), 1, TableOptions::default());
/// builder.add(b"clay", 2, Kind::Set, None, b"fine");
/// builder.add(b"silt", 1, Kind::Set, None, b"coarse");
/// let meta = builder.finish();
/// let file = builder.take();
/// assert_eq!((meta.entries, meta.size), (2, file.len() as u64));
/// ```
pub struct TableBuilder {
    keyring: Keyring,
    options: TableOptions,
    writer: Writer,
    block: BlockBuilder,
    /// The open block, if it was copied; `block` is empty then.
    copied: Option<Rc<Block>>,
    index: IndexBuilder,
    filter: FilterBuilder,
    range_tombstones: Vec<RangeTombstone>,
    last_key: Vec<u8>,
    last_sequence: Sequence,
    meta: TableMeta,
    properties: Properties,
    expiries: ExpirySample,
}

/// When entries expire: every nth of them, where n doubles as they become more.
#[derive(Debug)]
struct ExpirySample {
    times: Vec<u64>,
    every: u64,
}

/// Most times of a sample.
const SAMPLE_MAX: usize = 256;

impl ExpirySample {
    /// Takes note of the entry that is number `number`, from 0 on, of those that expire.
    fn add(&mut self, number: u64, expires: u64) {
        if number.is_multiple_of(self.every) {
            self.times.push(expires);
        }
        if self.times.len() == SAMPLE_MAX {
            self.times = self.times.iter().step_by(2).copied().collect();
            self.every *= 2;
        }
    }

    /// When so many entries have expired; 0 if that never happens. Without a sort, which would be 2 KB of wasm.
    fn time_of(&self, count: u64) -> u64 {
        let wanted = count.div_ceil(self.every).max(1) as usize;
        let is_enough = |at: &u64| self.times.iter().filter(|time| *time <= at).count() >= wanted;
        self.times.iter().copied().filter(is_enough).min().map_or(0, |at| at.max(1))
    }
}

impl TableBuilder {
    /// An empty table that will be file `file_id`, under the current key of `keyring`.
    #[must_use]
    pub fn new(keyring: &Keyring, file_id: u64, options: TableOptions) -> Self {
        Self {
            writer: Writer::new(keyring.clone(), file_id),
            block: BlockBuilder::new(options.restart_interval),
            copied: None,
            index: IndexBuilder::default(),
            filter: FilterBuilder::new(options.bits_per_key),
            range_tombstones: Vec::new(),
            last_key: Vec::new(),
            last_sequence: 0,
            meta: TableMeta {
                id: file_id,
                key: keyring.current(),
                min_sequence: Sequence::MAX,
                ..TableMeta::default()
            },
            properties: Properties {
                restart_interval: options.restart_interval.max(1) as u64,
                ..Properties::default()
            },
            expiries: ExpirySample { times: Vec::new(), every: 1 },
            keyring: keyring.clone(),
            options,
        }
    }

    /// Appends an entry: keys ascend, and versions of one key come newest first.
    ///
    /// # Panics
    /// When the entry does not come after the previous one: a table out of order would give wrong results for ever.
    pub fn add(&mut self, key: &[u8], sequence: Sequence, kind: Kind, expires: Option<u64>, value: &[u8]) {
        let order = self.order(key, sequence);
        let entry_bytes = key.len() + value.len() + ENTRY_FIELD_BYTES;
        if self.copied.is_some() || self.block.bytes() + entry_bytes > self.options.block_bytes {
            self.end_block(key);
        }
        self.block.add(key, sequence, kind, expires, value);
        self.count(order, key, sequence, kind, expires, value.len());
    }

    /// Whether `key` is a new key or that of the previous entry.
    #[inline]
    fn order(&self, key: &[u8], sequence: Sequence) -> Ordering {
        let order = if self.meta.entries == 0 { Ordering::Less } else { bytes::compare(&self.last_key, key) };
        let in_order = match order {
            Ordering::Less => true,
            Ordering::Equal => self.last_sequence > sequence,
            Ordering::Greater => false,
        };
        assert!(in_order, "entries of a table must be added in order");
        order
    }

    /// Appends the entry of a block that was opened to be copied, without decompressing it. This saves most of a merge's
    /// time for values that take a block each. Returns `false` and does nothing for a block that was decompressed.
    ///
    /// # Panics
    /// As [`TableBuilder::add`].
    pub(crate) fn try_copy(&mut self, key: &[u8], block: &Rc<Block>) -> bool {
        let Some(Packed { entry, .. }) = block.packed() else { return false };
        let order = self.order(key, entry.sequence);
        self.end_block(key);
        self.copied = Some(Rc::clone(block));
        let value_len = (entry.next - entry.value) as usize;
        self.count(order, key, entry.sequence, entry.kind, entry.expires, value_len);
        true
    }

    /// Adds a range tombstone, in any order. One that covers no key is dropped.
    pub fn add_range_tombstone(&mut self, tombstone: &RangeTombstone) {
        if tombstone.start < tombstone.end {
            self.cover(tombstone.sequence);
            self.range_tombstones.push(tombstone.clone());
        }
    }

    fn count(
        &mut self,
        order: Ordering,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        expires: Option<u64>,
        value_len: usize,
    ) {
        if order == Ordering::Less {
            self.filter.add(hash_key(key));
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        self.last_sequence = sequence;
        if self.meta.entries == 0 {
            self.meta.min_key = key.to_vec();
        }
        self.meta.entries += 1;
        self.cover(sequence);
        let properties = &mut self.properties;
        properties.raw_key_bytes += key.len() as u64;
        properties.raw_value_bytes += value_len as u64;
        properties.tombstones += u64::from(kind == Kind::Delete);
        if let Some(expires) = expires {
            let is_first = properties.expiring == 0;
            self.expiries.add(properties.expiring, expires);
            properties.expiring += 1;
            properties.min_expires = if is_first { expires } else { properties.min_expires.min(expires) };
            properties.max_expires = properties.max_expires.max(expires);
        }
    }

    fn cover(&mut self, sequence: Sequence) {
        self.meta.min_sequence = self.meta.min_sequence.min(sequence);
        self.meta.max_sequence = self.meta.max_sequence.max(sequence);
    }

    /// Ends the open block, if there is one; `next_key` is the first key after it.
    fn end_block(&mut self, next_key: &[u8]) {
        if !self.is_between_blocks() {
            self.finish_block(Some(next_key));
        }
    }

    fn is_between_blocks(&self) -> bool {
        self.block.is_empty() && self.copied.is_none()
    }

    fn finish_block(&mut self, next_key: Option<&[u8]>) {
        let copied = self.copied.take();
        let handle = match copied.as_ref().and_then(|block| block.packed()) {
            Some(packed) => self.writer.packed(BlockKind::Data, &packed.bytes, packed.raw_len),
            None => self.writer.block(BlockKind::Data, self.block.finish(), self.options.compress),
        };
        self.block.clear();
        self.index.add(&self.last_key, self.last_sequence, next_key, handle.len);
    }

    /// Bytes of the table so far: everything written, the open block, and the approximate size of index and filter.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let copied =
            self.copied.as_ref().and_then(|block| block.packed()).map_or(0, |packed| packed.bytes.len());
        let waiting = copied + self.block.bytes() + self.index.bytes() + self.filter.bytes() + FOOTER_BYTES;
        self.writer.offset() + waiting as u64
    }

    /// Entries so far, without range tombstones.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.meta.entries
    }

    /// Drains the finished bytes, in the order of the file.
    pub fn take(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// Ends the table. The last bytes can now be drained; nothing more may be added.
    pub fn finish(&mut self) -> TableMeta {
        if !self.is_between_blocks() {
            self.finish_block(None);
        }
        let tombstones = RangeTombstones::new(core::mem::take(&mut self.range_tombstones));
        self.finish_meta(&tombstones);
        let filter = if self.meta.entries > 0 { self.filter.finish() } else { Vec::new() };
        let footer = Footer {
            filter: self.part(BlockKind::Filter, &filter),
            range_tombstones: self.part(BlockKind::RangeTombstones, &tombstones.encode()),
            index: self.part(BlockKind::Index, &self.index.finish()),
            properties: self.part(BlockKind::Properties, &self.properties.encode()),
            entries: self.meta.entries,
            min_sequence: self.meta.min_sequence,
            max_sequence: self.meta.max_sequence,
            file_id: self.meta.id,
            key: self.meta.key,
        };
        let bytes = footer.encode(self.keyring.store());
        self.writer.plain(&bytes);
        self.meta.footer_hash = footer_hash(&bytes);
        self.meta.size = self.writer.offset();
        self.meta.clone()
    }

    /// Writes a block after the data. If there are no bytes, writes no block.
    fn part(&mut self, kind: BlockKind, raw: &[u8]) -> BlockHandle {
        if raw.is_empty() {
            return BlockHandle { offset: self.writer.offset(), len: 0 };
        }
        self.writer.block(kind, raw, false)
    }

    fn finish_meta(&mut self, tombstones: &RangeTombstones) {
        let (meta, properties) = (&mut self.meta, &mut self.properties);
        properties.data_blocks = self.index.len() as u64;
        properties.range_tombstones = tombstones.as_slice().len() as u64;
        meta.tombstones = properties.tombstones;
        meta.first_expiry = properties.min_expires.max(u64::from(properties.expiring > 0));
        meta.half_expiry = self.expiries.time_of(meta.entries.div_ceil(2).saturating_sub(meta.tombstones));
        meta.range_tombstones = properties.range_tombstones;
        meta.raw_bytes = properties.raw_key_bytes + properties.raw_value_bytes;
        meta.max_key.clone_from(&self.last_key);
        if let Some(first) = tombstones.as_slice().first() {
            let end =
                tombstones.as_slice().iter().map(|tombstone| &tombstone.end).max().unwrap_or(&first.end);
            let is_only = meta.entries == 0;
            if is_only || first.start < meta.min_key {
                meta.min_key.clone_from(&first.start);
            }
            if is_only || *end > meta.max_key {
                meta.max_key.clone_from(end);
            }
        }
        if meta.min_sequence == Sequence::MAX {
            meta.min_sequence = 0;
        }
    }
}

fn footer_hash(footer: &[u8; FOOTER_BYTES]) -> u64 {
    footer.last_chunk::<8>().map_or(0, |hash| u64::from_le_bytes(*hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_tells_when_a_share_of_many_entries_has_expired() {
        let mut sample = ExpirySample { times: Vec::new(), every: 1 };
        for number in 0..100_000 {
            sample.add(number, 1_000_000 - number);
        }
        assert!(sample.times.len() < SAMPLE_MAX && sample.times.capacity() <= SAMPLE_MAX);
        for share in [1, 30_000, 50_000, 99_000] {
            let off = sample.time_of(share).abs_diff(900_000 + share);
            assert!(off <= 1000, "{off} for {share}");
        }
        assert_eq!(sample.time_of(101_000), 0, "more than there are");
    }
    use crate::codec::cipher::CIPHER_BYTES;
    use crate::table::{MemoryBlocks, TRAILER_BYTES, Table, open_block_to_copy};

    /// Blocks that are copied are decrypted and encrypted for their new place.
    fn keyring() -> Keyring {
        Keyring::new([7; 16], vec![(2, [1; 32])], [5; 16]).unwrap()
    }

    /// An LZ4 block that contains only literals. This project's compressor never makes one from such bytes.
    fn literals(raw: &[u8]) -> Vec<u8> {
        let more = raw.len() - 15;
        [&[0xf0][..], &vec![255; more / 255], &[(more % 255) as u8], raw].concat()
    }

    /// A block with these entries, compressed to literals, opened to be copied.
    fn opened(entries: &[(&[u8], Option<u64>, &[u8])]) -> (Rc<Block>, Vec<u8>) {
        let mut block = BlockBuilder::new(16);
        for (key, expires, value) in entries {
            block.add(key, 1, Kind::Set, *expires, value);
        }
        let raw = block.finish();
        let keyring = keyring();
        let mut writer = Writer::new(keyring.clone(), 3);
        let handle = writer.packed(BlockKind::Data, &literals(raw), raw.len());
        let block =
            open_block_to_copy(&keyring, 3, keyring.current(), handle, writer.take(), BlockKind::Data, 2048)
                .unwrap();
        (Rc::new(block), literals(raw))
    }

    fn builder() -> TableBuilder {
        TableBuilder::new(&keyring(), 4, TableOptions { compress: true, ..TableOptions::default() })
    }

    #[test]
    fn a_block_of_one_large_entry_is_passed_on_as_it_is_compressed() {
        for (key_len, expires) in [(3, None), (3, Some(u64::MAX)), (255, None), (256, None), (3000, None)] {
            let (key, value) = (vec![b'k'; key_len], [5; 5000]);
            let (block, packed) = opened(&[(&key, expires, &value)]);
            let (mut copied, mut added) = (builder(), builder());
            for (builder, copies) in [(&mut copied, true), (&mut added, false)] {
                builder.add(b"before", 1, Kind::Set, None, b"small");
                if !(copies && builder.try_copy(&key, &block)) {
                    builder.add(&key, 1, Kind::Set, expires, &value);
                }
                builder.add(b"later", 1, Kind::Set, None, b"small");
            }
            let bytes = copied.bytes();
            let (mut meta, other) = (copied.finish(), added.finish());
            let found = meta.clone();
            assert!(bytes.abs_diff(meta.size) < 512, "{bytes} of {}", meta.size);
            (meta.size, meta.footer_hash) = (other.size, other.footer_hash);
            assert_eq!(meta, other);
            let file = copied.take();
            let mut blocks = MemoryBlocks::new(keyring());
            blocks.insert(4, file.clone());
            let table = Table::open(&keyring(), &found, &blocks).unwrap();
            let found = table.get(&key, 1, &blocks).unwrap().unwrap();
            assert_eq!((found.value(), found.expires), (&value[..], expires));
            // As long as the packed bytes are, not as long as the compressor would make them.
            let large = (0..table.index().len()).map(|at| table.index().handle(at).len as usize).max();
            assert_eq!(large, Some(packed.len() + 8 + CIPHER_BYTES + TRAILER_BYTES));
        }
    }

    #[test]
    fn other_blocks_show_their_entries_and_are_not_copied() {
        let (small, large) = ([1; 100], [1; 3000]);
        let cases: [&[(&[u8], _, &[u8])]; 3] = [
            &[(b"a", None, &small), (b"b", None, &small)],
            &[(b"a", None, &large), (b"b", None, &small)],
            &[(b"a", None, &small)],
        ];
        for entries in cases {
            let (block, _) = opened(entries);
            assert!(!builder().try_copy(entries[0].0, &block));
            let mut shown = 0;
            block.walk(|entry| shown += entry.value.len()).unwrap();
            assert_eq!(shown, entries.iter().map(|(_, _, value)| value.len()).sum::<usize>());
        }
    }

    #[test]
    #[should_panic(expected = "in order")]
    fn a_copied_entry_must_be_in_order_too() {
        let (block, _) = opened(&[(b"key", None, &[1; 3000])]);
        let mut builder = builder();
        builder.add(b"later", 1, Kind::Set, None, b"");
        builder.try_copy(b"key", &block);
    }
}
