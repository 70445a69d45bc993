//! The index of a table: which data block to look in.
//!
//! ```text
//! varint prefix len | prefix | { varint suffix len | varint sequence | varint block len | suffix }*
//! ```
//!
//! There is one item per data block, in order; the blocks lie one after the other from offset 0. Prefix and suffix form
//! the key of the block's separator, a place (key, sequence) in the order of a table:
//!
//!   last entry of the block <= separator < first entry of the next block
//!
//! Between two different keys, it is the shortest key that fits, at sequence 0, which comes after every version. When
//! versions of one key continue in the next block, it is the last entry itself, including its sequence. So for every
//! (key, snapshot) there is exactly one block that can have its newest visible version, and a get reads one block
//! however many versions there are.
//!
//! Invariant: separators ascend, and those of the table's own blocks cover it without a gap.

use core::cmp::Ordering;

use super::{BlockHandle, Malformed};
use crate::codec::bytes;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::types::Sequence;

/// A decoded index.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The common prefix of all separators.
    prefix: Vec<u8>,
    /// The first 8 bytes of each separator after the prefix: the search uses these.
    heads: Vec<u64>,
    separators: Vec<Separator>,
    /// Where each block begins; the last item is the end of the last block.
    offsets: Vec<u64>,
    suffixes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Separator {
    sequence: Sequence,
    suffix: u32,
    suffix_end: u32,
}

impl Index {
    /// Reads the bytes of an index block.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::read(bytes).map_err(|Truncated| Malformed("index cut short"))?.checked()
    }

    fn read(bytes: &[u8]) -> Result<Self, Truncated> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Truncated);
        }
        let mut reader = Reader::new(bytes);
        let mut index = Self {
            prefix: reader.prefixed()?.to_vec(),
            heads: Vec::new(),
            separators: Vec::new(),
            offsets: vec![0],
            suffixes: Vec::new(),
        };
        let mut end = 0u64;
        while !reader.is_empty() {
            let (suffix_len, sequence, block_len) = (reader.varint()?, reader.varint()?, reader.varint()?);
            let suffix = reader.bytes(usize::try_from(suffix_len).map_err(|_| Truncated)?)?;
            let block_len = u32::try_from(block_len).map_err(|_| Truncated)?;
            end = end.checked_add(u64::from(block_len)).ok_or(Truncated)?;
            let start = index.suffixes.len() as u32;
            index.suffixes.extend_from_slice(suffix);
            let separator = Separator { sequence, suffix: start, suffix_end: index.suffixes.len() as u32 };
            index.heads.push(bytes::head(suffix, 0));
            index.separators.push(separator);
            index.offsets.push(end);
        }
        // The index stays in memory for long, so the unused capacity of the vectors is freed.
        index.heads.shrink_to_fit();
        index.separators.shrink_to_fit();
        index.offsets.shrink_to_fit();
        index.suffixes.shrink_to_fit();
        Ok(index)
    }

    fn checked(self) -> Result<Self, Malformed> {
        for pair in self.separators.windows(2) {
            let ascending = match bytes::compare(self.suffix(&pair[0]), self.suffix(&pair[1])) {
                Ordering::Less => true,
                Ordering::Equal => pair[0].sequence > pair[1].sequence,
                Ordering::Greater => false,
            };
            if !ascending {
                return Err(Malformed("separators out of order"));
            }
        }
        Ok(self)
    }

    fn suffix(&self, separator: &Separator) -> &[u8] {
        &self.suffixes[separator.suffix as usize..separator.suffix_end as usize]
    }

    /// Number of data blocks.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether the table has no data block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The place of block `index`.
    ///
    /// # Panics
    /// When there is no such block.
    #[inline]
    #[must_use]
    pub fn handle(&self, index: usize) -> BlockHandle {
        let (offset, end) = (self.offsets[index], self.offsets[index + 1]);
        BlockHandle { offset, len: (end - offset) as u32 }
    }

    /// The separator of block `index`, as (key, sequence).
    ///
    /// # Panics
    /// When there is no such block.
    #[must_use]
    pub fn separator(&self, index: usize) -> (Vec<u8>, Sequence) {
        let separator = &self.separators[index];
        let mut key = self.prefix.clone();
        key.extend_from_slice(self.suffix(separator));
        (key, separator.sequence)
    }

    /// The first byte after the data blocks.
    #[must_use]
    pub fn data_end(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The block whose separator is the first at or after (`key`, `sequence`): if any block has an entry of `key` with
    /// that sequence or an older one, the newest such entry is in this block. Returns the number of blocks when all
    /// separators are before.
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn find(&self, key: &[u8], sequence: Sequence) -> usize {
        let shared = bytes::common_prefix(&self.prefix, key);
        if let Some(byte) = self.prefix.get(shared) {
            return if key.get(shared).is_some_and(|found| found > byte) { self.len() } else { 0 };
        }
        let rest = &key[shared..];
        let head = bytes::head(rest, 0);
        let start = self.heads.partition_point(|&found| found < head);
        if self.heads.get(start) != Some(&head) {
            return start;
        }
        let same = self.heads[start..].partition_point(|&found| found == head);
        start
            + self.separators[start..start + same].partition_point(|separator| {
                match bytes::compare(self.suffix(separator), rest) {
                    Ordering::Less => true,
                    Ordering::Equal => separator.sequence > sequence,
                    Ordering::Greater => false,
                }
            })
    }

    /// Bytes of memory that the index takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.prefix.capacity()
            + self.suffixes.capacity()
            + 8 * (self.heads.capacity() + self.offsets.capacity())
            + size_of::<Separator>() * self.separators.capacity()
    }
}

