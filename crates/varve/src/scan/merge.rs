//! A k-way merge of sources, forward or backward.
//!
//! Invariant: `order` lists the valid sources, nearest entry last (so that it pops cheaply). After a step the moved
//! source is put back by binary search, but first compared with its neighbour alone: runs of keys from one source, the
//! usual case, cost one comparison per entry. A step for which bytes are missing changes nothing; call it again.

use std::cmp::Ordering;

use super::source::Source;
use crate::codec::bytes::compare;
use crate::error::{Error, Result};
use crate::table::{self, Blocks};

/// The direction of a merge, and where it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'k> {
    /// Forward from the first key that is not below this one; from the very first key for `None`.
    Forward(Option<&'k [u8]>),
    /// Backward from the last key below this one; from the very last key for `None`.
    Backward(Option<&'k [u8]>),
}

/// The merged walk.
pub(crate) struct Merge<'a> {
    sources: Vec<Source<'a>>,
    /// How many of the sources, from the first on, are where the last seek wants them.
    sought: usize,
    order: Vec<u32>,
    forward: bool,
}

impl<'a> Merge<'a> {
    /// Seeks every source and orders them.
    pub(crate) fn start(sources: Vec<Source<'a>>, start: Start<'_>, blocks: &dyn Blocks) -> Result<Self> {
        let mut merge = Self::new(sources, matches!(start, Start::Forward(_)));
        merge.seek(start, blocks)?;
        Ok(merge)
    }

    /// A merge whose sources are nowhere yet: [`Merge::go_on_seeking`] comes next.
    pub(crate) fn new(sources: Vec<Source<'a>>, forward: bool) -> Self {
        Self { sources, sought: 0, order: Vec::new(), forward }
    }

    /// Seeks to another place, in the same direction. After an error, the position of every source is undefined.
    #[inline]
    pub(crate) fn seek(&mut self, start: Start<'_>, blocks: &dyn Blocks) -> Result<()> {
        self.sought = 0;
        self.go_on_seeking(start, blocks)
    }

    /// Seeks the sources that an earlier attempt did not come to. `start` is that of the attempt.
    #[inline(never)]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(crate) fn go_on_seeking(&mut self, start: Start<'_>, blocks: &dyn Blocks) -> Result<()> {
        self.order.clear();
        for at in self.sought..self.sources.len() {
            self.sought = at;
            if let Err(failure) = seek(&mut self.sources[at], start, blocks) {
                return Err(come_upon(&mut self.sources[at + 1..], start, blocks, failure));
            }
        }
        for index in 0..self.sources.len() {
            if self.sources[index].valid() {
                let at = self.place(index);
                self.order.insert(at, index as u32);
            }
        }
        Ok(())
    }

    /// Whether the walk passed a key whose newest version is a value that its reader does not see. For tables, the caller sees this itself.
    pub(crate) fn passed_newer(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Memtable(cursor) if cursor.passed_newer()))
    }

    /// The source of the current entry.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(crate) fn current(&self) -> Option<&Source<'a>> {
        self.order.last().map(|&index| &self.sources[index as usize])
    }

    /// The index of the source of the current entry, counted from 0.
    #[inline]
    pub(crate) fn current_run(&self) -> usize {
        self.order.last().map_or(usize::MAX, |&index| index as usize)
    }

    /// Moves past the current entry.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(crate) fn advance(&mut self, blocks: &dyn Blocks) -> Result<()> {
        let Some(&index) = self.order.last() else { return Ok(()) };
        let index = index as usize;
        self.sources[index].step(self.forward, blocks)?;
        if !self.sources[index].valid() {
            self.order.pop();
            return Ok(());
        }
        let Some(neighbour) = self.order.len().checked_sub(2) else { return Ok(()) };
        if self.nearer(index, self.order[neighbour] as usize) {
            return Ok(());
        }
        self.order.pop();
        let at = self.place(index);
        self.order.insert(at, index as u32);
        Ok(())
    }

    /// Where in `order` source `index` belongs.
    fn place(&self, index: usize) -> usize {
        self.order.partition_point(|&other| self.nearer(index, other as usize))
    }

    /// Whether the entry of source `a` comes before that of source `b` on this walk.
    #[inline]
    fn nearer(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.sources[a], &self.sources[b]);
        let order = compare(a.key(), b.key()).then_with(|| b.sequence().cmp(&a.sequence()));
        if self.forward { order == Ordering::Less } else { order == Ordering::Greater }
    }
}

#[inline]
fn seek(source: &mut Source<'_>, start: Start<'_>, blocks: &dyn Blocks) -> Result<()> {
    match start {
        Start::Forward(Some(key)) => source.seek(key, blocks),
        Start::Forward(None) => source.seek_first(blocks),
        Start::Backward(Some(key)) => source.seek_before(key, blocks),
        Start::Backward(None) => source.seek_last(blocks),
    }
}

/// Seeks the sources after one that failed (see [`come_upon`](crate::table::come_upon)).
#[cold]
#[inline(never)]
fn come_upon(sources: &mut [Source<'_>], start: Start<'_>, blocks: &dyn Blocks, failure: Error) -> Error {
    let others = if blocks.notes_missing() { sources } else { &mut [] };
    table::come_upon(failure, others.iter_mut().map(|source| seek(source, start, blocks)))
}
