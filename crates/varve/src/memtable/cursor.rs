//! A walk over a memtable in both directions, as a reader of one sequence sees it.
//!
//! Invariant: for each key it shows the newest version that its reader sees, if there is one. Skipped versions cost a few steps
//! or one seek, however many there are. A cursor that moved past either end is invalid until it is positioned again.

use super::Memtable;
use super::node::{Item, Probe};
use super::tree::{Place, STEPS_TO_SEEK};
use crate::types::{Kind, Sequence};
use crate::wal::{Entry, key_at};

/// A position among the point entries of a memtable. The cursor skips range tombstones.
#[derive(Debug, Clone)]
pub struct MemtableCursor<'a> {
    memtable: &'a Memtable,
    /// The reader's sequence, counted from the memtable's first one; `None` for a reader that sees no entry of it.
    until: Option<u32>,
    at: Option<(Place, Sequence, Entry<'a>)>,
    passed_newer: bool,
    /// Number of versions of the next key that are passed one by one before the rest is skipped with a seek.
    steps: u32,
}

impl<'a> MemtableCursor<'a> {
    pub(super) fn new(memtable: &'a Memtable, snapshot: Sequence) -> Self {
        Self {
            memtable,
            until: memtable.delta(snapshot),
            at: None,
            passed_newer: false,
            steps: STEPS_TO_SEEK,
        }
    }

    /// Whether the walk passed a key whose newest version is a value that its reader does not see.
    #[inline]
    #[must_use]
    pub fn passed_newer(&self) -> bool {
        self.passed_newer
    }

    /// Goes to the first entry whose key is `key` or greater.
    pub fn seek(&mut self, key: &[u8]) {
        self.go_forward(self.memtable.index.tree.lower_bound(&self.memtable.image, start_of(key)));
    }

    /// Goes to the last entry whose key is less than `key`.
    pub fn seek_before(&mut self, key: &[u8]) {
        self.go_back(self.memtable.index.tree.before(&self.memtable.image, start_of(key)));
    }

    /// Goes to the first entry.
    pub fn seek_first(&mut self) {
        self.go_forward(self.memtable.index.tree.first());
    }

    /// Goes to the last entry.
    pub fn seek_last(&mut self) {
        self.go_back(self.memtable.index.tree.last());
    }

    /// Goes one key forward.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn next(&mut self) {
        if let Some((place, ..)) = self.at {
            let next = self.memtable.index.tree.next_key(&self.memtable.image, place, &mut self.steps);
            self.go_forward(next);
        }
    }

    /// Goes one key back.
    #[inline]
    pub fn prev(&mut self) {
        if let Some((place, _, entry)) = self.at {
            let (tree, image) = (&self.memtable.index.tree, &self.memtable.image);
            match tree.previous(place) {
                Some(before) if tree.is_same_key(image, place, before) => self.seek_before(entry.key),
                before => self.go_back(before),
            }
        }
    }

    /// Whether the cursor is on an entry.
    #[inline]
    #[must_use]
    pub fn valid(&self) -> bool {
        self.at.is_some()
    }

    /// The entry's key; empty when the cursor is not valid.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn key(&self) -> &'a [u8] {
        self.at.map_or(&[], |(_, _, entry)| entry.key)
    }

    /// The entry's sequence; 0 when the cursor is not valid.
    #[inline]
    #[must_use]
    pub fn sequence(&self) -> Sequence {
        self.at.map_or(0, |(_, sequence, _)| sequence)
    }

    /// The entry's kind; a delete when the cursor is not valid.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.at.map_or(Kind::Delete, |(_, _, entry)| entry.kind)
    }

    /// When the entry expires, in milliseconds since 1970.
    #[inline]
    #[must_use]
    pub fn expires(&self) -> Option<u64> {
        self.at.and_then(|(_, _, entry)| entry.expires)
    }

    /// The entry's value; empty when the cursor is not valid.
    #[inline]
    #[must_use]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn value(&self) -> &'a [u8] {
        self.at.map_or(&[], |(_, _, entry)| entry.value)
    }

    /// Shows the version that the reader sees of the key at `place`, or of the next key of which it sees a version.
    #[inline(never)]
    #[cfg_attr(varve_size, optimize(speed))]
    fn go_forward(&mut self, place: Option<Place>) {
        let (tree, image) = (&self.memtable.index.tree, &self.memtable.image);
        let mut next = place;
        while let Some(place) = next {
            match self.visible(place) {
                Some(seen) => return self.show(seen),
                None => next = tree.next_key(image, place, &mut self.steps),
            }
        }
        self.at = None;
    }

    /// As [`go_forward`](Self::go_forward), but from the oldest version of a key and towards lower keys.
    #[inline(never)]
    fn go_back(&mut self, place: Option<Place>) {
        let (tree, image) = (&self.memtable.index.tree, &self.memtable.image);
        let mut next = place;
        while let Some(place) = next {
            let (mut newest, mut before) = (place, tree.previous(place));
            if before.is_some_and(|before| tree.is_same_key(image, place, before)) {
                let start = start_of(key_at(image, tree.item(place).offset));
                newest = tree.lower_bound(image, start).unwrap_or(place);
                before = tree.previous(newest);
            }
            if let Some(seen) = self.visible(newest) {
                return self.show(seen);
            }
            next = before;
        }
        self.at = None;
    }

    /// The version that the reader sees of the key whose newest version is at `place`.
    #[inline]
    fn visible(&mut self, place: Place) -> Option<Place> {
        let item = self.memtable.index.tree.item(place);
        if self.until.is_some_and(|until| item.delta <= until) {
            return Some(place);
        }
        self.older(place, item)
    }

    #[cold]
    #[inline(never)]
    fn older(&mut self, place: Place, item: Item) -> Option<Place> {
        let (tree, image) = (&self.memtable.index.tree, &self.memtable.image);
        let (entry, _) = Entry::decode(image, item.offset as usize)?;
        self.passed_newer |= entry.kind == Kind::Set;
        let probe = Probe { key: entry.key, delta: self.until? };
        tree.lower_bound(image, probe).filter(|&found| tree.is_same_key(image, place, found))
    }

    #[inline]
    fn show(&mut self, place: Place) {
        let memtable = self.memtable;
        let item = memtable.index.tree.item(place);
        let sequence = memtable.index.base + Sequence::from(item.delta);
        self.at =
            Entry::decode(&memtable.image, item.offset as usize).map(|(entry, _)| (place, sequence, entry));
    }
}

/// The place before all versions of `key`.
fn start_of(key: &[u8]) -> Probe<'_> {
    Probe { key, delta: u32::MAX }
}
