//! Jobs as they are offered: what a flush or a merge reads, how many tables it may write, and how large they are expected to be.

use super::running::{Input, Offer};
use crate::codec::room;
use crate::compact::{JobInput, JobKind, JobSpec, Merge};
use crate::error::Result;
use crate::memtable::Memtable;
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::store::{Frozen, Store};
use crate::table::TableMeta;
use crate::types::Sequence;
use crate::view::{SharedMemtable, share};

/// Filter bits per key in levels 0 and 1, which most lookups pass.
const BITS_PER_KEY: u32 = 14;

/// Bytes by which an output may be larger than its target.
const OUTPUT_SLACK_BYTES: u64 = 256 << 10;

/// Bytes for the parts of a table beside its only entry, and for an entry that is longer than the average.
const ENTRY_SLACK_BYTES: u64 = 1 << 10;

/// The smallest piece of room that an output goes to on a full storage, in bytes.
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// One part in this many of a piece is left for the parts of a table beside its entries.
const PIECE_SLACK: u64 = 16;

/// Approximate bytes of a flush's specification beside the memtable.
const SPEC_BYTES: usize = 256;

impl<S: Storage> Store<S> {
    /// A specification without inputs; its output tables have numbers that no other table has.
    fn job_spec(&mut self, outputs_max: u64, table_bytes: u64, level: u8, bottom: bool) -> JobSpec {
        let first_output = self.fresh.tables(outputs_max);
        JobSpec {
            keyring: self.manifest.keyring().fork(),
            level,
            bottom,
            compress: self.options.compress && level > 0,
            block_bytes: self.options.block_bytes as u32,
            restart_interval: self.options.restart_interval as u32,
            bits_per_key: BITS_PER_KEY,
            table_bytes,
            first_output,
            outputs_max,
            raw_bytes_max: u64::MAX,
            end: None,
            now_ms: self.clock.now_ms + if mutant::has(Mutant::MergeClockAhead) { 1000 } else { 0 },
            tombstones_until: self.oldest_snapshot(),
            below: Vec::new(),
            above: Vec::new(),
            input: JobInput::Runs(Vec::new()),
        }
    }

    /// A flush of the oldest memtable, together with the next ones as long as they fit one memtable of the usual size: short sessions leave
    /// many small ones.
    pub(super) fn flush_job(&mut self) -> Result<Option<Offer>> {
        let Some(first) = self.frozen.front().map(|oldest| oldest.segment) else { return Ok(None) };
        let Some((memtable, last)) = self.oldest_memtables() else { return Ok(None) };
        let (image, order, entries, newest) = {
            let memtable = memtable.borrow();
            let order = memtable.freeze_order();
            // With room for the rest of the specification, so that the copy is the only one.
            let mut image = Vec::new();
            room::reserve_exact(&mut image, memtable.image().len() + order.len() + SPEC_BYTES)?;
            image.extend_from_slice(memtable.image());
            let entries = order.len() as u64 / 8;
            (image, order, entries, memtable.max_sequence())
        };
        let bytes = image.len() as u64 + image.len() as u64 / 8 + (16 << 10);
        let bytes_hint =
            if self.is_flush_refused() { bytes.min(self.piece(image.len() as u64, entries)) } else { bytes };
        let bottom = self.version.tables().next().is_none();
        // One table, unless no piece of room on a full storage could take it.
        let (outputs_max, table_bytes) = if bytes_hint < bytes {
            (outputs_of(bytes, bytes_hint / 2), fitting(bytes_hint))
        } else {
            (1, u64::MAX)
        };
        let mut spec = self.job_spec(outputs_max, table_bytes, 0, bottom);
        spec.input = JobInput::Memtable { image, order };
        let mut running = self.jobs.new_running(JobKind::Flush, (first, last), Vec::new(), 0);
        running.forgets_until = forgets_until(&spec, newest);
        Ok(Some((spec, running, bytes_hint)))
    }

