//! Verifying one table, block by block.
//!
//! ```text
//! index   ..... separator 3 | separator 4 .....       last of block <= separator < first of the next
//! block                     [ a@9 a@7 b@3 ]           key ascending, sequence descending, each key in the filter
//! ```
//!
//! Invariants: a block that does not verify is reported and skipped. Counts are compared only when every block was read.
//! A step for which bytes are missing changes nothing.

use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

use super::{CheckReport, Problem, ProblemKind};
use crate::codec::cipher::Keyring;
use crate::compact::ChunkBlocks;
use crate::error::{Error, Result};
use crate::table::{BlockEntry, Blocks, Malformed, Properties, Table, TableMeta, hash_key};
use crate::types::{FileName, Kind, Sequence};

/// A table being verified.
pub(super) struct TableCheck {
    meta: Rc<TableMeta>,
    level: u8,
    table: Option<Table>,
    blocks: ChunkBlocks,
    /// The next data block.
    at: usize,
    seen: Seen,
    /// A block was not read, so the counts are incomplete.
    has_gap: bool,
}

/// Totals of the entries so far.
#[derive(Default)]
struct Seen {
    last: Option<(Vec<u8>, Sequence)>,
    first_key: Vec<u8>,
    entries: u64,
    min_sequence: Sequence,
    max_sequence: Sequence,
    properties: Properties,
    /// The first entry of the block that is being read.
    block_first: Option<(Vec<u8>, Sequence)>,
    /// Problems found in it.
    wrong: Vec<(ProblemKind, &'static str)>,
}

impl TableCheck {
    /// `bytes`: the number of bytes of the file that can be read.
    pub(super) fn new(keyring: Keyring, level: u8, meta: Rc<TableMeta>, bytes: u64) -> Self {
        let blocks = ChunkBlocks::new(keyring, vec![(meta.id, meta.size.min(bytes))], 1);
        let seen = Seen { min_sequence: Sequence::MAX, ..Seen::default() };
        Self { meta, level, table: None, blocks, at: 0, seen, has_gap: false }
    }

    pub(super) fn blocks(&self) -> &ChunkBlocks {
        &self.blocks
    }

    pub(super) fn size(&self) -> u64 {
        self.meta.size
    }

    /// Bytes of the table that the check has passed.
    pub(super) fn position(&self) -> u64 {
        let index = self.table.as_ref().map(Table::index);
        index.map_or(
            0,
            |index| {
                if self.at < index.len() { index.handle(self.at).offset } else { index.data_end() }
            },
        )
    }

    /// Verifies the next block; true when the table is done.
    pub(super) fn step(&mut self, keyring: &Keyring, report: &mut CheckReport) -> Result<bool> {
        if self.table.is_none() {
            match Table::open(keyring, &self.meta, &self.blocks) {
                Ok(table) => self.open(table, report),
                Err(Error::Corrupt(damage)) => {
                    self.add_problem(report, ProblemKind::Footer, damage.what, Some(damage.offset));
                    return Ok(true);
                }
                Err(Error::Key(_)) => {
                    self.add_problem(
                        report,
                        ProblemKind::Footer,
                        "a table under a key that is not here",
                        None,
                    );
                    return Ok(true);
                }
                Err(other) => return Err(other),
            }
        }
        let Some(table) = &self.table else { return Ok(true) };
        if self.at == table.index().len() {
            self.compare(report);
            return Ok(true);
        }
        let handle = table.index().handle(self.at);
        match self.blocks.block(self.meta.id, self.meta.key, handle) {
            Ok(block) => {
                self.seen.block_first = None;
                let walked = block.walk(|entry| self.seen.entry(table, entry));
                report.blocks += 1;
                report.bytes += u64::from(handle.len);
                if let Err(Malformed(what)) = walked {
                    self.seen.wrong.push((ProblemKind::Block, what));
                }
                self.compare_separators();
            }
            Err(Error::Corrupt(damage)) => {
                self.has_gap = true;
                self.seen.last = None;
                self.seen.wrong.push((ProblemKind::Block, damage.what));
            }
            Err(other) => return Err(other),
        }
        self.at += 1;
        for (kind, what) in std::mem::take(&mut self.seen.wrong) {
            self.add_problem(report, kind, what, Some(handle.offset));
        }
        Ok(false)
    }

    fn open(&mut self, table: Table, report: &mut CheckReport) {
        let footer = table.footer();
        for tombstone in table.range_tombstones() {
            self.seen.cover(tombstone.sequence);
        }
        let is_whole = !self.meta.is_narrowed();
        let sequences = (footer.min_sequence, footer.max_sequence);
        if sequences != (self.meta.min_sequence, self.meta.max_sequence)
            || is_whole && footer.entries != self.meta.entries
        {
            self.add_problem(report, ProblemKind::Counts, "the footer and the manifest disagree", None);
        }
        report.bytes += self.meta.size.saturating_sub(table.index().data_end());
        self.table = Some(table);
    }

