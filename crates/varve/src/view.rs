//! A view: the memtables and tables that together serve reads at one read point.
//!
//! Invariant: a view never changes once made (the active memtable inside it only gains entries with higher sequences,
//! which a snapshot does not see). A reader that pins a view can read at its sequence for as long as it wants: the
//! files of its tables are kept.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use crate::codec::bytes::compare;
use crate::codec::cipher::Keyring;
use crate::codec::hash::xxh3;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::table::{self, Block, Blocks, Table, TableMeta};
use crate::types::{Kind, Sequence};

/// A memtable that readers in other threads may share.
#[cfg(unix)]
type Image = std::sync::Arc<Memtable>;
#[cfg(not(unix))]
type Image = Memtable;

/// A memtable that the store and its views share.
pub(crate) type SharedMemtable = Rc<RefCell<Image>>;

/// A memtable for the store and its views.
#[cfg_attr(
    not(unix),
    expect(clippy::useless_conversion, reason = "it becomes an Arc where there are threads")
)]
pub(crate) fn share(memtable: Memtable) -> SharedMemtable {
    Rc::new(RefCell::new(memtable.into()))
}

/// The memtable, to change it. If a reader in another thread has it, the reader keeps it as it is, and the store continues with
/// a copy.
#[inline]
pub(crate) fn writable(image: &mut Image) -> &mut Memtable {
    #[cfg(unix)]
    return std::sync::Arc::make_mut(image);
    #[cfg(not(unix))]
    return image;
}

/// A table of a version, opened at its first read. The cache keeps it open, and closes it when it needs the memory.
#[derive(Debug)]
pub(crate) struct TableHandle {
    pub(crate) meta: Rc<TableMeta>,
    /// The table is in the lowest level: it may be open without its filter.
    pub(crate) is_lowest: bool,
    table: RefCell<Weak<Table>>,
}

impl TableHandle {
    pub(crate) fn new(meta: Rc<TableMeta>, is_lowest: bool) -> Self {
        Self { meta, is_lowest, table: RefCell::default() }
    }

    /// A handle of the same table with other bounds or in another place; an open table stays open.
    pub(crate) fn moved(&self, meta: Rc<TableMeta>, is_lowest: bool) -> Self {
        Self { meta, is_lowest, table: self.table.clone() }
    }

    /// Whether it is the handle of that table, with the same bounds and in the same place.
    pub(crate) fn is_same(&self, meta: &TableMeta, is_lowest: bool) -> bool {
        self.meta.skipped_bytes == meta.skipped_bytes && self.is_lowest == is_lowest
    }

    /// The table, if it is open.
    pub(crate) fn opened(&self) -> Option<Rc<Table>> {
        self.table.borrow().upgrade()
    }

    /// The open table; reads its footer, index and filter when it is not open. A table of the lowest level may be open
    /// without its filter until there is room for that.
    #[inline(never)]
    #[cfg_attr(varve_size, optimize(speed))]
    pub(crate) fn open(&self, keyring: &Keyring, blocks: &dyn Blocks) -> Result<Rc<Table>> {
        if let Some(table) = self.opened()
            && !table.is_lean()
        {
            table.touch();
            return Ok(table);
        }
        self.reopen(keyring, blocks)
    }

    /// Opens the table, unless a handle of it with other bounds has opened it; reads its filter once there is room for
    /// that.
    #[inline(never)]
    fn reopen(&self, keyring: &Keyring, blocks: &dyn Blocks) -> Result<Rc<Table>> {
        let open = self.opened().or_else(|| blocks.kept(self.meta.id));
        let table = if let Some(table) = open {
            let bytes = table.footer().filter.len as usize;
            if table.is_lean() && (!self.is_lowest || blocks.has_room(bytes)) {
                table.read_filter(keyring, blocks)?;
                blocks.keep(&table);
            }
            table
        } else {
            let open = if self.is_lowest { Table::open_lean } else { Table::open };
            let table = Rc::new(open(keyring, &self.meta, blocks)?);
            blocks.keep(&table);
            table
        };
        table.touch();
        *self.table.borrow_mut() = Rc::downgrade(&table);
        Ok(table)
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn may_hold(&self, key: &[u8]) -> bool {
        compare(&self.meta.min_key, key).is_le() && compare(key, &self.meta.max_key).is_le()
    }
}

/// One version of a key, borrowed from its memtable or block.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The sequence at which it was written.
    pub sequence: Sequence,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The value's bytes.
    pub value: &'a [u8],
    /// The block that contains the value, when it comes from a table: keep this block to keep `value` alive.
    pub block: Option<&'a Rc<Block>>,
}

/// Memtables (newest first) and tables by level: level 0, then those below that contain tables.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) memtables: Vec<SharedMemtable>,
    pub(crate) levels: Vec<Rc<[Rc<TableHandle>]>>,
}

