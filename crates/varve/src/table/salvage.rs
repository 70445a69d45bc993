//! Finds the readable blocks of a table whose end is damaged.
//!
//! Usually footer and index show where the blocks lie. Without them, the trailers do (see `block/trailer.rs`):
//!
//! ```text
//! ... stored bytes | kind codec 0 0 raw_len hash | stored bytes | kind codec 0 0 raw_len hash | ...
//!                    ^ found by its first 4 bytes  ^ so a block may begin here
//! ```
//!
//! A block begins where the previous one ended, and a trailer shows this even when its block is damaged. So a search from
//! front to back tries every place after a possible trailer with the next few possible trailers. The checksum, which is
//! seeded with the place, shows which pair is a block. The trailers of uncompressed blocks also show where the block
//! begins: those that name the place are tried after the next few. Small numbers in values look like trailers, so there may be many between.
//!
//! Without the key of a table its blocks are found in this way, too ([`intact_blocks`]): their checksums are over ciphertext.
//!
//! Invariant: nothing is returned unless its checksum matches.

use super::block::{CODEC_ENCRYPTED, check_hash};
use super::{
    Block, BlockHandle, BlockKind, FOOTER_BYTES, Footer, Index, RangeTombstones, TRAILER_BYTES, TableMeta,
    open_block,
};
use crate::codec::cipher::{KeyNumber, Keyring};
use crate::error::{Error, Result};
use crate::types::{FileName, RangeTombstone, StoreId};

/// Number of ends that are tried for one beginning. In a stored block, about one place in a million looks like a trailer (four bytes).
const ENDS_MAX: usize = 8;
/// Offset of the magic in a footer.
const MAGIC_OFFSET: usize = 84;

/// The readable parts of a table.
#[derive(Debug, Default)]
pub struct Remains {
    /// The index, if it can be read: then it names every block that existed.
    pub index: Option<Index>,
    /// Data blocks that verify, in the order of the file.
    pub blocks: Vec<BlockHandle>,
    /// Ranges where data blocks do not verify.
    pub gaps: Vec<BlockHandle>,
    /// The range tombstones; `None` when there were some, or may have been some, and they cannot be read.
    pub range_tombstones: Option<Vec<RangeTombstone>>,
}

/// Finds the footers of tables in bytes that contain files one after another, starting from the end. Returns where each table begins, its
/// size and its footer hash, and [`Error::Version`] for a footer of a version that this code does not know.
pub fn find_footers<'a>(
    bytes: &'a [u8],
    store: &'a StoreId,
) -> impl Iterator<Item = Result<(u64, TableMeta)>> + 'a {
    let mut end = bytes.len();
    std::iter::from_fn(move || {
        while let Some(at) = bytes[..end].windows(4).rposition(|window| window == b"VRVS") {
            end = at + 3;
            let Some(footer_at) = at.checked_sub(MAGIC_OFFSET) else { continue };
            let Some(stored) = bytes.get(footer_at..footer_at + FOOTER_BYTES) else { continue };
            let (footer, footer_hash) = match Footer::decode(stored, store, FileName::table(0), 0) {
                Ok(found) => found,
                Err(error @ Error::Version { .. }) => return Some(Err(error)),
                Err(_) => continue,
            };
            let BlockHandle { offset, len } = footer.properties;
            let before = offset.saturating_add(u64::from(len));
            let Some(start) = (footer_at as u64).checked_sub(before) else { continue };
            let meta = TableMeta {
                id: footer.file_id,
                key: footer.key,
                size: before + FOOTER_BYTES as u64,
                footer_hash,
                entries: footer.entries,
                min_sequence: footer.min_sequence,
                max_sequence: footer.max_sequence,
                ..TableMeta::default()
            };
            return Some(Ok((start, meta)));
        }
        None
    })
}

