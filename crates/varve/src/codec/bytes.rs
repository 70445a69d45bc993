//! Comparing keys, eight bytes at a time.
//!
//! Big-endian, because then the order of the numbers is the order of the bytes. In wasm, `memcmp` is a loop over single
//! bytes. Keys are short and often share a prefix, so a lookup spends most of its time here.
//!
//! Invariant: [`compare`] orders exactly as `<[u8] as Ord>::cmp`.

use core::cmp::Ordering;

/// Longest run of bytes that [`append`] copies by itself.
const APPENDED_BYTES_MAX: usize = 256;

/// Bytes `a` and `b` in lexicographic order.
#[must_use]
#[cfg_attr(varve_size, optimize(speed))]
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some((x, left_rest)), Some((y, right_rest))) =
        (left.split_first_chunk::<8>(), right.split_first_chunk::<8>())
    {
        if x != y {
            return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
        }
        (left, right) = (left_rest, right_rest);
    }
    // One of the two has fewer than 8 bytes left. Zero padding cannot reorder them, it can only make
    // them look equal, and then the shorter one is the smaller.
    head(left, 0).cmp(&head(right, 0)).then(a.len().cmp(&b.len()))
}

/// Whether `a` and `b` are the same bytes.
#[inline]
#[must_use]
#[cfg_attr(varve_size, optimize(speed))]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (Some(last), Some(other)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) else {
        return short_head(a) == short_head(b);
    };
    let (chunks, others) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    last == other && chunks.iter().zip(others).all(|(x, y)| x == y)
}

/// Appends `from`, sixteen bytes at a time: a copy of unknown length is a call out of wasm, which costs as much
/// as copying a few hundred bytes.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
pub fn append(into: &mut Vec<u8>, from: &[u8]) {
    if from.len() > APPENDED_BYTES_MAX {
        return into.extend_from_slice(from);
    }
    let (chunks, mut rest) = from.as_chunks::<16>();
    for chunk in chunks {
        into.extend_from_slice(chunk);
    }
    if let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        into.extend_from_slice(chunk);
        rest = behind;
    }
    if let Some((chunk, behind)) = rest.split_first_chunk::<4>() {
        into.extend_from_slice(chunk);
        rest = behind;
    }
    for byte in rest {
        into.push(*byte);
    }
}

/// How many bytes `a` and `b` share at the front.
#[inline]
#[must_use]
#[cfg_attr(varve_size, optimize(speed))]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (mut left, mut right) = (a, b);
    let mut shared = 0;
    while let (Some((x, left_rest)), Some((y, right_rest))) =
        (left.split_first_chunk::<8>(), right.split_first_chunk::<8>())
    {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return shared + difference.trailing_zeros() as usize / 8;
        }
        (left, right) = (left_rest, right_rest);
        shared += 8;
    }
    shared + left.iter().zip(right).take_while(|(x, y)| x == y).count()
}

/// The 8 bytes of `key` after its first `skip`, as a big-endian number, zero padded.
///
/// Of two keys that share their first `skip` bytes, the one with the smaller head is the smaller key. Equal heads do not decide the order.
#[inline]
#[must_use]
#[cfg_attr(varve_size, optimize(speed))]
pub fn head(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    if let Some(chunk) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*chunk);
    }
    short_head(rest)
}

/// The head of fewer than 8 bytes, without a loop: two overlapping reads of 4, or three single bytes.
#[inline]
#[cfg_attr(varve_size, optimize(speed))]
fn short_head(rest: &[u8]) -> u64 {
    let len = rest.len();
    if let (Some(front), Some(back)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        let front = u64::from(u32::from_be_bytes(*front)) << 32;
        let back = u64::from(u32::from_be_bytes(*back));
        return front | back << ((8 * (8 - len)) & 63);
    }
    rest.iter().enumerate().fold(0, |head, (index, &byte)| head | u64::from(byte) << (56 - 8 * index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs that differ (or end) at every place around the edges of an 8-byte step.
    fn pairs() -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        for left_len in 0..20 {
            for right_len in 0..20 {
                let base: Vec<u8> = (0..20).map(|index| index * 13 % 5).collect();
                all.push((base[..left_len].to_vec(), base[..right_len].to_vec()));
                for at in 0..right_len {
                    for byte in [0, 1, 0x7f, 0x80, 0xff] {
                        let mut changed = base[..right_len].to_vec();
                        changed[at] = byte;
                        all.push((base[..left_len].to_vec(), changed));
                    }
                }
            }
        }
        all
    }

    #[test]
    fn compare_orders_like_slices() {
        for (a, b) in pairs() {
            assert_eq!(compare(&a, &b), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(compare(&b, &a), b.cmp(&a), "{b:?} {a:?}");
            assert_eq!(equal(&a, &b), a == b, "{a:?} {b:?}");
        }
    }

    #[test]
    fn append_copies_any_length() {
        let from: Vec<u8> = (0..=APPENDED_BYTES_MAX + 20).map(|index| (index * 7) as u8).collect();
        for len in 0..from.len() {
            let mut into = vec![1, 2, 3];
            append(&mut into, &from[..len]);
            assert_eq!(into, [&[1, 2, 3], &from[..len]].concat(), "{len}");
        }
    }

    #[test]
    fn common_prefix_counts_equal_bytes() {
        for (a, b) in pairs() {
            let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            assert_eq!(common_prefix(&a, &b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn head_pads_with_zeros() {
        let key: Vec<u8> = (1..=12).collect();
        for len in 0..=key.len() {
            for skip in 0..=len + 2 {
                let mut padded = [0; 8];
                let rest = key[..len].get(skip..).unwrap_or_default();
                let kept = rest.len().min(8);
                padded[..kept].copy_from_slice(&rest[..kept]);
                assert_eq!(head(&key[..len], skip), u64::from_be_bytes(padded), "{len} {skip}");
            }
        }
    }
}
