//! Everything that a power loss may leave of one slot, counted and numbered.
//!
//! ```text
//! outcome = a length the file had since its flush
//!         x for each unsynced sector below that length: how many of the changes that alter it were kept
//! ```
//! Invariant: the outcomes are those of [`Keep::Sectors`](super::Keep::Sectors) without torn sectors and garbage, each
//! once: changes that alter no byte of a sector (zeros that a file grows by) give no choice. If a file that was never
//! flushed vanishes, that is the outcome of length 0.

use varve::codec::hash::xxh3;

use super::{SECTOR_BYTES, Slot};
use crate::rng::Rng;

/// A sector with the bytes that it may contain after a power loss, oldest first.
#[derive(Debug, Clone)]
struct Sector {
    number: usize,
    versions: Vec<Vec<u8>>,
}

/// The states in which a power loss may leave one slot.
#[derive(Debug, Clone)]
pub struct Outcomes {
    /// The contents that all outcomes have in common, as long as the longest.
    base: Vec<u8>,
    /// Distinct lengths, shortest first.
    lengths: Vec<usize>,
    sectors: Vec<Sector>,
    /// For each length, a hash of the sectors below it that give no choice.
    common_hashes: Vec<u64>,
}

/// One outcome: a length, and of each unsynced sector the version that it contains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    /// Length of the file in bytes.
    pub length: usize,
    /// For each unsynced sector below that length, the number of changes that it kept.
    pub kept: Vec<usize>,
}

impl Slot {
    /// The states in which a power loss now may leave it.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        let mut lengths = self.lengths();
        lengths.sort_unstable();
        lengths.dedup();
        let longest = lengths.last().copied().unwrap_or_default();
        let mut base = self.durable.clone();
        base.resize(longest, 0);
        let mut scratch = base.clone();
        let mut sectors = Vec::new();
        for (number, changes) in self.changes_by_sector(longest).iter().enumerate() {
            let (start, end) = (number * SECTOR_BYTES, longest.min((number + 1) * SECTOR_BYTES));
            let mut versions = Vec::new();
            for &change in changes {
                let before = versions.last().map_or(&base[start..end], Vec::as_slice);
                self.apply_in(&mut scratch, change, start, end);
                if scratch[start..end] != *before {
                    let before = before.to_vec();
                    if versions.is_empty() {
                        versions.push(before);
                    }
                    versions.push(scratch[start..end].to_vec());
                }
            }
            if !versions.is_empty() {
                sectors.push(Sector { number, versions });
            }
        }
        let mut outcomes = Outcomes { base, lengths, sectors, common_hashes: Vec::new() };
        outcomes.hash_common();
        outcomes
    }
}

