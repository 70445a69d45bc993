//! The blocked Bloom filter: it shows that a key is not in this table without reading the table.
//!
//! ```text
//! u8 kind (0 blocked Bloom; others reserved) | u8 probes | u16 0 | u32 lines | line (64 B) [lines]
//! ```
//!
//! All probes of a key fall into one line of 512 bits, one cache line, chosen by the upper half of the key's
//! hash; the lower half, multiplied again for each probe, gives the bits (the scheme of RocksDB's
//! FastLocalBloom). 10 bits a key give about 1% false positives, 14 about 0.2%.
//!
//! Invariant: a key that was added is always found.

use super::Malformed;
use crate::codec::hash::xxh3;
use crate::codec::reader::{Reader, Truncated};

const KIND_BLOCKED_BLOOM: u8 = 0;
const LINE_BYTES: usize = 64;
const LINE_BITS: usize = 512;
const PROBES_MAX: u8 = 24;

/// The hash of a key that all filters share, so that one get computes it once.
#[inline]
#[must_use]
pub fn hash_key(key: &[u8]) -> u64 {
    xxh3(key, 0)
}

/// Aligned, so that a probe touches one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

/// A decoded filter.
#[derive(Debug, Clone)]
pub struct Filter {
    lines: Vec<Line>,
    probes: u8,
}

impl Filter {
    /// Reads the bytes of a filter block.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let header = (|| Ok((reader.u8()?, reader.u8()?, reader.u16()?, reader.u32()?)))();
        let (kind, probes, zero, count) = header.map_err(|Truncated| Malformed("filter cut short"))?;
        if kind != KIND_BLOCKED_BLOOM || zero != 0 || probes > PROBES_MAX {
            return Err(Malformed("filter kind"));
        }
        let (lines, rest) = bytes[reader.position()..].as_chunks::<LINE_BYTES>();
        if !rest.is_empty() || lines.len() as u64 != u64::from(count) {
            return Err(Malformed("filter length"));
        }
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let lines = lines.iter().map(|line| {
            let (words, _) = line.as_chunks::<8>();
            Line(core::array::from_fn(|index| word(&words[index])))
        });
        Ok(Self { lines: lines.collect(), probes })
    }

    /// False when no key with this [`hash_key`] was added.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn may_contain(&self, hash: u64) -> bool {
        let Some(line) = self.lines.get(line_of(hash, self.lines.len())) else {
            return false;
        };
        bits_of(hash, self.probes).all(|bit| line.0[bit >> 6] >> (bit & 63) & 1 == 1)
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * LINE_BYTES
    }
}

/// Collects the hashes of keys.
#[derive(Debug)]
pub struct FilterBuilder {
    bits_per_key: u32,
    hashes: Vec<u64>,
}

impl FilterBuilder {
    /// An empty filter that will use `bits_per_key`.
    #[must_use]
    pub fn new(bits_per_key: u32) -> Self {
        Self { bits_per_key: bits_per_key.clamp(1, 64), hashes: Vec::new() }
    }

    /// Adds a key by its [`hash_key`].
    #[inline]
    pub fn add(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// Number of bytes that [`FilterBuilder::finish`] would return now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 + self.lines() * LINE_BYTES
    }

    fn lines(&self) -> usize {
        let bits = self.hashes.len() as u64 * u64::from(self.bits_per_key);
        bits.div_ceil(LINE_BITS as u64).min(u64::from(u32::MAX)) as usize
    }

    /// The bytes of the filter block, without trailer.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        let (count, probes) = (self.lines(), probes_for(self.bits_per_key));
        let mut lines = vec![Line([0; 8]); count];
        for &hash in &self.hashes {
            let line = &mut lines[line_of(hash, count)];
            for bit in bits_of(hash, probes) {
                line.0[bit >> 6] |= 1 << (bit & 63);
            }
        }
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend_from_slice(&[KIND_BLOCKED_BLOOM, probes, 0, 0]);
        bytes.extend_from_slice(&(count as u32).to_le_bytes());
        for word in lines.iter().flat_map(|line| line.0) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// The number of probes with the fewest false positives in lines of 512 bits (measured by RocksDB).
fn probes_for(bits_per_key: u32) -> u8 {
    match bits_per_key {
        0..=2 => 1,
        3 => 2,
        4..=5 => 3,
        6 => 4,
        7..=8 => 5,
        9..=10 => 6,
        11 => 7,
        12..=14 => 8,
        15..=16 => 9,
        17..=19 => 10,
        20..=25 => 12,
        _ => 16,
    }
}

#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

#[inline]
fn bits_of(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    let mut state = hash as u32;
    (0..probes).map(move |_| {
        let bit = (state >> 23) as usize;
        state = state.wrapping_mul(0x9e37_79b9);
        bit
    })
}
