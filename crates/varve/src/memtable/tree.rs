//! A B+tree over the entries of an image.
//!
//! Inner nodes have, for every child, the lowest item below it, so the first key of a child is always one that its
//! parent compared. Nothing is ever removed. Nodes lie in two flat vectors and refer to each other by index; leaves are
//! linked both ways. Ascending keys fill leaves to the brim: only the last leaf splits at its end.
//!
//! Invariant: leaves in link order contain every item once, in order; no leaf is empty unless the tree is.

use core::ops::ControlFlow;

use super::node::{Found, Item, Node, Probe, WIDTH};
use crate::codec::bytes::equal;
use crate::mutant::{self, Mutant};
use crate::wal::key_at;

/// No leaf.
const NONE: u32 = u32::MAX;

/// Items that stay in the left half of a split node.
const HALF: usize = WIDTH.div_ceil(2);

/// Number of versions of a key that are passed one by one before the rest is skipped with a seek. After a key that fills
/// whole leaves it is one.
pub(super) const STEPS_TO_SEEK: u32 = 4;

/// Inner levels at most: all nodes but those on the right edge have at least 15 items, and there are at most
/// 2^32 / 3 entries in an image.
const HEIGHT_MAX: usize = 9;

#[derive(Clone)]
#[repr(C, align(64))]
struct Leaf {
    node: Node,
    previous: u32,
    next: u32,
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Inner {
    node: Node,
    children: [u32; WIDTH],
    /// No item below a child is newer than this. Halves of a split node count as new as the item that split it.
    newest: [u32; WIDTH],
}

#[derive(Clone)]
pub(super) struct Tree {
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    /// An inner node, or the only leaf when `height` is 0.
    root: u32,
    height: usize,
    last_leaf: u32,
}

/// The place of an item. It stays valid until the next insert.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    leaf: u32,
    at: u32,
}

/// The right half of a split node: its lowest item, and its index.
struct Split {
    item: Item,
    node: u32,
}

/// The search of [`Tree::first_newer`].
struct Newer<'a> {
    image: &'a [u8],
    since: Option<u32>,
    reaches: &'a dyn Fn(&[u8]) -> bool,
}

impl Tree {
    pub(super) fn new() -> Self {
        let leaf = Leaf { node: Node::new(), previous: NONE, next: NONE };
        Self { leaves: vec![leaf], inners: Vec::new(), root: 0, height: 0, last_leaf: 0 }
    }

    /// Bytes of all nodes.
    pub(super) fn bytes(&self) -> usize {
        self.leaves.len() * size_of::<Leaf>() + self.inners.len() * size_of::<Inner>()
    }

