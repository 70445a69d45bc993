//! A check in progress.
//!
//! Life cycle: made from slot pages -> asks for manifests and WAL segments as a whole -> judges them -> asks for the bytes
//! of one table after another (whole tables if the key is not here) -> done. Of a closed store it asks for bytes of no file before the
//! tables. A host that checks an open store reads everything before the tables in one turn, and nothing is written in that turn.
//!
//! Invariant: after `Need`, `step` is called only once `feed` was called.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::log::check_log;
use super::survey::{SlotPage, Survey, survey};
use super::table::TableCheck;
use super::{CheckReport, Problem, ProblemKind, without_key};
use crate::codec::cipher::Keyring;
use crate::error::{Error, Result};
use crate::manifest::{Inspection, Version, inspect_manifest};
use crate::storage::{Needed, Part, parts};
use crate::table::{Need, TableMeta};
use crate::types::{FileKind, FileName};
use crate::wal::{Chain, LOST_SEGMENT, lost_segment};

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStep {
    /// Call again.
    Working,
    /// Read this range of a slot and `feed` it.
    Need {
        /// The slot.
        slot: u32,
        /// First byte, from the start of the slot.
        offset: u64,
        /// How many bytes.
        len: u32,
    },
    /// The check is complete: see `report`.
    Done,
}

/// Verifies a store. See [the module](super).
///
/// # Example
/// ```
/// use varve::check::{Check, CheckStep, SlotPage};
/// use varve::storage::{MemorySlots, SlotPool, Slots};
/// use varve::{Durability, Host, Options, Store};
/// let host = Host { now_ms: 0, entropy: 7, store_id: [1; 16] };
/// let (mut store, _) = Store::open(SlotPool::open(MemorySlots::new(8))?, Options::default(), host)?;
/// store.set(b"silt", b"fine")?;
/// store.flush()?;
/// let slots = store.storage().device();
/// let page = |slot| SlotPage { slot, bytes: slots.size(slot), page: slots.slot(slot).iter().take(4096).copied().collect() };
/// let mut check = Check::new(&(0..slots.count()).map(page).collect::<Vec<_>>(), None, &varve::Keyring::plain([0; 16]))?;
/// loop {
///     match check.step()? {
///         CheckStep::Working => {}
///         CheckStep::Need { slot, offset, len } => {
///             let bytes = &slots.slot(slot)[offset as usize..][..len as usize];
///             check.feed(bytes.to_vec());
///         }
///         CheckStep::Done => break,
///     }
/// }
/// assert_eq!((check.report().tables, check.report().problems.len()), (1, 0));
/// # Ok::<(), varve::Error>(())
/// ```
pub struct Check {
    survey: Survey,
    keyring: Keyring,
    log_end: Option<u64>,
    is_closed: bool,
    /// Files that must still be fetched as a whole: manifests and WAL segments, and without the key also tables.
    fetch: VecDeque<FileName>,
    fetched: BTreeMap<FileName, Vec<u8>>,
    asked: Option<Asked>,
    /// Bytes of a closed store that no file in use contains, and that must still be fetched.
    parts: VecDeque<Part>,
    chain: Chain,
    log_floor: u64,
    /// `None` until the manifest was judged.
    tables: Option<VecDeque<(u8, Rc<TableMeta>)>>,
    table: Option<TableCheck>,
    report: CheckReport,
    bytes_total: u64,
    bytes_done: u64,
    /// A newer format wrote the table that was fetched last.
    newer: Option<Error>,
}

enum Asked {
    File(FileName),
    Table(Need),
    Part(Part),
}

impl Check {
    /// Starts a check of the store whose slots begin with `pages`. For an open store, `log_end` is the number of bytes
    /// written to the newest WAL segment. It is 0 if the log may end with a record that a crash cut off: the store has not begun
    /// a segment and the previous one is known to be torn, or the store is not open.
    ///
    /// # Errors
    /// `Error::Version` when a slot has a newer format.
    pub fn new(pages: &[SlotPage], log_end: Option<u64>, keyring: &Keyring) -> Result<Self> {
        let survey = survey(pages)?;
        let files = survey.files.keys().filter(|file| file.kind != FileKind::Table).copied();
        Ok(Self {
            keyring: keyring.of_store(survey.store.unwrap_or_default()),
            fetch: files.collect(),
            survey,
            log_end,
            is_closed: false,
            fetched: BTreeMap::new(),
            asked: None,
            parts: VecDeque::new(),
            chain: Chain::new(),
            log_floor: 0,
            tables: None,
            table: None,
            report: CheckReport::default(),
            bytes_total: 0,
            bytes_done: 0,
            newer: None,
        })
    }

    /// Looks for segments of the log that are in no slot's page, too. For a store that is not open: the bytes of no file change while a
    /// store is used.
    #[must_use]
    pub fn of_closed_store(mut self) -> Self {
        self.is_closed = true;
        self
    }

