//! One slot file of the simulated disk: the bytes on the medium, the changes in the operating system, and
//! which of these survive when the power goes.
//!
//! ```text
//! durable   [ bytes on the medium                  ]      flush(): apply `unsynced` here
//! unsynced  [ write 0 | write 1 | resize | write 2 ]      in the order they were made
//! current   [ what a read sees: durable + unsynced ]
//! ```
//! Invariants: a flush makes exactly the changes made before it durable. After a power loss, every 512-byte
//! sector contains the durable bytes with the first k unsynced changes that touch it applied, for some k of
//! its own (a page cache never writes a newer change of a sector without the older ones). The length of
//! the file is chosen apart from its sectors: growth may be lost while bytes inside it were written, or be
//! kept while its bytes were not, which then read as zero or as stale garbage.

use std::ops::Range;

use crate::rng::Rng;

mod outcomes;

pub use outcomes::{Choice, Outcomes};

/// Headers of slots lie before this byte, and are written at least half a page at once.
const PAGE_BYTES: usize = 4096;

/// The unit in which a medium keeps or loses bytes.
pub const SECTOR_BYTES: usize = 512;

/// How much of the unflushed data survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    None,
    /// Everything, as if it had been flushed in time.
    All,
    /// Each sector decides by itself how many of its changes it kept.
    Sectors,
    /// The first few changes, the last of them only up to some sector.
    Prefix,
}

/// The manner of a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerLoss {
    /// The part that survives.
    pub keep: Keep,
    /// A sector in flight may end up with the first bytes new and the rest old.
    pub torn_sectors: bool,
    /// Grown but unwritten sectors read as stale bytes of something else instead of zeros.
    pub garbage: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { bytes: usize },
}

/// One slot file.
#[derive(Debug, Clone, Default)]
pub struct Slot {
    durable: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<Change>,
    named: bool,
    /// The last write of a header: its offset, and the bytes that were there before.
    former: Option<(usize, Vec<u8>)>,
}

impl Slot {
    /// Where a header was written last, and what was there before.
    #[must_use]
    pub fn former(&self) -> Option<(usize, &[u8])> {
        self.former.as_ref().map(|(offset, bytes)| (*offset, bytes.as_slice()))
    }

    /// Whether a read would find these bytes.
    #[must_use]
    pub fn contains(&self, bytes: &[u8]) -> bool {
        self.current.windows(bytes.len()).any(|window| window == bytes)
    }

    /// The size that a read sees.
    #[must_use]
    pub fn size(&self) -> usize {
        self.current.len()
    }

    /// Whether a change waits that writes anything but zeros into a range of offsets.
    #[must_use]
    pub fn has_unsynced(&self, range: Range<usize>) -> bool {
        self.unsynced.iter().any(|change| match change {
            Change::Write { offset, bytes } => {
                let from = range.start.saturating_sub(*offset).min(bytes.len());
                let to = range.end.saturating_sub(*offset).min(bytes.len());
                bytes[from..to].iter().any(|byte| *byte != 0)
            }
            Change::Resize { .. } => false,
        })
    }

    /// Copies bytes out, as many as there are.
    #[must_use]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> usize {
        let rest = self.current.get(offset..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        count
    }

