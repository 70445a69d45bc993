//! Which compaction to run next: a pure function of a version, the options and the free room.
//!
//! In this order:
//! 1. the level with the highest score, if it is at least 1 ([`levels`]). Level 0 goes into the base. Of another level,
//!    the table goes down that overlaps least of the next level for its size (RocksDB's `kMinOverlappingRatio`);
//! 2. a table that a job has narrowed: its file still takes the room of the entries that were moved;
//! 3. a table of which half the entries are tombstones (Pebble's tombstone-density compactions): deleted entries are
//!    only dropped when their tombstones are merged with them;
//! 4. neighbouring tables that are small for the store's size, while there are more files than planned;
//! 5. a table that is not encrypted under the current key, while there is room. In the end, no table needs an old key.
//!
//! Within a level narrowed tables come first, then tombstone-dense ones. A table that overlaps nothing of the next level
//! moves there by an edit alone, unless its key is an old one. A job over the cap takes only a key range
//! ([`super::limit`]): anything picked here may be left half done, and is then picked again.
//!
//! Invariant: for every key of its range, a job takes in everything between its newest input and the level of its outputs,
//! and of level 0 the oldest tables. So its outputs are older than everything that stays above, and newer than everything
//! below.

mod levels;
#[cfg(test)]
mod simulation;
mod whole;

use std::rc::Rc;

use levels::{DEEPEST, SCORE_DUE};
pub(crate) use levels::{IDLE_SHARE, Levels, entry_bytes};

use super::output::OVERLAP_TABLES_MAX;
use crate::codec::cipher::KeyNumber;
use crate::manifest::Version;
use crate::mutant::{self, Mutant};
use crate::options::Options;
use crate::storage::RESERVE_BYTES;
use crate::table::TableMeta;
use crate::types::{RangeTombstone, Sequence};

/// A job takes in an eighth of the store. For a small store, it takes in a part of the cap instead (`JOB_SHARE_SMALL`).
const JOB_SHARE: u64 = 8;
pub(crate) const JOB_SHARE_SMALL: u64 = 16;

/// Room is short when less than this part of all room, free and used, is left.
const SHORT_SHARE: u64 = 8;

/// A table that versions share.
type Shared = Rc<TableMeta>;

/// The next step.
#[derive(Debug, Clone)]
pub(crate) enum Pick {
    /// Merge tables.
    Merge(Merge),
    /// Put one table, as it is, into this level.
    Move(Shared, usize),
}

/// The inputs of a compaction.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    /// Sorted runs, newest first.
    pub(crate) runs: Vec<Vec<Shared>>,
    /// Level of the outputs.
    pub(crate) level: usize,
    /// The tables of each level below that touch the inputs' key range.
    pub(crate) below: Vec<Vec<Shared>>,
    /// Outputs are cut at this size.
    pub(crate) table_bytes: u64,
    /// The job ends once it has read this many bytes of keys and values.
    pub(crate) raw_bytes_max: u64,
    /// Newer runs that hide entries of the inputs.
    pub(crate) above: Vec<Vec<Shared>>,
    /// The job ends before this key: tables that it cannot reach were left out.
    pub(crate) end: Option<Vec<u8>>,
    /// Bytes of everything that was picked, including the tables left out.
    pub(crate) picked_bytes: u64,
}

impl Merge {
    /// Bytes of all inputs.
    pub(crate) fn bytes(&self) -> u64 {
        sum(&self.runs, TableMeta::live_bytes)
    }
}

/// Everything that a pick depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub(crate) version: &'a Version,
    pub(crate) options: &'a Options,
    /// The number of the key that new tables are encrypted under.
    pub(crate) key: KeyNumber,
    /// Number of files that the storage can have at its current size.
    pub(crate) places: u64,
    /// Room that the storage still has, in bytes; `None` where it is not known.
    pub(crate) free_bytes: Option<u64>,
    /// Most bytes of the smallest tables.
    pub(crate) unit_bytes_max: u64,
    /// Tombstones up to this sequence may be dropped.
    pub(crate) tombstones_until: Sequence,
    /// Tables that a merge could not read.
    pub(crate) damaged: &'a [u64],
    /// The store's time.
    pub(crate) now_ms: u64,
    /// Nothing has been written for a while.
    pub(crate) is_idle: bool,
}