    /// The oldest memtables joined into one, and the segment of the last of them.
    fn oldest_memtables(&self) -> Option<(SharedMemtable, u64)> {
        let bytes = |frozen: &Frozen| frozen.memtable.borrow().image().len();
        let oldest = self.frozen.front()?;
        let mut left = self.memtable_bytes.checked_sub(bytes(oldest));
        let more = self.frozen.iter().skip(1).take_while(|frozen| {
            left = left.and_then(|left| left.checked_sub(bytes(frozen)));
            left.is_some()
        });
        let more: Vec<_> = more.collect();
        let Some(last) = more.last() else { return Some((oldest.memtable.clone(), oldest.segment)) };
        let mut joined = Memtable::new(*oldest.memtable.borrow().header());
        for frozen in std::iter::once(oldest).chain(more.iter().copied()) {
            joined.append(&frozen.memtable.borrow());
        }
        Some((share(joined), last.segment))
    }

    /// How long the pieces of room are that a full storage has for `bytes` bytes in `entries` entries, one table in
    /// each.
    fn piece(&self, bytes: u64, entries: u64) -> u64 {
        let entry = (bytes / entries.max(1)).saturating_add(ENTRY_SLACK_BYTES);
        let needed = bytes.saturating_add(bytes / PIECE_SLACK);
        let pieces = self.storage.pieces_when_full();
        pieces.map_or(u64::MAX, |pieces| pieces.for_tables(needed, entry.max(PIECE_BYTES_MIN)))
    }

    /// The longest piece of room, while the storage refuses to give more room.
    pub(super) fn longest_piece(&self) -> Option<u64> {
        self.storage.pieces_when_full().map(|pieces| pieces.longest())
    }

    /// The job for a merge. On a full storage, its outputs fit the pieces of room that there are.
    pub(super) fn compaction_job(&mut self, mut merge: Merge) -> Offer {
        let (mut hint_slack, mut is_in_pieces) = (OUTPUT_SLACK_BYTES, false);
        if !merge.above.is_empty() {
            let entries = merge.runs.iter().flatten().map(|table| table.entries).sum();
            let piece = self.piece(merge.bytes(), entries);
            if piece < merge.table_bytes.min(merge.bytes()) + OUTPUT_SLACK_BYTES {
                merge.table_bytes = fitting(piece);
                hint_slack = piece - merge.table_bytes;
                is_in_pieces = true;
            }
        }
        let tables = || merge.runs.iter().flatten();
        let stored: u64 = merge.bytes();
        let raw: u64 = tables().map(|table| table.raw_bytes).sum();
        let level_of = |id| self.version.table(id).map_or(0, |(level, _)| level);
        let input = |table: &std::rc::Rc<TableMeta>| {
            let TableMeta { id, skipped_bytes, .. } = **table;
            Input { id, level: level_of(id), skipped_bytes }
        };
        let inputs = tables().map(input).collect();
        let next_level: u64 = merge.below.first().into_iter().flatten().map(|table| table.live_bytes()).sum();
        // Uncompressed outputs may be larger than their inputs; some end early because of the tables that they overlap.
        let least = if is_in_pieces { merge.table_bytes / 2 } else { merge.table_bytes };
        let outputs_max = outputs_of(raw.max(stored) + next_level, least);
        let mut spec = self.job_spec(outputs_max, merge.table_bytes, merge.level as u8, true);
        spec.input = JobInput::Runs(merge.runs);
        // For a table that stays where it is, the tables below it are not examined: its tombstones stay, too.
        spec.bottom = merge.above.is_empty();
        spec.below = merge.below;
        let newer = merge.above.iter().flatten().map(|table| table.id).collect();
        spec.above = merge.above;
        spec.raw_bytes_max = merge.raw_bytes_max;
        spec.end = merge.end;
        let mut running = self.jobs.new_running(JobKind::Compaction, (0, 0), inputs, merge.level as u8);
        running.swept = self.jobs.sweep.is_running() && spec.above.is_empty();
        running.newer = newer;
        running.forgets_until = forgets_until(&spec, self.version.floors.last_sequence);
        (spec, running, merge.table_bytes.min(stored) + hint_slack)
    }
}

/// The newest tombstone that a job may drop, if `newest` is as new as all its inputs.
fn forgets_until(spec: &JobSpec, newest: Sequence) -> Sequence {
    if spec.bottom { spec.tombstones_until.min(newest) } else { 0 }
}

/// How many tables of a size a job may write at most.
fn outputs_of(bytes: u64, table_bytes: u64) -> u64 {
    bytes / (table_bytes / 8 * 7).max(1) + 2
}

/// Bytes of a table that fits into a piece of `piece` bytes.
fn fitting(piece: u64) -> u64 {
    piece - piece / PIECE_SLACK
}
