//! Flushes and compactions: handed out as tickets, and installed when they are done.
//!
//! Invariant: results are installed in the order of history: a flush only if its memtable is still the oldest, a
//! compaction only if all its inputs are still what they were. Any other result is stale, and its outputs are deleted.

use super::choose::{Purge, Sweeping};
use super::inline::Inline;
use super::{Frozen, Store};
use crate::codec::room;
use crate::compact::{JOB_SHARE_SMALL, JobInput, JobKind, JobResult, JobSpec, Merge};
use crate::error::{Error, Result};
use crate::manifest::{Edit, Floors};
use crate::memtable::Memtable;
use crate::mutant::{self, Mutant};
use crate::storage::Storage;
use crate::table::TableMeta;
use crate::types::FileName;
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
/// A merge counts as one of overwrites if it drops more than one entry for this many entries that it keeps.
const OVERWRITTEN_SHARE: u64 = 8;
/// Approximate bytes of a flush's specification beside the memtable.
const SPEC_BYTES: usize = 256;

/// A job that is about to start: its specification, the record that the store keeps of it, and the expected bytes of an
/// output.
pub(super) type Offer = (JobSpec, Running, u64);

/// A job for a compactor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTicket {
    /// Number of the job in this session.
    pub id: u32,
    /// Flush or compaction.
    pub kind: JobKind,
    /// The job frees as much room as it takes: on a full storage it may use the room that is set aside.
    pub gives_room: bool,
    /// The specification that [`Job::decode`](crate::compact::Job::decode) takes.
    pub spec: Vec<u8>,
    /// Number of the first output table.
    pub first_output: u64,
    /// How many table numbers are reserved for outputs, from `first_output` on.
    pub outputs_max: u64,
    /// Approximate bytes that each output will need.
    pub bytes_hint: u64,
}

/// An input table as it was when its job was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Input {
    id: u64,
    level: usize,
    skipped_bytes: u64,
}

/// A job that was handed out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: u32,
    pub(super) kind: JobKind,
    /// Segments of the memtables that are flushed, the first and the last.
    segments: (u64, u64),
    /// The tables that are merged.
    inputs: Vec<Input>,
    /// Tables that are read only to find which entries they hide.
    newer: Vec<u64>,
    level: u8,
    /// It is part of a sweep.
    swept: bool,
}

impl Running {
    /// Whether it rewrites a table without the entries that newer tables hide.
    pub(super) fn is_purge(&self) -> bool {
        !self.newer.is_empty()
    }

    /// Whether it frees as much room as it takes: then it may use the room that is set aside.
    pub(super) fn gives_room(&self) -> bool {
        self.kind == JobKind::Flush || self.is_purge()
    }

    /// Whether the job reads this table.
    pub(super) fn reads(&self, id: u64) -> bool {
        self.inputs.iter().any(|input| input.id == id) || self.newer.contains(&id)
    }
}

/// The jobs of a store: those that were handed out, and what decides about the next ones.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    running: Vec<Running>,
    /// The one that this store runs itself, in slices.
    pub(super) inline: Option<Inline>,
    last_number: u32,
    pub(super) sweep: Sweeping,
    pub(super) purge: Purge,
    /// The log's floor when a flush failed last. While the floor is the same, no flush has succeeded since.
    flush_refused: Option<u64>,
    /// The last merge of level 0 dropped many entries.
    pub(super) overwrites: bool,
    /// Level 0 is as large as writers may make it.
    pub(super) level_zero_full: bool,
    /// No compaction was due after this many edits.
    none_due_at: Option<u64>,
    /// See [`Store::begin_idle`].
    is_idle: bool,
}

impl Jobs {
    /// Remembers a job as handed out.
    pub(super) fn begin(&mut self, running: Running) {
        self.running.push(running);
    }

    pub(super) fn is_any_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Forgets a job, and returns what was known of it.
    fn take(&mut self, id: u32) -> Option<Running> {
        let at = self.running.iter().position(|running| running.id == id)?;
        Some(self.running.remove(at))
    }

    /// Forgets a job for which only bytes are missing, as if it had not been offered.
    pub(super) fn put_back(&mut self, id: u32) {
        for input in self.take(id).filter(Running::is_purge).into_iter().flat_map(|running| running.inputs) {
            self.purge.put_back(input.id);
        }
    }

    pub(super) fn is_flushing(&self) -> bool {
        self.running.iter().any(|running| running.kind == JobKind::Flush)
    }

    pub(super) fn is_compacting(&self) -> bool {
        self.running.iter().any(|running| running.kind == JobKind::Compaction)
    }

    /// Whether a job reads this table.
    pub(super) fn read(&self, table: u64) -> bool {
        self.running.iter().any(|running| running.reads(table))
    }

    fn new_running(&mut self, kind: JobKind, segments: (u64, u64), inputs: Vec<Input>, level: u8) -> Running {
        self.last_number += 1;
        Running { id: self.last_number, kind, segments, inputs, newer: Vec::new(), level, swept: false }
    }

    /// Whether a flush failed and none has succeeded since.
    pub(super) fn is_flush_refused(&self, log_floor: u64) -> bool {
        self.flush_refused == Some(log_floor)
    }

