//! One entry of a data block, decoded in place.
//!
//! ```text
//! head  varint klen   | varint vlen | u8 kind | varint sequence | [varint expires] | key | value
//! tail  varint shared | varint suffix len | varint vlen | u8 kind | varint zigzag(sequence - head's)
//!       | [varint expires] | suffix | value
//! ```
//!
//! Invariant: a decoded entry lies within its limit, and its sequence is a possible one.

use crate::codec::varint::{get_u64, unzigzag};
use crate::types::{Kind, SEQUENCE_MAX, Sequence};

/// Invalid bytes, with a short description. A caller that knows the file turns it into an
/// [`Error::Corrupt`](crate::error::Error::Corrupt).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Where the parts of an entry lie in the block.
#[derive(Debug, Clone, Copy)]
pub(in crate::table) struct Entry {
    /// Number of bytes at the start of its key that are those of the head's key; 0 for a head.
    pub shared: u32,
    /// Where the rest of the key begins.
    pub suffix: u32,
    /// Where the rest of the key ends and the value begins.
    pub value: u32,
    /// Where the value ends and the next entry begins.
    pub next: u32,
    pub kind: Kind,
    pub sequence: Sequence,
    pub expires: Option<u64>,
}

impl Entry {
    /// Decodes the head of a run at `at`, which must end at or before `limit`.
    pub fn decode_head(bytes: &[u8], at: u32, limit: u32) -> Result<Self, Malformed> {
        Fields::new(bytes, at, limit)?.head()
    }

    /// Decodes the head of the first run from the front of a block that has `limit` bytes; key and value may lie after the front.
    pub fn decode_front(front: &[u8], limit: u32) -> Result<Self, Malformed> {
        Fields { bytes: front, at: 0, limit: limit as usize }.head()
    }

    /// Decodes an entry after the head of a run. `head_sequence` is the sequence of the head.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn decode_tail(
        bytes: &[u8],
        at: u32,
        limit: u32,
        head_sequence: Sequence,
    ) -> Result<Self, Malformed> {
        // Nearly always there is no expiry and the fields are short. Then they lie in 8 bytes, which are decoded
        // without a loop. Values of 128 bytes and more have a length of two bytes.
        let Some(word) = bytes.get(at as usize..).and_then(|rest| rest.first_chunk::<8>()) else {
            return Self::decode_tail_slow(bytes, at, limit, head_sequence);
        };
        let word = u64::from_le_bytes(*word);
        let (value_len, kind_bit) = if word & 0x80_0000 == 0 {
            (word as u32 >> 16 & 0x7f, 24)
        } else {
            (word as u32 >> 16 & 0x7f | (word as u32 >> 17 & 0x3f80), 32)
        };
        let (kind, varint) = (word >> kind_bit & 0xff, (word >> (kind_bit + 8)) as u32);
        let last_bytes = !varint & 0x8080_8080 >> (kind_bit - 24);
        let length_rest = if kind_bit == 32 { word & 0x8000_0000 } else { 0 };
        if (word & 0x8080) | length_rest != 0 || kind > 1 || last_bytes == 0 {
            return Self::decode_tail_slow(bytes, at, limit, head_sequence);
        }
        let kind = if kind == 0 { Kind::Delete } else { Kind::Set };
        let varint_bits = last_bytes.trailing_zeros() + 1;
        let varint = varint & (u32::MAX >> (32 - varint_bits));
        let zigzag =
            varint & 0x7f | (varint & 0x7f00) >> 1 | (varint & 0x7f_0000) >> 2 | (varint & 0x7f00_0000) >> 3;
        let suffix = at + (kind_bit + 8 + varint_bits) / 8;
        let value = suffix + (word as u32 >> 8 & 0x7f);
        let next = value + value_len;
        let sequence = head_sequence.wrapping_add_signed(unzigzag(u64::from(zigzag)));
        if next > limit || sequence > SEQUENCE_MAX {
            return Err(Malformed("entry"));
        }
        Ok(Self { shared: word as u32 & 0x7f, suffix, value, next, kind, sequence, expires: None })
    }

    #[inline(never)]
    fn decode_tail_slow(
        bytes: &[u8],
        at: u32,
        limit: u32,
        head_sequence: Sequence,
    ) -> Result<Self, Malformed> {
        let mut fields = Fields::new(bytes, at, limit)?;
        let (shared, suffix_len, value_len) = (fields.varint()?, fields.varint()?, fields.varint()?);
        let (kind, has_expiry) = fields.kind()?;
        let sequence = head_sequence.wrapping_add_signed(unzigzag(fields.varint()?));
        let expires = if has_expiry { Some(fields.varint()?) } else { None };
        fields.entry((shared, suffix_len, value_len), kind, sequence, expires)
    }

    /// The rest of the key, in the bytes of its block.
    #[inline]
    pub fn suffix<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.suffix as usize..self.value as usize]
    }

    /// The value, in the bytes of its block.
    #[inline]
    pub fn value<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.value as usize..self.next as usize]
    }
}

/// Reads the fields of an entry and never reads past its limit.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the entry must end.
    limit: usize,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], at: u32, limit: u32) -> Result<Self, Malformed> {
        let bytes = bytes.get(..limit as usize).ok_or(Malformed("entry"))?;
        Ok(Self { bytes, at: at as usize, limit: bytes.len() })
    }

    fn head(mut self) -> Result<Entry, Malformed> {
        let (key_len, value_len) = (self.varint()?, self.varint()?);
        let (kind, has_expiry) = self.kind()?;
        let sequence = self.varint()?;
        let expires = if has_expiry { Some(self.varint()?) } else { None };
        self.entry((0, key_len, value_len), kind, sequence, expires)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        let (value, next) = get_u64(self.bytes, self.at).ok_or(Malformed("entry"))?;
        self.at = next;
        Ok(value)
    }

    /// The kind byte: what the entry is, and whether an expiry follows.
    #[inline]
    fn kind(&mut self) -> Result<(Kind, bool), Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed("entry"))?;
        self.at += 1;
        match Kind::from_byte(byte & !Kind::EXPIRES) {
            Some(kind @ (Kind::Delete | Kind::Set)) => Ok((kind, byte & Kind::EXPIRES != 0)),
            Some(Kind::RangeDelete) | None => Err(Malformed("entry kind")),
        }
    }

    /// Ends the fields: key and value follow. `lens` are shared, suffix and value bytes.
    #[inline]
    fn entry(
        self,
        lens: (u64, u64, u64),
        kind: Kind,
        sequence: Sequence,
        expires: Option<u64>,
    ) -> Result<Entry, Malformed> {
        let (shared, suffix_len, value_len) = lens;
        let value = (self.at as u64).checked_add(suffix_len).ok_or(Malformed("entry"))?;
        let next = value.checked_add(value_len).ok_or(Malformed("entry"))?;
        if next > self.limit as u64 || sequence > SEQUENCE_MAX || shared > u64::from(u32::MAX) {
            return Err(Malformed("entry"));
        }
        Ok(Entry {
            shared: shared as u32,
            suffix: self.at as u32,
            value: value as u32,
            next: next as u32,
            kind,
            sequence,
            expires,
        })
    }
}
