//! The output side of a job: one table after the other, cut by size.
//!
//! Invariant: tables of a job are disjoint in user keys; a range tombstone that reaches over a cut is
//! split at it. Bytes come out in file order.

use std::rc::Rc;

use super::below::Below;
use super::spec::{JobInput, JobSpec};
use crate::codec::cipher::Keyring;
use crate::table::{Block, TableBuilder, TableMeta, TableOptions};
use crate::types::{Kind, RangeTombstone, Sequence};

/// Bytes collected before they are returned to be written.
const WRITE_BYTES: u64 = 256 << 10;

/// An output may overlap as many bytes of the next level as this many tables have.
pub(crate) const OVERLAP_TABLES_MAX: u64 = 10;

/// Something for the host to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Out {
    Write { table: u64, offset: u64, bytes: Vec<u8> },
    Finished { table: u64, size: u64 },
}

pub(crate) struct Outputs {
    spec: OutputSpec,
    builder: Option<TableBuilder>,
    drained: u64,
    next: u64,
    last: u64,
    /// Lower bound of the open table for range tombstones; empty for the first.
    start: Vec<u8>,
    pub(crate) tables: Vec<TableMeta>,
    pub(crate) queue: std::collections::VecDeque<Out>,
}

struct OutputSpec {
    keyring: Keyring,
    options: TableOptions,
    table_bytes: u64,
    /// A table must not become longer than `table_bytes`, unless a single entry is longer.
    is_strict: bool,
}

impl Outputs {
    pub(crate) fn new(spec: &JobSpec) -> Self {
        let options = TableOptions {
            block_bytes: spec.block_bytes as usize,
            restart_interval: spec.restart_interval as usize,
            bits_per_key: spec.bits_per_key,
            compress: spec.compress,
        };
        Self {
            spec: OutputSpec {
                keyring: spec.keyring.clone(),
                options,
                table_bytes: spec.table_bytes,
                is_strict: !spec.above.is_empty() || matches!(spec.input, JobInput::Memtable { .. }),
            },
            builder: None,
            drained: 0,
            next: spec.first_output,
            last: spec.first_output + spec.outputs_max.saturating_sub(1),
            start: Vec::new(),
            tables: Vec::new(),
            queue: std::collections::VecDeque::new(),
        }
    }

    fn builder(&mut self) -> &mut TableBuilder {
        let Self { spec, builder, next, .. } = self;
        builder.get_or_insert_with(|| TableBuilder::new(&spec.keyring, *next, spec.options.clone()))
    }

    /// Whether the open table is full. It is full when it has reached its size. It is full at nearly its size where a
    /// table of the next level ends (a later compaction of it then rewrites one table less: RocksDB, "Align Compaction
    /// Output File", 2022). It is also full when it overlaps more of the next level than a later compaction should have
    /// to rewrite (LevelDB's rule of ten tables). The table with the last reserved number takes everything that is left.
    /// Where tables must not be longer, the next `more` bytes must fit as well.
    pub(crate) fn is_full(&self, below: &Below, more: usize) -> bool {
        let OutputSpec { table_bytes, is_strict, .. } = self.spec;
        let more = if is_strict { more as u64 } else { 0 };
        let reaches_far = below.passed_bytes() > table_bytes.saturating_mul(OVERLAP_TABLES_MAX);
        let enough = if below.is_boundary() { table_bytes - table_bytes / 8 } else { table_bytes };
        self.next < self.last
            && self.builder.as_ref().is_some_and(|builder| reaches_far || builder.bytes() + more >= enough)
    }

    pub(crate) fn add(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        expires: Option<u64>,
        value: &[u8],
    ) {
        self.builder().add(key, sequence, kind, expires, value);
        self.drain_enough();
    }

    /// Appends an entry with its block, if the block can be copied as it is; see [`TableBuilder::try_copy`].
    pub(crate) fn try_copy(&mut self, key: &[u8], block: Option<&Rc<Block>>) -> bool {
        let is_copied = block.is_some_and(|block| self.builder().try_copy(key, block));
        if is_copied {
            self.drain_enough();
        }
        is_copied
    }

    fn drain_enough(&mut self) {
        if self.builder.as_ref().is_some_and(|builder| builder.bytes() - self.drained >= WRITE_BYTES) {
            self.drain();
        }
    }

    fn drain(&mut self) {
        let Some(builder) = &mut self.builder else { return };
        let bytes = builder.take();
        if !bytes.is_empty() {
            let offset = self.drained;
            self.drained += bytes.len() as u64;
            self.queue.push_back(Out::Write { table: self.next, offset, bytes });
        }
    }

    /// Ends the open table; `until` is the first key of the next one, `None` after the last.
    pub(crate) fn cut(&mut self, ranges: &[RangeTombstone], until: Option<&[u8]>) {
        let start = std::mem::take(&mut self.start);
        for range in ranges {
            let end = until.filter(|until| *until < range.end.as_slice()).unwrap_or(&range.end);
            let start = if range.start < start { &start } else { &range.start };
            if start.as_slice() < end {
                let sequence = range.sequence;
                let part = RangeTombstone { start: start.clone(), end: end.to_vec(), sequence };
                self.builder().add_range_tombstone(&part);
            }
        }
        if let Some(until) = until {
            self.start = until.to_vec();
        }
        let Some(builder) = &mut self.builder else { return };
        let meta = builder.finish();
        self.drain();
        self.builder = None;
        self.queue.push_back(Out::Finished { table: self.next, size: meta.size });
        self.tables.push(meta);
        self.next += 1;
        self.drained = 0;
    }
}
