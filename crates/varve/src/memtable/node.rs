//! One node of the tree: up to 31 items in order, with eight bytes of each key at hand.
//!
//! ```text
//! len    u32           items in use
//! skip   u32           bytes that all keys of the node share, rounded down to a multiple of 4
//! heads  [u64; 31]     the 8 bytes behind `skip`, big-endian; unused ones are all ones
//! items  [Item; 31]    where the entry lies in the image, and its sequence
//! ```
//!
//! 31 because a leaf is then 512 bytes, eight cache lines; the heads are in the first four.
//!
//! A search looks at heads alone until two are equal. Keys often start alike (a tuple's first elements), so heads are
//! computed after the common prefix of the node's keys. Without that, all heads would be equal and every comparison would
//! read two keys. The prefix is rounded down for two reasons. A key at the edge of a node, which shares a little less,
//! then seldom forces new heads. And a child then seldom shares more than its parent, whose prefix was already
//! compared.
//!
//! Invariant: items are in the order (key ascending, sequence descending), without equals; every key has the
//! node's first `skip` bytes.

use core::cmp::Ordering;

use crate::codec::bytes::{common_prefix, compare, head};
use crate::wal::key_at;

/// Items in a full node.
pub(super) const WIDTH: usize = 31;

/// An entry of the memtable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Item {
    /// Where the entry lies in the image.
    pub(super) offset: u32,
    /// Its sequence, counted from the memtable's first one.
    pub(super) delta: u32,
}

/// A place in the order: the first item with a greater key, or with this key and no higher sequence.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    pub(super) key: &'a [u8],
    pub(super) delta: u32,
}

/// Where a probe belongs in a node.
pub(super) struct Found {
    /// Number of items before the probe.
    pub(super) at: usize,
    /// Whether the probe's key has the node's prefix.
    pub(super) fits: bool,
}

/// The heads alone do not decide.
pub(super) struct Unclear;

#[derive(Clone)]
#[repr(C)]
pub(super) struct Node {
    len: u32,
    skip: u32,
    heads: [u64; WIDTH],
    items: [Item; WIDTH],
}

impl Node {
    pub(super) fn new() -> Self {
        Self { len: 0, skip: 0, heads: [u64::MAX; WIDTH], items: [Item::default(); WIDTH] }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn item(&self, at: usize) -> Item {
        self.items[at]
    }

    /// Whether eight bytes of the keys of two items are not enough to distinguish them.
    #[inline]
    pub(super) fn has_same_heads(&self, one: usize, other: usize) -> bool {
        self.heads[one] == self.heads[other]
    }

    #[inline]
    pub(super) fn items(&self) -> &[Item] {
        &self.items[..self.len()]
    }

    /// Finds the place of `probe`. `known` is the number of bytes of the probe's key that are known to equal the node's
    /// first key. It is updated for the child whose first key is the last item before the probe. (That item lies
    /// between the node's first key and the probe, so it has everything that the two share.)
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn search(&self, image: &[u8], probe: Probe<'_>, known: &mut usize) -> Found {
        let skip = self.skip as usize;
        if skip > *known {
            if let Some(found) = self.outside(image, probe, *known) {
                return found;
            }
            *known = skip;
        }
        Found { at: self.guess(image, probe), fits: true }
    }

    /// The place of a probe whose key has the node's prefix. For any other probe the result has no meaning.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn guess(&self, image: &[u8], probe: Probe<'_>) -> usize {
        let (at, wanted) = self.rank(probe.key);
        if at < self.len() && self.heads[at] == wanted {
            return self.search_equal(image, probe, at, wanted);
        }
        at
    }

    /// The number of heads below the head of `key`, and that head.
    #[inline(always)]
    #[cfg_attr(varve_size, optimize(speed))]
    fn rank(&self, key: &[u8]) -> (usize, u64) {
        let wanted = head(key, self.skip as usize);
        let heads = &self.heads;
        // Three independent reads load the heads' cache lines. Then steps of 4, 2 and 1 follow.
        let before = |at: usize| usize::from(heads[at] < wanted);
        let mut at = 8 * (before(7) + before(15) + before(23));
        at += 4 * before(at + 3);
        at += 2 * before(at + 1);
        at += before(at);
        (at, wanted)
    }

