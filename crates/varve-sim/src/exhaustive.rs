//! Short traces, and every crash of them: before and after each call to the disk, everything that a power loss may leave.
//!
//! ```text
//! operation -> moments, one before each write, flush, change of size and creation of slots, and one after the last
//! moment    -> images, one for each combination of unsynced sectors and lengths that may survive
//! image     -> open, compare with the history; write, lose the power, open, compare
//!           -> open, die at some call, lose the power, open, compare
//! ```
//! Invariants under test: an image opens; what it holds is a prefix of the history that holds all that was promised
//! when its crash came; what was recovered once is there after every later crash, and what was cut stays cut.
//!
//! Images of equal bytes and equal promises are tried once. A moment of few images has them all tried; one of more all
//! subsets of up to [`SECTORS_MAX`] sectors, and a seeded sample of the rest.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use varve::options::{Durability, Host, Options};
use varve::storage::SlotPool;
use varve::{Error, Store};

use crate::change::{Change, State};
use crate::compactor::SimStore;
use crate::difference::difference;
use crate::disk::{Disk, Moment};
use crate::model::{Loss, Model};
use crate::rng::Rng;
use crate::run::Observed;
use crate::scan::contents;
use crate::session::Session;
use crate::slot::{Choice, Keep, Outcomes, PowerLoss, Slot};
use crate::trace::{Op, Trace};
use crate::workload::plain;

/// Operations of a trace.
pub const OPS_MAX: usize = 40;
/// Unsynced sectors of which all subsets are tried where there are more images.
pub const SECTORS_MAX: usize = 6;

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Images of one moment that are all tried.
    pub images_max: u64,
    /// Images drawn where not all are tried.
    pub samples: usize,
    /// One image of so many is opened again with a death in the middle.
    pub second_crash_every: u64,
    /// One image of so many is opened again with a death at each call.
    pub every_call_every: u64,
}

impl Effort {
    /// For the test suite.
    pub const BRIEF: Self = Self { images_max: 64, samples: 8, second_crash_every: 4, every_call_every: 160 };
    /// For the command line.
    pub const THOROUGH: Self =
        Self { images_max: 256, samples: 24, second_crash_every: 1, every_call_every: 40 };
}

/// What was tried, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Moments at which the machine crashed.
    pub moments: u64,
    /// Moments of which not every image was tried.
    pub sampled: u64,
    /// Different images that were recovered.
    pub images: u64,
    /// Images that held less than the last moment before the crash did.
    pub shorter: u64,
    /// Recoveries that died themselves.
    pub second_crashes: u64,
}

impl Tried {
    /// Adds the numbers of another trace.
    pub fn add(&mut self, other: &Self) {
        self.moments += other.moments;
        self.sampled += other.sampled;
        self.images += other.images;
        self.shorter += other.shorter;
        self.second_crashes += other.second_crashes;
    }
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} crash points ({} of them sampled), {} images recovered ({} without the last writes), {} crashes during \
             recovery",
            self.moments, self.sampled, self.images, self.shorter, self.second_crashes
        )
    }
}

/// The short trace of a seed: what the generator makes of it, without faults, reads and large values.
#[must_use]
pub fn short_trace(seed: u64) -> Trace {
    let mut trace = plain(seed);
    trace.births.clear();
    trace.slots = 10 + (seed % 5) as u32;
    let options = &mut trace.options;
    options.memtable_bytes_min = options.memtable_bytes_min.min(2048);
    options.memtable_bytes_max = options.memtable_bytes_max.min(4096);
    trace.ops.retain(is_calm);
    trace.ops.truncate(OPS_MAX);
    for op in &mut trace.ops {
        if let Op::Write { changes, batch, .. } | Op::Frame { changes, batch, .. } = op {
            // Groups stay below what the oracle remembers.
            changes.truncate(if *batch { 4 } else { 1 });
            for change in changes {
                if let Change::Set(_, value) = change {
                    value.truncate(700);
                }
            }
        }
    }
    trace
}