impl Outcomes {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lengths.iter().fold(0, |sum, &length| sum.saturating_add(self.count_at(length)))
    }

    /// Sectors that may contain more than one thing.
    #[must_use]
    pub fn sectors(&self) -> usize {
        self.sectors.len()
    }

    /// Outcome `number` of those that [`Outcomes::count`] counts.
    #[must_use]
    pub fn choice(&self, mut number: u64) -> Choice {
        let mut length = self.lengths.last().copied().unwrap_or_default();
        for &candidate in &self.lengths {
            if number < self.count_at(candidate) {
                length = candidate;
                break;
            }
            number -= self.count_at(candidate);
        }
        let kept = self.below(length).iter().map(|sector| {
            let versions = sector.versions.len() as u64;
            let kept = (number % versions) as usize;
            number /= versions;
            kept
        });
        Choice { length, kept: kept.collect() }
    }

    /// The longest file, with everything (`true`) or nothing that was written into each sector.
    #[must_use]
    pub fn subset(&self, mut is_kept: impl FnMut() -> bool) -> Choice {
        let kept = self.sectors.iter().map(|sector| if is_kept() { sector.versions.len() - 1 } else { 0 });
        Choice { length: self.lengths.last().copied().unwrap_or_default(), kept: kept.collect() }
    }

    /// The shortest file with nothing of what was written since its flush.
    #[must_use]
    pub fn nothing(&self) -> Choice {
        self.choice(0)
    }

    /// Any outcome.
    #[must_use]
    pub fn any(&self, rng: &mut Rng) -> Choice {
        let length = rng.pick(&self.lengths);
        let kept = self.below(length).iter().map(|sector| rng.index(sector.versions.len()));
        Choice { length, kept: kept.collect() }
    }

    /// The slot after the power loss.
    #[must_use]
    pub fn slot(&self, choice: &Choice) -> Slot {
        let mut image = self.base.clone();
        for (sector, &kept) in self.sectors.iter().zip(&choice.kept) {
            let (start, bytes) = (sector.number * SECTOR_BYTES, &sector.versions[kept]);
            image[start..start + bytes.len()].copy_from_slice(bytes);
        }
        image.truncate(choice.length);
        Slot { durable: image.clone(), current: image, unsynced: Vec::new(), named: true, former: None }
    }

    /// A hash of the file's contents after the power loss, whatever it contained before it. Cheap: bytes that are the same
    /// in all outcomes are hashed once.
    #[must_use]
    pub fn hash(&self, choice: &Choice) -> u64 {
        let at = self.lengths.partition_point(|length| *length < choice.length);
        let common = self.common_hashes.get(at).copied().unwrap_or_default();
        self.sectors.iter().zip(&choice.kept).fold(common, |sum, (sector, &kept)| {
            let bytes = &sector.versions[kept];
            let here = bytes.len().min(choice.length - sector.number * SECTOR_BYTES);
            sum.wrapping_add(sector_hash(sector.number, &bytes[..here]))
        })
    }

    fn hash_common(&mut self) {
        let is_open =
            |number: usize| self.sectors.binary_search_by_key(&number, |sector| sector.number).is_ok();
        let hash_below = |&length: &usize| {
            let sectors = self.base[..length].chunks(SECTOR_BYTES).enumerate();
            let common = sectors.filter(|(number, _)| !is_open(*number));
            common.fold(length as u64, |sum, (number, bytes)| sum.wrapping_add(sector_hash(number, bytes)))
        };
        self.common_hashes = self.lengths.iter().map(hash_below).collect();
    }

    fn below(&self, length: usize) -> &[Sector] {
        &self.sectors[..self.sectors.partition_point(|sector| sector.number * SECTOR_BYTES < length)]
    }

    fn count_at(&self, length: usize) -> u64 {
        self.below(length)
            .iter()
            .fold(1, |product: u64, sector| product.saturating_mul(sector.versions.len() as u64))
    }
}

/// Sectors of zeros (most of a file that was grown ahead) do not count; the length shows the difference between them
/// and no sectors.
fn sector_hash(number: usize, bytes: &[u8]) -> u64 {
    if bytes.iter().all(|byte| *byte == 0) { 0 } else { xxh3(bytes, number as u64 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::{Keep, PowerLoss};
    use std::collections::BTreeSet;

    fn contents(slot: &Slot) -> Vec<u8> {
        let mut bytes = vec![0; slot.size()];
        assert_eq!(slot.read(0, &mut bytes), bytes.len());
        bytes
    }

    /// A flushed file, then a growth, two changes of one sector and one over two.
    fn changed() -> Slot {
        let mut slot = Slot::default();
        slot.write(0, &[1; SECTOR_BYTES]);
        slot.flush();
        slot.write(SECTOR_BYTES, &[0; 3 * SECTOR_BYTES]);
        slot.write(10, &[2; 20]);
        slot.write(20, &[3; 20]);
        slot.write(SECTOR_BYTES + 500, &[4; 100]);
        slot
    }

    #[test]
    fn outcomes_are_all_different_and_all_that_a_power_loss_leaves() {
        let slot = changed();
        let outcomes = slot.outcomes();
        let all: BTreeSet<_> =
            (0..outcomes.count()).map(|number| contents(&outcomes.slot(&outcomes.choice(number)))).collect();
        let hashes: BTreeSet<_> =
            (0..outcomes.count()).map(|number| outcomes.hash(&outcomes.choice(number))).collect();
        assert_eq!(hashes.len(), all.len());
        // The old length with three versions of its sector; the new one with those and two sectors more.
        assert_eq!((outcomes.sectors(), outcomes.count(), all.len()), (3, 3 + 3 * 2 * 2, 15));
        let mut seen = BTreeSet::new();
        for seed in 0..2000 {
            let mut slot = slot.clone();
            let loss = PowerLoss { keep: Keep::Sectors, torn_sectors: false, garbage: false };
            slot.lose_power(loss, &mut Rng::new(seed));
            seen.insert(contents(&slot));
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn a_flushed_slot_has_one_outcome() {
        let mut slot = changed();
        slot.flush();
        let outcomes = slot.outcomes();
        assert_eq!(outcomes.count(), 1);
        assert_eq!(contents(&outcomes.slot(&outcomes.nothing())), contents(&slot));
        // The hash depends on contents, not on how they came about.
        let before = changed().outcomes();
        assert_eq!(outcomes.hash(&outcomes.nothing()), before.hash(&before.subset(|| true)));
    }
}
