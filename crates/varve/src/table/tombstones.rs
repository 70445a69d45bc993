//! The range tombstones of a table or of a part of a memtable, all in memory.
//!
//! ```text
//! { varint len, start | varint len, end | varint sequence }*      by start ascending, then sequence descending
//! ```
//!
//! The sorted list is also read as a balanced tree (the middle of a range is its root), and each root stores which end
//! below it lies furthest, and which tombstones are the newest and the oldest. A lookup skips every subtree that ends before its key, or
//! has nothing newer than the result so far, or nothing as old as its read point.
//!
//! Invariant: every range contains at least one key.

use super::Malformed;
use crate::codec::bytes;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::types::{RangeTombstone, SEQUENCE_MAX, Sequence};

/// Range tombstones, searchable by key.
#[derive(Debug, Clone, Default)]
pub struct RangeTombstones {
    sorted: Vec<RangeTombstone>,
    /// For each item, a summary of the subtree of which it is the root.
    subtrees: Vec<Subtree>,
}

/// Items of a subtree.
#[derive(Debug, Clone, Copy, Default)]
struct Subtree {
    /// The one whose end lies furthest.
    furthest: u32,
    newest: u32,
    oldest: u32,
}

#[cfg(test)]
std::thread_local! {
    /// Tombstones that lookups have come to.
    static VISITED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl RangeTombstones {
    /// Sorts `tombstones` and leaves out those that cover no key.
    #[must_use]
    pub fn new(mut tombstones: Vec<RangeTombstone>) -> Self {
        tombstones.retain(|tombstone| tombstone.start < tombstone.end);
        tombstones.sort_unstable_by(|a, b| a.start.cmp(&b.start).then(b.sequence.cmp(&a.sequence)));
        let mut subtrees = vec![Subtree::default(); tombstones.len()];
        link(&tombstones, &mut subtrees, 0);
        Self { sorted: tombstones, subtrees }
    }

    /// Reads the bytes of a range tombstone block.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut tombstones = Vec::new();
        while !reader.is_empty() {
            let tombstone = read(&mut reader).map_err(|Truncated| Malformed("range tombstones cut short"))?;
            if tombstone.start >= tombstone.end || tombstone.sequence > SEQUENCE_MAX {
                return Err(Malformed("range tombstone"));
            }
            tombstones.push(tombstone);
        }
        Ok(Self::new(tombstones))
    }

    /// Encodes the range tombstone block, without trailer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut into = Vec::new();
        for tombstone in &self.sorted {
            for key in [&tombstone.start, &tombstone.end] {
                put_u64(&mut into, key.len() as u64);
                into.extend_from_slice(key);
            }
            put_u64(&mut into, tombstone.sequence);
        }
        into
    }

    /// All of them, by start ascending, then sequence descending.
    #[must_use]
    pub fn as_slice(&self) -> &[RangeTombstone] {
        &self.sorted
    }

    /// All of them, to be sorted with others.
    pub(crate) fn into_vec(self) -> Vec<RangeTombstone> {
        self.sorted
    }

    /// The highest sequence at or below `snapshot` of one that covers `key`, 0 if none does.
    #[inline]
    #[must_use]
    pub fn over(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        let mut found = 0;
        if !self.sorted.is_empty() {
            self.raise(0, self.sorted.len(), key, snapshot, &mut found);
        }
        found
    }

    fn raise(&self, low: usize, high: usize, key: &[u8], snapshot: Sequence, found: &mut Sequence) {
        if low == high {
            return;
        }
        #[cfg(test)]
        VISITED.set(VISITED.get() + 1);
        let middle = low + (high - low) / 2;
        let Subtree { furthest, newest, oldest } = self.subtrees[middle];
        let sequence = |at: u32| self.sorted[at as usize].sequence;
        let is_nothing_new = sequence(newest) <= *found || sequence(oldest) > snapshot;
        if is_nothing_new || bytes::compare(&self.sorted[furthest as usize].end, key).is_le() {
            return;
        }
        let tombstone = &self.sorted[middle];
        if bytes::compare(&tombstone.start, key).is_gt() {
            return self.raise(low, middle, key, snapshot, found);
        }
        if tombstone.sequence <= snapshot && bytes::compare(key, &tombstone.end).is_lt() {
            *found = tombstone.sequence.max(*found);
        }
        // The half with the newest one comes first: its result often shows that the other half has nothing newer.
        let newest = |low: usize, high: usize| {
            if low == high { 0 } else { sequence(self.subtrees[low + (high - low) / 2].newest) }
        };
        let mut halves = [(low, middle), (middle + 1, high)];
        if newest(low, middle) < newest(middle + 1, high) {
            halves.reverse();
        }
        for (low, high) in halves {
            self.raise(low, high, key, snapshot, found);
        }
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let keys: usize = self.sorted.iter().map(|item| item.start.capacity() + item.end.capacity()).sum();
        keys + self.sorted.capacity() * (size_of::<RangeTombstone>() + size_of::<Subtree>())
    }
}