    /// Whether no compaction was due when the tables after this edit were looked at.
    pub(super) fn is_none_due(&self, edits: u64) -> bool {
        self.none_due_at == Some(edits)
    }

    /// No compaction is due after this edit.
    pub(super) fn note_none_due(&mut self, edits: u64) {
        self.none_due_at = Some(edits);
    }

    /// Something other than an edit may have made a compaction due.
    pub(super) fn look_again(&mut self) {
        self.none_due_at = None;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Nothing is written for a while.
    pub(super) fn begin_idle(&mut self) {
        self.is_idle = true;
        self.look_again();
    }

    /// Something is written again. Levels may be larger now, so nothing more is due.
    pub(super) fn end_idle(&mut self) {
        self.is_idle = false;
    }
}

impl<S: Storage> Store<S> {
    /// The next job to run, if one is due: at most one flush and one compaction at a time. Tables that need only a move
    /// or a drop get it here.
    ///
    /// # Errors
    /// The error of the manifest's storage for such an edit.
    pub fn take_job(&mut self) -> Result<Option<JobTicket>> {
        if self.poisoned || self.closed {
            return Ok(None);
        }
        let Some((spec, running, bytes_hint)) = self.next_job()? else { return Ok(None) };
        let ticket = JobTicket {
            id: running.id,
            kind: running.kind,
            gives_room: running.gives_room(),
            first_output: spec.first_output,
            outputs_max: spec.outputs_max,
            bytes_hint,
            spec: spec.encode(),
        };
        self.jobs.begin(running);
        Ok(Some(ticket))
    }

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
            now_ms: self.now_ms + if mutant::has(Mutant::MergeClockAhead) { 1000 } else { 0 },
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
        let (image, order, entries) = {
            let memtable = memtable.borrow();
            let order = memtable.freeze_order();
            // With room for the rest of the specification, so that the copy is the only one.
            let mut image = Vec::new();
            room::reserve_exact(&mut image, memtable.image().len() + order.len() + SPEC_BYTES)?;
            image.extend_from_slice(memtable.image());
            let entries = order.len() as u64 / 8;
            (image, order, entries)
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
        let running = self.jobs.new_running(JobKind::Flush, (first, last), Vec::new(), 0);
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
        (spec, running, merge.table_bytes.min(stored) + hint_slack)
    }

    /// Installs the result of a compactor. Its tables must be flushed. A stale result is dropped and its tables are
    /// deleted.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown job; or the error of the manifest's storage.
    pub fn finish_job(&mut self, id: u32, result: &[u8]) -> Result<()> {
        self.check_writable()?;
        let result = JobResult::decode(result)?;
        let Some(running) = self.jobs.take(id) else {
            return Err(Error::InvalidArgument("There is no such job."));
        };
        let read = result.bytes_read;
        let outputs: Vec<u64> = result.tables.iter().map(|table| table.id).collect();
        let installed = match running.kind {
            JobKind::Flush => self.install_flush(&running, result),
            JobKind::Compaction => self.install_compaction(&running, result),
        };
        match installed {
            Ok(true) if self.is_much(read) => {
                // So much room is freed now and not with the next edit, which may come much later.
                match self.release() {
                    Err(Error::StorageFull) => Ok(()),
                    released => released,
                }
            }
            Ok(true) => Ok(()),
            other => {
                // If an edit could not be flushed, it is unknown whether it survives a crash: its tables have to stay.
                for table in outputs.into_iter().filter(|_| !self.poisoned) {
                    self.storage.delete(FileName::table(table))?;
                }
                other.map(|_| ())
            }
        }
    }

    /// Whether inputs of `read` bytes are much for this store, on a storage with room. On a full storage an edit itself
    /// takes room, and room that is freed early goes to the next table rather than to the log.
    fn is_much(&self, read: u64) -> bool {
        let bytes = self.version.bytes();
        let is_roomy = self.storage.free_bytes().is_some_and(|free| free > bytes);
        is_roomy && read > bytes / 16 && read >= self.options.job_bytes_max / JOB_SHARE_SMALL / 2
    }

    /// Forgets a job that failed because of a lack of room (`is_full`) or for another reason. The job will be offered again; a purge is
    /// offered again only once in the same round. If the job was part of a sweep, the sweep ends, and this is reported to the caller that
    /// asked for it.
    pub fn fail_job(&mut self, id: u32, is_full: bool) {
        let failed = self.remove_job(id, is_full);
        if let Some(running) = failed.filter(Running::is_purge) {
            self.jobs.purge.retry(running.inputs[0].id);
        }
    }

    pub(super) fn remove_job(&mut self, id: u32, is_full: bool) -> Option<Running> {
        let failed = self.jobs.take(id)?;
        if failed.is_purge() {
            self.purge_failed();
        }
        if failed.swept {
            self.jobs.sweep.end();
        }
        // Unless its memtable was flushed meanwhile.
        let waits = || self.frozen.front().is_some_and(|oldest| oldest.segment == failed.segments.0);
        if failed.kind == JobKind::Flush && is_full && waits() {
            self.jobs.flush_refused = Some(self.version.floors.log_floor);
        }
        Some(failed)
    }

