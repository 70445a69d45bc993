//! The statistics of a store.

use std::cell::Cell;

use super::Store;
use crate::compact::{JobResult, Levels};
use crate::storage::Storage;
use crate::types::Sequence;

/// The results that gets had from the filters of tables.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FilterCounts {
    pub(crate) checks: u64,
    pub(crate) negatives: u64,
}

/// Running totals of this session.
#[derive(Debug, Default, Clone)]
pub(super) struct Counters {
    pub(super) writes: u64,
    pub(super) wal_bytes: u64,
    pub(super) syncs: u64,
    flushes: u64,
    flush_bytes: u64,
    last_flush_ms: u64,
    compactions: u64,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
    entries_dropped: u64,
    last_compaction_ms: u64,
    pub(super) moves: u64,
    pub(super) drops: u64,
    /// A cell, because reads take the store by shared reference.
    pub(super) filters: Cell<FilterCounts>,
}

impl Counters {
    pub(super) fn count_flush(&mut self, result: &JobResult, now_ms: u64) {
        self.flushes += 1;
        self.flush_bytes += result.bytes_written;
        self.entries_dropped += result.entries_dropped;
        self.last_flush_ms = now_ms;
    }

    pub(super) fn count_compaction(&mut self, result: &JobResult, now_ms: u64) {
        self.compactions += 1;
        self.compaction_bytes_read += result.bytes_read;
        self.compaction_bytes_written += result.bytes_written;
        self.entries_dropped += result.entries_dropped;
        self.last_compaction_ms = now_ms;
    }
}

/// One level of tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Tables in the level.
    pub tables: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Their entries, tombstones included.
    pub entries: u64,
    /// Bytes that the level may contain before tables leave it; 0 for a level that is skipped.
    pub target_bytes: u64,
    /// How full it is, in thousandths. From 1000 on a compaction is due, the fullest level first. For level 0 the
    /// number of tables counts as well.
    pub score: u64,
}

/// Statistics of a store at one point in time. Sizes are in bytes; times are in milliseconds since 1970 (0: never in
/// this session).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Sequence of the last write.
    pub sequence: Sequence,
    /// Entries of the active memtable.
    pub memtable_entries: u64,
    /// Bytes of the active memtable, its index included.
    pub memtable_bytes: u64,
    /// Size at which the active memtable is frozen.
    pub memtable_bytes_max: u64,
    /// Memtables that wait for their flush.
    pub frozen: u64,
    /// Their bytes.
    pub frozen_bytes: u64,
    /// WAL segments with a file.
    pub wal_segments: u64,
    /// Bytes of the active segment.
    pub wal_segment_bytes: u64,
    /// Bytes appended to the WAL in this session.
    pub wal_bytes: u64,
    /// Flushes of the WAL in this session.
    pub wal_syncs: u64,
    /// Writes staged in this session.
    pub writes: u64,
    /// Every level, from 0.
    pub levels: Vec<LevelStats>,
    /// Bytes of cached blocks.
    pub cache_bytes: u64,
    /// The memory that memtables leave: the limit for `cache_bytes` and `resident_bytes` together.
    pub cache_bytes_max: u64,
    /// Cache lookups that found their block.
    pub cache_hits: u64,
    /// Cache lookups that did not.
    pub cache_misses: u64,
    /// Filter checks by gets in this session, one for each table asked. A get that was made again because bytes were missing counts
    /// once.
    pub filter_checks: u64,
    /// Filter checks that showed that the key is not in the table, so the table was not read.
    pub filter_negatives: u64,
    /// Bytes of indexes and filters of open tables.
    pub resident_bytes: u64,
    /// Bytes of flushed memtables that only snapshots and scans read.
    pub retained_bytes: u64,
    /// The limit for all of these, memtables included.
    pub memory_bytes_max: u64,
    /// Memtable flushes in this session.
    pub flushes: u64,
    /// Bytes they wrote.
    pub flush_bytes: u64,
    /// When the last one was installed.
    pub last_flush_ms: u64,
    /// Compactions in this session.
    pub compactions: u64,
    /// Bytes they read.
    pub compaction_bytes_read: u64,
    /// Bytes they wrote.
    pub compaction_bytes_written: u64,
    /// Entries that flushes and compactions dropped.
    pub entries_dropped: u64,
    /// When the last compaction was installed.
    pub last_compaction_ms: u64,
    /// Tables that an edit alone moved a level down.
    pub moves: u64,
    /// Tables that a range tombstone deleted as a whole; an edit alone dropped them.
    pub drops: u64,
    /// A `compact()` is in progress.
    pub sweeping: bool,
    /// Bytes that the sweep of a `compact()` has read; those of the last sweep when none is in progress.
    pub sweep_bytes: u64,
    /// Approximate bytes that it has to read; 0 before that is known.
    pub sweep_bytes_max: u64,
    /// Whether a writer should wait (see [`Store::is_stalled`]).
    pub stalled: bool,
    /// How many memtables may wait for their flush before a writer has to wait.
    pub frozen_max: u64,
    /// Number of tables in level 0 that starts a compaction.
    pub level_0_trigger: u64,
    /// Number of tables in level 0 at which a writer has to wait.
    pub level_0_stall: u64,
    /// Bytes that the storage takes on disk.
    pub disk_bytes: u64,
    /// Open scans.
    pub cursors: u64,
    /// Snapshots that are open.
    pub snapshots: u64,
    /// Age of the oldest of them, in milliseconds; 0 when there is none.
    pub snapshot_age_ms: u64,
    /// Files that wait to be deleted.
    pub obsolete_files: u64,
    /// Leader epoch: how often the store was opened.
    pub epoch: u64,
}