    /// Compares the block just read with the separators around it. Called before `at` moves on.
    fn compare_separators(&mut self) {
        let Some(table) = &self.table else { return };
        let (Some(first), Some(last)) = (&self.seen.block_first, &self.seen.last) else { return };
        let before = self.at.checked_sub(1).map(|before| table.index().separator(before));
        if is_behind(last, &table.index().separator(self.at)) {
            self.seen.wrong.push((ProblemKind::Index, "a block reaches behind its separator"));
        }
        if before.is_some_and(|before| !is_behind(first, &before)) {
            self.seen.wrong.push((ProblemKind::Index, "a block begins before the separator in front of it"));
        }
    }

    /// Compares what was read with the footer, the properties and the manifest.
    fn compare(&self, report: &mut CheckReport) {
        let Some(table) = self.table.as_ref().filter(|_| !self.has_gap) else { return };
        let (seen, footer, meta) = (&self.seen, table.footer(), &self.meta);
        report.entries += seen.entries;
        let mut expect = |is_right: bool, what| {
            if !is_right {
                self.add_problem(report, ProblemKind::Counts, what, None);
            }
        };
        expect(seen.entries == footer.entries, "the footer counts other entries");
        let lowest = if seen.min_sequence == Sequence::MAX { 0 } else { seen.min_sequence };
        let sequences = (lowest, seen.max_sequence) == (footer.min_sequence, footer.max_sequence);
        expect(sequences, "the footer names other sequences");
        let known = table.properties();
        let found = Properties {
            range_tombstones: table.range_tombstones().len() as u64,
            data_blocks: table.index().len() as u64,
            restart_interval: known.restart_interval,
            ..seen.properties.clone()
        };
        expect(found == *known, "the properties are not those of the entries");
        let ranges = table.range_tombstones();
        let first = ranges.first().map(|range| range.start.as_slice());
        let end = ranges.iter().map(|range| range.end.as_slice()).max();
        let first_key = (seen.entries > 0).then_some(seen.first_key.as_slice());
        let last_key = seen.last.as_ref().map(|(key, _)| key.as_slice());
        let min = first_key.into_iter().chain(first).min();
        let max = last_key.max(end);
        let (low, high) = (Some(meta.min_key.as_slice()), Some(meta.max_key.as_slice()));
        let bounds = if meta.is_narrowed() { low >= min && high == max } else { (low, high) == (min, max) };
        expect(bounds || min.is_none(), "the manifest names other bounds");
    }

    fn add_problem(
        &self,
        report: &mut CheckReport,
        kind: ProblemKind,
        what: &'static str,
        offset: Option<u64>,
    ) {
        let (file, level) = (FileName::table(self.meta.id), Some(self.level));
        report.problems.push(Problem { file, kind, what, offset, level });
    }
}

impl Seen {
    fn cover(&mut self, sequence: Sequence) {
        self.min_sequence = self.min_sequence.min(sequence);
        self.max_sequence = self.max_sequence.max(sequence);
    }

    fn wrong(&mut self, kind: ProblemKind, what: &'static str) {
        if !self.wrong.contains(&(kind, what)) {
            self.wrong.push((kind, what));
        }
    }

    fn entry(&mut self, table: &Table, entry: &BlockEntry<'_>) {
        match &self.last {
            Some((key, sequence)) => {
                let in_order = match key.as_slice().cmp(entry.key) {
                    Ordering::Less => true,
                    Ordering::Equal => *sequence > entry.sequence,
                    Ordering::Greater => false,
                };
                if !in_order {
                    self.wrong(ProblemKind::Order, "entries out of order");
                }
            }
            None if self.entries == 0 => self.first_key = entry.key.to_vec(),
            None => {}
        }
        if !table.may_contain(hash_key(entry.key)) {
            self.wrong(ProblemKind::Filter, "the filter denies a key that is there");
        }
        if self.block_first.is_none() {
            self.block_first = Some((entry.key.to_vec(), entry.sequence));
        }
        self.cover(entry.sequence);
        self.count(entry);
        let last = self.last.get_or_insert_default();
        last.0.clear();
        last.0.extend_from_slice(entry.key);
        last.1 = entry.sequence;
    }

    fn count(&mut self, entry: &BlockEntry<'_>) {
        self.entries += 1;
        let properties = &mut self.properties;
        properties.raw_key_bytes += entry.key.len() as u64;
        properties.raw_value_bytes += entry.value.len() as u64;
        properties.tombstones += u64::from(entry.kind == Kind::Delete);
        if let Some(expires) = entry.expires {
            let is_first = properties.expiring == 0;
            properties.expiring += 1;
            properties.min_expires = if is_first { expires } else { properties.min_expires.min(expires) };
            properties.max_expires = properties.max_expires.max(expires);
        }
    }
}

/// Whether place `a` comes after place `b` in the order of a table.
fn is_behind(a: &(Vec<u8>, Sequence), b: &(Vec<u8>, Sequence)) -> bool {
    (&a.0, Reverse(a.1)) > (&b.0, Reverse(b.1))
}
