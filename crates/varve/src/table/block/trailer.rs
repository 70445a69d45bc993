//! The 16 bytes after every block on disk.
//!
//! ```text
//! stored bytes | u8 kind | u8 codec | u16 0 | u32 raw len | u64 xxh3(stored ++ the 8 bytes before, seed)
//! codec: 0 raw, 1 LZ4 block                     seed = xxh3(store id ++ file id ++ offset)
//! ```
//!
//! Invariant: the hash is checked once, when the block is opened, before anything else is trusted. The seed ties the
//! bytes to their store, file and place, so a block that was written to or read from another place fails too.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::front::Front;
use super::{Block, Malformed};
use crate::codec::hash::xxh3;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::table::{BlockHandle, BlockKind};
use crate::types::{FileName, StoreId};

/// Bytes of a block's trailer.
pub const TRAILER_BYTES: usize = 16;

const HASH_BYTES: usize = 8;
const CODEC_RAW: u8 = 0;
const CODEC_LZ4: u8 = 1;
/// Longest block that is compressed; a block that decompresses to more is not opened.
const LZ4_RAW_BYTES_MAX: usize = 64 << 20;
/// No LZ4 block grows by a larger factor.
const LZ4_RATIO_MAX: usize = 255;
/// See [`Writer::block`].
const TRIES: u32 = 8;

fn block_seed(store: &StoreId, file_id: u64, offset: u64) -> u64 {
    let mut place = [0; 32];
    place[..16].copy_from_slice(store);
    place[16..24].copy_from_slice(&file_id.to_le_bytes());
    place[24..].copy_from_slice(&offset.to_le_bytes());
    xxh3(&place, 0)
}

/// Verifies and decompresses a block from its stored bytes: `stored` is the `handle.len` bytes at `handle.offset` of
/// table `file_id`.
pub fn open_block(
    store: &StoreId,
    file_id: u64,
    handle: BlockHandle,
    stored: Vec<u8>,
    kind: BlockKind,
) -> Result<Block> {
    let corrupt = corrupt(file_id, handle);
    let (codec, raw_len) = check_stored(store, file_id, handle, &stored, kind).map_err(corrupt)?;
    room::claim(raw_len)?;
    unpack(codec, raw_len, stored, kind).map_err(corrupt)
}

/// As [`open_block`], for a merge into compressed tables. A compressed block of a single entry stays as it is if it has at
/// least `raw_bytes_min` bytes: its hash is verified. Its value is not checked and must not be read.
#[doc(hidden)]
pub fn open_block_to_copy(
    store: &StoreId,
    file_id: u64,
    handle: BlockHandle,
    mut stored: Vec<u8>,
    kind: BlockKind,
    raw_bytes_min: usize,
) -> Result<Block> {
    let corrupt = corrupt(file_id, handle);
    let (codec, raw_len) = check_stored(store, file_id, handle, &stored, kind).map_err(corrupt)?;
    if kind == BlockKind::Data && codec == CODEC_LZ4 && raw_len >= raw_bytes_min {
        let packed = &stored[..stored.len() - TRAILER_BYTES];
        if let Some(front) = Front::of(packed, raw_len) {
            stored.truncate(stored.len() - TRAILER_BYTES);
            return Ok(front.with(stored));
        }
    }
    room::claim(raw_len)?;
    unpack(codec, raw_len, stored, kind).map_err(corrupt)
}

fn corrupt(file_id: u64, handle: BlockHandle) -> impl Fn(Malformed) -> Error + Copy {
    move |Malformed(what)| Error::corrupt(FileName::table(file_id), handle.offset, what)
}

fn check_stored(
    store: &StoreId,
    file_id: u64,
    handle: BlockHandle,
    stored: &[u8],
    kind: BlockKind,
) -> Result<(u8, usize), Malformed> {
    if stored.len() != handle.len as usize {
        return Err(Malformed("block cut short"));
    }
    check(block_seed(store, file_id, handle.offset), stored, kind)
}

/// Makes a block from stored bytes that were checked.
fn unpack(codec: u8, raw_len: usize, mut stored: Vec<u8>, kind: BlockKind) -> Result<Block, Malformed> {
    let raw = if codec == CODEC_RAW {
        stored.truncate(raw_len);
        stored
    } else {
        decompress(&stored[..stored.len() - TRAILER_BYTES], raw_len)?
    };
    Block::parse(kind, raw)
}

/// Verifies a block that is never compressed and returns its raw bytes, in place.
pub(in crate::table) fn verify<'a>(
    store: &StoreId,
    file_id: u64,
    offset: u64,
    stored: &'a [u8],
    kind: BlockKind,
) -> Result<&'a [u8], Malformed> {
    let (codec, raw_len) = check(block_seed(store, file_id, offset), stored, kind)?;
    if codec == CODEC_RAW { Ok(&stored[..raw_len]) } else { Err(Malformed("block codec")) }
}

