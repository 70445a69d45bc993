//! A repair in progress.
//!
//! Life cycle: found files -> one table after the other -> the log -> the merge, a few thousand entries at a time -> done.
//!
//! Invariant: the source is only read. Between steps a host may add slots to the target.

use std::collections::VecDeque;
use std::rc::Rc;

use super::files::{Files, Place, find};
use super::log::salvage_log;
use super::merge::Merge;
use super::output::Output;
use super::table::{SalvagedTable, salvage};
use super::{RepairOptions, RepairReport};
use crate::error::{Error, Result};
use crate::storage::{SlotPool, Slots, Storage};
use crate::table::{RangeTombstones, TableMeta};
use crate::types::RangeTombstone;

/// Entries that one step merges.
const STEP_ENTRIES: usize = 4000;

/// Salvages the store of `S` into the empty slots of `D`. See [the module](super).
///
/// # Example
/// ```
/// use varve::repair::{Repair, RepairOptions};
/// use varve::storage::{MemorySlots, SlotPool};
/// use varve::{Durability, Encryption, Host, Options, Store};
/// let host = Host { now_ms: 0, entropy: 7, store_id: [1; 16] };
/// let (mut store, _) = Store::open(SlotPool::open(MemorySlots::new(8))?, Options::default(), host)?;
/// store.set(b"silt", b"fine")?;
/// store.commit(Durability::Strict)?;
/// let damaged = store.into_storage().into_device();
///
/// let (store_id, encryption) = ([2; 16], Encryption::none());
/// let options = RepairOptions { drop_older: false, store_id, entropy: 8, files_max: 128, encryption };
/// let mut repair = Repair::new(damaged, MemorySlots::new(8), options)?;
/// while repair.step()? {}
/// assert_eq!((repair.report().entries, repair.report().lost.len()), (1, 0));
/// let (store, _) = Store::open(SlotPool::open(repair.into_target())?, Options::default(), host)?;
/// assert_eq!(store.get(b"silt")?, Some(b"fine".to_vec()));
/// # Ok::<(), varve::Error>(())
/// ```
pub struct Repair<S, D> {
    source: S,
    options: RepairOptions,
    files: Files,
    waiting: VecDeque<(u64, Place, Option<Rc<TableMeta>>)>,
    tables: Vec<SalvagedTable>,
    merge: Option<Merge>,
    output: Output<SlotPool<D>>,
    report: RepairReport,
    bytes_done: u64,
    bytes_total: u64,
    is_done: bool,
}

impl<S: Slots, D: Slots> Repair<S, D> {
    /// Looks for the files of the damaged store.
    ///
    /// # Errors
    /// `Error::Version` when a newer format wrote it, `Error::InvalidArgument` when the target is not empty.
    pub fn new(source: S, target: D, options: RepairOptions) -> Result<Self> {
        let pool = SlotPool::open(target)?;
        if !pool.list().is_empty() {
            return Err(Error::InvalidArgument(
                "There is a store in the place where the salvaged one should go.",
            ));
        }
        let mut report = RepairReport::default();
        let files = find(&source, &options.encryption.keyring, &mut report)?;
        let sizes = |(place, meta): &(Place, Option<Rc<TableMeta>>)| {
            meta.as_ref().map_or(place.bytes, |meta| meta.size)
        };
        let table_bytes: u64 = files.tables.values().map(sizes).sum();
        let log_bytes: u64 = files.segments.values().map(|place| place.bytes).sum();
        let mut encryption = options.encryption.clone();
        if !files.slots.is_empty() {
            encryption.slots.clone_from(&files.slots);
        }
        let bytes = table_bytes + log_bytes;
        let output = Output::new(pool, options.store_id, encryption, bytes, options.files_max);
        let waiting = files.tables.iter().map(|(id, (place, meta))| (*id, *place, meta.clone())).collect();
        Ok(Self {
            source,
            options,
            waiting,
            files,
            tables: Vec::new(),
            merge: None,
            output,
            report,
            bytes_done: 0,
            // Tables are read twice: once to verify, once to merge.
            bytes_total: 2 * table_bytes + log_bytes,
            is_done: false,
        })
    }

    /// Does a part of the work; `false` when all work is done.
    ///
    /// # Errors
    /// `Error::Version` when a newer format wrote a file, before anything is written; `Error::StorageFull` or `Error::Io` of the target.
    pub fn step(&mut self) -> Result<bool> {
        if self.is_done {
            return Ok(false);
        }
        if let Some((id, place, meta)) = self.waiting.front().cloned() {
            let bytes = meta.as_ref().map_or(place.bytes, |meta| meta.size);
            let table = salvage(&self.source, &self.files.keyring, (id, place), meta, &mut self.report)?;
            self.tables.push(table);
            self.bytes_done += bytes;
            self.waiting.pop_front();
            return Ok(true);
        }
        if self.merge.is_none() {
            return self.begin_merge().map(|()| true);
        }
        self.merge()
    }

    /// The report of the work so far.
    #[must_use]
    pub fn report(&self) -> &RepairReport {
        &self.report
    }

    /// Bytes read, and the total.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let merged = self.merge.as_ref().map_or(0, |merge| merge.bytes);
        let done = if self.is_done { self.bytes_total } else { self.bytes_done + merged };
        (done.min(self.bytes_total), self.bytes_total)
    }

    /// The slots of the new store. It can be opened once `step` returned `false`.
    pub fn into_target(self) -> D {
        self.output.storage.into_device()
    }

    fn begin_merge(&mut self) -> Result<()> {
        let log = salvage_log(&self.source, &self.files, &mut self.report)?;
        let mut ranges = log.ranges;
        for table in &self.tables {
            let lowest = table.meta.as_ref().map(|meta| meta.min_key.clone()).unwrap_or_default();
            for range in &table.ranges {
                // A job took the entries before the bounds of a table, tombstones included.
                let start = range.start.clone().max(lowest.clone());
                ranges.push(RangeTombstone { start, ..range.clone() });
            }
        }
        let known = |table: &SalvagedTable| table.meta.as_ref().map_or(0, |meta| meta.max_sequence);
        let floors = &mut self.files.floors;
        let highest = self.tables.iter().map(known).max().unwrap_or(0);
        floors.last_sequence = floors.last_sequence.max(log.last_sequence).max(highest);
        let tables = std::mem::take(&mut self.tables);
        let input = (log.entries, RangeTombstones::new(ranges));
        let (keyring, drop_older) = (self.files.keyring.clone(), self.options.drop_older);
        self.merge = Some(Merge::new(&self.source, keyring, tables, input, drop_older, &self.report)?);
        self.bytes_done += self.files.segments.values().map(|place| place.bytes).sum::<u64>();
        Ok(())
    }

    fn merge(&mut self) -> Result<bool> {
        let Some(merge) = &mut self.merge else { return Ok(true) };
        for _ in 0..STEP_ENTRIES {
            let Some(entry) = merge.next(&self.source, &mut self.report)? else {
                self.output.finish(self.files.floors, self.options.entropy)?;
                self.is_done = true;
                return Ok(false);
            };
            self.report.entries += 1;
            let floors = &mut self.files.floors;
            floors.last_sequence = floors.last_sequence.max(entry.sequence);
            if self.output.add(&entry)? {
                break;
            }
        }
        Ok(true)
    }
}
