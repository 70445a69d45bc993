//! From a file's name to its slot.
//!
//! Invariant: sorted by name, no name twice. A store has at most a thousand files or so, and every block read and WAL append
//! makes one lookup: ten steps. A hash table would take three and weigh ten times as much compiled.

use crate::types::FileName;

/// Maps names to slot numbers.
#[derive(Debug, Default)]
pub(super) struct NameMap(Vec<(FileName, u32)>);

impl NameMap {
    fn place(&self, file: FileName) -> Result<usize, usize> {
        self.0.binary_search_by_key(&file, |&(name, _)| name)
    }

    pub(super) fn get(&self, file: FileName) -> Option<u32> {
        Some(self.0[self.place(file).ok()?].1)
    }

    /// Answers the slot that the name had before.
    pub(super) fn insert(&mut self, file: FileName, slot: u32) -> Option<u32> {
        match self.place(file) {
            Ok(at) => Some(core::mem::replace(&mut self.0[at].1, slot)),
            Err(at) => {
                self.0.insert(at, (file, slot));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, file: FileName) -> Option<u32> {
        Some(self.0.remove(self.place(file).ok()?).1)
    }

    /// Forgets every name of a slot.
    pub(super) fn forget_slot(&mut self, slot: u32) {
        self.0.retain(|&(_, held)| held != slot);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_map_as_in_a_tree() {
        let (mut map, mut model) = (NameMap::default(), BTreeMap::new());
        for step in 0..2000_u32 {
            let id = u64::from(step.wrapping_mul(2_654_435_761) >> 24);
            let file = if step % 2 == 0 { FileName::table(id) } else { FileName::wal(id) };
            if step % 3 == 0 {
                assert_eq!(map.remove(file), model.remove(&file));
            } else {
                assert_eq!(map.insert(file, step), model.insert(file, step));
            }
            assert_eq!(map.get(file), model.get(&file).copied());
        }
        assert!(model.len() > 100 && model.iter().all(|(&file, &slot)| map.get(file) == Some(slot)));
    }
}
