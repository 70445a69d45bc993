//! The new store: tables on the deepest level, then the manifest that names them.
//!
//! Invariant: tables are flushed before the manifest is written. Until then the files are not a store.

use crate::codec::cipher::Encryption;
use crate::error::Result;
use crate::manifest::{Edit, Floors, LEVELS_MAX, Version, write_first_manifest};
use crate::storage::Storage;
use crate::table::{TableBuilder, TableMeta, TableOptions};
use crate::types::{FileName, StoreId};

use super::log::LogEntry;

/// Bytes collected before they are written.
const WRITE_BYTES: u64 = 256 << 10;
/// Smallest size of a table.
const TABLE_BYTES_MIN: u64 = 2 << 20;
/// Largest size of a table, except for a single entry that is larger.
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// Writes a store from entries in order.
pub(super) struct Output<S> {
    pub(super) storage: S,
    store: StoreId,
    encryption: Encryption,
    table_bytes: u64,
    builder: Option<TableBuilder>,
    written: u64,
    tables: Vec<TableMeta>,
}

impl<S: Storage> Output<S> {
    /// `bytes`: the approximate amount of data. It must fit in fewer than half of `files_max` tables.
    pub(super) fn new(
        mut storage: S,
        store: StoreId,
        mut encryption: Encryption,
        bytes: u64,
        files_max: u64,
    ) -> Self {
        storage.adopt(store);
        encryption.keyring = encryption.keyring.of_store(store);
        let table_bytes = (bytes / (files_max / 4).max(1)).clamp(TABLE_BYTES_MIN, TABLE_BYTES_MAX);
        Self { storage, store, encryption, table_bytes, builder: None, written: 0, tables: Vec::new() }
    }

    /// Adds an entry. Returns whether this completed a table.
    pub(super) fn add(&mut self, entry: &LogEntry) -> Result<bool> {
        let id = self.tables.len() as u64 + 1;
        if self.builder.is_none() {
            self.storage.create(FileName::table(id), self.table_bytes)?;
            let options = TableOptions { compress: true, ..TableOptions::default() };
            self.builder = Some(TableBuilder::new(&self.encryption.keyring, id, options));
            self.written = 0;
        }
        let Some(builder) = &mut self.builder else { return Ok(false) };
        builder.add(&entry.key, entry.sequence, entry.kind, entry.expires, &entry.value);
        if builder.bytes() >= self.table_bytes {
            self.end_table()?;
            return Ok(true);
        }
        if builder.bytes() - self.written >= WRITE_BYTES {
            let bytes = builder.take();
            self.write(id, &bytes)?;
        }
        Ok(false)
    }

    fn write(&mut self, id: u64, bytes: &[u8]) -> Result<()> {
        self.storage.write(FileName::table(id), self.written, bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        let Some(mut builder) = self.builder.take() else { return Ok(()) };
        let meta = builder.finish();
        self.write(meta.id, &builder.take())?;
        self.storage.sync(FileName::table(meta.id))?;
        self.tables.push(meta);
        Ok(())
    }

    /// Turns the tables into a store.
    pub(super) fn finish(&mut self, floors: Floors, entropy: u64) -> Result<()> {
        self.end_table()?;
        let next_table = self.tables.len() as u64 + 1;
        let deepest = (LEVELS_MAX - 1) as u8;
        // Only the newest versions are left.
        let gc_sequence = floors.gc_sequence.max(floors.last_sequence);
        let edit = Edit {
            added: self.tables.iter().map(|table| (deepest, table.clone())).collect(),
            floors: Floors {
                log_floor: 0,
                history_floor: 0,
                gc_sequence,
                next_table,
                next_segment: 1,
                ..floors
            },
            ..Edit::default()
        };
        let version = Version::default().apply(&edit)?;
        write_first_manifest(&mut self.storage, self.store, &self.encryption, entropy, &version)
    }
}
