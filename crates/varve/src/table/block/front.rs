//! Blocks of which a merge reads only the front.
//!
//! A large value has a block of its own. A merge that leaves its entry unchanged needs only the key, which lies before
//! the value, and copies the compressed bytes to its output. `lz4_flex` can only decompress a whole block, so the front
//! is decompressed here. The reference library has `LZ4_decompress_safe_partial` for this.
//!
//! Invariant: a front equals the start of the whole decompressed block. Nothing is read past the block.

use super::layout::Layout;
use super::{Block, Entry};
use crate::table::BlockKind;

/// The fields of an entry before its key never take more bytes.
const FIELD_BYTES_MAX: usize = 40;
/// Bytes after the only entry of a block: one restart point, and the number of restart points.
const TAIL_BYTES: usize = 8;

/// The compressed bytes of a block that is copied as it is.
#[derive(Debug)]
pub(in crate::table) struct Packed {
    pub bytes: Vec<u8>,
    pub raw_len: usize,
    /// The only entry. Its value lies after the front.
    pub entry: Entry,
}

/// The front of a block that can be copied as it is.
pub(super) struct Front {
    bytes: Vec<u8>,
    raw_len: usize,
    entry: Entry,
}

impl Front {
    /// The front of a block; `None` for a block of several entries.
    pub fn of(packed: &[u8], raw_len: usize) -> Option<Self> {
        let fields = decompress_front(packed, FIELD_BYTES_MAX);
        let entry = Entry::decode_front(&fields, u32::try_from(raw_len).ok()?).ok()?;
        if entry.next as usize + TAIL_BYTES != raw_len {
            return None;
        }
        let key_end = entry.value as usize;
        let bytes = decompress_front(packed, key_end);
        (bytes.len() == key_end).then_some(Self { bytes, raw_len, entry })
    }

    /// Makes the block. Its compressed bytes are `packed`.
    pub fn with(self, packed: Vec<u8>) -> Block {
        let Self { bytes, raw_len, entry } = self;
        let layout = Layout::of_one(&bytes, &entry);
        Block { kind: BlockKind::Data, bytes, layout, packed: Some(Packed { bytes: packed, raw_len, entry }) }
    }
}

/// Shortest match of LZ4; a length in a token is relative to it.
const MATCH_MIN: usize = 4;
/// With this length in a token, the length continues in the bytes after it.
const GOES_ON: usize = 15;

/// Decompresses up to `len` bytes of `packed`; fewer if the block is shorter or malformed.
fn decompress_front(packed: &[u8], len: usize) -> Vec<u8> {
    let mut front = Vec::with_capacity(len);
    let mut rest = packed;
    while front.len() < len && sequence(&mut rest, &mut front, len).is_some() {}
    front
}

/// Takes one sequence from `rest`: literals, and a match unless it is the last. `None` at the end, or if there is no sequence.
fn sequence(rest: &mut &[u8], front: &mut Vec<u8>, len: usize) -> Option<()> {
    let token = usize::from(*rest.split_off_first()?);
    let count = length(token >> 4, rest)?;
    let literals = rest.split_off(..count)?;
    front.extend_from_slice(&literals[..count.min(len - front.len())]);
    let offset = usize::from(u16::from_le_bytes(*rest.split_off(..2)?.first_chunk()?));
    let count = length(token & 15, rest)?.checked_add(MATCH_MIN)?;
    let start = front.len().checked_sub(offset).filter(|_| offset > 0)?;
    // A match may overlap its own output.
    for at in (start..).take(count.min(len - front.len())) {
        front.push(front[at]);
    }
    Some(())
}

fn length(first: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut length = first;
    let mut goes_on = first == GOES_ON;
    while goes_on {
        let byte = *rest.split_off_first()?;
        length = length.checked_add(usize::from(byte))?;
        goes_on = byte == u8::MAX;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use lz4_flex::block::compress;
    use proptest::prelude::*;

    use super::decompress_front;

    proptest! {
        #[test]
        fn a_front_is_the_front_of_the_whole(
            words in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..40), 1..20_usize), 0..30),
            len in 0..3000_usize,
        ) {
            let raw: Vec<_> = words.iter().flat_map(|(word, times)| word.repeat(*times)).collect();
            prop_assert_eq!(decompress_front(&compress(&raw), len), &raw[..len.min(raw.len())]);
        }

        #[test]
        fn any_bytes_give_a_front_that_is_not_too_long(
            packed in proptest::collection::vec(any::<u8>(), 0..200),
            len in 0..1000_usize,
        ) {
            prop_assert!(decompress_front(&packed, len).len() <= len);
        }
    }
}