    /// Writes bytes, growing the file where they reach over its end.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            if bytes.len() >= PAGE_BYTES / 2 && offset + bytes.len() <= PAGE_BYTES {
                let mut former = vec![0; bytes.len()];
                let _ = self.read(offset, &mut former);
                self.former = Some((offset, former));
            }
            self.change(Change::Write { offset, bytes: bytes.to_vec() });
        }
    }

    /// Cuts the file or grows it with zeros.
    pub fn resize(&mut self, bytes: usize) {
        if bytes != self.current.len() {
            self.change(Change::Resize { bytes });
        }
    }

    /// Makes everything durable, the name of the file included.
    pub fn flush(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.durable, &change);
        }
        self.named = true;
        debug_assert_eq!(self.durable.len(), self.current.len(), "a flush makes durable what a read sees");
    }

    /// Flips bits of one byte everywhere, like a medium that rots.
    pub fn flip(&mut self, offset: usize, mask: u8) {
        for bytes in [&mut self.durable, &mut self.current] {
            if let Some(byte) = bytes.get_mut(offset) {
                *byte ^= mask;
            }
        }
    }

    /// The power goes: `loss` decides what remains, and the remaining bytes are durable from here on.
    pub fn lose_power(&mut self, loss: PowerLoss, rng: &mut Rng) {
        if !self.named && loss.keep != Keep::All && rng.chance(1, 2) {
            *self = Self::default();
            return;
        }
        let image = match loss.keep {
            Keep::None => self.durable.clone(),
            Keep::All => self.current.clone(),
            Keep::Sectors => self.image_by_sectors(loss, rng),
            Keep::Prefix => self.image_by_prefix(loss, rng),
        };
        self.durable.clone_from(&image);
        self.current = image;
        self.unsynced.clear();
        self.named = true;
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.unsynced.push(change);
    }

    /// The first changes in order, the next one up to some byte.
    fn image_by_prefix(&self, loss: PowerLoss, rng: &mut Rng) -> Vec<u8> {
        let mut image = self.durable.clone();
        if self.unsynced.is_empty() {
            return image;
        }
        let whole = rng.index(self.unsynced.len() + 1);
        for change in &self.unsynced[..whole] {
            apply(&mut image, change);
        }
        if let Some(Change::Write { offset, bytes }) = self.unsynced.get(whole) {
            let end = offset + rng.index(bytes.len() + 1);
            let end = if loss.torn_sectors { end } else { end / SECTOR_BYTES * SECTOR_BYTES };
            if let Some(bytes) = end.checked_sub(*offset).and_then(|count| bytes.get(..count)) {
                apply(&mut image, &Change::Write { offset: *offset, bytes: bytes.to_vec() });
            }
        }
        image
    }

    /// Every sector with its own number of changes, and a length from somewhere in the history.
    fn image_by_sectors(&self, loss: PowerLoss, rng: &mut Rng) -> Vec<u8> {
        let lengths = self.lengths();
        let longest = lengths.iter().copied().max().unwrap_or_default();
        let mut image = self.durable.clone();
        image.resize(longest, 0);
        let touching = self.changes_by_sector(longest);
        for (sector, changes) in touching.iter().enumerate() {
            if changes.is_empty() {
                continue;
            }
            let start = sector * SECTOR_BYTES;
            let kept = rng.index(changes.len() + 1);
            for &change in &changes[..kept] {
                self.apply_in(&mut image, change, start, start + SECTOR_BYTES);
            }
            if kept < changes.len() && loss.torn_sectors && rng.chance(1, 4) {
                self.apply_in(&mut image, changes[kept], start, start + rng.index(SECTOR_BYTES));
            } else if kept == 0 && loss.garbage && start >= self.durable.len() {
                let end = image.len().min(start + SECTOR_BYTES);
                image[start..end].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
            }
        }
        image.truncate(rng.pick(&lengths));
        image
    }

    /// Every length the file had since it was last flushed.
    fn lengths(&self) -> Vec<usize> {
        let mut length = self.durable.len();
        let mut lengths = vec![length];
        for change in &self.unsynced {
            length = match change {
                Change::Write { offset, bytes } => length.max(offset + bytes.len()),
                Change::Resize { bytes } => *bytes,
            };
            lengths.push(length);
        }
        lengths
    }

    /// For each sector, the unsynced changes that touch it, oldest first.
    fn changes_by_sector(&self, bytes_max: usize) -> Vec<Vec<usize>> {
        let mut touching = vec![Vec::new(); bytes_max.div_ceil(SECTOR_BYTES)];
        for (position, change) in self.unsynced.iter().enumerate() {
            let (start, end) = match change {
                Change::Write { offset, bytes } => (*offset, offset + bytes.len()),
                Change::Resize { bytes } => (*bytes, bytes_max),
            };
            let sectors = start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
            touching[sectors].iter_mut().for_each(|sector| sector.push(position));
        }
        touching
    }

    /// Applies the part of an unsynced change that lies in `start..end`.
    fn apply_in(&self, image: &mut [u8], change: usize, start: usize, end: usize) {
        let end = end.min(image.len());
        match &self.unsynced[change] {
            Change::Write { offset, bytes } => {
                let from = start.max(*offset);
                let to = end.min(offset + bytes.len());
                if from < to {
                    image[from..to].copy_from_slice(&bytes[from - offset..to - offset]);
                }
            }
            Change::Resize { bytes } => {
                let from = start.max(*bytes);
                if from < end {
                    image[from..end].fill(0);
                }
            }
        }
    }
}

