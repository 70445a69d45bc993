//! A cursor over bytes that may be anything.
//!
//! Invariant: reading never panics and never goes past the end. A failed read leaves the position unchanged, so a
//! caller can report the byte at which the input became invalid.

use super::varint;

/// The input ended, or a varint in it is not canonical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated;

/// Reads little-endian numbers and slices from the front of some bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether all was read.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_le_bytes)
    }

    /// A LEB128 number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let (value, next) = varint::get_u64(self.bytes, self.at).ok_or(Truncated)?;
        self.at = next;
        Ok(value)
    }

    /// The next `len` bytes, borrowed from the input.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let end = self.at.checked_add(len).ok_or(Truncated)?;
        let slice = self.bytes.get(self.at..end).ok_or(Truncated)?;
        self.at = end;
        Ok(slice)
    }

    /// The next `N` bytes, copied.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let array = *self.bytes[self.at..].first_chunk::<N>().ok_or(Truncated)?;
        self.at += N;
        Ok(array)
    }

    /// A LEB128 length and as many bytes.
    #[inline]
    pub fn prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let start = self.at;
        let len = self.varint()?;
        let slice = usize::try_from(len).map_err(|_| Truncated).and_then(|len| self.bytes(len));
        if slice.is_err() {
            self.at = start;
        }
        slice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_and_stops_at_the_end() {
        let bytes = [1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x85, 0x01, b'a', b'b', 1, b'c'];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.u32(), Ok(3));
        assert_eq!(reader.u64(), Ok(4));
        assert_eq!(reader.varint(), Ok(133));
        assert_eq!(reader.bytes(2), Ok(&b"ab"[..]));
        assert_eq!((reader.position(), reader.remaining()), (19, 2));
        assert_eq!(reader.prefixed(), Ok(&b"c"[..]));
        assert!(reader.is_empty());
        assert_eq!(reader.u8(), Err(Truncated));
        assert_eq!(reader.bytes(0), Ok(&b""[..]));
    }

    #[test]
    fn a_failed_read_does_not_move() {
        let mut reader = Reader::new(&[0x80, 1, 9]);
        assert_eq!(reader.u32(), Err(Truncated));
        assert_eq!(reader.bytes(usize::MAX), Err(Truncated));
        assert_eq!(reader.prefixed(), Err(Truncated));
        assert_eq!(reader.position(), 0);
        assert_eq!(reader.u16(), Ok(0x0180));
    }
}