    /// Adds an entry of the image; no item has its key and sequence yet.
    ///
    /// Prefixes are not compared on the way down, but once at the end. If the key shares with one key of the leaf
    /// everything that the nodes on the path share, each of them compared it correctly.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn insert(&mut self, image: &[u8], key: &[u8], item: Item) {
        let probe = Probe { key, delta: item.delta };
        let mut path = [(0u32, 0usize); HEIGHT_MAX];
        let (mut at, mut prefix) = (self.root, 0);
        for step in &mut path[..self.height] {
            let inner = &self.inners[at as usize];
            let Some(child) = inner.node.guess(image, probe).checked_sub(1) else {
                return self.insert_compared(image, key, item);
            };
            prefix = prefix.max(inner.node.skip());
            *step = (at, child);
            at = inner.children[child];
        }
        let leaf = &mut self.leaves[at as usize].node;
        let found = Found { at: leaf.guess(image, probe), fits: true };
        if !leaf.shares(image, key, prefix.max(leaf.skip())) {
            return self.insert_compared(image, key, item);
        }
        for &(parent, child) in &path[..self.height] {
            self.inners[parent as usize].newest[child] = item.delta;
        }
        if leaf.len() < WIDTH {
            leaf.insert(image, found, key, item);
        } else {
            let split = self.split_leaf(image, at, found, key, item);
            self.grow(image, split, item.delta, &path);
        }
    }

    /// As [`insert`](Self::insert), with all prefixes compared, for a key that does not have them.
    #[inline(never)]
    fn insert_compared(&mut self, image: &[u8], key: &[u8], item: Item) {
        let probe = Probe { key, delta: item.delta };
        let mut path = [(0u32, 0usize); HEIGHT_MAX];
        let mut known = 0;
        let mut at = self.root;
        for step in &mut path[..self.height] {
            let inner = &mut self.inners[at as usize];
            let found = inner.node.search(image, probe, &mut known);
            if found.at == 0 {
                inner.node.lower_first(image, found.fits, key, item);
            }
            let child = found.at.saturating_sub(1);
            *step = (at, child);
            inner.newest[child] = item.delta;
            at = inner.children[child];
        }
        let leaf = &mut self.leaves[at as usize].node;
        let found = leaf.search(image, probe, &mut known);
        if leaf.len() < WIDTH {
            leaf.insert(image, found, key, item);
        } else {
            let split = self.split_leaf(image, at, found, key, item);
            self.grow(image, split, item.delta, &path);
        }
    }

    fn split_leaf(&mut self, image: &[u8], at: u32, found: Found, key: &[u8], item: Item) -> Split {
        let index = self.leaves.len() as u32;
        let left = &mut self.leaves[at as usize];
        let next = left.next;
        let node = split(&mut left.node, image, found, key, item, next == NONE);
        let first = node.item(0);
        left.next = index;
        self.leaves.push(Leaf { node, previous: at, next });
        match self.leaves.get_mut(next as usize) {
            Some(next) => next.previous = index,
            None => self.last_leaf = index,
        }
        Split { item: first, node: index }
    }

    /// Adds a new node to its parent, and splits nodes upwards as needed; `newest` is the sequence of the item that split it.
    fn grow(&mut self, image: &[u8], mut new: Split, newest: u32, path: &[(u32, usize); HEIGHT_MAX]) {
        for &(parent, child) in path[..self.height].iter().rev() {
            let index = self.inners.len() as u32;
            let inner = &mut self.inners[parent as usize];
            let key = key_at(image, new.item.offset);
            let found = Found { at: child + 1, fits: inner.node.fits(image, key) };
            if inner.node.len() < WIDTH {
                inner.adopt(image, found, key, &new, newest);
                return;
            }
            let right = inner.split(image, found, key, &new, newest);
            new = Split { item: right.node.item(0), node: index };
            self.inners.push(right);
        }
        let first = if self.height == 0 {
            self.leaves[self.root as usize].node.item(0)
        } else {
            self.inners[self.root as usize].node.item(0)
        };
        let mut root = Inner { node: Node::new(), children: [0; WIDTH], newest: [0; WIDTH] };
        for (at, child) in [Split { item: first, node: self.root }, new].into_iter().enumerate() {
            let key = key_at(image, child.item.offset);
            root.adopt(image, Found { at, fits: true }, key, &child, newest);
        }
        root.node.tighten(image);
        self.root = self.inners.len() as u32;
        self.inners.push(root);
        self.height += 1;
    }

    /// The newest item of `key` at or below `delta`.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn get(&self, image: &[u8], key: &[u8], delta: u32) -> Option<Item> {
        let probe = Probe { key, delta };
        // Goes down to the leaf where the key's oldest version lies. As in `insert`, prefixes are not compared on the way.
        // If an item is found, it is the key. If none is found, the result is trusted only for a key that has the
        // prefixes.
        let (mut at, mut prefix) = (self.root, 0);
        for _ in 0..self.height {
            let inner = &self.inners[at as usize];
            prefix = prefix.max(inner.node.skip());
            at = inner.children[inner.node.up_to(image, key).saturating_sub(1)];
        }
        let leaf = &self.leaves[at as usize].node;
        if let Ok(found) = leaf.only(key) {
            match found.filter(|item| equal(key_at(image, item.offset), key)) {
                Some(item) if item.delta <= delta => return Some(item),
                None if leaf.len() > 0 && leaf.shares(image, key, prefix.max(leaf.skip())) => return None,
                Some(_) | None => {}
            }
        }
        let item = self.item(self.lower_bound(image, probe)?);
        equal(key_at(image, item.offset), key).then_some(item)
    }

    /// The first item at or after `probe`.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn lower_bound(&self, image: &[u8], probe: Probe<'_>) -> Option<Place> {
        let mut known = 0;
        let mut at = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[at as usize];
            let found = inner.node.search(image, probe, &mut known);
            at = inner.children[found.at.saturating_sub(1)];
        }
        let leaf = &self.leaves[at as usize];
        let found = leaf.node.search(image, probe, &mut known);
        if found.at < leaf.node.len() {
            return Some(Place { leaf: at, at: found.at as u32 });
        }
        (leaf.next != NONE).then_some(Place { leaf: leaf.next, at: 0 })
    }

    /// The last item before `probe`.
    pub(super) fn before(&self, image: &[u8], probe: Probe<'_>) -> Option<Place> {
        match self.lower_bound(image, probe) {
            Some(place) => self.previous(place),
            None => self.last(),
        }
    }

    /// The first item after all versions of the key at `place`. `steps` is the number of versions that are passed one by one; it is
    /// updated for the next key.
    #[inline(never)]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn next_key(&self, image: &[u8], place: Place, steps: &mut u32) -> Option<Place> {
        let mut next = place;
        for _ in 0..*steps {
            next = self.next(next)?;
            if !self.is_same_key(image, place, next) {
                return Some(next);
            }
        }
        // At its oldest version, if that is the first entry of all, otherwise after it.
        let oldest = Probe { key: key_at(image, self.item(place).offset), delta: 0 };
        let found = self.lower_bound(image, oldest)?;
        *steps = if found.leaf == place.leaf { STEPS_TO_SEEK } else { 1 };
        let is_first = self.item(found).delta == 0 && self.is_same_key(image, place, found);
        if is_first || mutant::has(Mutant::OldVersionsTooLong) { self.next(found) } else { Some(found) }
    }

    /// Whether two items are versions of one key. Nearly always their heads already show that they are not.
    #[inline]
    pub(super) fn is_same_key(&self, image: &[u8], one: Place, other: Place) -> bool {
        let node = &self.leaves[one.leaf as usize].node;
        (one.leaf != other.leaf || node.has_same_heads(one.at as usize, other.at as usize))
            && self.has_equal_keys(image, one, other)
    }

    #[inline(never)]
    fn has_equal_keys(&self, image: &[u8], one: Place, other: Place) -> bool {
        let key_of = |place| key_at(image, self.item(place).offset);
        equal(key_of(one), key_of(other))
    }

    /// The first item that is newer than `since` (any item for `None`), from `from` on, while `reaches` accepts the key.
    pub(super) fn first_newer(
        &self,
        image: &[u8],
        from: &[u8],
        since: Option<u32>,
        reaches: &dyn Fn(&[u8]) -> bool,
    ) -> Option<Item> {
        let search = Newer { image, since, reaches };
        self.newer_below(self.root, self.height, Some(from), &search).break_value().flatten()
    }

    /// Continues when the range continues and nothing newer is below the node.
    #[inline(never)]
    fn newer_below(
        &self,
        at: u32,
        height: usize,
        from: Option<&[u8]>,
        search: &Newer<'_>,
    ) -> ControlFlow<Option<Item>> {
        let Newer { image, since, reaches } = *search;
        let inner = if height == 0 { None } else { Some(&self.inners[at as usize]) };
        let node = inner.map_or_else(|| &self.leaves[at as usize].node, |inner| &inner.node);
        let mut from = from;
        let mut index = from.map_or(0, |key| node.search(image, Probe { key, delta: u32::MAX }, &mut 0).at);
        if inner.is_some() && from.is_some() {
            // The range may begin in the previous child.
            index = index.saturating_sub(1);
        }
        while index < node.len() {
            let item = node.item(index);
            let newest = inner.map_or(item.delta, |inner| inner.newest[index]);
            if (inner.is_none() || from.is_none()) && !reaches(key_at(image, item.offset)) {
                return ControlFlow::Break(None);
            }
            if since.is_none_or(|since| newest > since) {
                match inner {
                    None => return ControlFlow::Break(Some(item)),
                    Some(inner) => self.newer_below(inner.children[index], height - 1, from, search)?,
                }
            }
            from = None;
            index += 1;
        }
        ControlFlow::Continue(())
    }

    pub(super) fn first(&self) -> Option<Place> {
        // Leaves split to the right, so the first leaf is always the original one.
        (self.leaves[0].node.len() > 0).then_some(Place { leaf: 0, at: 0 })
    }

    pub(super) fn last(&self) -> Option<Place> {
        self.end_of(self.last_leaf)
    }

    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn next(&self, place: Place) -> Option<Place> {
        let leaf = &self.leaves[place.leaf as usize];
        if (place.at as usize) + 1 < leaf.node.len() {
            return Some(Place { at: place.at + 1, ..place });
        }
        (leaf.next != NONE).then_some(Place { leaf: leaf.next, at: 0 })
    }

    #[inline]
    pub(super) fn previous(&self, place: Place) -> Option<Place> {
        match place.at.checked_sub(1) {
            Some(at) => Some(Place { at, ..place }),
            None => self.end_of(self.leaves[place.leaf as usize].previous),
        }
    }

    fn end_of(&self, leaf: u32) -> Option<Place> {
        let at = self.leaves.get(leaf as usize)?.node.len().checked_sub(1)?;
        Some(Place { leaf, at: at as u32 })
    }

    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn item(&self, place: Place) -> Item {
        self.leaves[place.leaf as usize].node.item(place.at as usize)
    }

    /// All items in order.
    pub(super) fn items(&self) -> impl Iterator<Item = Item> + '_ {
        let follow = |leaf: &&Leaf| self.leaves.get(leaf.next as usize);
        core::iter::successors(self.leaves.first(), follow).flat_map(|leaf| leaf.node.items()).copied()
    }
}