    /// The number of items that come before `key` or are versions of it. `key` must have the node's prefix; otherwise
    /// the number has no meaning.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn up_to(&self, image: &[u8], key: &[u8]) -> usize {
        let (mut at, wanted) = self.rank(key);
        while at < self.len() && self.heads[at] == wanted {
            if compare(key_at(image, self.items[at].offset), key).is_gt() {
                break;
            }
            at += 1;
        }
        at
    }

    /// The only item that can be a version of `key`, in the leaf where its oldest version lies if it has one. `Err`
    /// when the heads do not decide: then there may be other versions, or versions of the first item in the previous
    /// leaf.
    #[inline(always)]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn only(&self, key: &[u8]) -> Result<Option<Item>, Unclear> {
        let (at, wanted) = self.rank(key);
        let heads = &self.heads[..self.len()];
        match heads.get(at) {
            Some(&found) if found == wanted => {
                if at == 0 || heads.get(at + 1) == Some(&wanted) {
                    return Err(Unclear);
                }
                Ok(Some(self.items[at]))
            }
            _ => Ok(None),
        }
    }

    /// The place of a probe whose key does not have the node's prefix.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    fn outside(&self, image: &[u8], probe: Probe<'_>, known: usize) -> Option<Found> {
        let skip = self.skip as usize;
        let prefix = key_at(image, self.items[0].offset).get(known..skip).unwrap_or_default();
        let shown = probe.key.get(known..probe.key.len().min(skip)).unwrap_or_default();
        match compare(shown, prefix) {
            Ordering::Equal => None,
            Ordering::Less => Some(Found { at: 0, fits: false }),
            Ordering::Greater => Some(Found { at: self.len(), fits: false }),
        }
    }

    /// Narrows down among the items whose head is `wanted`; `from` is the first of them.
    #[cfg_attr(varve_size, optimize(speed))]
    fn search_equal(&self, image: &[u8], probe: Probe<'_>, from: usize, wanted: u64) -> usize {
        let heads = &self.heads[..self.len()];
        let equal = heads[from..].iter().take_while(|&&head| head == wanted).count();
        let (mut low, mut high) = (from, from + equal);
        // The newest version of a key comes first, and most probes look for it; the others look for the oldest.
        let mut middle = if probe.delta == 0 { high.saturating_sub(1) } else { low };
        while low < high {
            if self.precedes(image, middle, probe) {
                low = middle + 1;
            } else {
                high = middle;
            }
            middle = low.midpoint(high);
        }
        low
    }

    /// Whether the item at `at`, whose head is the probe's, comes before the probe.
    #[cfg_attr(varve_size, optimize(speed))]
    fn precedes(&self, image: &[u8], at: usize, probe: Probe<'_>) -> bool {
        let item = self.items[at];
        let key = key_at(image, item.offset);
        let skip = self.skip as usize + 8;
        let rest = |key: &'_ [u8]| key.len().min(skip);
        let order = compare(&key[rest(key)..], &probe.key[rest(probe.key)..])
            .then(key.len().cmp(&probe.key.len()))
            .then(probe.delta.cmp(&item.delta));
        order == Ordering::Less
    }

    /// Puts an item at its place; the node is not full. `fits` is the value that [`search`](Self::search) found.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn insert(&mut self, image: &[u8], place: Found, key: &[u8], item: Item) {
        let len = self.len();
        if !place.fits {
            self.loosen(image, key);
        }
        self.heads.copy_within(place.at..len, place.at + 1);
        self.items.copy_within(place.at..len, place.at + 1);
        self.heads[place.at] = head(key, self.skip as usize);
        self.items[place.at] = item;
        self.len += 1;
    }

    /// Replaces the first item by a lower one.
    pub(super) fn lower_first(&mut self, image: &[u8], fits: bool, key: &[u8], item: Item) {
        if !fits {
            self.loosen(image, key);
        }
        self.heads[0] = head(key, self.skip as usize);
        self.items[0] = item;
    }

    /// Whether `key` has the node's prefix.
    pub(super) fn fits(&self, image: &[u8], key: &[u8]) -> bool {
        self.shares(image, key, self.skip)
    }

    /// Whether `key` begins with the first `prefix` bytes of the node's first key.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(super) fn shares(&self, image: &[u8], key: &[u8], prefix: u32) -> bool {
        prefix == 0 || common_prefix(key, key_at(image, self.items[0].offset)) >= prefix as usize
    }

    /// The number of bytes that the node's keys are known to share.
    #[inline]
    pub(super) fn skip(&self) -> u32 {
        self.skip
    }

    /// Moves the items from `at` on to a new node.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let len = self.len();
        let mut right = Self::new();
        let moved = len - at;
        right.heads[..moved].copy_from_slice(&self.heads[at..len]);
        right.items[..moved].copy_from_slice(&self.items[at..len]);
        self.heads[at..].fill(u64::MAX);
        right.len = moved as u32;
        self.len = at as u32;
        right.skip = self.skip;
        right
    }

    /// A node after this one with a single item, the last of all. The prefix that its key shares with the last key here
    /// is the best guess for the prefix it will share with the keys that follow.
    pub(super) fn append_right(&self, image: &[u8], key: &[u8], item: Item) -> Self {
        let last = key_at(image, self.items[self.len() - 1].offset);
        let mut right = Self::new();
        right.skip = rounded(common_prefix(last, key));
        right.heads[0] = head(key, right.skip as usize);
        right.items[0] = item;
        right.len = 1;
        right
    }

    /// Takes heads after a longer prefix, if the keys share one by now.
    pub(super) fn tighten(&mut self, image: &[u8]) {
        if self.len < 2 {
            return;
        }
        let first = key_at(image, self.items[0].offset);
        let last = key_at(image, self.items[self.len() - 1].offset);
        let skip = rounded(common_prefix(first, last));
        if skip > self.skip {
            self.rehead(image, skip);
        }
    }

    /// Shortens the prefix so that `key` has it.
    #[inline(never)]
    fn loosen(&mut self, image: &[u8], key: &[u8]) {
        let skip = rounded(common_prefix(key, key_at(image, self.items[0].offset)));
        self.rehead(image, skip.min(self.skip));
    }

    fn rehead(&mut self, image: &[u8], skip: u32) {
        self.skip = skip;
        for (slot, item) in self.heads.iter_mut().zip(&self.items[..self.len as usize]) {
            *slot = head(key_at(image, item.offset), skip as usize);
        }
    }
}

fn rounded(prefix: usize) -> u32 {
    prefix as u32 & !3
}
