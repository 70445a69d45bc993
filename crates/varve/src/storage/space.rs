//! The room in a slot: the gaps between the files that it contains.
//!
//! Invariant: every byte of a slot below its size was written, so a gap inside the slot takes a file without making the slot longer.

use super::slot_header::SLOT_HEADER_BYTES;
use crate::types::PAGE_BYTES;

/// Room between two files of a slot, or after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// The first byte, from the start of the slot.
    pub(super) start: u64,
    /// Bytes up to the next file; `u64::MAX` after the last one.
    pub(super) room: u64,
    /// Bytes of it that were written before.
    pub(super) written: u64,
}

/// The gaps of a slot of `size` bytes that contains files at `found`: each as its first byte and the first byte after it,
/// in any order.
pub(super) fn gaps(found: Vec<(u64, u64)>, size: u64) -> Vec<Gap> {
    // Inserted by hand: a sort is 10 KB of wasm.
    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(found.len());
    for span in found {
        spans.insert(spans.partition_point(|other| *other < span), span);
    }
    let mut gaps = Vec::new();
    let mut start = SLOT_HEADER_BYTES;
    for (next, end) in spans.into_iter().chain([(u64::MAX, u64::MAX)]) {
        if next > start {
            let room = if next == u64::MAX { u64::MAX } else { next - start };
            gaps.push(Gap { start, room, written: room.min(size.saturating_sub(start)) });
        }
        start = start.max(pages(end));
    }
    gaps
}

/// `bytes`, rounded up to whole pages.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lie_before_between_and_behind_files() {
        let gap = |start, room, written| Gap { start, room, written };
        assert_eq!(gaps(Vec::new(), 0), [gap(4096, u64::MAX, 0)]);
        assert_eq!(gaps(Vec::new(), 10_000), [gap(4096, u64::MAX, 5904)]);
        assert_eq!(gaps(vec![(4096, u64::MAX)], 10_000), []);
        let found = gaps(vec![(24_576, 28_000), (8192, 12_288)], 40_000);
        let expected = [gap(4096, 4096, 4096), gap(12_288, 12_288, 12_288), gap(28_672, u64::MAX, 11_328)];
        assert_eq!(found, expected);
        assert_eq!(gaps(vec![(4096, 8192)], 8192), [gap(8192, u64::MAX, 0)]);
    }
}
