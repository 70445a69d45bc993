//! A job in progress: blocks in, blocks out.
//!
//! Invariant: `step` never loses its place. `Need` changes nothing; call `feed` with the bytes, then `step` again. Take
//! the bytes of `Write` with `take_output`, in file order.

use std::rc::Rc;

use super::below::Below;
use super::inputs::ChunkBlocks;
use super::keep::Keep;
use super::limit::Limit;
use super::output::{Out, Outputs};
use super::spec::{JobInput, JobResult, JobSpec};
use crate::codec::room;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::scan::{LevelCursor, Merge, Source, Start};
use crate::table::Need;
use crate::types::{RangeTombstone, Sequence};
use crate::view::TableHandle;

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The budget is spent; call again.
    Working,
    /// Read this range of an input table and `feed` it.
    Need(Need),
    /// Write `take_output()` at this offset of an output table.
    Write {
        /// Number of the output table.
        table: u64,
        /// Offset in bytes.
        offset: u64,
    },
    /// An output table is complete: flush it.
    Finished {
        /// Number of the output table.
        table: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// The job is complete: send `result`.
    Done,
}

/// The inputs of a compaction, newest first.
type Runs = Vec<Rc<[Rc<TableHandle>]>>;

enum State {
    /// Walks a frozen memtable: entries already handled.
    Memtable {
        image: Vec<u8>,
        order: Vec<u8>,
        at: usize,
    },
    /// Inputs not open yet.
    Opening {
        runs: Runs,
        merge: Merge<'static>,
        /// How many of them only hide entries of the others.
        above: usize,
        blocks: ChunkBlocks,
    },
    /// Merging; `consumed` means that the current entry was handled and the merge has to advance.
    Merging {
        merge: Merge<'static>,
        limit: Limit,
        above: usize,
        blocks: ChunkBlocks,
        consumed: bool,
    },
    Done,
}

/// A flush or compaction that can be advanced step by step.
pub struct Job {
    spec: JobSpec,
    state: State,
    keep: Keep,
    kept_ranges: Vec<RangeTombstone>,
    ranges_dropped: u64,
    outputs: Outputs,
    output: Vec<u8>,
    result: JobResult,
}

impl Job {
    /// Starts the job that `spec` (the bytes of a [`JobSpec`]) describes.
    ///
    /// # Errors
    /// `Error::InvalidArgument` when the bytes are not a specification.
    pub fn decode(spec: Vec<u8>) -> Result<Self> {
        Self::new(JobSpec::decode(spec)?)
    }

    /// Starts a job.
    ///
    /// # Errors
    /// `Error::InvalidArgument` when the memtable of a flush is not one.
    pub fn new(mut spec: JobSpec) -> Result<Self> {
        let outputs = Outputs::new(&spec);
        let input = std::mem::replace(&mut spec.input, JobInput::Runs(Vec::new()));
        let mut result = JobResult::default();
        let (state, keep) = match input {
            JobInput::Memtable { image, order } => {
                result.bytes_read = image.len() as u64;
                let ranges = Memtable::frozen(&image, &order)?.range_tombstones();
                let keep = keep_of(&mut spec, ranges);
                (State::Memtable { image, order, at: 0 }, keep)
            }
            JobInput::Runs(inputs) => {
                let above = spec.above.len();
                let mut runs = std::mem::take(&mut spec.above);
                runs.extend(inputs);
                let sizes = runs.iter().flatten().map(|table| (table.id, table.size)).collect();
                let mut blocks = ChunkBlocks::new(spec.keyring.clone(), sizes, runs.len() * 2);
                if spec.compress {
                    // A smaller one may share a block with its neighbours in the output.
                    blocks = blocks.copying(spec.block_bytes as usize / 2);
                }
                let handle = |table| Rc::new(TableHandle::new(table, true));
                let runs: Runs = runs.into_iter().map(|run| run.into_iter().map(handle).collect()).collect();
                let source =
                    |run: &Rc<[_]>| Source::Level(LevelCursor::new(spec.keyring.clone(), run.clone()));
                let merge = Merge::new(runs.iter().map(source).collect(), true);
                (
                    State::Opening { runs, merge, above, blocks },
                    Keep::new(0, 0, false, Below::default(), Vec::new()),
                )
            }
        };
        let (kept_ranges, ranges_dropped) = (keep.ranges().cloned().collect(), keep.ranges_dropped());
        Ok(Self { spec, state, keep, kept_ranges, ranges_dropped, outputs, output: Vec::new(), result })
    }

