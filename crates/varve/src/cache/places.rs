//! From a block's name to a number: a hash table with linear probing.
//!
//! ```text
//! home(key) -> [ key, number ] [ key, number ] [ empty ]      a search ends at the key or at an empty cell
//! ```
//!
//! Invariants: at least a quarter of the cells is empty, and no cell between a key's home and its cell is empty. So
//! removing a key moves up the keys after it, and leaves no mark in its place. The standard library's table does the
//! same, but its compiled code is four times as large.

use crate::types::FileName;

/// The name of a cached block: its file and its offset there.
pub type CacheKey = (FileName, u64);

const CELLS_MIN: usize = 16;

/// Maps names of blocks to numbers.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Their number is a power of two, or zero.
    cells: Vec<Option<(CacheKey, u64)>>,
    len: usize,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn get(&self, key: CacheKey) -> Option<u64> {
        let (_, number) = (*self.cells.get(self.cell(key))?)?;
        Some(number)
    }

    /// Sets the number of a key, or replaces it.
    pub(super) fn insert(&mut self, key: CacheKey, number: u64) {
        if (self.len + 1) * 4 > self.cells.len() * 3 {
            let cells = vec![None; (self.cells.len() * 2).max(CELLS_MIN)];
            for (key, number) in std::mem::replace(&mut self.cells, cells).into_iter().flatten() {
                let at = self.cell(key);
                self.cells[at] = Some((key, number));
            }
        }
        let at = self.cell(key);
        self.len += usize::from(self.cells[at].is_none());
        self.cells[at] = Some((key, number));
    }

    /// Removes a key and returns its number.
    pub(super) fn remove(&mut self, key: CacheKey) -> Option<u64> {
        let mut hole = self.cell(key);
        let (_, number) = self.cells.get_mut(hole)?.take()?;
        self.len -= 1;
        let mask = self.cells.len() - 1;
        let mut at = (hole + 1) & mask;
        while let Some((key, _)) = self.cells[at] {
            let from_home = at.wrapping_sub(home(key)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.cells[hole] = self.cells[at].take();
                hole = at;
            }
            at = (at + 1) & mask;
        }
        Some(number)
    }

    /// The cell of the key, or the empty cell where the key belongs; 0 when there are no cells.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    fn cell(&self, key: CacheKey) -> usize {
        let mask = self.cells.len().saturating_sub(1);
        let mut at = home(key) & mask;
        while let Some(Some((found, _))) = self.cells.get(at)
            && *found != key
        {
            at = (at + 1) & mask;
        }
        at
    }
}

/// Hashes a file's name and an offset. Varve chose both numbers itself, so this needs no defence against chosen keys.
#[inline]
fn home((file, offset): CacheKey) -> usize {
    let mix = |hash: u64, number: u64| {
        let product = (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product ^ product >> 32
    };
    mix(mix(mix(0, file.kind as u64), file.id), offset) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::types::FileName;

    #[test]
    fn places_map_as_the_standard_table_does() {
        let (mut places, mut model) = (Places::default(), HashMap::new());
        let mut random = 1_u64;
        for step in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Inserts and removes many keys, so that runs of cells form, wrap around and close again.
            let key = (FileName::table(random >> 60), (random >> 40 & 63) << 12);
            if random >> 33 & 3 > u64::from(step / 50_000 % 2 == 0) {
                places.insert(key, step);
                model.insert(key, step);
            } else {
                assert_eq!(places.remove(key), model.remove(&key));
            }
            assert_eq!(places.get(key), model.get(&key).copied());
            assert_eq!(places.len(), model.len());
        }
        assert!(model.len() > 100);
        for file in 0..16 {
            for offset in 0..64 {
                let key = (FileName::table(file), offset << 12);
                assert_eq!(places.get(key), model.get(&key).copied());
                assert_eq!(places.remove(key), model.remove(&key));
            }
        }
        assert_eq!((places.len(), places.get((FileName::wal(1), 0))), (0, None));
    }
}
