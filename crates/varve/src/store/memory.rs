//! One budget of memory: memtables, cached blocks, and the indexes and filters of open tables.
//!
//! Invariant: the cache, which open tables are part of, gets the memory that memtables leave. The active memtable counts as
//! full, or with what it takes if that is more (a batch larger than a memtable). All others count with what they take, also
//! those that only a snapshot or a scan still reads. The cache always gets at least an eighth.

use std::rc::Rc;

use super::Store;
use crate::storage::Storage;

impl<S: Storage> Store<S> {
    /// Gives the cache the memory that memtables leave. Must be called when they change.
    pub(super) fn fit_memory(&mut self) {
        let room = self.memtable_bytes.saturating_sub(self.active.borrow().bytes());
        let bytes = self.options.cache_bytes(self.memtable_bytes_in_use() + room);
        self.cache.borrow_mut().set_capacity(bytes);
    }

    /// Bytes of the memtables of the current view, and of older views that scans and snapshots read.
    pub(super) fn memtable_bytes_in_use(&self) -> usize {
        let mut memtables = self.view.memtables.clone();
        for view in self.obsolete.views() {
            let Some(view) = view.upgrade() else { continue };
            for memtable in &view.memtables {
                if !memtables.iter().any(|other| Rc::ptr_eq(other, memtable)) {
                    memtables.push(Rc::clone(memtable));
                }
            }
        }
        memtables.iter().map(|memtable| memtable.borrow().bytes()).sum()
    }
}