/// The table `id` with which `bytes` begin, as its footer describes it.
///
/// # Errors
/// [`Error::Version`] when a newer format wrote a footer there.
pub(crate) fn find_table(bytes: &[u8], store: &StoreId, id: u64) -> Result<Option<TableMeta>> {
    for found in find_footers(bytes, store) {
        let (start, meta) = found?;
        if (start, meta.id) == (0, id) {
            return Ok(Some(meta));
        }
    }
    Ok(None)
}

/// Finds everything that verifies in the bytes of table `id`. `key`: the number of its key, if the manifest has it; otherwise each block
/// names its key. `expects_ranges`: according to the manifest, it has range tombstones.
///
/// # Errors
/// [`Error::Version`] when a newer format wrote the footer.
pub fn salvage_table(
    bytes: &[u8],
    keyring: &Keyring,
    id: u64,
    key: Option<KeyNumber>,
    expects_ranges: bool,
) -> Result<Remains> {
    let file = FileName::table(id);
    let start = bytes.len().saturating_sub(FOOTER_BYTES);
    let footer = match Footer::decode(&bytes[start..], keyring.store(), file, start as u64) {
        Err(error @ Error::Version { .. }) => return Err(error),
        found => found.ok().map(|(footer, _)| footer).filter(|footer| footer.file_id == id),
    };
    let trailers = trailers(bytes, |number| keyring.has(number));
    let opened = |kind: BlockKind, handle: BlockHandle| {
        let stored = slice(bytes, handle)?;
        let key = key.unwrap_or_else(|| key_of(stored));
        open_block(keyring, id, key, handle, stored.to_vec(), kind).ok()
    };
    let part = |kind: BlockKind, handle: Option<BlockHandle>| -> Option<Block> {
        let at = |handle: BlockHandle| opened(kind, handle);
        // The kind is compared first: a copy and a hash for each place that looks like a trailer would take hours.
        let mut ends = trailers.iter().rev().filter(|&&end| bytes[end - TRAILER_BYTES] == kind as u8);
        handle.and_then(at).or_else(|| ends.find_map(|&end| at(raw_block(bytes, end)?)))
    };
    let handle_of = |pick: fn(&Footer) -> BlockHandle| footer.as_ref().map(pick);
    let index =
        part(BlockKind::Index, handle_of(|footer| footer.index)).and_then(|raw| Index::decode(&raw).ok());
    let ranges = part(BlockKind::RangeTombstones, handle_of(|footer| footer.range_tombstones))
        .and_then(|raw| RangeTombstones::decode(&raw).ok());
    let has_none = footer.as_ref().map_or(!expects_ranges, |footer| footer.range_tombstones.len == 0);
    let mut remains = Remains {
        range_tombstones: ranges.map(|ranges| ranges.as_slice().to_vec()).or(has_none.then(Vec::new)),
        ..Remains::default()
    };
    let is_good = |handle| opened(BlockKind::Data, handle).is_some();
    match index {
        Some(index) => {
            let handles = (0..index.len()).map(|at| index.handle(at));
            (remains.blocks, remains.gaps) = handles.partition(|&handle| is_good(handle));
            remains.index = Some(index);
        }
        None => {
            // The parts lie after the data, whether there is a filter or not.
            let data_end = footer.as_ref().and_then(|footer| usize::try_from(footer.filter.offset).ok());
            let len = data_end.unwrap_or(bytes.len()).min(bytes.len());
            search(&bytes[..len], &trailers, is_good, &mut remains);
        }
    }
    Ok(remains)
}

