//! A B+tree over the entries of an image.
//!
//! Inner nodes hold, for every child, the lowest item below it, so the first key of a child is always one
//! that its parent compared. Nothing is ever removed. Nodes lie in two flat vectors and refer to each other
//! by index; leaves are linked both ways. Ascending keys fill leaves to the brim: only the last leaf splits
//! at its end.
//!
//! Invariant: leaves in link order hold every item once, in order; no leaf is empty unless the tree is.

use super::node::{Found, Item, Node, Probe, WIDTH};
use crate::codec::bytes::equal;
use crate::wal::key_at;

/// No leaf.
const NONE: u32 = u32::MAX;

/// Items that stay in the left half of a split node.
const HALF: usize = WIDTH.div_ceil(2);

/// Inner levels at most: all nodes but those on the right edge have at least 15 items, and there are at most
/// 2^32 / 3 entries in an image.
const HEIGHT_MAX: usize = 9;

#[repr(C, align(64))]
struct Leaf {
    node: Node,
    previous: u32,
    next: u32,
}

#[repr(C, align(64))]
struct Inner {
    node: Node,
    children: [u32; WIDTH],
}

pub(super) struct Tree {
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    /// An inner node, or the only leaf when `height` is 0.
    root: u32,
    height: usize,
    last_leaf: u32,
}

/// Where an item is. Stays valid until the next insert.
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
    /// Prefixes are not compared on the way down but once at its end: a key that shares with one key of the leaf all
    /// that the nodes on the path share was compared rightly by each of them.
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
        if leaf.len() < WIDTH {
            leaf.insert(image, found, key, item);
        } else {
            let split = self.split_leaf(image, at, found, key, item);
            self.grow(image, split, &path);
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
            at = inner.children[child];
        }
        let leaf = &mut self.leaves[at as usize].node;
        let found = leaf.search(image, probe, &mut known);
        if leaf.len() < WIDTH {
            leaf.insert(image, found, key, item);
        } else {
            let split = self.split_leaf(image, at, found, key, item);
            self.grow(image, split, &path);
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

    /// Enters a new node into its parent, splitting upwards as needed.
    fn grow(&mut self, image: &[u8], mut new: Split, path: &[(u32, usize); HEIGHT_MAX]) {
        for &(parent, child) in path[..self.height].iter().rev() {
            let index = self.inners.len() as u32;
            let inner = &mut self.inners[parent as usize];
            let key = key_at(image, new.item.offset);
            let found = Found { at: child + 1, fits: inner.node.fits(image, key) };
            if inner.node.len() < WIDTH {
                inner.adopt(image, found, key, &new);
                return;
            }
            let right = inner.split(image, found, key, &new);
            new = Split { item: right.node.item(0), node: index };
            self.inners.push(right);
        }
        let first = if self.height == 0 {
            self.leaves[self.root as usize].node.item(0)
        } else {
            self.inners[self.root as usize].node.item(0)
        };
        let mut root = Inner { node: Node::new(), children: [0; WIDTH] };
        for (at, child) in [Split { item: first, node: self.root }, new].into_iter().enumerate() {
            let key = key_at(image, child.item.offset);
            root.adopt(image, Found { at, fits: true }, key, &child);
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
        // Down to the leaf where the key's oldest version lies. As in `insert`, prefixes are not compared on the way: what
        // is found is the key, and what is not is believed only of a key that has them.
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

    /// The first item at or behind `probe`.
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

    /// The last item in front of `probe`.
    pub(super) fn before(&self, image: &[u8], probe: Probe<'_>) -> Option<Place> {
        match self.lower_bound(image, probe) {
            Some(place) => self.previous(place),
            None => self.last(),
        }
    }

    pub(super) fn first(&self) -> Option<Place> {
        // Leaves split to the right, so the first one is the one there always was.
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
    /// Takes a child in; there is room for it.
    fn adopt(&mut self, image: &[u8], found: Found, key: &[u8], child: &Split) {
        let (at, len) = (found.at, self.node.len());
        self.node.insert(image, found, key, child.item);
        self.children.copy_within(at..len, at + 1);
        self.children[at] = child.node;
    }

    /// Takes a child in and answers the right half.
    fn split(&mut self, image: &[u8], found: Found, key: &[u8], child: &Split) -> Self {
        let at = found.at;
        let mut all = [0; WIDTH + 1];
        all[..at].copy_from_slice(&self.children[..at]);
        all[at] = child.node;
        all[at + 1..].copy_from_slice(&self.children[at..]);
        let node = split(&mut self.node, image, found, key, child.item, false);
        let mut children = [0; WIDTH];
        children[..node.len()].copy_from_slice(&all[self.node.len()..]);
        self.children.copy_from_slice(&all[..WIDTH]);
        Self { node, children }
    }
}

/// Inserts into a full node by splitting it; answers the right half. `rightmost`: nothing comes behind the
/// node.
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