    /// Works until it needs the host to do something, or until `budget` entries were handled.
    ///
    /// # Errors
    /// `Error::Corrupt` when an input is damaged; the job is then over.
    pub fn step(&mut self, budget: usize) -> Result<Step> {
        if let Some(step) = self.pop() {
            return Ok(step);
        }
        match self.work(budget) {
            Ok(()) => {}
            Err(error) => match self.blocks().and_then(ChunkBlocks::need) {
                Some(need) if error == Error::Pending => return Ok(Step::Need(need)),
                _ => return Err(error),
            },
        }
        match self.pop() {
            Some(step) => Ok(step),
            None if matches!(self.state, State::Done) => Ok(Step::Done),
            None => Ok(Step::Working),
        }
    }

    /// Supplies the bytes for the last `Step::Need`.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        if let Some(blocks) = self.blocks() {
            blocks.feed(bytes);
        }
    }

    fn blocks(&self) -> Option<&ChunkBlocks> {
        match &self.state {
            State::Opening { blocks, .. } | State::Merging { blocks, .. } => Some(blocks),
            State::Memtable { .. } | State::Done => None,
        }
    }

    /// The bytes of the last `Step::Write`.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// The encoded [`JobResult`], once `step` returned `Step::Done`.
    #[must_use]
    pub fn result(&self) -> Vec<u8> {
        let mut result = self.result.clone();
        result.tables.clone_from(&self.outputs.tables);
        result.entries_expired = self.keep.expired();
        result.entries_dropped += self.ranges_dropped;
        result.encode()
    }

    fn pop(&mut self) -> Option<Step> {
        match self.outputs.queue.pop_front()? {
            Out::Write { table, offset, bytes } => {
                self.result.bytes_written += bytes.len() as u64;
                self.output = bytes;
                Some(Step::Write { table, offset })
            }
            Out::Finished { table, size } => Some(Step::Finished { table, size }),
        }
    }

    fn work(&mut self, budget: usize) -> Result<()> {
        match &mut self.state {
            State::Memtable { image, order, at } => {
                let iterator = Memtable::frozen(image, order)?;
                let from = *at;
                let mut handled = 0;
                for entry in iterator.skip(from).take(budget) {
                    let entry = entry?;
                    claim(entry.value.len())?;
                    handled += 1;
                    let more = entry.key.len() + entry.value.len();
                    if !self.keep.is_current(entry.key) && self.outputs.is_full(self.keep.below(), more) {
                        self.outputs.cut(&self.kept_ranges, Some(entry.key));
                    }
                    match self.keep.entry(entry.key, entry.sequence, entry.kind, entry.expires) {
                        Some(kind) if kind == entry.kind => {
                            self.outputs.add(entry.key, entry.sequence, kind, entry.expires, entry.value);
                        }
                        Some(kind) => self.outputs.add(entry.key, entry.sequence, kind, None, &[]),
                        None => self.result.entries_dropped += 1,
                    }
                }
                *at = from + handled;
                if handled < budget {
                    self.outputs.cut(&self.kept_ranges, None);
                    self.state = State::Done;
                }
                Ok(())
            }
            State::Opening { .. } => self.open(),
            State::Merging { .. } => self.merge(budget),
            State::Done => Ok(()),
        }
    }

    /// Opens every input table that has range tombstones (they affect the entries of all others), then the merge.
    fn open(&mut self) -> Result<()> {
        let State::Opening { runs, merge, above, blocks } = &mut self.state else { return Ok(()) };
        let (mut ranges, mut hiding) = (Vec::new(), Vec::new());
        let tables = runs.iter().enumerate().flat_map(|(at, run)| run.iter().map(move |handle| (at, handle)));
        for (at, handle) in tables.filter(|(_, handle)| handle.meta.range_tombstones > 0) {
            let ranges = if at < *above { &mut hiding } else { &mut ranges };
            for range in handle.open(&self.spec.keyring, blocks)?.range_tombstones() {
                // The entries before the bounds of a narrowed table are in the outputs of an earlier job.
                let start = range.start.clone().max(handle.meta.min_key.clone());
                if start < range.end {
                    ranges.push(RangeTombstone { start, ..range.clone() });
                }
            }
        }
        // Runs that only hide are not read before the first key of the inputs.
        let first = runs[*above..].iter().filter_map(|run| run.first()).map(|handle| &handle.meta.min_key);
        let first = first.min().filter(|_| *above > 0);
        merge.go_on_seeking(Start::Forward(first.map(Vec::as_slice)), blocks)?;
        self.keep = keep_of(&mut self.spec, ranges);
        self.kept_ranges = self.keep.ranges().cloned().collect();
        self.keep.hide(hiding);
        // Computed now, because the merge passes the levels below as it advances.
        self.ranges_dropped = self.keep.ranges_dropped();
        if let State::Opening { blocks, runs, merge, above } = std::mem::replace(&mut self.state, State::Done)
        {
            let limit = Limit::new(self.spec.raw_bytes_max, self.spec.end.take(), runs);
            self.state = State::Merging { merge, limit, above, blocks, consumed: false };
        }
        Ok(())
    }

    fn merge(&mut self, budget: usize) -> Result<()> {
        let Self { state, keep, kept_ranges, outputs, result, .. } = self;
        let State::Merging { merge, limit, above, blocks, consumed } = state else { return Ok(()) };
        for _ in 0..budget {
            if *consumed {
                merge.advance(blocks)?;
                *consumed = false;
            }
            let source = merge.current();
            let next = source.map(Source::key).filter(|key| !keep.is_current(key));
            if source.is_none() || next.is_some() {
                let until = limit.until(next).map(<[u8]>::to_vec);
                if source.is_none() || until.is_some() {
                    outputs.cut(kept_ranges, until.as_deref());
                    limit.report(until, result);
                    *state = State::Done;
                    return Ok(());
                }
            }
            let Some(source) = source else { return Ok(()) };
            let (key, sequence, kind): (&[u8], Sequence, _) =
                (source.key(), source.sequence(), source.kind());
            if next.is_some() {
                keep.below().advance(key);
                if outputs.is_full(keep.below(), key.len() + source.value_len()) {
                    keep.below().cut();
                    outputs.cut(kept_ranges, Some(key));
                }
            }
            claim(source.value_len())?;
            limit.add(key.len() + source.value_len());
            if merge.current_run() < *above {
                keep.pass(key);
                *consumed = true;
                continue;
            }
            match keep.entry(key, sequence, kind, source.expires()) {
                Some(kind) if kind == source.kind() => {
                    if !outputs.try_copy(key, source.block()) {
                        outputs.add(key, sequence, kind, source.expires(), source.value());
                    }
                }
                Some(kind) => outputs.add(key, sequence, kind, None, &[]),
                None => result.entries_dropped += 1,
            }
            *consumed = true;
            if !outputs.queue.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Refuses a value if there is no memory for it in an output: in its block, compressed, and in the bytes to be written, which grow.
fn claim(value_bytes: usize) -> Result<()> {
    room::claim(value_bytes.saturating_mul(4))
}

fn keep_of(spec: &mut JobSpec, ranges: Vec<RangeTombstone>) -> Keep {
    let below = Below::new(std::mem::take(&mut spec.below));
    Keep::new(spec.tombstones_until, spec.now_ms, spec.bottom, below, ranges)
}