/// Finds blocks without an index.
fn search(bytes: &[u8], ends: &[usize], is_good: impl Fn(BlockHandle) -> bool, remains: &mut Remains) {
    let (mut start, mut gap) = (0, None);
    let mut next = 0;
    let named_by = |&end: &usize| raw_block(bytes, end).map(|block| (block.offset as usize, end));
    let mut named: Vec<_> = ends.iter().filter_map(named_by).collect();
    named.sort_unstable();
    while start < bytes.len() {
        while ends.get(next).is_some_and(|&end| end <= start) {
            next += 1;
        }
        let near = ends[next..].iter().take(ENDS_MAX);
        let from = named.partition_point(|&(named, _)| named < start);
        let named =
            named[from..].iter().take(ENDS_MAX).filter(|(named, _)| *named == start).map(|(_, end)| end);
        match near.chain(named).map(|&end| handle(start, end)).find(|&handle| is_good(handle)) {
            Some(handle) => {
                if let Some(from) = gap.take() {
                    remains.gaps.push(self::handle(from, start));
                }
                remains.blocks.push(handle);
                start = handle.end() as usize;
            }
            None => {
                gap = gap.or(Some(start));
                match ends.get(next) {
                    Some(&end) => start = end,
                    None => break,
                }
            }
        }
    }
    // The bytes after the last block are the rest of the table, or a lost block.
    if let Some(from) = gap {
        remains.gaps.push(handle(from, bytes.len()));
    }
}

fn handle(start: usize, end: usize) -> BlockHandle {
    BlockHandle { offset: start as u64, len: u32::try_from(end - start).unwrap_or(u32::MAX) }
}

/// The blocks of table `id` in bytes that begin with it, and the gaps between them. Only their hashes are verified, which takes no key.
/// `key`: the number of its key, if it is known: without it, long blocks may not be found, because too much looks like a trailer.
#[must_use]
pub fn intact_blocks(bytes: &[u8], store: &StoreId, id: u64, key: Option<KeyNumber>) -> Remains {
    let mut remains = Remains::default();
    let trailers = trailers(bytes, |number| key.is_none_or(|key| key == number));
    search(bytes, &trailers, |handle| is_intact(bytes, store, id, handle), &mut remains);
    remains
}

/// Whether the bytes of a block of table `id` are those that were written, as far as its hash shows.
#[must_use]
pub fn is_intact(bytes: &[u8], store: &StoreId, id: u64, handle: BlockHandle) -> bool {
    slice(bytes, handle).is_some_and(|stored| check_hash(store, id, handle.offset, stored).is_ok())
}

fn slice(bytes: &[u8], handle: BlockHandle) -> Option<&[u8]> {
    bytes.get(usize::try_from(handle.offset).ok()?..usize::try_from(handle.end()).ok()?)
}

/// The number of the key that a block's trailer names.
#[must_use]
pub fn key_of(stored: &[u8]) -> KeyNumber {
    stored
        .last_chunk::<TRAILER_BYTES>()
        .map_or(0, |trailer| KeyNumber::from_le_bytes([trailer[2], trailer[3]]))
}

/// Where a trailer may end, ascending.
fn trailers(bytes: &[u8], is_possible: impl Fn(KeyNumber) -> bool) -> Vec<usize> {
    let kinds = BlockKind::Data as u8..=BlockKind::Properties as u8;
    let is_trailer = |trailer: &[u8]| {
        let (codec, key) = (trailer[1], key_of(trailer));
        kinds.contains(&trailer[0])
            && codec <= CODEC_ENCRYPTED
            && (codec == CODEC_ENCRYPTED) == (key > 0)
            && is_possible(key)
    };
    let found = bytes.windows(TRAILER_BYTES).enumerate().filter(|(_, trailer)| is_trailer(trailer));
    found.map(|(at, _)| at + TRAILER_BYTES).collect()
}

/// The block before a trailer that ends at `end`, assuming that it is encrypted or not compressed: then its length is in the trailer.
fn raw_block(bytes: &[u8], end: usize) -> Option<BlockHandle> {
    let trailer = bytes.get(end - TRAILER_BYTES..end)?;
    let raw_len = u32::from_le_bytes(*trailer.get(4..)?.first_chunk()?) as usize;
    let start = (end - TRAILER_BYTES).checked_sub(raw_len)?;
    Some(handle(start, end))
}
