//! Which compaction to run next.
//!
//! Level 0 holds one run per flush; once there are `l0_trigger` of them, all are merged with the tables
//! of level 1 that they overlap. Level 1 is the bottom, so a job leaves no tombstone behind.

use std::rc::Rc;

use crate::manifest::Version;
use crate::options::Options;
use crate::table::TableMeta;

/// The inputs of a compaction.
#[derive(Debug, Clone)]
pub(crate) struct Pick {
    /// Sorted runs, newest first.
    pub(crate) runs: Vec<Vec<Rc<TableMeta>>>,
    /// Level of the outputs.
    pub(crate) level: u8,
    /// Nothing lies below or outside the inputs for their keys.
    pub(crate) bottom: bool,
    /// Outputs are cut at this size.
    pub(crate) table_bytes: u64,
}

/// Picks a compaction; `force` takes whatever would leave the store in one run.
pub(crate) fn pick(version: &Version, options: &Options, force: bool) -> Option<Pick> {
    let level_0 = version.level(0);
    let due = level_0.len() >= options.l0_trigger;
    let untidy = !level_0.is_empty() || version.level(1).iter().any(|table| table.tombstones > 0);
    if !(due || (force && untidy)) {
        return None;
    }
    // The outputs may reach over the gaps between the tables of level 0: what lies there must be merged as well.
    let first = level_0.iter().map(|table| &table.min_key).min();
    let last = level_0.iter().map(|table| &table.max_key).max();
    let inside =
        |table: &&Rc<TableMeta>| force || (first <= Some(&table.max_key) && Some(&table.min_key) <= last);
    let mut runs: Vec<Vec<Rc<TableMeta>>> = level_0.iter().map(|table| vec![table.clone()]).collect();
    let below: Vec<_> = version.level(1).iter().filter(inside).cloned().collect();
    if !below.is_empty() {
        runs.push(below);
    }
    let store_bytes: u64 = version.bytes();
    let table_bytes = options.table_bytes.max(store_bytes / (options.files_max / 2).max(1));
    Some(Pick { runs, level: 1, bottom: true, table_bytes })
}