fn is_calm(op: &Op) -> bool {
    matches!(
        op,
        Op::Write { .. }
            | Op::Frame { .. }
            | Op::Commit(_)
            | Op::Sync
            | Op::Seal
            | Op::Flush
            | Op::Compact
            | Op::Freeze
            | Op::Slice(_)
            | Op::Release
            | Op::Shrink(_)
            | Op::AskForCompaction
            | Op::TakeJob
            | Op::StepJob(..)
            | Op::AbandonJob
            | Op::Reopen
            | Op::SwitchLog
            | Op::AddSlots(_)
    )
}

/// Carries a trace out and crashes it everywhere.
///
/// # Errors
/// What was wrong, where, and after which crash.
pub fn crash_everywhere(trace: &Trace, effort: Effort) -> Result<Tried, String> {
    let mut observed = Observed::new();
    let bare = Trace { ops: Vec::new(), ..trace.clone() };
    let mut session = Session::start(&bare, &mut observed)?;
    session.disk.take_moments();
    let mut search = Search {
        seed: trace.seed,
        effort,
        rng: Rng::new(trace.seed ^ 0xe4a),
        tried: Tried::default(),
        seen: HashSet::new(),
        outcomes: HashMap::new(),
        host: 0,
    };
    let mut before = session.model.clone();
    for (position, op) in trace.ops.iter().enumerate() {
        let place = |what: String| format!("seed {}, operation {position} ({op}): {what}", trace.seed);
        session.perform(op).map_err(place)?;
        let after = session.model.clone();
        let options = Options { log: session.log, ..trace.options.clone() };
        search.crash_between(&before, &after, &options, &session.disk.take_moments()).map_err(place)?;
        let now = [session.disk.moment()];
        search.crash_between(&after, &after, &options, &now).map_err(place)?;
        before = after;
    }
    Ok(search.tried)
}

/// What has been tried of a trace.
#[derive(Debug)]
struct Search {
    seed: u64,
    effort: Effort,
    rng: Rng,
    tried: Tried,
    /// Hashes of images, with what they had to hold and could hold.
    seen: HashSet<(u64, usize, u64)>,
    /// By the address of the slot, which the moments at hand keep alive.
    outcomes: HashMap<*const Slot, Rc<Outcomes>>,
    host: u64,
}

impl Search {
    /// Crashes at moments of an operation that grew the history from one model to another.
    fn crash_between(
        &mut self,
        before: &Model,
        after: &Model,
        options: &Options,
        moments: &[Moment],
    ) -> Result<(), String> {
        let states =
            |loss| before.states_between(after, loss).ok_or("the oracle has forgotten the beginnings");
        let (power, process) = (states(Loss::Power)?, states(Loss::Process)?);
        self.outcomes.clear();
        for (number, moment) in moments.iter().enumerate() {
            let place = |what| format!("before call {number} of {}: {what}", moments.len());
            self.tried.moments += 1;
            self.killed(moment, &process, options).map_err(place)?;
            self.unplugged(moment, &power, options).map_err(place)?;
        }
        Ok(())
    }

    /// The process dies at a moment: what the operating system was handed is all there.
    fn killed(&mut self, moment: &Moment, allowed: &[State], options: &Options) -> Result<(), String> {
        let outcomes = self.outcomes_of(moment);
        let all: Vec<Choice> = outcomes.iter().map(|outcomes| outcomes.subset(|| true)).collect();
        if self.seen.insert((hash(&outcomes, &all), allowed.len(), u64::MAX)) {
            let disk = Disk::holding(moment.clone(), self.seed);
            self.recover(&disk, allowed, options).map_err(|what| format!("process dies: {what}"))?;
        }
        Ok(())
    }