/// Numbers of the tables that `range` deletes completely: dropping them needs no job (Pebble's delete-only compactions).
pub(crate) fn covered<'a>(version: &'a Version, range: &'a RangeTombstone) -> impl Iterator<Item = u64> + 'a {
    let is_covered = |table: &Shared| {
        table.max_sequence < range.sequence && range.start <= table.min_key && table.max_key < range.end
    };
    version.tables().filter(move |(_, table)| is_covered(table)).map(|(_, table)| table.id)
}

impl Situation<'_> {
    /// The next step, if one is due.
    pub(crate) fn pick(&self) -> Option<Pick> {
        let (version, options) = (self.version, self.options);
        let files = version.tables().count() as u64;
        // Tables may take at most three quarters of the files: the rest are for segments, outputs and spare files.
        if files > self.files_max() * 3 / 4
            && let Some(merge) = self.join_small()
        {
            return Some(Pick::Merge(merge));
        }
        let levels = self.levels();
        let score = |level| levels.score(version, options, level);
        let (due, highest) =
            (0..DEEPEST).map(|level| (level, score(level))).max_by_key(|(_, score)| *score)?;
        // The last of the room is kept for writes. A merge would fill it with its outputs, and leave partly merged inputs.
        let may_wait = self.is_short() && version.level(0).len() < options.l0_stall;
        if highest >= SCORE_DUE && !may_wait {
            let others = (0..DEEPEST).filter(|level| *level != due && score(*level) >= SCORE_DUE);
            if let Some(pick) = core::iter::once(due).chain(others).find_map(|level| self.sink(level)) {
                return Some(pick);
            }
        }
        for narrowed in [true, false] {
            for level in 0..=DEEPEST {
                // Level 0 is merged as a whole, so tombstones there can wait. Of other levels, a table that damage keeps there is
                // not due: another one would be merged in its place, and in the deepest level this would have no end.
                let is_due = |table: &Shared| {
                    let is_due =
                        if narrowed { table.is_narrowed() } else { level > 0 && self.is_dense(table) };
                    is_due && (level == 0 || self.can_sink(level, table))
                };
                if version.level(level).iter().any(is_due)
                    && let Some(pick) = self.sink(level)
                {
                    return Some(pick);
                }
            }
        }
        let joined = if files > self.files_max() * 5 / 8 { self.join_small() } else { None };
        joined.or_else(|| self.renew()).map(Pick::Merge)
    }

    /// Rewrites a table under an old key where it is; of level 0 all tables, into the base.
    fn renew(&self) -> Option<Merge> {
        let (level, table) =
            self.version.tables().find(|(_, table)| table.key != self.key && self.is_readable(table))?;
        match level {
            _ if self.is_short() => None,
            0 => self.level_zero(),
            _ => self.finish(vec![vec![table.clone()]], level),
        }
    }

    /// Whether half of a table's entries are tombstones, or have expired, and may be dropped.
    fn is_dense(&self, table: &TableMeta) -> bool {
        table.is_half_dead(self.expired_by()) && self.may_drop(table)
    }

    /// Merges remove entries that have expired by this time.
    fn expired_by(&self) -> u64 {
        if mutant::has(Mutant::ExpiredEntriesKept) { 0 } else { self.now_ms }
    }

    /// When the next table becomes dense because its entries expire.
    pub(crate) fn dense_at(&self) -> Option<u64> {
        let times = self.version.tables().map(|(_, table)| table.half_expiry);
        times.filter(|at| *at > self.now_ms).min()
    }

    /// Whether a merge may drop a table's tombstones: those that are newer than a snapshot wait until the snapshot is closed.
    fn may_drop(&self, table: &TableMeta) -> bool {
        table.max_sequence <= self.tombstones_until
    }

    /// The file count of which tables may take three quarters. Half of the places are left for files that jobs and snapshots keep alive.
    fn files_max(&self) -> u64 {
        self.options.files_max.min(self.places / 2)
    }

    /// The size at which outputs are cut. It grows with the store so that half of the files are enough, up to half a job.
    pub(crate) fn table_bytes(&self) -> u64 {
        let options = self.options;
        let wanted = self.version.bytes() / (self.files_max() / 2).max(1);
        options.table_bytes.min(self.unit_bytes_max).max(wanted.min(self.job_bytes_cap() / 2))
    }

    /// The most that a job takes in where there is room. It grows with the store if there are few places, as in a store that becomes
    /// large within a turn. Otherwise, tables of half a job would be more than there are places.
    fn job_bytes_cap(&self) -> u64 {
        self.options.job_bytes_max.max(self.version.bytes() / (self.places / 8).max(1))
    }

    /// Most bytes that a job takes in: its outputs need as much free room, and its inputs stay until the edit after the job.
    fn job_bytes_max(&self) -> u64 {
        let free = self.free_bytes.map_or(u64::MAX, |free| (free / 4).max(RESERVE_BYTES / 2));
        let most = self.job_bytes_cap();
        // Inputs and outputs of a job both exist for a while. They must be small compared with the store.
        let share = (self.version.bytes() / JOB_SHARE).max(most / JOB_SHARE_SMALL);
        free.min(share).min(most)
    }

    /// Whether an eighth of the room or less is left.
    fn is_short(&self) -> bool {
        self.free_bytes.is_some_and(|free| free < free.saturating_add(self.version.bytes()) / SHORT_SHARE)
    }

    /// Whether there is so little room that only the smallest jobs are sure to finish.
    fn is_tight(&self) -> bool {
        self.free_bytes.is_some_and(|free| free / 2 < self.table_bytes())
    }

    fn levels(&self) -> Levels {
        Levels::of(self.version, self.options, self.is_idle)
    }

    fn sink(&self, level: usize) -> Option<Pick> {
        if level == 0 { self.level_zero().map(Pick::Merge) } else { self.sorted(level) }
    }

    /// Merges level 0 into the base: all of it, or first the rest of a job that was begun.
    pub(crate) fn level_zero(&self) -> Option<Merge> {
        let tables = self.version.level(0);
        let begun = tables.iter().position(|table| table.is_narrowed()).unwrap_or(0);
        let runs = tables[begun..].iter().map(|table| vec![table.clone()]).collect();
        let merge = self.merge(runs, self.levels().base)?;
        let is_readable = merge.runs.iter().flatten().all(|table| self.is_readable(table));
        if is_readable { Some(merge) } else { self.within_level_zero() }
    }

    /// Merges the newest tables of level 0 into one, where a damaged table keeps them from a merge into the base. Otherwise level 0 would
    /// grow with every write. A table that is more than twice as large as those before it stays as it is, so entries are merged a few
    /// times only. RocksDB's intra-L0 compactions do the same.
    fn within_level_zero(&self) -> Option<Merge> {
        let mut bytes = 0;
        let fits = |table: &&Shared| {
            let fits = self.is_readable(table) && (bytes == 0 || table.live_bytes() <= 2 * bytes);
            bytes += table.live_bytes();
            fits
        };
        let runs: Vec<_> =
            self.version.level(0).iter().take_while(fits).map(|table| vec![table.clone()]).collect();
        if runs.len() < self.options.l0_trigger.max(2) || self.is_short() {
            return None;
        }
        let older = self.version.level(0)[runs.len()..].iter().map(|table| vec![table.clone()]);
        let mut merge = self.finish(runs, 0)?;
        merge.below.extend(older);
        // One table: of several, all would be merged again with the next ones.
        Some(Merge { table_bytes: u64::MAX / 16, ..merge })
    }

    fn is_readable(&self, table: &TableMeta) -> bool {
        !self.damaged.contains(&table.id)
    }

    /// Whether a table can be merged into the next level.
    fn can_sink(&self, level: usize, table: &TableMeta) -> bool {
        let mut there = self.version.overlapping(level + 1, &table.min_key, &table.max_key);
        self.damaged.is_empty() || (self.is_readable(table) && there.all(|table| self.is_readable(table)))
    }

    /// Moves or merges the best table of a level below 0 (and its neighbours, while they are small) into the next one.
    fn sorted(&self, level: usize) -> Option<Pick> {
        let tables = self.version.level(level);
        let sinkable = (0..tables.len()).filter(|&at| self.can_sink(level, &tables[at]));
        let first = sinkable.min_by_key(|&at| self.rank(level, &tables[at]))?;
        if level == DEEPEST {
            // Rewriting a table removes the entries that it no longer shows. Its neighbours may end or begin where it does, and
            // are not included: with them, such tables could be joined and cut apart for ever.
            return self.finish(vec![vec![tables[first].clone()]], level).map(Pick::Merge);
        }
        let mut run = vec![tables[first].clone()];
        let mut bytes = tables[first].live_bytes();
        for table in &tables[first + 1..] {
            bytes += table.live_bytes();
            if bytes > self.table_bytes() || !self.can_sink(level, table) {
                break;
            }
            run.push(table.clone());
        }
        if let [table] = &run[..]
            && self.can_move(table, level + 1)
        {
            return Some(Pick::Move(table.clone(), level + 1));
        }
        self.merge(vec![run], level + 1).map(Pick::Merge)
    }

    /// The order in which the tables of a level move down: the lowest rank first.
    fn rank(&self, level: usize, table: &TableMeta) -> (u8, u64) {
        let (overlap_bytes, bytes) = (self.overlap_bytes(level + 1, table), table.live_bytes());
        let class = if table.is_narrowed() { 0 } else { 2 - u8::from(self.is_dense(table)) };
        if self.is_tight() {
            return (class, overlap_bytes + bytes);
        }
        (class, overlap_bytes.saturating_mul(1000) / bytes.max(1))
    }

    fn overlap_bytes(&self, level: usize, table: &TableMeta) -> u64 {
        let overlapping = self.version.overlapping(level, &table.min_key, &table.max_key);
        overlapping.map(|table| table.live_bytes()).sum()
    }

    /// Whether a table may move into a level unchanged. It may if nothing there overlaps it, not too much below
    /// overlaps it, it has nothing that a merge would drop, and its key is the current one.
    fn can_move(&self, table: &TableMeta, level: usize) -> bool {
        let below_bytes = self.overlap_bytes(level + 1, table);
        let has_tombstones = table.tombstones + table.range_tombstones > 0;
        let is_bottom = (level + 1..=DEEPEST).all(|level| self.overlap_bytes(level, table) == 0);
        self.overlap_bytes(level, table) == 0
            && table.key == self.key
            && !table.is_narrowed()
            && !((has_tombstones || self.is_dense(table)) && is_bottom)
            && below_bytes <= self.table_bytes().saturating_mul(OVERLAP_TABLES_MAX)
    }

    /// Merges the longest row of neighbouring tables that fit into one table.
    fn join_small(&self) -> Option<Merge> {
        let bytes_max = self.table_bytes().min(self.job_bytes_max());
        let mut longest: (usize, &[Shared]) = (0, &[]);
        for level in 1..=DEEPEST {
            let tables = self.version.level(level);
            let (mut start, mut bytes) = (0, 0);
            for (at, table) in tables.iter().enumerate() {
                bytes += table.live_bytes();
                if !self.is_readable(table) {
                    (start, bytes) = (at + 1, 0);
                }
                while bytes > bytes_max {
                    bytes -= tables[start].live_bytes();
                    start += 1;
                }
                if (at + 1).saturating_sub(start) > longest.1.len() {
                    longest = (level, &tables[start..=at]);
                }
            }
        }
        let (level, row) = longest;
        if row.len() < 2 {
            return None;
        }
        let merge = self.finish(vec![row.to_vec()], level)?;
        // The output is one table, regardless of the levels below: a table that was cut again would be joined again, for ever.
        Some(Merge { table_bytes: u64::MAX / 16, ..merge })
    }

    /// Rewrites one table without the entries that newer tables hide. On a full storage, this is the only work that is sure to take
    /// less room than it frees. Tables that surely free some come first, because tombstones cover them or they are narrowed. The
    /// smallest of them is first, because its room helps with the next. Tables that are `is_done` are skipped. Even where nothing was
    /// hidden, pieces of free room are joined.
    pub(crate) fn purge(&self, is_done: impl Fn(u64) -> bool) -> Option<Merge> {
        let candidates = self.version.tables().filter(|(_, table)| !is_done(table.id));
        let hidden = candidates.filter_map(|(level, table)| {
            let above = self.above(level, table);
            let deletes = |newer: &Shared| newer.tombstones + newer.range_tombstones > 0;
            let is_sure = table.is_narrowed() || above.iter().flatten().any(deletes);
            (!above.is_empty()).then_some((is_sure, level, table, above))
        });
        let (_, level, table, above) =
            hidden.min_by_key(|(is_sure, _, table, _)| (!is_sure, table.live_bytes()))?;
        let bytes = table.live_bytes();
        Some(Merge {
            runs: vec![vec![table.clone()]],
            level,
            below: Vec::new(),
            above,
            table_bytes: u64::MAX / 16,
            raw_bytes_max: u64::MAX,
            // Entries of the other tables after this table are not read.
            end: Some([&table.max_key[..], &[0]].concat()),
            picked_bytes: bytes,
        })
    }

    /// The newer tables that may have newer versions of a table's keys, as runs.
    fn above(&self, level: usize, table: &Shared) -> Vec<Vec<Shared>> {
        let touches = |other: &Shared| other.min_key <= table.max_key && table.min_key <= other.max_key;
        let tables = self.version.level(0).iter();
        let newer =
            tables.take_while(|other| level > 0 || other.id != table.id).filter(|other| touches(other));
        let mut above: Vec<Vec<Shared>> = newer.map(|other| vec![other.clone()]).collect();
        for level in 1..level {
            let run: Vec<_> =
                self.version.overlapping(level, &table.min_key, &table.max_key).cloned().collect();
            if !run.is_empty() {
                above.push(run);
            }
        }
        above
    }

    /// Merges runs with the tables of `level` that they overlap. None of the runs lies in `level`.
    fn merge(&self, mut runs: Vec<Vec<Shared>>, level: usize) -> Option<Merge> {
        let (first, last) = bounds(&runs)?;
        let mut overlapped: Vec<_> = self.version.overlapping(level, &first, &last).cloned().collect();
        // A table that ends where the next one begins has no entry at that key: only its range tombstone ends there.
        if let [left, right, ..] = &overlapped[..]
            && left.max_key == right.min_key
            && right.min_key == first
        {
            overlapped.remove(0);
        }
        if !overlapped.is_empty() {
            runs.push(overlapped);
        }
        self.finish(runs, level)
    }

    /// A merge of exactly these runs, as far as one job can go.
    fn finish(&self, mut runs: Vec<Vec<Shared>>, level: usize) -> Option<Merge> {
        let (picked_bytes, bytes_max) = (sum(&runs, TableMeta::live_bytes), self.job_bytes_max());
        let raw_bytes = sum(&runs, |table| table.raw_bytes);
        let (mut raw_bytes_max, mut end) = (u64::MAX, None);
        if picked_bytes > bytes_max {
            // A job counts uncompressed keys and values; the cap counts stored bytes.
            raw_bytes_max = (bytes_max as f64 / picked_bytes as f64 * raw_bytes as f64) as u64;
            // As in a job's limit: the job goes beyond the first key of the runs above the lowest.
            let floor = runs.split_last().and_then(|(_, above)| Some(bounds(above)?.0)).unwrap_or_default();
            end = runs.iter().filter_map(|run| out_of_reach(run, raw_bytes_max, &floor)).min().cloned();
        }
        if let Some(end) = &end {
            for run in &mut runs {
                run.retain(|table| table.min_key < *end);
            }
            runs.retain(|run| !run.is_empty());
        }
        let (first, last) = bounds(&runs)?;
        let touched = |level| self.version.overlapping(level, &first, &last).cloned().collect();
        let below = (level + 1..=DEEPEST).map(touched).collect();
        // Even shares: a small remainder would be one more file.
        let (bytes, table_bytes) = (picked_bytes.min(bytes_max), self.table_bytes());
        let tables = (bytes + table_bytes / 2) / table_bytes.max(1);
        let table_bytes = if tables > 1 { bytes.div_ceil(tables) } else { table_bytes * 3 / 2 };
        Some(Merge { runs, level, below, above: Vec::new(), table_bytes, raw_bytes_max, end, picked_bytes })
    }
}

fn sum(runs: &[Vec<Shared>], bytes: impl Fn(&TableMeta) -> u64) -> u64 {
    runs.iter().flatten().map(|table| bytes(table)).sum()
}

/// The first key of the first table of a run that a job cannot reach: the tables before it are everything that it may take
/// in. The job has to go beyond `floor`.
fn out_of_reach<'a>(run: &'a [Shared], raw_bytes_max: u64, floor: &[u8]) -> Option<&'a Vec<u8>> {
    let mut raw_bytes = 0;
    for pair in run.windows(2) {
        raw_bytes += pair[0].raw_bytes;
        let begins = pair[1].min_key.as_slice();
        if raw_bytes > raw_bytes_max && pair[0].min_key.as_slice() < begins && begins > floor {
            return Some(&pair[1].min_key);
        }
    }
    None
}

/// The lowest and the highest key of some runs.
fn bounds(runs: &[Vec<Shared>]) -> Option<(Vec<u8>, Vec<u8>)> {
    let first = runs.iter().flatten().map(|table| &table.min_key).min()?;
    let last = runs.iter().flatten().map(|table| &table.max_key).max()?;
    Some((first.clone(), last.clone()))
}
