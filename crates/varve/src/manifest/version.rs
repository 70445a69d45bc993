//! The shape of the store at one point of its history: levels of tables, floors and clients.
//!
//! ```text
//! level 0    [ newest ] [ ... ] [ oldest ]     by highest sequence; key ranges overlap
//! level 1..  [ a..f ] [ g..m ] [ n..z ]        by smallest key; key ranges are disjoint
//!
//! encoded    floors | clients | varint levels, { varint tables, table meta* }*
//! ```
//!
//! Invariants: a version never changes; [`Version::apply`] makes the next one, and refuses an edit that does not fit.
//! Cloning a version copies one pointer for each level. Below level 0 two neighbours may share one key only where the
//! left one ends with the (exclusive) end of a range tombstone.

use std::rc::Rc;

use super::edit::{
    ClientState, Edit, Floors, decode_ahead, decode_clients, decode_list, encode_ahead, encode_clients,
};
use crate::codec::bytes::compare;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::error::{Damage, Error, Result};
use crate::table::TableMeta;
use crate::types::FileName;

/// The most levels a store may have. With a factor of 10 between levels, 7 levels can store 32 TB.
pub const LEVELS_MAX: usize = 7;

/// The tables of one level, in the level's order.
type Level = Rc<Vec<Rc<TableMeta>>>;

/// An immutable version of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version {
    levels: Vec<Level>,
    /// All floors.
    pub floors: Floors,
    /// The requests that clients may ask for again.
    pub clients: Vec<ClientState>,
}

impl Version {
    /// The tables of a level: level 0 newest first, others by key. Empty when there is no such level.
    #[must_use]
    pub fn level(&self, level: usize) -> &[Rc<TableMeta>] {
        self.levels.get(level).map_or(&[], |tables| tables)
    }

    /// Number of levels: the number of the deepest level that has a table, plus one.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The files of all tables, with their sizes.
    #[must_use]
    pub(crate) fn files(&self) -> Vec<(FileName, u64)> {
        let mut files = Vec::new();
        for (_, table) in self.tables() {
            files.push((FileName::table(table.id), table.size));
        }
        files
    }