    /// The power goes at a moment.
    fn unplugged(&mut self, moment: &Moment, allowed: &[State], options: &Options) -> Result<(), String> {
        let outcomes = self.outcomes_of(moment);
        let total = outcomes.iter().fold(1, |total: u64, outcomes| total.saturating_mul(outcomes.count()));
        if total <= self.effort.images_max {
            for number in 0..total {
                self.image(&outcomes, &numbered(&outcomes, number), allowed, options)?;
            }
            return Ok(());
        }
        self.tried.sampled += 1;
        let sectors: usize = outcomes.iter().map(|outcomes| outcomes.sectors()).sum();
        let subsets = if sectors <= SECTORS_MAX { 0..1 << sectors } else { 0..0 };
        for mut mask in subsets {
            let mut next = || {
                let is_kept = mask & 1 == 1;
                mask >>= 1;
                is_kept
            };
            let choices: Vec<_> = outcomes.iter().map(|outcomes| outcomes.subset(&mut next)).collect();
            self.image(&outcomes, &choices, allowed, options)?;
        }
        let everything: Vec<_> = outcomes.iter().map(|outcomes| outcomes.subset(|| true)).collect();
        self.image(&outcomes, &everything, allowed, options)?;
        let nothing: Vec<_> = outcomes.iter().map(|outcomes| outcomes.nothing()).collect();
        self.image(&outcomes, &nothing, allowed, options)?;
        for _ in 0..self.effort.samples {
            let rng = &mut self.rng;
            let choices: Vec<_> = outcomes.iter().map(|outcomes| outcomes.any(rng)).collect();
            self.image(&outcomes, &choices, allowed, options)?;
        }
        Ok(())
    }

    fn outcomes_of(&mut self, moment: &Moment) -> Vec<Rc<Outcomes>> {
        let known = &mut self.outcomes;
        let outcomes = moment
            .iter()
            .map(|slot| Rc::clone(known.entry(Rc::as_ptr(slot)).or_insert_with(|| Rc::new(slot.outcomes()))));
        outcomes.collect()
    }

    /// Tries one image, unless one of the same bytes with the same promises was.
    fn image(
        &mut self,
        outcomes: &[Rc<Outcomes>],
        choices: &[Choice],
        allowed: &[State],
        options: &Options,
    ) -> Result<(), String> {
        let hash = hash(outcomes, choices);
        let promised = allowed.first().map_or(0, State::len) as u64;
        if !self.seen.insert((hash, allowed.len(), promised)) {
            return Ok(());
        }
        let place = |what| format!("power goes, leaving {}: {what}", show(outcomes, choices));
        let slots: Moment =
            outcomes.iter().zip(choices).map(|(outcomes, choice)| Rc::new(outcomes.slot(choice))).collect();
        let disk = Disk::holding(slots.clone(), self.seed);
        let (found, calls) = self.recover(&disk, allowed, options).map_err(place)?;
        self.tried.images += 1;
        self.tried.shorter += u64::from(allowed.last() != Some(&found));
        let deaths = if self.tried.images.is_multiple_of(self.effort.every_call_every) {
            0..calls
        } else if self.tried.images.is_multiple_of(self.effort.second_crash_every) {
            let call = self.rng.below(calls);
            call..call + 1
        } else {
            0..0
        };
        for call in deaths {
            self.die_recovering(&slots, call, &found, options)
                .map_err(|what| place(format!("dies at call {call} of {calls} of its recovery: {what}")))?;
        }
        Ok(())
    }

    /// Opens, compares, writes on, loses the power and compares again. Answers what was recovered, and the calls to the
    /// disk that the opening made.
    fn recover(&mut self, disk: &Disk, allowed: &[State], options: &Options) -> Result<(State, u64), String> {
        let mut store = self.open(disk, options)?;
        let calls = disk.counts().writes + disk.counts().flushes;
        let found = contents(&store).map_err(|error| format!("reading all: {error:?}"))?;
        if !allowed.contains(&found) {
            return Err(differs(allowed, &found));
        }
        let mut expected = found.clone();
        let sequence = written(disk, &mut store)?;
        expected.insert(b"after".to_vec(), (b"the crash".to_vec(), sequence));
        drop(store);
        disk.lose_power(self.loss());
        let store = self.open(disk, options).map_err(|what| format!("then written to: {what}"))?;
        let again = contents(&store).map_err(|error| format!("reading all once more: {error:?}"))?;
        if again != expected {
            return Err(format!("then written to, power lost: {}", differs(&[expected], &again)));
        }
        Ok((found, calls))
    }

