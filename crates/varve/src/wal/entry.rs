//! One entry of a record: a key, and the change to it.
//!
//! ```text
//! u8 kind (| 0x80) | [varint expires_ms] | varint key len | varint value len | key | value
//! ```
//!
//! A range tombstone has the first key of its range as key and the first key after it as value. The memtable's tree
//! stores offsets of these bytes, so every comparison has to find the key in them.
//!
//! Invariant: decoding is total: any bytes at any offset give an entry inside the bytes or `None`.

use crate::codec::bytes::append;
use crate::codec::varint;
use crate::types::Kind;

/// An entry as it lies in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it starts, from the beginning of the segment.
    pub offset: u32,
    /// The kind of change to the key.
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The key; for a range tombstone the first key of the range.
    pub key: &'a [u8],
    /// The value; for a range tombstone the first key after the range.
    pub value: &'a [u8],
}

/// Appends an entry.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
pub(crate) fn put_entry(image: &mut Vec<u8>, kind: Kind, expires: Option<u64>, key: &[u8], value: &[u8]) {
    match expires {
        None if key.len() < 0x80 && value.len() < 0x80 => {
            image.extend_from_slice(&[kind as u8, key.len() as u8, value.len() as u8]);
        }
        None if key.len() < 0x80 && value.len() < 0x4000 => {
            let len = value.len();
            image.extend_from_slice(&[kind as u8, key.len() as u8, len as u8 | 0x80, (len >> 7) as u8]);
        }
        _ => put_prelude(image, kind, expires, key.len(), value.len()),
    }
    append(image, key);
    append(image, value);
}

#[inline(never)]
fn put_prelude(image: &mut Vec<u8>, kind: Kind, expires: Option<u64>, key_len: usize, value_len: usize) {
    image.push(kind as u8 | if expires.is_some() { Kind::EXPIRES } else { 0 });
    if let Some(expires) = expires {
        varint::put_u64(image, expires);
    }
    varint::put_u64(image, key_len as u64);
    varint::put_u64(image, value_len as u64);
}

impl<'a> Entry<'a> {
    /// The entry at `offset` of `image`, and the offset after it; `None` when there is no entry.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn decode(image: &'a [u8], offset: usize) -> Option<(Self, usize)> {
        let byte = *image.get(offset)?;
        let kind = Kind::from_byte(byte & !Kind::EXPIRES)?;
        let mut at = offset + 1;
        let mut expires = None;
        if byte & Kind::EXPIRES != 0 {
            let (time, next) = varint::get_u64(image, at)?;
            (expires, at) = (Some(time), next);
        }
        let (key_len, at) = varint::get_u64(image, at)?;
        let (value_len, at) = varint::get_u64(image, at)?;
        let key_end = at.checked_add(usize::try_from(key_len).ok()?)?;
        let end = key_end.checked_add(usize::try_from(value_len).ok()?)?;
        let key = image.get(at..key_end)?;
        let value = image.get(key_end..end)?;
        Some((Self { offset: u32::try_from(offset).ok()?, kind, expires, key, value }, end))
    }
}

/// The key of the entry at `offset`: the same as from [`Entry::decode`], or an empty key if that returns `None`.
///
/// Reads lengths only as far as needed: for a key under 128 bytes without an expiry, only the end of the value's length.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
pub(crate) fn key_at(image: &[u8], offset: u32) -> &[u8] {
    let rest = image.get(offset as usize..).unwrap_or_default();
    if let [kind, key_len, a, b, c, ..] = *rest
        && (kind | key_len) < 0x80
    {
        let start = match (a < 0x80, b < 0x80, c < 0x80) {
            (true, _, _) => 3,
            (_, true, _) => 4,
            (_, _, true) => 5,
            _ => return long_key_at(image, offset),
        };
        return rest.get(start..start + usize::from(key_len)).unwrap_or_default();
    }
    long_key_at(image, offset)
}

#[inline(never)]
fn long_key_at(image: &[u8], offset: u32) -> &[u8] {
    Entry::decode(image, offset as usize).map_or(&[], |(entry, _)| entry.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_length_class_come_back() {
        for expires in [None, Some(0), Some(1_700_000_000_000), Some(u64::MAX)] {
            for key_len in [0, 1, 127, 128, 65_537] {
                for value_len in [0, 1, 127, 128, 16_383, 16_384, 2_097_152] {
                    let (key, value) = (vec![0xab; key_len], vec![0xcd; value_len]);
                    let mut image = vec![0xee; 3];
                    put_entry(&mut image, Kind::Set, expires, &key, &value);
                    let end = image.len();
                    image.push(0xee);
                    let (entry, next) = Entry::decode(&image, 3).unwrap();
                    assert_eq!((entry.offset, entry.kind, entry.expires), (3, Kind::Set, expires));
                    assert!(entry.key == key && entry.value == value && next == end);
                    assert!(key_at(&image, 3) == key, "{key_len} {value_len}");
                }
            }
        }
    }

    #[test]
    fn key_at_agrees_with_decode_on_any_bytes() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let mut bytes = [0; 24];
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte = (state >> (index % 7 * 8)) as u8 >> (index % 4 * 2);
            }
            for len in [0, 1, 4, 5, 24] {
                if let Some((entry, _)) = Entry::decode(&bytes[..len], 0) {
                    assert_eq!(key_at(&bytes[..len], 0), entry.key);
                } else {
                    let _ = key_at(&bytes[..len], 0);
                }
            }
        }
    }
}
