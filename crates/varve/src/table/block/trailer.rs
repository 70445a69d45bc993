//! The 16 bytes after every block on disk.
//!
//! ```text
//! plain       stored bytes | u8 kind | u8 codec | u16 0 | u32 raw len | u64 xxh3(all before, seed)
//! codec: 0 raw, 1 LZ4 block                     seed = xxh3(store id ++ file id ++ offset)
//!
//! encrypted   stored bytes | u8 kind | u8 codec | u16 0 | u32 raw len, as one ciphertext | nonce 24 B | tag 16 B
//!             | u8 kind | u8 2 | u16 key number | u32 bytes before this trailer | u64 xxh3(all before, seed)
//! ```
//!
//! Invariant: the hash is checked once, when the block is opened, before anything else is trusted. The seed ties the
//! bytes to their store, file and place, so a block that was written to or read from another place fails too. The hash is over
//! ciphertext: without a key, damage is still found (`check/without_key.rs`). A table under a key contains no plain block.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::front::Front;
use super::{Block, Malformed};
use crate::codec::cipher::{CIPHER_BYTES, KeyNumber, Keyring, Place};
use crate::codec::hash::xxh3;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::table::{BlockHandle, BlockKind};
use crate::types::{FileName, StoreId};

/// Bytes of a block's trailer.
pub const TRAILER_BYTES: usize = 16;

/// The codec of a block whose real codec is encrypted with it.
pub(in crate::table) const CODEC_ENCRYPTED: u8 = 2;

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

fn place(file_id: u64, offset: u64, kind: BlockKind) -> Place {
    Place { file: FileName::table(file_id), offset, part: kind as u8 }
}

/// Verifies, decrypts and decompresses a block from its stored bytes: `stored` is the `handle.len` bytes at `handle.offset` of
/// table `file_id`, whose key has the number `key`.
pub fn open_block(
    keyring: &Keyring,
    file_id: u64,
    key: KeyNumber,
    handle: BlockHandle,
    stored: Vec<u8>,
    kind: BlockKind,
) -> Result<Block> {
    open_block_to_copy(keyring, file_id, key, handle, stored, kind, usize::MAX)
}

/// As [`open_block`], for a merge into compressed tables. A compressed block of a single entry stays as it is if it has at
/// least `raw_bytes_min` bytes: its hash is verified. Its value is not checked and must not be read.
#[doc(hidden)]
pub fn open_block_to_copy(
    keyring: &Keyring,
    file_id: u64,
    key: KeyNumber,
    handle: BlockHandle,
    mut stored: Vec<u8>,
    kind: BlockKind,
    raw_bytes_min: usize,
) -> Result<Block> {
    let corrupt = corrupt(file_id, handle);
    if stored.len() != handle.len as usize {
        return Err(corrupt(Malformed("block cut short")));
    }
    let revealed = reveal(keyring, file_id, key, handle.offset, &mut stored, kind).map_err(corrupt)?;
    let Revealed { codec, raw_len, len } = revealed;
    if kind == BlockKind::Data
        && codec == CODEC_LZ4
        && raw_len >= raw_bytes_min
        && let Some(front) = Front::of(&stored[..len], raw_len)
    {
        stored.truncate(len);
        return Ok(front.with(stored));
    }
    room::claim(raw_len)?;
    let raw = if codec == CODEC_RAW {
        stored.truncate(raw_len);
        stored
    } else {
        decompress(&stored[..len], raw_len).map_err(corrupt)?
    };
    Block::parse(kind, raw).map_err(corrupt)
}

fn corrupt(file_id: u64, handle: BlockHandle) -> impl Fn(Malformed) -> Error + Copy {
    move |Malformed(what)| Error::corrupt(FileName::table(file_id), handle.offset, what)
}

/// Verifies a block that is never compressed, decrypts it in place and returns its raw bytes.
pub(in crate::table) fn verify<'a>(
    keyring: &Keyring,
    file_id: u64,
    key: KeyNumber,
    offset: u64,
    stored: &'a mut [u8],
    kind: BlockKind,
) -> Result<&'a [u8], Malformed> {
    let Revealed { codec, raw_len, .. } = reveal(keyring, file_id, key, offset, stored, kind)?;
    if codec == CODEC_RAW { Ok(&stored[..raw_len]) } else { Err(Malformed("block codec")) }
}