/// Checks hash and trailer. Returns the codec and the number of raw bytes.
fn check(seed: u64, stored: &[u8], kind: BlockKind) -> Result<(u8, usize), Malformed> {
    let (hashed, hash) = stored.split_last_chunk::<HASH_BYTES>().ok_or(Malformed("block cut short"))?;
    if xxh3(hashed, seed) != u64::from_le_bytes(*hash) {
        return Err(Malformed("block checksum"));
    }
    let (payload, trailer) = hashed.split_last_chunk::<8>().ok_or(Malformed("block cut short"))?;
    let [kind_byte, codec, 0, 0, raw_len @ ..] = *trailer else {
        return Err(Malformed("block trailer"));
    };
    if kind_byte != kind as u8 {
        return Err(Malformed("block kind"));
    }
    let raw_len = u32::from_le_bytes(raw_len) as usize;
    let possible = match codec {
        CODEC_RAW => raw_len == payload.len(),
        CODEC_LZ4 => raw_len <= LZ4_RAW_BYTES_MAX && raw_len / LZ4_RATIO_MAX <= payload.len(),
        _ => return Err(Malformed("block codec")),
    };
    if possible { Ok((codec, raw_len)) } else { Err(Malformed("block length")) }
}

fn decompress(payload: &[u8], raw_len: usize) -> Result<Vec<u8>, Malformed> {
    let mut raw = vec![0; raw_len];
    match decompress_into(payload, &mut raw) {
        Ok(len) if len == raw_len => Ok(raw),
        Ok(_) | Err(_) => Err(Malformed("compressed block")),
    }
}

/// Writes blocks with their trailers, one after the other, from offset 0 of a file.
pub(in crate::table) struct Writer {
    store: StoreId,
    file_id: u64,
    /// Bytes written and not drained yet.
    out: Vec<u8>,
    /// Bytes written in all: where the next block begins.
    offset: u64,
    lz4: CompressTable,
    compressed: Vec<u8>,
    /// Number of blocks in a row that were stored uncompressed.
    incompressible: u32,
}

impl Writer {
    pub fn new(store: StoreId, file_id: u64) -> Self {
        Self {
            store,
            file_id,
            out: Vec::new(),
            offset: 0,
            lz4: CompressTable::small(),
            compressed: Vec::new(),
            incompressible: 0,
        }
    }

    /// Where the next block begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes since the last take.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Appends one block, compressed if requested and if that saves at least 12%. After eight blocks without that saving,
    /// only every eighth is tried: on random data the attempts took a quarter of a merge's time.
    pub fn block(&mut self, kind: BlockKind, raw: &[u8], compress: bool) -> BlockHandle {
        let is_tried = compress && (self.incompressible < TRIES || self.incompressible.is_multiple_of(TRIES));
        let compressed_len = if is_tried { self.compress(raw) } else { None };
        self.incompressible = if compressed_len.is_some() { 0 } else { self.incompressible.wrapping_add(1) };
        let Some(len) = compressed_len else {
            return self.put(kind, CODEC_RAW, raw, raw.len());
        };
        let compressed = core::mem::take(&mut self.compressed);
        let handle = self.put(kind, CODEC_LZ4, &compressed[..len], raw.len());
        self.compressed = compressed;
        handle
    }

    /// Appends a block that is already compressed: `packed` are its bytes, `raw_len` is the decompressed length.
    pub fn packed(&mut self, kind: BlockKind, packed: &[u8], raw_len: usize) -> BlockHandle {
        self.incompressible = 0;
        self.put(kind, CODEC_LZ4, packed, raw_len)
    }

    fn put(&mut self, kind: BlockKind, codec: u8, stored: &[u8], raw_len: usize) -> BlockHandle {
        let start = self.out.len();
        self.out.extend_from_slice(stored);
        self.out.extend_from_slice(&[kind as u8, codec, 0, 0]);
        self.out.extend_from_slice(&(raw_len as u32).to_le_bytes());
        let seed = block_seed(&self.store, self.file_id, self.offset);
        let hash = xxh3(&self.out[start..], seed);
        self.out.extend_from_slice(&hash.to_le_bytes());
        let handle = BlockHandle { offset: self.offset, len: (self.out.len() - start) as u32 };
        self.offset = handle.end();
        handle
    }

    /// Appends bytes that carry their own hash: the footer.
    pub fn plain(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
    }

    /// Compresses into `self.compressed`. Returns the length, if compression saves enough.
    fn compress(&mut self, raw: &[u8]) -> Option<usize> {
        if raw.len() > LZ4_RAW_BYTES_MAX {
            return None;
        }
        let room = get_maximum_output_size(raw.len());
        if self.compressed.len() < room {
            self.compressed.resize(room, 0);
        }
        let len = compress_into_with_table(raw, &mut self.compressed, &mut self.lz4).ok()?;
        (len <= raw.len() / 100 * 88).then_some(len)
    }
}
