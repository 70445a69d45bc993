//! The block cache: S3-FIFO, weighed in bytes.
//!
//! ```text
//!  insert -> small (10%) --read twice--> main (90%) --not read since--> out
//!                 |                        ^
//!                 +--> out, its name kept -+- inserted again while its name is kept
//!                      in ghost
//! ```
//!
//! Most blocks are read once, by a scan: they pass through `small` and push nothing out of `main`. A hit moves nothing;
//! it only increments a counter. From "FIFO queues are all you need for cache eviction" (Yang et al., SOSP 2023).
//!
//! Invariant: the weight of the cached items never exceeds the capacity, not even while inserting, except for one open
//! table, which is cached however large it is. Evicted blocks that readers still use are not counted.

mod places;

use std::collections::VecDeque;
use std::rc::Rc;

pub use places::CacheKey;
use places::Places;

use crate::table::{Block, Table};
use crate::types::FileName;

/// The offset in the key of an open table: no block has this offset.
const TABLE_OFFSET: u64 = u64::MAX;

const READS_MAX: u8 = 3;
/// Reads in `small` that move a block to `main`.
const READS_TO_STAY: u8 = 2;
/// When `small` exceeds this part of the capacity, entries are evicted from it first.
const SMALL_DIVISOR: usize = 10;
/// Bytes of an entry besides its block: slot, queue and map.
const ENTRY_BYTES: usize = 96;

/// The item that a slot keeps alive.
#[derive(Debug)]
enum Item {
    Block(Rc<Block>),
    Table(Rc<Table>),
}

#[derive(Debug)]
struct Slot {
    key: CacheKey,
    item: Item,
    bytes: usize,
    reads: u8,
    in_main: bool,
}

/// A cache of open tables and their blocks. Items that are read often stay longer.
#[derive(Debug, Default)]
pub struct Cache {
    capacity_bytes: usize,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    places: Places,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    small_bytes: usize,
    main_bytes: usize,
    table_bytes: usize,
    ghost: Ghost,
    hits: u64,
    misses: u64,
}