impl Stats {
    /// Bytes written to tables for each byte flushed in this session, 0 before the first flush.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        if self.flush_bytes == 0 {
            return 0.0;
        }
        (self.flush_bytes + self.compaction_bytes_written) as f64 / self.flush_bytes as f64
    }
}

impl<S: Storage> Store<S> {
    /// The statistics of the store as it is now.
    pub fn stats(&self) -> Stats {
        let active = self.active.borrow();
        let cache = self.cache.borrow();
        let counters = &self.counters;
        let filters = counters.filters.get();
        let frozen_bytes = self.frozen.iter().map(|frozen| frozen.memtable.borrow().bytes() as u64).sum();
        let targets = Levels::of(&self.version, &self.options, self.jobs.is_idle());
        let swept = self.jobs.sweep.progress();
        let level = |level: usize| {
            let tables = self.version.level(level);
            LevelStats {
                tables: tables.len() as u64,
                bytes: self.version.level_bytes(level),
                entries: tables.iter().map(|table| table.entries).sum(),
                target_bytes: targets.target_bytes[level],
                score: targets.score(&self.version, &self.options, level),
            }
        };
        let opened = self.snapshots.all().map(|snapshot| snapshot.now_ms);
        let oldest = opened.min().unwrap_or(self.clock.now_ms);
        Stats {
            sequence: self.last_sequence,
            memtable_entries: active.entries() as u64,
            memtable_bytes: active.bytes() as u64,
            memtable_bytes_max: self.memtable_bytes as u64,
            frozen: self.frozen.len() as u64,
            frozen_bytes,
            wal_segments: self.segments.len() as u64,
            wal_segment_bytes: self.log.written as u64,
            wal_bytes: counters.wal_bytes,
            wal_syncs: counters.syncs,
            writes: counters.writes,
            levels: (0..self.version.levels()).map(level).collect(),
            cache_bytes: (cache.bytes() - cache.table_bytes()) as u64,
            cache_bytes_max: cache.capacity() as u64,
            cache_hits: cache.hits(),
            cache_misses: cache.misses(),
            filter_checks: filters.checks,
            filter_negatives: filters.negatives,
            resident_bytes: cache.table_bytes() as u64,
            retained_bytes: self.memtable_bytes_in_use() as u64 - active.bytes() as u64 - frozen_bytes,
            memory_bytes_max: self.options.memory_bytes as u64,
            flushes: counters.flushes,
            flush_bytes: counters.flush_bytes,
            last_flush_ms: self.clock.to_host(counters.last_flush_ms),
            compactions: counters.compactions,
            compaction_bytes_read: counters.compaction_bytes_read,
            compaction_bytes_written: counters.compaction_bytes_written,
            entries_dropped: counters.entries_dropped,
            last_compaction_ms: self.clock.to_host(counters.last_compaction_ms),
            moves: counters.moves,
            drops: counters.drops,
            sweeping: self.jobs.sweep.is_running(),
            sweep_bytes: swept.0.min(swept.1),
            sweep_bytes_max: swept.1,
            stalled: self.is_stalled(),
            frozen_max: self.options.frozen_max as u64,
            level_0_trigger: self.options.l0_trigger as u64,
            level_0_stall: self.options.l0_stall as u64,
            disk_bytes: self.storage.bytes_on_disk(),
            cursors: self.cursors.count() as u64,
            snapshots: self.snapshots.all().len() as u64,
            snapshot_age_ms: self.clock.now_ms.saturating_sub(oldest),
            obsolete_files: self.obsolete.len() as u64,
            epoch: self.manifest.epoch(),
        }
    }
}