/// Collects the separators of a table's blocks.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    keys: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    key_end: usize,
    sequence: Sequence,
    block_len: u32,
}

impl IndexBuilder {
    /// Adds a block of `block_len` bytes whose last entry is (`last_key`, `last_sequence`); `next_key` is the key of
    /// the entry after it, if there is one.
    pub fn add(&mut self, last_key: &[u8], last_sequence: Sequence, next_key: Option<&[u8]>, block_len: u32) {
        let sequence = if next_key == Some(last_key) { last_sequence } else { 0 };
        match next_key {
            Some(next_key) if next_key != last_key => put_separator(&mut self.keys, last_key, next_key),
            Some(_) | None => self.keys.extend_from_slice(last_key),
        }
        self.items.push(Item { key_end: self.keys.len(), sequence, block_len });
    }

    /// Number of blocks added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no block was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of the index block if it were finished now, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.len() + 4 * self.items.len()
    }

    /// The bytes of the index block, without trailer.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        let key = |index: usize| {
            let start = index.checked_sub(1).map_or(0, |before| self.items[before].key_end);
            &self.keys[start..self.items[index].key_end]
        };
        // Separators ascend, so all of them share the common prefix of the first and the last.
        let prefix = match self.items.len() {
            0 => &[],
            count => &key(0)[..bytes::common_prefix(key(0), key(count - 1))],
        };
        let mut into = Vec::with_capacity(self.bytes() + prefix.len());
        put_u64(&mut into, prefix.len() as u64);
        into.extend_from_slice(prefix);
        for (index, item) in self.items.iter().enumerate() {
            let suffix = &key(index)[prefix.len()..];
            put_u64(&mut into, suffix.len() as u64);
            put_u64(&mut into, item.sequence);
            put_u64(&mut into, u64::from(item.block_len));
            into.extend_from_slice(suffix);
        }
        into
    }
}

/// Appends a short key s with `last <= s < next`. It is never a prefix of `next`. Otherwise a seek to a prefix that
/// `next` is the first to have would read one block in vain.
fn put_separator(into: &mut Vec<u8>, last: &[u8], next: &[u8]) {
    let shared = bytes::common_prefix(last, next);
    let is_below = |at: usize| at > shared || next.get(at).is_some_and(|&byte| last[at] + 1 < byte);
    let raise = (shared..last.len()).find(|&at| last[at] < 0xff && is_below(at));
    match raise {
        Some(at) if at + 1 < last.len() => {
            into.extend_from_slice(&last[..at]);
            into.push(last[at] + 1);
        }
        Some(_) | None => into.extend_from_slice(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        put_separator(&mut key, last, next);
        key
    }

    #[test]
    fn separators_are_short_and_lie_between() {
        assert_eq!(separator(b"apple", b"cherry"), b"b");
        assert_eq!(separator(b"apple", b"banana"), b"aq");
        assert_eq!(separator(b"note:1234", b"note:5"), b"note:2");
        assert_eq!(separator(b"note", b"note:5"), b"note");
        assert_eq!(separator(b"a\xff\xff\x01", b"b"), b"a\xff\xff\x01");
        assert_eq!(separator(b"a\xff\xff\x01z", b"b"), b"a\xff\xff\x02");
        assert_eq!(separator(b"", b"a"), b"");
        let alphabet = [0, 1, 2, 0xfe, 0xff];
        let keys: Vec<Vec<u8>> =
            (0..125).map(|n| [n % 5, n / 5 % 5, n / 25].map(|digit| alphabet[digit]).to_vec()).collect();
        for last in &keys {
            for next in keys.iter().filter(|next| *next > last) {
                for cut in [1, 2, 3] {
                    let next = &next[..cut];
                    if next > last.as_slice() {
                        let key = separator(last, next);
                        assert!(
                            last.as_slice() <= key.as_slice() && key.as_slice() < next,
                            "{last:?} {key:?} {next:?}"
                        );
                        assert!(key.len() <= last.len());
                    }
                }
            }
        }
    }
}
