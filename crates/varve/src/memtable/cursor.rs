//! A walk over a memtable in both directions.
//!
//! Invariant: forward goes (key ascending, sequence descending), backward is exactly the reverse. A cursor
//! that ran off either end is invalid until it is positioned again.

use super::Memtable;
use super::node::Probe;
use super::tree::Place;
use crate::types::{Kind, Sequence};
use crate::wal::Entry;

/// A position among the point entries of a memtable. Range tombstones are not on the way.
#[derive(Debug, Clone)]
pub struct MemtableCursor<'a> {
    memtable: &'a Memtable,
    at: Option<(Place, Sequence, Entry<'a>)>,
}

impl<'a> MemtableCursor<'a> {
    pub(super) fn new(memtable: &'a Memtable) -> Self {
        Self { memtable, at: None }
    }

    /// Goes to the first entry whose key is `key` or greater.
    pub fn seek(&mut self, key: &[u8]) {
        self.go(self.memtable.index.tree.lower_bound(&self.memtable.image, start_of(key)));
    }

    /// Goes to the last entry whose key is less than `key`.
    pub fn seek_before(&mut self, key: &[u8]) {
        self.go(self.memtable.index.tree.before(&self.memtable.image, start_of(key)));
    }

    /// Goes to the first entry.
    pub fn seek_first(&mut self) {
        self.go(self.memtable.index.tree.first());
    }

    /// Goes to the last entry.
    pub fn seek_last(&mut self) {
        self.go(self.memtable.index.tree.last());
    }

    /// Goes one entry on.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn next(&mut self) {
        if let Some((place, ..)) = self.at {
            self.settle(self.memtable.index.tree.next(place));
        }
    }

    /// Goes one entry back.
    #[inline]
    pub fn prev(&mut self) {
        if let Some((place, ..)) = self.at {
            self.settle(self.memtable.index.tree.previous(place));
        }
    }

    /// Whether the cursor is at an entry.
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

    /// Of a seek: not inlined as steps are, which are many for each seek.
    #[inline(never)]
    fn go(&mut self, place: Option<Place>) {
        self.settle(place);
    }

    #[inline]
    fn settle(&mut self, place: Option<Place>) {
        let memtable = self.memtable;
        self.at = place.and_then(|place| {
            let item = memtable.index.tree.item(place);
            let (entry, _) = Entry::decode(&memtable.image, item.offset as usize)?;
            Some((place, memtable.index.base + Sequence::from(item.delta), entry))
        });
    }
}

/// The place in front of all versions of `key`.
fn start_of(key: &[u8]) -> Probe<'_> {
    Probe { key, delta: u32::MAX }
}
