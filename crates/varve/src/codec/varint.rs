//! LEB128 numbers: seven bits a byte, lowest first, bit 7 set on all bytes but the last.
//!
//! ```text
//! 0..=127        0xxxxxxx
//! 128..=16383    1xxxxxxx 0xxxxxxx
//! up to 10 bytes for a u64
//! ```
//!
//! Invariant: a number has exactly one encoding here. [`get_u64`] refuses padding (a last byte of zero) and
//! bits above the 64th, so bytes that decode are the bytes that would be encoded again.

/// Longest encoding of a `u64` in bytes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value`.
#[inline]
pub fn put_u64(into: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

/// Reads the number at `at`. Returns it with the offset after it; `None` when it is cut off or not canonical.
#[inline]
#[must_use]
pub fn get_u64(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    get_long(bytes, at, first)
}

fn get_long(bytes: &[u8], at: usize, first: u8) -> Option<(u64, usize)> {
    let mut value = u64::from(first & 0x7f);
    for index in 1..VARINT_BYTES_MAX {
        let byte = *bytes.get(at + index)?;
        if index == VARINT_BYTES_MAX - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return (byte != 0).then_some((value, at + index + 1));
        }
    }
    None
}

/// Folds the sign into bit 0, so that small negative numbers stay short: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
#[must_use]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
#[must_use]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges() -> Vec<u64> {
        let mut all = vec![0, 1, u64::MAX];
        for shift in 0..64 {
            all.extend([(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1]);
        }
        all
    }

    #[test]
    fn every_power_of_two_and_its_neighbours_come_back() {
        for value in edges() {
            let mut bytes = vec![0xaa];
            put_u64(&mut bytes, value);
            let bits = 64 - (value | 1).leading_zeros() as usize;
            assert_eq!(bytes.len() - 1, bits.div_ceil(7), "{value}");
            assert_eq!(get_u64(&bytes, 1), Some((value, bytes.len())), "{value}");
            for cut in 1..bytes.len() {
                assert_eq!(get_u64(&bytes[..cut], 1), None, "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn golden_bytes() {
        let mut bytes = Vec::new();
        for value in [0, 127, 128, 300, u64::MAX] {
            put_u64(&mut bytes, value);
        }
        let expected =
            [0, 0x7f, 0x80, 0x01, 0xac, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn padded_and_oversized_numbers_are_refused() {
        assert_eq!(get_u64(&[0x80, 0x00], 0), None);
        assert_eq!(get_u64(&[0xff; 11], 0), None);
        let mut over = [0xff; 10];
        over[9] = 0x02;
        assert_eq!(get_u64(&over, 0), None);
        assert_eq!(get_u64(&[], 0), None);
        assert_eq!(get_u64(&[1], usize::MAX), None);
    }

    #[test]
    fn zigzag_orders_by_distance_from_zero() {
        for (value, expected) in
            [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)]
        {
            assert_eq!(zigzag(value), expected);
            assert_eq!(unzigzag(expected), value);
        }
    }
}
