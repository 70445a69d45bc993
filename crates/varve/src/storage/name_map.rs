//! From a file's name to its place.
//!
//! Invariant: sorted by name, no name twice. A store has at most a thousand files or so, and every block read and WAL append
//! makes one lookup: ten steps. A hash table would take three, but be ten times as large when compiled.

use crate::types::{FileKind, FileName};

/// Where a file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The slot that contains it.
    pub slot: u32,
    /// Its first byte, from the start of the slot.
    pub start: u64,
    /// Bytes set aside for it; `u64::MAX`: to the end of the slot.
    pub room: u64,
    /// The generation at which it was claimed.
    pub(super) generation: u64,
}

impl Place {
    /// The first byte after it, from the start of the slot.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.room)
    }
}

/// The name that stands for the room that is set aside for a file of this kind.
pub(super) fn reserve_of(kind: FileKind) -> FileName {
    FileName { kind, id: u64::MAX }
}

/// Whether this is a file, and not room that is set aside.
pub(super) fn is_file(file: FileName) -> bool {
    file.id != u64::MAX
}

/// Maps names to places.
#[derive(Debug, Default)]
pub(super) struct NameMap(Vec<(FileName, Place)>);

impl NameMap {
    fn place(&self, file: FileName) -> Result<usize, usize> {
        self.0.binary_search_by_key(&file, |&(name, _)| name)
    }

    pub(super) fn get(&self, file: FileName) -> Option<Place> {
        Some(self.0[self.place(file).ok()?].1)
    }

    /// Returns the place that the name had before.
    pub(super) fn insert(&mut self, file: FileName, place: Place) -> Option<Place> {
        match self.place(file) {
            Ok(at) => Some(core::mem::replace(&mut self.0[at].1, place)),
            Err(at) => {
                self.0.insert(at, (file, place));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, file: FileName) -> Option<Place> {
        Some(self.0.remove(self.place(file).ok()?).1)
    }

    /// Forgets every name of a slot.
    pub(super) fn remove_slot(&mut self, slot: u32) {
        self.0.retain(|(_, place)| place.slot != slot);
    }

    /// All files with their places, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (FileName, Place)> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn get_mut(&mut self, file: FileName) -> Option<&mut Place> {
        let at = self.place(file).ok()?;
        Some(&mut self.0[at].1)
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
                let place = Place { slot: step, start: 0, room: 0, generation: 0 };
                assert_eq!(map.insert(file, place), model.insert(file, place));
            }
            assert_eq!(map.get(file), model.get(&file).copied());
        }
        assert!(model.len() > 100 && model.iter().all(|(&file, &place)| map.get(file) == Some(place)));
    }
}