impl Inner {
    /// Adds a child; there is room for it.
    fn adopt(&mut self, image: &[u8], found: Found, key: &[u8], child: &Split, newest: u32) {
        let (at, len) = (found.at, self.node.len());
        self.node.insert(image, found, key, child.item);
        put(&mut self.children, at, len, child.node);
        put(&mut self.newest, at, len, newest);
    }

    /// Adds a child by splitting the node. Returns the right half.
    fn split(&mut self, image: &[u8], found: Found, key: &[u8], child: &Split, newest: u32) -> Self {
        let at = found.at;
        let node = split(&mut self.node, image, found, key, child.item, false);
        let len = self.node.len();
        let children = halve(&mut self.children, at, len, child.node);
        let newest = halve(&mut self.newest, at, len, newest);
        Self { node, children, newest }
    }
}

/// Inserts one more into the first `len`.
fn put(of: &mut [u32; WIDTH], at: usize, len: usize, one: u32) {
    of.copy_within(at..len, at + 1);
    of[at] = one;
}

/// Inserts one more into all of them. Keeps the first `len` and returns the rest.
fn halve(of: &mut [u32; WIDTH], at: usize, len: usize, one: u32) -> [u32; WIDTH] {
    let mut all = [0; WIDTH + 1];
    all[..at].copy_from_slice(&of[..at]);
    all[at] = one;
    all[at + 1..].copy_from_slice(&of[at..]);
    let mut behind = [0; WIDTH];
    behind[..=WIDTH - len].copy_from_slice(&all[len..]);
    of.copy_from_slice(&all[..WIDTH]);
    behind
}

/// Inserts into a full node by splitting it. Returns the right half. `rightmost`: nothing comes after the node.
fn split(left: &mut Node, image: &[u8], found: Found, key: &[u8], item: Item, rightmost: bool) -> Node {
    let right = if rightmost && found.at == WIDTH {
        left.append_right(image, key, item)
    } else {
        let mut right = left.split_off(HALF);
        match found.at.checked_sub(HALF + 1) {
            Some(past) => right.insert(image, Found { at: past + 1, ..found }, key, item),
            None => left.insert(image, found, key, item),
        }
        right.tighten(image);
        right
    };
    left.tighten(image);
    right
}