/// Verifies the hash of a block and returns the bytes before it.
pub(in crate::table) fn check_hash<'a>(
    store: &StoreId,
    file_id: u64,
    offset: u64,
    stored: &'a [u8],
) -> Result<&'a [u8], Malformed> {
    let (hashed, hash) = stored.split_last_chunk::<HASH_BYTES>().ok_or(Malformed("block cut short"))?;
    let is_right = xxh3(hashed, block_seed(store, file_id, offset)) == u64::from_le_bytes(*hash);
    if is_right { Ok(hashed) } else { Err(Malformed("block checksum")) }
}

/// The statements of a trailer about the bytes before it.
struct Trailer {
    codec: u8,
    key: KeyNumber,
    /// Raw bytes; of a block that is encrypted its stored bytes.
    len: usize,
}

impl Trailer {
    /// Splits a trailer without its hash from the bytes before it.
    fn split(hashed: &[u8], kind: BlockKind) -> Result<(&[u8], Self), Malformed> {
        let (before, trailer) = hashed.split_last_chunk::<8>().ok_or(Malformed("block cut short"))?;
        let [kind_byte, codec, key_low, key_high, len @ ..] = *trailer;
        if kind_byte != kind as u8 {
            return Err(Malformed("block kind"));
        }
        let key = KeyNumber::from_le_bytes([key_low, key_high]);
        Ok((before, Self { codec, key, len: u32::from_le_bytes(len) as usize }))
    }
}

/// A block that was verified and decrypted in place.
struct Revealed {
    codec: u8,
    raw_len: usize,
    /// Bytes from the start that are the block's, raw or compressed.
    len: usize,
}

/// Checks hash and trailer, and decrypts a block in place.
fn reveal(
    keyring: &Keyring,
    file_id: u64,
    key: KeyNumber,
    offset: u64,
    stored: &mut [u8],
    kind: BlockKind,
) -> Result<Revealed, Malformed> {
    let hashed = check_hash(keyring.store(), file_id, offset, stored)?;
    let (mut bytes, mut trailer) = Trailer::split(hashed, kind)?;
    if trailer.key != key {
        return Err(Malformed("a block under another key than its table"));
    }
    if key != 0 {
        let len = bytes.len();
        if trailer.codec != CODEC_ENCRYPTED || trailer.len != len {
            return Err(Malformed("block trailer"));
        }
        let decrypted = keyring.decrypt(key, place(file_id, offset, kind), &mut stored[..len]);
        let len = decrypted.map_err(|_| Malformed("a block does not decrypt"))?;
        (bytes, trailer) = Trailer::split(&stored[..len], kind)?;
    }
    let (len, raw_len) = (bytes.len(), trailer.len);
    let possible = match trailer.codec {
        _ if trailer.key != 0 && key != 0 => return Err(Malformed("block trailer")),
        CODEC_RAW => raw_len == len,
        CODEC_LZ4 => raw_len <= LZ4_RAW_BYTES_MAX && raw_len / LZ4_RATIO_MAX <= len,
        _ => return Err(Malformed("block codec")),
    };
    if possible {
        Ok(Revealed { codec: trailer.codec, raw_len, len })
    } else {
        Err(Malformed("block length"))
    }
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
    keyring: Keyring,
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
    pub fn new(keyring: Keyring, file_id: u64) -> Self {
        Self {
            keyring,
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
        let (start, key) = (self.out.len(), self.keyring.current());
        self.out.extend_from_slice(stored);
        self.trailer(kind, codec, 0, raw_len);
        if key != 0 {
            self.out.resize(self.out.len() + CIPHER_BYTES, 0);
            self.keyring.encrypt(key, place(self.file_id, self.offset, kind), &mut self.out[start..]);
            self.trailer(kind, CODEC_ENCRYPTED, key, self.out.len() - start);
        }
        let seed = block_seed(self.keyring.store(), self.file_id, self.offset);
        let hash = xxh3(&self.out[start..], seed);
        self.out.extend_from_slice(&hash.to_le_bytes());
        let handle = BlockHandle { offset: self.offset, len: (self.out.len() - start) as u32 };
        self.offset = handle.end();
        handle
    }

    /// Appends a trailer without its hash.
    fn trailer(&mut self, kind: BlockKind, codec: u8, key: KeyNumber, len: usize) {
        self.out.extend_from_slice(&[kind as u8, codec]);
        self.out.extend_from_slice(&key.to_le_bytes());
        self.out.extend_from_slice(&(len as u32).to_le_bytes());
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