    /// Every table with its level, from level 0 down, each level in its order.
    pub fn tables(&self) -> impl Iterator<Item = (usize, &Rc<TableMeta>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(level, tables)| tables.iter().map(move |table| (level, table)))
    }

    /// A table and its level, by id.
    #[must_use]
    pub fn table(&self, id: u64) -> Option<(usize, &Rc<TableMeta>)> {
        self.tables().find(|(_, table)| table.id == id)
    }

    /// The one table of a level below 0 that may contain `key`.
    #[must_use]
    pub fn find(&self, level: usize, key: &[u8]) -> Option<&Rc<TableMeta>> {
        debug_assert!(level > 0, "key ranges of level 0 overlap");
        let tables = self.level(level);
        // Neighbours may share a key: then the left one only has a tombstone that ends there.
        let after = tables.partition_point(|table| compare(&table.min_key, key).is_le());
        let table = tables.get(after.checked_sub(1)?)?;
        compare(key, &table.max_key).is_le().then_some(table)
    }

    /// Index of the first table of a level below 0 that ends at or after `key`.
    #[must_use]
    pub fn seek(&self, level: usize, key: &[u8]) -> usize {
        self.level(level).partition_point(|table| compare(&table.max_key, key).is_lt())
    }

    /// The tables of a level whose key range touches `first..=last`, in the level's order.
    pub fn overlapping<'a>(
        &'a self,
        level: usize,
        first: &'a [u8],
        last: &'a [u8],
    ) -> impl Iterator<Item = &'a Rc<TableMeta>> {
        let tables = self.level(level);
        let within = if level == 0 {
            0..tables.len()
        } else {
            let start = self.seek(level, first);
            let end = tables.partition_point(|table| compare(&table.min_key, last).is_le());
            start..end.max(start)
        };
        tables[within].iter().filter(move |table| {
            compare(&table.min_key, last).is_le() && compare(first, &table.max_key).is_le()
        })
    }

    /// Bytes of the tables of a level, without the parts that narrowed tables no longer show.
    #[must_use]
    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.level(level).iter().map(|table| table.live_bytes()).sum()
    }

    /// Bytes of all tables, without the parts that narrowed tables no longer show.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (0..self.levels()).map(|level| self.level_bytes(level)).sum()
    }

    /// The version after `edit`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] without a file when the edit does not fit: it removes a table that does not exist, adds one
    /// that exists, overlaps tables below level 0, or lowers a floor.
    pub fn apply(&self, edit: &Edit) -> Result<Self> {
        if !edit.floors.rose_from(&self.floors) {
            return Err(misfit("an edit lowers a floor"));
        }
        let mut next =
            Self { levels: self.levels.clone(), floors: edit.floors, clients: edit.clients.clone() };
        for &id in &edit.removed {
            next.remove(id)?;
        }
        for (level, meta) in &edit.added {
            next.add(usize::from(*level), Rc::new(meta.clone()))?;
        }
        next.validate()?;
        Ok(next)
    }

    /// Appends the encoded version.
    pub fn encode(&self, into: &mut Vec<u8>) {
        self.floors.encode(into);
        encode_clients(&self.clients, into);
        put_u64(into, self.levels.len() as u64);
        for tables in &self.levels {
            put_u64(into, tables.len() as u64);
            for table in tables.iter() {
                table.encode(into);
            }
        }
        encode_ahead(self.floors.ahead_ms, into);
    }

    /// Reads one encoded version and checks it as [`apply`](Self::apply) does.
    ///
    /// # Errors
    /// [`Error::Corrupt`] without a file.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let truncated = |Truncated| misfit("a snapshot ends early");
        let mut floors = Floors::decode(reader).map_err(truncated)?;
        let clients = decode_clients(reader).map_err(truncated)?;
        let levels =
            decode_list(reader, |reader| decode_list(reader, TableMeta::decode)).map_err(truncated)?;
        floors.ahead_ms = decode_ahead(reader).map_err(truncated)?;
        let mut version = Self { levels: Vec::new(), floors, clients };
        for (level, tables) in levels.into_iter().enumerate() {
            for meta in tables {
                version.add(level, Rc::new(meta))?;
            }
        }
        version.validate()?;
        Ok(version)
    }

    fn remove(&mut self, id: u64) -> Result<()> {
        for tables in &mut self.levels {
            if let Some(at) = tables.iter().position(|table| table.id == id) {
                Rc::make_mut(tables).remove(at);
                return Ok(());
            }
        }
        Err(misfit("an edit removes a table that is not there"))
    }

    fn add(&mut self, level: usize, meta: Rc<TableMeta>) -> Result<()> {
        if level >= LEVELS_MAX {
            return Err(misfit("a table has an impossible level"));
        }
        if meta.id >= self.floors.next_table {
            return Err(misfit("a table has an id that was not given out"));
        }
        if compare(&meta.min_key, &meta.max_key).is_gt() || meta.min_sequence > meta.max_sequence {
            return Err(misfit("a table ends before it starts"));
        }
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Level::default);
        }
        if self.table(meta.id).is_some() {
            return Err(misfit("an edit adds a table that is there"));
        }
        // Inserted in order rather than sorted after: tables nearly always come in order, and a sort costs 10 KB of wasm.
        let tables = Rc::make_mut(&mut self.levels[level]);
        let at = if level == 0 {
            tables.partition_point(|table| newest_first(table) <= newest_first(&meta))
        } else {
            tables.partition_point(|table| by_key(table, &meta).is_le())
        };
        tables.insert(at, meta);
        Ok(())
    }

    /// Drops empty levels at the bottom, and checks the conditions between tables.
    fn validate(&mut self) -> Result<()> {
        while self.levels.last().is_some_and(|tables| tables.is_empty()) {
            self.levels.pop();
        }
        for tables in self.levels.iter().skip(1) {
            if tables.windows(2).any(|pair| !pair[0].ends_before(&pair[1])) {
                return Err(misfit("tables of one level overlap"));
            }
        }
        Ok(())
    }
}

/// The order of level 0.
fn newest_first(table: &TableMeta) -> core::cmp::Reverse<(u64, u64)> {
    core::cmp::Reverse((table.max_sequence, table.id))
}

/// The order of the other levels.
fn by_key(a: &TableMeta, b: &TableMeta) -> core::cmp::Ordering {
    compare(&a.min_key, &b.min_key).then_with(|| compare(&a.max_key, &b.max_key))
}

fn misfit(what: &'static str) -> Error {
    Error::Corrupt(Box::new(Damage { file: None, offset: 0, what }))
}
