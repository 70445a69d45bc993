//! The images of a crash point, and what each of them may contain.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use varve::options::Options;

use super::{Effort, SECTORS_MAX, Tried};
use crate::change::State;
use crate::disk::{CrashPoint, Disk};
use crate::histories::Histories;
use crate::model::{Loss, Model};
use crate::rng::Rng;
use crate::slot::{Choice, Outcomes, Slot};

/// The part of a trace that has been tried.
#[derive(Debug)]
pub(super) struct Search {
    seed: u64,
    effort: Effort,
    pub(super) rng: Rng,
    pub(super) tried: Tried,
    /// Hashes of images, with what they had to contain and could contain.
    seen: HashSet<(u64, usize, u64)>,
    /// By the address of the slot, which stays valid while the crash points at hand keep the slot alive.
    outcomes: HashMap<*const Slot, Rc<Outcomes>>,
    pub(super) openings: u64,
    /// The latest time that the clock of a store has shown.
    pub(super) clock_ms: u64,
}

impl Search {
    pub(super) fn new(seed: u64, effort: Effort) -> Self {
        Self {
            seed,
            effort,
            rng: Rng::new(seed ^ 0xe4a),
            tried: Tried::default(),
            seen: HashSet::new(),
            outcomes: HashMap::new(),
            openings: 0,
            clock_ms: 0,
        }
    }

    /// Crashes at each crash point of an operation that grew the history from one model to another.
    pub(super) fn crash_between(
        &mut self,
        before: &Model,
        after: &Model,
        options: &Options,
        crash_points: &[CrashPoint],
    ) -> Result<(), String> {
        let histories =
            |loss| before.histories_between(after, loss).ok_or("the oracle has forgotten the beginnings");
        let (power, process) = (histories(Loss::Power)?, histories(Loss::Process)?);
        self.outcomes.clear();
        for (number, crash_point) in crash_points.iter().enumerate() {
            let place = |what| format!("before call {number} of {}: {what}", crash_points.len());
            self.tried.crash_points += 1;
            self.killed(crash_point, &process, options).map_err(place)?;
            self.unplugged(crash_point, &power, options).map_err(place)?;
        }
        Ok(())
    }

    /// The process dies at a crash point: everything that was given to the operating system is there.
    fn killed(
        &mut self,
        crash_point: &CrashPoint,
        allowed: &Histories,
        options: &Options,
    ) -> Result<(), String> {
        let outcomes = self.outcomes_of(crash_point);
        let all: Vec<Choice> = outcomes.iter().map(|outcomes| outcomes.subset(|| true)).collect();
        if self.seen.insert((hash(&outcomes, &all), allowed.count(), u64::MAX)) {
            let disk = Disk::holding(crash_point.clone(), self.seed);
            self.recover(&disk, allowed, options).map_err(|what| format!("process dies: {what}"))?;
        }
        Ok(())
    }

    /// The power goes at a crash point.
    fn unplugged(
        &mut self,
        crash_point: &CrashPoint,
        allowed: &Histories,
        options: &Options,
    ) -> Result<(), String> {
        let outcomes = self.outcomes_of(crash_point);
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

    fn outcomes_of(&mut self, crash_point: &CrashPoint) -> Vec<Rc<Outcomes>> {
        let known = &mut self.outcomes;
        let outcomes = crash_point
            .iter()
            .map(|slot| Rc::clone(known.entry(Rc::as_ptr(slot)).or_insert_with(|| Rc::new(slot.outcomes()))));
        outcomes.collect()
    }

    /// Tries one image, unless an image of the same bytes with the same promises was tried before.
    fn image(
        &mut self,
        outcomes: &[Rc<Outcomes>],
        choices: &[Choice],
        allowed: &Histories,
        options: &Options,
    ) -> Result<(), String> {
        let hash = hash(outcomes, choices);
        let promised = allowed.states.first().map_or(0, State::len) as u64;
        if !self.seen.insert((hash, allowed.count(), promised)) {
            return Ok(());
        }
        let place = |what| format!("power goes, leaving {}: {what}", show(outcomes, choices));
        let slots: CrashPoint =
            outcomes.iter().zip(choices).map(|(outcomes, choice)| Rc::new(outcomes.slot(choice))).collect();
        let disk = Disk::holding(slots.clone(), self.seed);
        let (left, calls) = self.recover(&disk, allowed, options).map_err(place)?;
        self.tried.images += 1;
        self.tried.shorter += u64::from(allowed.states.last() != left.states.last());
        let deaths = if self.tried.images.is_multiple_of(self.effort.every_call_every) {
            0..calls
        } else if self.tried.images.is_multiple_of(self.effort.second_crash_every) {
            let call = self.rng.below(calls);
            call..call + 1
        } else {
            0..0
        };
        for call in deaths {
            self.die_recovering(&slots, call, &left, options)
                .map_err(|what| place(format!("dies at call {call} of {calls} of its recovery: {what}")))?;
        }
        Ok(())
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

/// The slots that could survive in more than one way, each with its length and the changes that its sectors
/// kept.
fn show(outcomes: &[Rc<Outcomes>], choices: &[Choice]) -> String {
    let unsynced = outcomes.iter().zip(choices).enumerate().filter(|(_, (outcomes, _))| outcomes.count() > 1);
    let show = |(slot, (_, choice)): (usize, (&Rc<Outcomes>, &Choice))| {
        format!("slot {slot}: {} bytes, changes kept {:?}", choice.length, choice.kept)
    };
    unsynced.map(show).collect::<Vec<_>>().join("; ")
}