    fn install_flush(&mut self, running: &Running, result: JobResult) -> Result<bool> {
        let (first, last) = running.segments;
        let is_oldest = self.frozen.front().is_some_and(|oldest| oldest.segment == first);
        let Some(end) = self.frozen.iter().position(|frozen| frozen.segment == last).filter(|_| is_oldest)
        else {
            return Ok(false);
        };
        let mut floors = self.version.floors;
        // Also without a log: the memtable may have been recovered from a log, and must not be recovered again.
        floors.log_floor = last;
        floors.last_sequence = floors.last_sequence.max(self.frozen[end].memtable.borrow().max_sequence());
        raise_gc(&mut floors, &result);
        // The view after the edit must not contain the memtables any more: the table takes their place. One by one:
        // `drain` would add a kilobyte of wasm.
        let flushed: Vec<Frozen> = (0..=end).filter_map(|_| self.frozen.pop_front()).collect();
        for frozen in flushed.iter().filter(|frozen| self.segments.contains(&frozen.segment)) {
            self.history.add(&frozen.memtable.borrow());
        }
        self.counters.count_flush(&result, self.now_ms);
        let added = result.tables.into_iter().map(|table| (0, table)).collect();
        let committed = self.commit_edit(Edit { added, floors, ..Edit::default() });
        if committed.is_err() {
            for frozen in flushed.into_iter().rev() {
                self.history.take_back(frozen.segment);
                self.frozen.push_front(frozen);
            }
        }
        committed.map(|()| true)
    }

    fn install_compaction(&mut self, running: &Running, result: JobResult) -> Result<bool> {
        let is_whole = running.inputs.iter().all(|input| input.skipped_bytes == 0);
        if running.is_purge() && is_whole && result.entries_dropped + result.entries_expired == 0 {
            // It frees nothing, and the existing table lies in one piece.
            return Ok(false);
        }
        let mut edit = Edit { floors: self.version.floors, ..Edit::default() };
        for input in &running.inputs {
            let known = self.version.table(input.id);
            let Some((level, table)) = known
                .filter(|(level, table)| *level == input.level && table.skipped_bytes == input.skipped_bytes)
            else {
                return Ok(false);
            };
            match &result.until {
                // The job ended before this table, or inside it.
                Some(until) if table.min_key >= *until => continue,
                Some(until) if table.max_key >= *until && !self.ends_at(level, table, until) => {
                    let skipped = result.skipped.iter().find(|(id, _)| *id == input.id);
                    let rest = table.rest(until, skipped.map_or(1, |(_, bytes)| *bytes));
                    edit.added.push((level as u8, rest));
                }
                _ => {}
            }
            edit.removed.push(input.id);
        }
        if !self.fits(running, &result) {
            return Ok(false);
        }
        raise_gc(&mut edit.floors, &result);
        self.counters.count_compaction(&result, self.now_ms);
        if running.inputs.first().is_some_and(|newest| newest.level == 0) {
            let kept: u64 = result.tables.iter().map(|table| table.entries).sum();
            self.jobs.overwrites = result.entries_dropped > kept / OVERWRITTEN_SHARE;
        }
        if running.swept {
            self.jobs.sweep.has_read(result.bytes_read);
        }
        edit.added.extend(result.tables.into_iter().map(|table| (running.level, table)));
        self.commit_edit(edit)?;
        Ok(true)
    }

    /// Whether a table of a sorted level only ends at `key`, the exclusive end of a range tombstone, because the next one
    /// begins there.
    fn ends_at(&self, level: usize, table: &TableMeta, key: &[u8]) -> bool {
        let mut there = self.version.overlapping(level, key, key);
        level > 0 && table.max_key == key && there.any(|next| next.id != table.id && next.min_key == key)
    }

    /// Whether the outputs overlap only inputs: an inline job may have put a table into a gap between them.
    fn fits(&self, running: &Running, result: &JobResult) -> bool {
        running.level == 0
            || result.tables.iter().all(|table| {
                let mut there =
                    self.version.overlapping(usize::from(running.level), &table.min_key, &table.max_key);
                there.all(|there| {
                    running.reads(there.id)
                        || there.max_key == table.min_key
                        || there.min_key == table.max_key
                })
            })
    }
}

/// How many tables of a size a job may write at most.
fn outputs_of(bytes: u64, table_bytes: u64) -> u64 {
    bytes / (table_bytes / 8 * 7).max(1) + 2
}

/// Bytes of a table that fits into a piece of `piece` bytes.
fn fitting(piece: u64) -> u64 {
    piece - piece / PIECE_SLACK
}

/// No snapshot from before a job's newest input may be opened again, because the job dropped entries that it might read. An
/// expired entry was also visible to snapshots that are as new as the entry, if their time is older.
fn raise_gc(floors: &mut Floors, result: &JobResult) {
    if result.entries_dropped + result.entries_expired > 0 {
        let lost = floors.last_sequence + u64::from(result.entries_expired > 0);
        floors.gc_sequence = floors.gc_sequence.max(lost);
    }
}