fn apply(image: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes } => {
            let end = offset + bytes.len();
            if image.len() < end {
                image.resize(end, 0);
            }
            image[*offset..end].copy_from_slice(bytes);
        }
        Change::Resize { bytes } => image.resize(*bytes, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: PowerLoss = PowerLoss { keep: Keep::Sectors, torn_sectors: false, garbage: false };

    fn contents(slot: &Slot) -> Vec<u8> {
        let mut bytes = vec![0; slot.size()];
        assert_eq!(slot.read(0, &mut bytes), bytes.len());
        bytes
    }

    fn flushed(bytes: &[u8]) -> Slot {
        let mut slot = Slot::default();
        slot.write(0, bytes);
        slot.flush();
        slot
    }

    #[test]
    fn flushed_bytes_survive_every_manner_of_power_loss() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let keep = rng.pick(&[Keep::None, Keep::All, Keep::Sectors, Keep::Prefix]);
            let mut slot = flushed(&[7; 3000]);
            slot.write(3000, &[8; 2000]);
            slot.lose_power(PowerLoss { keep, torn_sectors: true, garbage: true }, &mut rng);
            assert_eq!(&contents(&slot)[..3000], &[7; 3000]);
        }
    }

    #[test]
    fn a_power_loss_that_keeps_nothing_gives_the_last_flush() {
        let mut slot = flushed(b"old");
        slot.write(1, b"newer and longer");
        slot.resize(2);
        slot.lose_power(PowerLoss { keep: Keep::None, ..PLAIN }, &mut Rng::new(1));
        assert_eq!(contents(&slot), b"old");
    }

    #[test]
    fn sectors_are_lost_one_by_one_and_each_is_old_or_new() {
        let mut mixed = 0;
        for seed in 0..50 {
            let mut slot = flushed(&[1; 4 * SECTOR_BYTES]);
            slot.write(0, &[2; 4 * SECTOR_BYTES]);
            slot.lose_power(PLAIN, &mut Rng::new(seed));
            let bytes = contents(&slot);
            let kinds: Vec<u8> = bytes.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect();
            assert!(bytes.chunks(SECTOR_BYTES).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            mixed += usize::from(kinds.contains(&1) && kinds.contains(&2));
        }
        assert!(mixed > 10, "only {mixed} of 50 losses mixed old and new sectors");
    }

    #[test]
    fn a_sector_never_holds_a_newer_change_without_the_older() {
        for seed in 0..200 {
            let mut slot = flushed(&[0; SECTOR_BYTES]);
            slot.write(0, &[1; 10]);
            slot.write(10, &[2; 10]);
            slot.lose_power(PLAIN, &mut Rng::new(seed));
            let bytes = contents(&slot);
            assert!(bytes[10] == 0 || bytes[0] == 1, "the second write was kept and the first was not");
        }
    }

    #[test]
    fn growth_is_lost_apart_from_the_bytes() {
        let mut lengths = std::collections::BTreeSet::new();
        let mut holes = 0;
        for seed in 0..100 {
            let mut slot = flushed(&[1; 100]);
            slot.write(100, &[2; 2000]);
            slot.lose_power(PLAIN, &mut Rng::new(seed));
            lengths.insert(slot.size());
            holes += usize::from(slot.size() == 2100 && contents(&slot)[600..1000] == [0; 400]);
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [100, 2100]);
        assert!(holes > 0, "a grown sector that was not written reads as zero");
    }

    #[test]
    fn a_torn_sector_is_new_at_its_start_and_old_after() {
        let mut torn = 0;
        for seed in 0..400 {
            let mut slot = flushed(&[1; SECTOR_BYTES]);
            slot.write(0, &[2; SECTOR_BYTES]);
            slot.lose_power(PowerLoss { torn_sectors: true, ..PLAIN }, &mut Rng::new(seed));
            let bytes = contents(&slot);
            let cut = bytes.iter().position(|byte| *byte == 1).unwrap_or(SECTOR_BYTES);
            assert!(bytes[cut..].iter().all(|byte| *byte == 1));
            torn += usize::from(cut > 0 && cut < SECTOR_BYTES);
        }
        assert!(torn > 10, "only {torn} of 400 sectors were torn");
    }

    #[test]
    fn a_prefix_is_cut_in_the_order_of_the_writes() {
        for seed in 0..200 {
            let mut slot = flushed(&[0; 4]);
            for at in 0..4 {
                slot.write(at, &[1]);
            }
            slot.lose_power(PowerLoss { keep: Keep::Prefix, ..PLAIN }, &mut Rng::new(seed));
            let ones = contents(&slot).iter().take_while(|byte| **byte == 1).count();
            assert!(contents(&slot)[ones..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_file_never_flushed_may_vanish() {
        let sizes: Vec<usize> = (0..50)
            .map(|seed| {
                let mut slot = Slot::default();
                slot.write(0, &[1; 10]);
                slot.lose_power(PLAIN, &mut Rng::new(seed));
                slot.size()
            })
            .collect();
        assert!(sizes.contains(&0) && sizes.contains(&10));
    }
}