    /// Does one part of the work: at most one block.
    ///
    /// # Errors
    /// `Error::Version` when a newer format wrote a file, `Error::Io` when a file is too large for this machine.
    pub fn step(&mut self) -> Result<CheckStep> {
        if let Some(error) = self.newer.take() {
            return Err(error);
        }
        if let Some(&file) = self.fetch.front() {
            let found = self.survey.files.get(&file);
            let (slot, offset, bytes) =
                found.map_or((0, 0, 0), |found| (found.slot, found.start, found.bytes));
            let len = u32::try_from(bytes).map_err(|_| Error::Io("a file is too large to read"))?;
            self.asked = Some(Asked::File(file));
            return Ok(CheckStep::Need { slot, offset, len });
        }
        if self.tables.is_none() {
            self.judge()?;
            return Ok(CheckStep::Working);
        }
        if let Some(part) = self.parts.pop_front() {
            let Part { slot, start, bytes, .. } = part;
            self.asked = Some(Asked::Part(part));
            return Ok(CheckStep::Need { slot, offset: start, len: bytes as u32 });
        }
        if self.table.is_none() && !self.begin_table() {
            return Ok(CheckStep::Done);
        }
        self.step_table()
    }

    /// Supplies the bytes for the last `CheckStep::Need`. If the file ends early, they may be fewer than requested.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        match self.asked.take() {
            Some(Asked::File(file)) => {
                self.fetch.retain(|waiting| *waiting != file);
                if file.kind == FileKind::Table {
                    let checked = without_key::check_table(&self.keyring, file.id, &bytes, &mut self.report);
                    self.newer = checked.err();
                    self.bytes_done += bytes.len() as u64;
                } else {
                    self.fetched.insert(file, bytes);
                }
            }
            Some(Asked::Part(part)) => {
                let store = self.keyring.store();
                if let Some(id) = lost_segment(&bytes, part.behind, store, self.log_floor, &self.chain) {
                    self.add_problem(FileName::wal(id), ProblemKind::Log, LOST_SEGMENT);
                }
            }
            Some(Asked::Table(need)) => {
                let is_short = bytes.len() < need.len as usize;
                match &self.table {
                    Some(table) if !is_short => table.blocks().feed(bytes),
                    _ => {
                        self.add_problem(need.file, ProblemKind::Block, "a table cannot be read to its end");
                        self.table = None;
                    }
                }
            }
            None => {}
        }
    }

    /// The results so far.
    #[must_use]
    pub fn report(&self) -> &CheckReport {
        &self.report
    }

    /// Bytes verified, and the total.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let table = self.table.as_ref().map_or(0, TableCheck::position);
        ((self.bytes_done + table).min(self.bytes_total), self.bytes_total)
    }

    fn add_problem(&mut self, file: FileName, kind: ProblemKind, what: &'static str) {
        self.report.problems.push(Problem { file, kind, what, offset: None, level: None });
    }

    /// Judges the manifest and the log, which were fetched. After that it is known which tables exist.
    fn judge(&mut self) -> Result<()> {
        if self.survey.files.is_empty() && self.survey.headless.is_empty() {
            // A store that was never written to: opening it makes a new one.
            self.tables = Some(VecDeque::new());
            return Ok(());
        }
        let mut fetched = std::mem::take(&mut self.fetched);
        if without_key::check(&self.keyring, &fetched, self.log_end, &mut self.report)? {
            let tables = self.survey.files.iter().filter(|(file, _)| file.kind == FileKind::Table);
            self.fetch = tables.clone().map(|(file, _)| *file).collect();
            self.bytes_done = self.report.bytes;
            self.bytes_total = self.bytes_done + tables.map(|(_, found)| found.bytes).sum::<u64>();
            self.tables = Some(VecDeque::new());
            self.judge_pages(|_| true);
            return Ok(());
        }
        let version = self.judge_manifests(&mut fetched)?.unwrap_or_default();
        let segments = fetched.into_iter().filter(|(file, _)| file.kind == FileKind::Wal);
        let mut segments = segments.map(|(file, bytes)| (file.id, bytes)).collect();
        let floor = version.floors.log_floor;
        self.log_floor = floor;
        self.chain = check_log(&self.keyring, &mut segments, floor, self.log_end, &mut self.report)?;
        // A damaged manifest may be one with a lower floor.
        if self.is_closed && self.report.problems.iter().all(|problem| problem.kind != ProblemKind::Manifest)
        {
            self.look_for_strays(&version);
        }
        self.judge_levels(&version);
        let live = |file: &FileName| match file.kind {
            FileKind::Manifest => true,
            FileKind::Wal => file.id > version.floors.log_floor,
            FileKind::Table => version.table(file.id).is_some(),
        };
        self.judge_pages(live);
        self.bytes_done = self.report.bytes;
        self.bytes_total = self.report.bytes + version.tables().map(|(_, table)| table.size).sum::<u64>();
        self.tables = Some(version.tables().map(|(level, table)| (level as u8, table.clone())).collect());
        Ok(())
    }

    /// Checks the pages of the slots with these files.
    fn judge_pages(&mut self, is_live: impl Fn(&FileName) -> bool) {
        for (&file, found) in self.survey.files.iter().filter(|(file, _)| is_live(file)) {
            if let Some(at) = found.damaged_at {
                let what = "the page that says what a slot holds is damaged in part";
                let (kind, offset) = (ProblemKind::Slot, Some(at));
                self.report.problems.push(Problem { file, kind, what, offset, level: None });
            }
        }
    }

    fn judge_manifests(&mut self, fetched: &mut BTreeMap<FileName, Vec<u8>>) -> Result<Option<Version>> {
        let mut best: Option<(FileName, Inspection)> = None;
        for id in [0, 1] {
            let file = FileName::manifest(id);
            let Some(bytes) = fetched.get_mut(&file) else {
                self.add_problem(file, ProblemKind::Missing, "a manifest file is missing");
                continue;
            };
            match inspect_manifest(&self.keyring, bytes) {
                Ok(Some(found)) => {
                    let rotation = found.header.rotation;
                    if best.as_ref().is_none_or(|(_, best)| best.header.rotation < rotation) {
                        best = Some((file, found));
                    }
                }
                Ok(None) => {}
                Err(Error::Key(_)) => {
                    self.add_problem(file, ProblemKind::Manifest, "a manifest under a key that is not here");
                }
                Err(error) => return Err(error),
            }
        }
        let Some((file, best)) = best else {
            self.add_problem(FileName::manifest(0), ProblemKind::Manifest, "no manifest can be read");
            return Ok(None);
        };
        self.report.bytes += best.end;
        let kind = ProblemKind::Manifest;
        if let Some((offset, what)) = best.damage {
            self.report.problems.push(Problem { file, kind, what, offset: Some(offset), level: None });
        } else if best.torn {
            let what = "the last edit does not verify";
            self.report.problems.push(Problem { file, kind, what, offset: Some(best.end), level: None });
        }
        if best.successor.is_some() {
            self.add_problem(FileName::manifest(1 - file.id), kind, "the newer manifest cannot be read");
        }
        if best.version.is_none() {
            self.add_problem(file, kind, "the snapshot does not verify");
        }
        Ok(best.version)
    }

    /// Finds the parts of slots that no file in use contains.
    fn look_for_strays(&mut self, version: &Version) {
        let segments = self.chain.iter().map(|(header, end)| (FileName::wal(header.segment), *end));
        let place = |(file, bytes): (FileName, u64)| {
            let found = self.survey.files.get(&file)?;
            Some(Needed { file, slot: found.slot, start: found.start, bytes: bytes.min(found.bytes) })
        };
        let needed: Vec<_> = version.files().into_iter().chain(segments).filter_map(place).collect();
        self.parts = parts(&self.survey.of_data(), &needed).into();
    }

    /// Checks what the manifest alone can show. Order and overlap in levels are verified where a version is decoded.
    fn judge_levels(&mut self, version: &Version) {
        let tables: Vec<_> = version.tables().map(|(level, table)| (level, table.clone())).collect();
        for (level, table) in tables {
            let file = FileName::table(table.id);
            let (kind, what) = match self.survey.files.get(&file) {
                None => (ProblemKind::Missing, "a table of the manifest is missing"),
                Some(found) if found.bytes < table.size => {
                    (ProblemKind::Missing, "a table is shorter than the manifest says")
                }
                Some(_) => continue,
            };
            let level = Some(level as u8);
            self.report.problems.push(Problem { file, kind, what, offset: None, level });
        }
        // A flush on a full storage may have cut its table into several, whose keys differ but whose sequences are from the same time.
        let fresh = version.level(0);
        for (at, newer) in fresh.iter().enumerate() {
            let holds_older = |older: &&Rc<TableMeta>| {
                newer.min_sequence <= older.max_sequence
                    && !newer.ends_before(older)
                    && !older.ends_before(newer)
            };
            if fresh[at + 1..].iter().any(|older| holds_older(&older)) {
                let file = FileName::table(newer.id);
                self.add_problem(
                    file,
                    ProblemKind::Levels,
                    "a table of level 0 holds older entries than the one below it",
                );
            }
        }
    }

    fn begin_table(&mut self) -> bool {
        while let Some((level, meta)) = self.tables.as_mut().and_then(VecDeque::pop_front) {
            let Some(found) = self.survey.files.get(&FileName::table(meta.id)) else { continue };
            self.report.tables += 1;
            self.table = Some(TableCheck::new(self.keyring.clone(), level, meta, found.bytes));
            return true;
        }
        self.bytes_done = self.bytes_total;
        false
    }

    fn step_table(&mut self) -> Result<CheckStep> {
        let Some(table) = &mut self.table else { return Ok(CheckStep::Working) };
        match table.step(&self.keyring, &mut self.report) {
            Ok(false) => Ok(CheckStep::Working),
            Ok(true) => {
                self.bytes_done += table.size();
                self.table = None;
                Ok(CheckStep::Working)
            }
            Err(error) => match table.blocks().need() {
                Some(need) if error == Error::Pending => {
                    self.asked = Some(Asked::Table(need));
                    let found = self.survey.files.get(&need.file);
                    let (slot, start) = found.map_or((0, 0), |found| (found.slot, found.start));
                    Ok(CheckStep::Need { slot, offset: start + need.offset, len: need.len })
                }
                _ => Err(error),
            },
        }
    }
}