impl Cache {
    /// An empty cache with a capacity of `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: usize) -> Self {
        Self { capacity_bytes, ..Self::default() }
    }

    /// The block, if it is cached.
    #[inline]
    #[cfg_attr(varve_size, optimize(speed))]
    pub fn get(&mut self, key: CacheKey) -> Option<Rc<Block>> {
        let slot = self.places.get(key).and_then(|place| self.slots[place as usize].as_mut());
        let Some(slot) = slot else {
            self.misses += 1;
            return None;
        };
        let Item::Block(block) = &slot.item else { return None };
        self.hits += 1;
        slot.reads = (slot.reads + 1).min(READS_MAX);
        Some(Rc::clone(block))
    }

    /// Caches the block and evicts others to make room. A block that is already cached stays (blocks never change). A
    /// block larger than the whole cache is not cached.
    pub fn insert(&mut self, key: CacheKey, block: Rc<Block>) {
        let bytes = block.weight() + ENTRY_BYTES;
        if bytes > self.capacity_bytes || self.places.get(key).is_some() {
            return;
        }
        let in_main = self.ghost.take(key);
        self.add(Slot { key, item: Item::Block(block), bytes, reads: 0, in_main });
    }

    /// Caches an open table and evicts others to make room. It is assumed that the table will be read again. A read that
    /// finds its table closed has to read the whole index and filter. For that reason the table is cached however large it
    /// is.
    pub(crate) fn insert_table(&mut self, table: Rc<Table>) {
        let key = (FileName::table(table.id()), TABLE_OFFSET);
        let bytes = table.resident_bytes() + ENTRY_BYTES;
        if let Some(place) = self.places.get(key) {
            // It now has its filter, so its weight is computed again.
            self.drop_slot(place as u32);
            self.main.retain(|&other| u64::from(other) != place);
        }
        self.table_bytes += bytes;
        self.add(Slot { key, item: Item::Table(table), bytes, reads: READS_MAX, in_main: true });
    }

    fn add(&mut self, slot: Slot) {
        let Slot { key, bytes, in_main, .. } = slot;
        self.evict_to(self.capacity_bytes.saturating_sub(bytes));
        let slot = Some(slot);
        let place = if let Some(place) = self.free.pop() {
            self.slots[place as usize] = slot;
            place
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        self.places.insert(key, u64::from(place));
        if in_main {
            self.main.push_back(place);
            self.main_bytes += bytes;
        } else {
            self.small.push_back(place);
            self.small_bytes += bytes;
        }
    }

    /// Removes all blocks of a file, and its open table.
    pub fn remove_file(&mut self, file: FileName) {
        for place in 0..self.slots.len() {
            if self.slots[place].as_ref().is_some_and(|slot| slot.key.0 == file) {
                self.drop_slot(place as u32);
            }
        }
        let slots = &self.slots;
        self.small.retain(|&place| slots[place as usize].is_some());
        self.main.retain(|&place| slots[place as usize].is_some());
        self.ghost.remove_file(file);
    }

    /// Changes the capacity of the cache. If the new capacity is smaller, evicts at once.
    pub fn set_capacity(&mut self, capacity_bytes: usize) {
        self.capacity_bytes = capacity_bytes;
        self.evict_to(capacity_bytes);
    }

    /// The capacity of the cache in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity_bytes
    }

    /// Bytes in use: the cached items and the overhead of each.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.small_bytes + self.main_bytes
    }

    /// The part of these bytes that open tables take: their indexes and filters.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table_bytes
    }

    /// The open table, if it is cached.
    #[must_use]
    pub fn table(&self, id: u64) -> Option<Rc<Table>> {
        let place = self.places.get((FileName::table(id), TABLE_OFFSET))?;
        match &self.slots[place as usize].as_ref()?.item {
            Item::Table(table) => Some(Rc::clone(table)),
            Item::Block(_) => None,
        }
    }

    /// Whether open tables may take `bytes` more and still leave an eighth of the capacity for blocks.
    #[must_use]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.table_bytes + bytes <= self.capacity_bytes / 8 * 7
    }

    /// Number of cached blocks and open tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.len() == 0
    }

    /// Number of gets that found their block.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Number of gets that did not find their block.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    fn evict_to(&mut self, target_bytes: usize) {
        while self.bytes() > target_bytes {
            if self.small_bytes > self.capacity_bytes / SMALL_DIVISOR || self.main.is_empty() {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
    }

    /// Removes the oldest of `small`: it moves to `main` if it was read, otherwise it is evicted.
    fn evict_small(&mut self) {
        let Some(place) = self.small.pop_front() else {
            return;
        };
        let Some(slot) = self.slots[place as usize].as_mut() else {
            return;
        };
        if slot.reads >= READS_TO_STAY {
            (slot.reads, slot.in_main) = (0, true);
            self.small_bytes -= slot.bytes;
            self.main_bytes += slot.bytes;
            self.main.push_back(place);
            return;
        }
        let key = slot.key;
        self.drop_slot(place);
        self.ghost.put(key, self.places.len());
    }

    /// Removes the oldest of `main`: it moves to the end if it was read since, otherwise it is evicted.
    fn evict_main(&mut self) {
        let Some(place) = self.main.pop_front() else {
            return;
        };
        let Some(slot) = self.slots[place as usize].as_mut() else {
            return;
        };
        if let Item::Table(table) = &slot.item
            && table.take_used()
        {
            slot.reads = READS_MAX;
        }
        if slot.reads > 0 {
            slot.reads -= 1;
            self.main.push_back(place);
        } else {
            self.drop_slot(place);
        }
    }

    /// Empties a slot. The callers remove its place from its queue.
    fn drop_slot(&mut self, place: u32) {
        let Some(slot) = self.slots[place as usize].take() else {
            return;
        };
        self.places.remove(slot.key);
        if matches!(slot.item, Item::Table(_)) {
            self.table_bytes -= slot.bytes;
        }
        if slot.in_main {
            self.main_bytes -= slot.bytes;
        } else {
            self.small_bytes -= slot.bytes;
        }
        self.free.push(place);
    }
}

/// Names of blocks that left `small` unread, oldest first; at most as many as there are cached blocks.
#[derive(Debug, Default)]
struct Ghost {
    /// When each name was put in.
    times: Places,
    /// In order of time. A name whose time differs from the one in `times` was already removed.
    queue: VecDeque<(CacheKey, u64)>,
    time: u64,
}

impl Ghost {
    fn put(&mut self, key: CacheKey, names_max: usize) {
        self.time += 1;
        self.times.insert(key, self.time);
        self.queue.push_back((key, self.time));
        while self.queue.len() > names_max.max(1) {
            let Some((oldest, time)) = self.queue.pop_front() else {
                return;
            };
            if self.times.get(oldest) == Some(time) {
                self.times.remove(oldest);
            }
        }
    }

    /// Removes a name, and returns whether it was present.
    fn take(&mut self, key: CacheKey) -> bool {
        self.times.remove(key).is_some()
    }

    fn remove_file(&mut self, file: FileName) {
        let times = &mut self.times;
        self.queue.retain(|&(key, _)| {
            if key.0 == file {
                times.remove(key);
            }
            key.0 != file
        });
    }
}