impl View {
    /// As [`View::find_newest`], for a `then` that runs once and has an answer.
    pub(crate) fn find<R>(
        &self,
        keyring: &Keyring,
        blocks: &dyn Blocks,
        key: &[u8],
        snapshot: Sequence,
        now_ms: u64,
        then: impl FnOnce(Option<Entry<'_>>) -> R,
    ) -> Result<R> {
        let (mut then, mut answer) = (Some(then), None);
        let mut once = |entry: Option<Entry<'_>>| answer = then.take().map(|then| then(entry));
        self.find_newest(keyring, blocks, key, snapshot, now_ms, &mut once)?;
        match answer {
            Some(answer) => Ok(answer),
            None => unreachable!("a read that ended well has answered"),
        }
    }

    /// Finds the newest version of `key` at `snapshot` and passes it to `then`, once; `None` when the key is absent.
    ///
    /// Not generic over `then`: there is one `find` in the program, not one for each caller.
    #[cfg_attr(varve_size, optimize(speed))]
    fn find_newest(
        &self,
        keyring: &Keyring,
        blocks: &dyn Blocks,
        key: &[u8],
        snapshot: Sequence,
        now_ms: u64,
        then: &mut dyn FnMut(Option<Entry<'_>>),
    ) -> Result<()> {
        for memtable in &self.memtables {
            let memtable = memtable.borrow();
            let deleted = memtable.tombstone_over(key, snapshot);
            if let Some(found) = memtable.get(key, snapshot) {
                let live = found.kind == Kind::Set
                    && found.sequence > deleted
                    && found.expires.is_none_or(|at| at > now_ms);
                then(live.then_some(Entry {
                    sequence: found.sequence,
                    expires: found.expires,
                    value: found.value,
                    block: None,
                }));
                return Ok(());
            }
            if deleted > 0 {
                then(None);
                return Ok(());
            }
        }
        self.find_in_tables(keyring, blocks, key, snapshot, now_ms, then)
    }

    #[cfg_attr(varve_size, optimize(speed))]
    fn find_in_tables(
        &self,
        keyring: &Keyring,
        blocks: &dyn Blocks,
        key: &[u8],
        snapshot: Sequence,
        now_ms: u64,
        then: &mut dyn FnMut(Option<Entry<'_>>),
    ) -> Result<()> {
        let hash = xxh3(key, 0);
        let (mut checks, mut negatives) = (0, 0);
        'search: {
            for (level, tables) in self.levels.iter().enumerate() {
                let candidates = if level == 0 { &tables[..] } else { table_for(tables, key) };
                for handle in candidates {
                    if !handle.may_hold(key) {
                        continue;
                    }
                    let opened = handle.open(keyring, blocks);
                    let table = opened.map_err(|failure| {
                        self.come_upon(keyring, blocks, failure, |_, handle| handle.may_hold(key))
                    })?;
                    let deleted = table.tombstone_over(key, snapshot);
                    checks += u32::from(!table.is_lean());
                    if !table.may_contain(hash) {
                        negatives += 1;
                    } else if let Some(found) = table.get_admitted(key, snapshot, blocks)? {
                        let live = found.kind == Kind::Set
                            && found.sequence > deleted
                            && found.expires.is_none_or(|at| at > now_ms);
                        then(live.then(|| Entry {
                            sequence: found.sequence,
                            expires: found.expires,
                            value: found.value(),
                            block: Some(&found.block),
                        }));
                        break 'search;
                    }
                    if deleted > 0 {
                        then(None);
                        break 'search;
                    }
                }
            }
            then(None);
        }
        // Only at the end: a read for which bytes are missing is run again.
        blocks.count_filters(checks, negatives);
        Ok(())
    }

    /// After one table of a call did not open, tries to open all tables of the call, which `is_wanted` selects by level
    /// and handle (see [`come_upon`](crate::table::come_upon)).
    #[cold]
    pub(crate) fn come_upon(
        &self,
        keyring: &Keyring,
        blocks: &dyn Blocks,
        failure: Error,
        is_wanted: impl Fn(usize, &TableHandle) -> bool,
    ) -> Error {
        let tables = self
            .levels
            .iter()
            .enumerate()
            .flat_map(|(level, tables)| tables.iter().map(move |handle| (level, handle)));
        let wanted = tables.filter(|(level, handle)| is_wanted(*level, handle));
        table::come_upon(failure, wanted.map(|(_, handle)| handle.open(keyring, blocks)))
    }

    /// Whether one of the view's tables is file `id`.
    pub(crate) fn has_table(&self, id: u64) -> bool {
        self.levels.iter().any(|tables| tables.iter().any(|handle| handle.meta.id == id))
    }
}

/// The tables of a sorted level that may contain `key`: one, or two where the end of a range tombstone
/// (exclusive, but counted in the bounds) touches the first key of the next table.
#[cfg_attr(varve_size, optimize(speed))]
fn table_for<'a>(tables: &'a [Rc<TableHandle>], key: &[u8]) -> &'a [Rc<TableHandle>] {
    let at = tables.partition_point(|handle| compare(&handle.meta.max_key, key).is_lt());
    tables.get(at..tables.len().min(at + 2)).unwrap_or(&[])
}