/// Fills in the subtrees over `sorted`, whose first item is number `base`. Returns the subtree of the root.
fn link(sorted: &[RangeTombstone], subtrees: &mut [Subtree], base: usize) -> Option<Subtree> {
    if sorted.is_empty() {
        return None;
    }
    let middle = sorted.len() / 2;
    let (left, right) = subtrees.split_at_mut(middle);
    let (root, right) = right.split_first_mut()?;
    let children =
        [link(&sorted[..middle], left, base), link(&sorted[middle + 1..], right, base + middle + 1)];
    let item = |at: u32| &sorted[at as usize - base];
    let own = (base + middle) as u32;
    *root = Subtree { furthest: own, newest: own, oldest: own };
    for child in children.into_iter().flatten() {
        if item(child.furthest).end > item(root.furthest).end {
            root.furthest = child.furthest;
        }
        if item(child.newest).sequence > item(root.newest).sequence {
            root.newest = child.newest;
        }
        if item(child.oldest).sequence < item(root.oldest).sequence {
            root.oldest = child.oldest;
        }
    }
    Some(*root)
}

fn read(reader: &mut Reader<'_>) -> Result<RangeTombstone, Truncated> {
    Ok(RangeTombstone {
        start: reader.prefixed()?.to_vec(),
        end: reader.prefixed()?.to_vec(),
        sequence: reader.varint()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a lookup, and how many tombstones it came to.
    fn looked_up(tombstones: &RangeTombstones, snapshot: Sequence) -> (Sequence, usize) {
        VISITED.set(0);
        (tombstones.over(b"k", snapshot), VISITED.get())
    }

    /// The story: the part of a cache with one prefix was cleared ten thousand times while a scan was open. Each read of the scan in that
    /// part looked at all these deletions, which its read point did not see.
    #[test]
    fn a_lookup_costs_the_same_at_every_read_point() {
        let cleared = |sequence| RangeTombstone { start: b"a".to_vec(), end: b"z".to_vec(), sequence };
        let tombstones = RangeTombstones::new((1..=10_000).map(|sequence| cleared(2 * sequence)).collect());
        for (snapshot, found) in [(SEQUENCE_MAX, 20_000), (20_000, 20_000), (10_001, 10_000), (2, 2), (1, 0)]
        {
            let (sequence, visited) = looked_up(&tombstones, snapshot);
            assert_eq!(sequence, found, "at {snapshot}");
            assert!(visited <= 40, "{visited} visited at {snapshot}");
        }
    }

    /// The story: each change in an editor deleted all steps from its own on, and then wrote its step. To read a step, a lookup came to all
    /// deletions that began before it: for a list of ten thousand steps, to fifty million.
    #[test]
    fn a_lookup_costs_the_same_wherever_the_newest_deletion_begins() {
        let key = |number: u64| number.to_be_bytes().to_vec();
        for rises in [true, false] {
            let sequence = |number| if rises { number } else { 10_001 - number };
            let deleted =
                |number| RangeTombstone { start: key(number), end: vec![0xff], sequence: sequence(number) };
            let tombstones = RangeTombstones::new((1..=10_000).map(deleted).collect());
            for number in [1, 77, 5000, 9999, 10_000] {
                VISITED.set(0);
                let found = tombstones.over(&key(number), SEQUENCE_MAX);
                assert_eq!(found, sequence(if rises { number } else { 1 }));
                assert!(VISITED.get() <= 40, "{} visited for {number}", VISITED.get());
            }
        }
    }
}
