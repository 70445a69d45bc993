//! Salvages one table: finds the blocks that can be read, and the key ranges of the others.
//!
//! Invariant: each key of a table lies in a returned block, or in a range that is listed as lost.

use std::rc::Rc;

use super::files::{Place, lost_range, read};
use super::{Lost, RepairReport};
use crate::codec::cipher::Keyring;
use crate::error::Result;
use crate::storage::Slots;
use crate::table::{
    Block, BlockHandle, BlockKind, Remains, TableMeta, find_table, key_of, open_block, salvage_table,
};
use crate::types::{FileName, RangeTombstone, SEQUENCE_MAX};

/// The readable parts of a table.
#[derive(Debug)]
pub(super) struct SalvagedTable {
    pub(super) id: u64,
    pub(super) place: Place,
    pub(super) blocks: Vec<BlockHandle>,
    pub(super) ranges: Vec<RangeTombstone>,
    /// The first and last key that may be read, if a manifest has them.
    pub(super) meta: Option<Rc<TableMeta>>,
}

impl SalvagedTable {
    /// Whether the manifest allows `key` to be read from this table.
    pub(super) fn shows(&self, key: &[u8]) -> bool {
        let within = |meta: &Rc<TableMeta>| meta.min_key.as_slice() <= key && key <= meta.max_key.as_slice();
        self.meta.as_ref().is_none_or(within)
    }

    /// Reads one of the blocks.
    pub(super) fn block<D: Slots>(
        &self,
        device: &D,
        keyring: &Keyring,
        handle: BlockHandle,
    ) -> Result<Block> {
        let stored = read(device, self.place, handle.offset, u64::from(handle.len))?;
        open_block(keyring, self.id, key_of(&stored), handle, stored, BlockKind::Data)
    }
}

/// Examines every byte of a table.
pub(super) fn salvage<D: Slots>(
    device: &D,
    keyring: &Keyring,
    (id, place): (u64, Place),
    meta: Option<Rc<TableMeta>>,
    report: &mut RepairReport,
) -> Result<SalvagedTable> {
    let mut image = read(device, place, 0, place.bytes)?;
    let footer = if meta.is_none() { find_table(&image, keyring.store(), id)? } else { None };
    let size = meta.as_ref().map(|meta| meta.size).or(footer.as_ref().map(|footer| footer.size));
    let size = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(image.len());
    let missing = size.saturating_sub(image.len());
    image.truncate(size);
    let key = meta.as_ref().map(|meta| meta.key);
    let expects_ranges = meta.as_ref().is_none_or(|meta| meta.range_tombstones > 0);
    let Remains { index, blocks, gaps, range_tombstones } =
        salvage_table(&image, keyring, id, key, expects_ranges)?;
    let known = meta.clone().or(footer.map(Rc::new));
    let newest = known.as_ref().map_or(SEQUENCE_MAX, |known| known.max_sequence);
    let oldest = known.as_ref().map_or(0, |known| known.min_sequence);
    let table =
        SalvagedTable { id, place, ranges: range_tombstones.clone().unwrap_or_default(), blocks, meta };
    let whole = match &table.meta {
        Some(meta) => lost_range(meta, ""),
        None => Lost { sequences: Some((oldest, newest)), ..Lost::of(FileName::table(id), "") },
    };
    if range_tombstones.is_none() {
        let what = "the range tombstones of a table cannot be read: keys that they deleted may be back";
        report.lost.push(Lost { what, ..whole.clone() });
    }
    let edge = |at: Option<&BlockHandle>, is_last: bool| -> Result<Option<Vec<u8>>> {
        let Some(&handle) = at else { return Ok(None) };
        Ok(edge_key(&table.block(device, keyring, handle)?, is_last))
    };
    for gap in gaps {
        let (from, to) = match &index {
            Some(index) => {
                let at = (0..index.len()).find(|&at| index.handle(at) == gap).unwrap_or(0);
                (at.checked_sub(1).map(|before| index.separator(before).0), Some(index.separator(at).0))
            }
            None => {
                let after = table.blocks.partition_point(|block| block.offset < gap.offset);
                let before = after.checked_sub(1).and_then(|before| table.blocks.get(before));
                (edge(before, true)?, edge(table.blocks.get(after), false)?)
            }
        };
        // The rest of the table follows the last block. It is reported as lost if it may have had entries.
        let clamped = (from.max(whole.from.clone()), to.or(whole.to.clone()));
        let (offset, bytes) = (gap.offset, Some(u64::from(gap.len)));
        let what = "blocks of a table do not verify";
        report.lost.push(Lost { what, offset, bytes, from: clamped.0, to: clamped.1, ..whole.clone() });
    }
    if missing > 0 {
        let what = "the end of a table is missing";
        let whole = Lost { from: edge(table.blocks.last(), true)?.max(whole.from.clone()), ..whole };
        report.lost.push(Lost { what, offset: image.len() as u64, bytes: Some(missing as u64), ..whole });
    }
    report.tables += u64::from(!table.blocks.is_empty() || !table.ranges.is_empty());
    Ok(table)
}

fn edge_key(block: &Block, is_last: bool) -> Option<Vec<u8>> {
    let mut key: Option<Vec<u8>> = None;
    // Every entry of a block that was opened decodes.
    let _ = block.walk(|entry| {
        if is_last || key.is_none() {
            key = Some(entry.key.to_vec());
        }
    });
    key
}
