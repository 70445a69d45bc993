//! Blocks of which a merge looks at the front alone.
//!
//! A large value has a block of its own. A merge that leaves its entry as it is needs the key, which lies in front of the
//! value, and passes the compressed bytes on. `lz4_flex` decompresses a block whole or not at all, so the front is
//! decompressed here; the reference library has `LZ4_decompress_safe_partial` for it.
//!
//! Invariant: a front is what the whole block would begin with. Nothing is read past the block.

use super::layout::Layout;
use super::{Block, Entry};
use crate::table::BlockKind;

/// No fields of an entry, before its key, take more.
const FIELD_BYTES_MAX: usize = 40;
/// What lies behind the only entry of a block: one restart point, and their number.
const TAIL_BYTES: usize = 8;

/// The compressed bytes of a block that is passed on.
#[derive(Debug)]
pub(in crate::table) struct Packed {
    pub bytes: Vec<u8>,
    pub raw_len: usize,
    /// The only entry. Its value lies behind the front.
    pub entry: Entry,
}

/// The front of a block that can be passed on.
pub(super) struct Front {
    bytes: Vec<u8>,
    raw_len: usize,
    entry: Entry,
}

impl Front {
    /// `None` for a block of several entries.
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

    /// The block, whose compressed bytes are `packed`.
    pub fn with(self, packed: Vec<u8>) -> Block {
        let Self { bytes, raw_len, entry } = self;
        let layout = Layout::of_one(&bytes, &entry);
        Block { kind: BlockKind::Data, bytes, layout, packed: Some(Packed { bytes: packed, raw_len, entry }) }
    }
}

/// Shortest match of LZ4; a token counts from it.
const MATCH_MIN: usize = 4;
/// A length in a token that goes on in the bytes behind it.
const GOES_ON: usize = 15;

/// Decompresses up to `len` bytes of `packed`; fewer where the block is shorter or malformed.
fn decompress_front(packed: &[u8], len: usize) -> Vec<u8> {
    let mut front = Vec::with_capacity(len);
    let mut rest = packed;
    while front.len() < len && sequence(&mut rest, &mut front, len).is_some() {}
    front
}

/// Takes one sequence off `rest`: literals, and a match unless it is the last. `None` at the end, or where there is none.
fn sequence(rest: &mut &[u8], front: &mut Vec<u8>, len: usize) -> Option<()> {
    let token = usize::from(*rest.split_off_first()?);
    let count = length(token >> 4, rest)?;
    let literals = rest.split_off(..count)?;
    front.extend_from_slice(&literals[..count.min(len - front.len())]);
    let offset = usize::from(u16::from_le_bytes(*rest.split_off(..2)?.first_chunk()?));
    let count = length(token & 15, rest)?.checked_add(MATCH_MIN)?;
    let start = front.len().checked_sub(offset).filter(|_| offset > 0)?;
    // A match may reach into what it makes itself.
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