    /// Opens an image, dies at a call of it, loses the power, and finds the same as an opening that did not die.
    fn die_recovering(
        &mut self,
        slots: &Moment,
        call: u64,
        found: &State,
        options: &Options,
    ) -> Result<(), String> {
        let disk = Disk::holding(slots.clone(), self.rng.bits());
        disk.arm_fuse(call);
        let opened = self.open(&disk, options);
        if !disk.is_dead() {
            return opened.map(|_| ());
        }
        self.tried.second_crashes += 1;
        disk.lose_power(self.loss());
        let store = self.open(&disk, options)?;
        let again = contents(&store).map_err(|error| format!("reading all: {error:?}"))?;
        if again == *found { Ok(()) } else { Err(differs(std::slice::from_ref(found), &again)) }
    }

    fn loss(&mut self) -> PowerLoss {
        let keep = self.rng.pick(&[Keep::None, Keep::Sectors, Keep::Sectors, Keep::Prefix]);
        PowerLoss { keep, torn_sectors: self.rng.chance(1, 4), garbage: self.rng.chance(1, 4) }
    }

    fn open(&mut self, disk: &Disk, options: &Options) -> Result<SimStore, String> {
        loop {
            self.host += 1;
            let host = Host { now_ms: 2_000_000, entropy: self.rng.bits(), store_id: [self.host as u8; 16] };
            let opened =
                SlotPool::open(disk.slots()).and_then(|pool| Store::open(pool, options.clone(), host));
            match opened {
                Ok((store, _)) => return Ok(store),
                Err(Error::Busy) => disk.add_slots(4),
                Err(error) => return Err(format!("open: {error} ({error:?})")),
            }
        }
    }
}

/// Writes a key that must survive everything from here on; answers its sequence.
fn written(disk: &Disk, store: &mut SimStore) -> Result<u64, String> {
    loop {
        let result = store.set(b"after", b"the crash").and_then(|sequence| {
            store.commit(Durability::Strict)?;
            if !store.is_logged() {
                store.flush()?;
            }
            Ok(sequence)
        });
        match result {
            Ok(sequence) => return Ok(sequence),
            Err(Error::Busy) => {
                disk.add_slots(4);
                store.storage_mut().added().map_err(|error| format!("slots were added: {error}"))?;
            }
            Err(error) => return Err(format!("a write after recovery: {error} ({error:?})")),
        }
    }
}

/// Combination `number` of the outcomes of all slots.
fn numbered(outcomes: &[Rc<Outcomes>], mut number: u64) -> Vec<Choice> {
    let choice = |outcomes: &Rc<Outcomes>| {
        let count = outcomes.count();
        let choice = outcomes.choice(number % count);
        number /= count;
        choice
    };
    outcomes.iter().map(choice).collect()
}

fn hash(outcomes: &[Rc<Outcomes>], choices: &[Choice]) -> u64 {
    let slots = outcomes.iter().zip(choices);
    slots.fold(0, |sum: u64, (outcomes, choice)| sum.rotate_left(9) ^ outcomes.hash(choice))
}

/// The slots whose bytes were a choice, each with its length and the changes that its sectors kept.
fn show(outcomes: &[Rc<Outcomes>], choices: &[Choice]) -> String {
    let unsynced = outcomes.iter().zip(choices).enumerate().filter(|(_, (outcomes, _))| outcomes.count() > 1);
    let show = |(slot, (_, choice)): (usize, (&Rc<Outcomes>, &Choice))| {
        format!("slot {slot}: {} bytes, changes kept {:?}", choice.length, choice.kept)
    };
    unsynced.map(show).collect::<Vec<_>>().join("; ")
}

/// How what was found differs from the nearest of the states it could be.
fn differs(allowed: &[State], found: &State) -> String {
    let nearest =
        allowed.iter().map(|state| difference(state, found)).min_by_key(Vec::len).unwrap_or_default();
    let first = nearest.first().map_or("", String::as_str);
    format!(
        "{} keys are none of {} states; the nearest has {} differences, first: {first}",
        found.len(),
        allowed.len(),
        nearest.len()
    )
}
