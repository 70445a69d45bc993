//! The oracle: what the store must answer, and which states a crash may leave behind.
//!
//! The history is a list of groups, each atomic, in the order they were staged:
//!
//! ```text
//! base | group group group | group group | group group
//!                          ^ power floor  ^ kill floor  ^ now
//! ```
//! Invariants: after a power loss the store equals the state after some prefix of the history that ends at or
//! after the power floor (the last group acknowledged as strict, or covered by a sync); after the death of
//! the process, at or after the kill floor (the last group acknowledged as relaxed). A refused group is not in
//! the history at all, so it never counts as a survivor.

use std::collections::BTreeMap;
use std::fmt;

use crate::change::{Change, Group, State};
use crate::difference::{difference, distance_between};
use crate::histories::Histories;

/// Up to this many deletes of one frame may have been put off in every combination; of more, each alone.
const PUT_OFF_MAX: usize = 12;

/// The event on the machine before a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The power went: only flushed data is certain.
    Power,
    /// The process died: data that was given to the operating system is certain.
    Process,
    /// Nothing: the store was closed properly, so everything is there.
    Nothing,
}

/// The recovered store equals no state that the history allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(pub String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The oracle.
#[derive(Debug, Clone, Default)]
pub struct Model {
    base: State,
    base_sequence: u64,
    groups: Vec<Group>,
    /// From this place on, a machine that died refused each group: it may have been staged or not.
    doubtful_from: Option<usize>,
    /// Those of them that got the fault itself as their error: the work that should make room for them failed, and possibly none was
    /// staged.
    failed: Vec<usize>,
    power_floor: usize,
    kill_floor: usize,
    /// All that was written, expired or not.
    now: State,
    /// The part of it that has not expired.
    alive: State,
    /// When writes expire, by their sequences.
    expiries: BTreeMap<u64, u64>,
    now_ms: u64,
    /// Every change with its sequence, for transactions that read before it.
    written: Vec<(u64, Change)>,
}

impl Model {
    /// The store's present contents, the staged groups included.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.alive
    }

    /// The state at another time.
    #[must_use]
    pub fn state_at(&self, now_ms: u64) -> State {
        self.alive_in(&self.now, now_ms).map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    /// The store uses this time from now on; time goes back only when a store is opened, if at all.
    pub fn set_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if !self.expiries.is_empty() {
            self.alive = self.state_at(now_ms);
        }
    }

    fn alive_in<'a>(
        &'a self,
        state: &'a State,
        now_ms: u64,
    ) -> impl Iterator<Item = (&'a Vec<u8>, &'a (Vec<u8>, u64))> {
        let is_alive = move |sequence| self.expiries.get(sequence).is_none_or(|&at| at > now_ms);
        state.iter().filter(move |(_, (_, sequence))| is_alive(sequence))
    }

    /// The changes after a sequence that touch keys from `start` up to `end` (`None`: that key alone).
    pub fn written_since<'a>(
        &'a self,
        sequence: u64,
        start: &'a [u8],
        end: Option<&'a [u8]>,
    ) -> impl Iterator<Item = &'a (u64, Change)> {
        let since = self.written.partition_point(|(written, _)| *written <= sequence);
        self.written[since..].iter().filter(move |(_, change)| change.touches(start, end))
    }

    /// Every change behind a sequence, with its own sequence.
    #[must_use]
    pub fn changes_after(&self, sequence: u64) -> &[(u64, Change)] {
        &self.written[self.written.partition_point(|(written, _)| *written <= sequence)..]
    }

    /// The sequence of the last change in the history.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.sequence_after(self.groups.len())
    }

    /// The number of groups in the history since its base: the position that a refusal can go back to.
    #[must_use]
    pub fn position(&self) -> usize {
        self.groups.len()
    }

    /// How many groups end at or before a sequence.
    #[must_use]
    pub fn position_of(&self, sequence: u64) -> usize {
        self.groups.partition_point(|group| group.last_sequence() <= sequence)
    }

    /// Adds a group to the end of the history.
    pub fn stage(&mut self, group: Group) {
        group.apply(&mut self.now);
        group.apply(&mut self.alive);
        for (sequence, change) in (group.first_sequence..).zip(&group.changes) {
            if let Change::SetUntil(_, _, at) = change {
                self.expiries.insert(sequence, *at);
            }
            self.written.push((sequence, change.clone()));
        }
        if group.changes.iter().any(|change| matches!(change, Change::SetUntil(..))) {
            self.set_time(self.now_ms);
        }
        self.groups.push(group);
    }

    /// Adds groups that were refused, all by a machine that is in doubt, and whether the fault itself was their error: each may have been
    /// staged before that.
    pub fn doubt(&mut self, groups: Vec<(bool, Vec<Change>)>) {
        self.doubtful_from = Some(self.groups.len());
        self.failed.clear();
        for (failed, changes) in groups {
            if failed {
                self.failed.push(self.groups.len());
            }
            let first_sequence = self.last_sequence() + 1;
            self.stage(Group { changes, first_sequence });
        }
    }

    /// The histories in which one of the doubtful groups never happened, and those behind it one after another; then those without several
    /// deletes: on a full disk each is put off until the end of its frame, which may never have come. Also the history without all groups
    /// that failed.
    fn without_some(&self) -> impl Iterator<Item = Self> {
        let from = self.doubtful_from.unwrap_or(self.groups.len());
        let one = (from..self.groups.len()).map(|refused| vec![refused]);
        let is_delete = |change: &Change| matches!(change, Change::Delete(_) | Change::DeleteRange(..));
        let is_put_off = move |at: &usize| self.groups[*at].changes.iter().all(is_delete);
        let deletes: Vec<_> = (from..self.groups.len()).filter(is_put_off).take(PUT_OFF_MAX).collect();
        let several =
            (1u32..1 << deletes.len()).filter(|chosen| chosen.count_ones() > 1).map(move |chosen| {
                let is_chosen = |&(bit, _): &(usize, &usize)| chosen >> bit & 1 == 1;
                deletes.iter().enumerate().filter(is_chosen).map(|(_, at)| *at).collect()
            });
        one.chain([self.failed.clone()]).chain(several).map(move |refused: Vec<usize>| {
            let mut other = self.clone();
            other.refuse(from);
            for (at, group) in self.groups.iter().enumerate().skip(from) {
                if !refused.contains(&at) {
                    let first_sequence = other.last_sequence() + 1;
                    other.stage(Group { changes: group.changes.clone(), first_sequence });
                }
            }
            other
        })
    }

    /// Removes the notes of changes behind the last group: they never happened.
    fn remove_notes(&mut self) {
        let last = self.last_sequence();
        self.expiries.retain(|sequence, _| *sequence <= last);
        self.written.retain(|(sequence, _)| *sequence <= last);
        self.alive = self.state_at(self.now_ms);
    }

    /// The store refused the groups that were staged since `position`: they never happened. Returns them.
    pub fn refuse(&mut self, position: usize) -> Vec<Group> {
        let refused = self.groups.split_off(position.min(self.groups.len()));
        if !refused.is_empty() {
            self.now = self.state_after(position);
            self.remove_notes();
        }
        refused
    }

    /// Everything staged up to here was given to the operating system.
    pub fn acknowledge_relaxed(&mut self) {
        self.kill_floor = self.groups.len();
    }

    /// Data that the operating system has was flushed.
    pub fn acknowledge_sync(&mut self) {
        self.power_floor = self.power_floor.max(self.kill_floor);
    }

    /// Everything staged up to here was flushed.
    pub fn acknowledge_strict(&mut self) {
        self.kill_floor = self.groups.len();
        self.power_floor = self.groups.len();
        if self.groups.len() > 64 {
            self.base_sequence = self.last_sequence();
            self.base.clone_from(&self.now);
            self.groups.clear();
            self.power_floor = 0;
            self.kill_floor = 0;
        }
    }

    /// Finds the recovered state in the history and makes it the present. Returns how many groups were lost.
    /// Of prefixes with the same state (a delete of nothing changes none) it takes the one that ends at
    /// `sequence`, else the longest.
    ///
    /// # Errors
    /// The state is none that the loss allows.
    pub fn recover(&mut self, found: &State, sequence: u64, loss: Loss) -> Result<usize, Mismatch> {
        let mut recovered = self.recover_without_doubt(found, sequence, loss);
        if recovered.is_err() {
            let found = self.without_some().find_map(|mut other| {
                let lost = other.recover_without_doubt(found, sequence, loss).ok()?;
                Some((other, lost))
            });
            if let Some((other, lost)) = found {
                *self = other;
                recovered = Ok(lost + 1);
            }
        }
        self.doubtful_from = None;
        recovered
    }

    fn recover_without_doubt(&mut self, found: &State, sequence: u64, loss: Loss) -> Result<usize, Mismatch> {
        let floor = self.floor(loss);
        let mut state = self.state_after(floor);
        let mut survivors = Vec::new();
        for position in floor..=self.groups.len() {
            if self.alive_in(&state, self.now_ms).eq(found) {
                survivors.push(position);
            }
            if let Some(group) = self.groups.get(position) {
                group.apply(&mut state);
            }
        }
        let named = survivors.iter().find(|&&position| self.sequence_after(position) == sequence);
        let Some(&survivor) = named.or(survivors.last()) else {
            return Err(self.mismatch(found, floor, loss));
        };
        let lost = self.groups.len() - survivor;
        self.groups.truncate(survivor);
        self.now = self.state_after(survivor);
        self.remove_notes();
        self.kill_floor = survivor;
        if loss == Loss::Power {
            // Data that survived a power loss was on the medium.
            self.power_floor = survivor;
        }
        Ok(lost)
    }

    /// The states that a crash may leave while the history grows from this model's to `after`'s: everything that this model promises is there, and
    /// nothing that the later one does not have. `None` where `after` has forgotten its beginnings.
    #[must_use]
    pub fn histories_between(&self, after: &Self, loss: Loss) -> Option<Histories> {
        if self.base_sequence != after.base_sequence {
            return None;
        }
        let mut state = after.state_after(self.floor(loss).min(after.groups.len()));
        let mut states = vec![state.clone()];
        for group in after.groups.iter().skip(self.floor(loss)) {
            group.apply(&mut state);
            states.push(state.clone());
        }
        Some(Histories { states, expiries: after.expiries.clone() })
    }

    fn floor(&self, loss: Loss) -> usize {
        match loss {
            Loss::Power => self.power_floor,
            Loss::Process => self.kill_floor,
            Loss::Nothing => self.groups.len(),
        }
    }

    fn sequence_after(&self, position: usize) -> u64 {
        position
            .checked_sub(1)
            .and_then(|last| self.groups.get(last))
            .map_or(self.base_sequence, Group::last_sequence)
    }

    fn state_after(&self, position: usize) -> State {
        let mut state = self.base.clone();
        self.groups[..position].iter().for_each(|group| group.apply(&mut state));
        state
    }

    fn mismatch(&self, found: &State, floor: usize, loss: Loss) -> Mismatch {
        // Expired entries among the expected ones make a difference larger than it is.
        let mut state = self.base.clone();
        let (mut closest, mut distance) = (0, distance_between(&state, found));
        for (position, group) in self.groups.iter().enumerate() {
            group.apply(&mut state);
            let here = distance_between(&state, found);
            if here <= distance {
                (closest, distance) = (position + 1, here);
            }
        }
        let detail = match difference(&self.state_after(closest), found).first() {
            None => format!("it is prefix {closest}, which is below the floor: acknowledged groups are gone"),
            Some(first) => format!("closest is prefix {closest} with {distance} differences, first: {first}"),
        };
        Mismatch(format!(
            "after {loss:?} loss: {} keys recovered match no prefix in {floor}..={} (sequence {}): {detail}",
            found.len(),
            self.groups.len(),
            self.last_sequence(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(sequence: u64, key: u8) -> Group {
        Group { changes: vec![Change::Set(vec![key], vec![sequence as u8])], first_sequence: sequence }
    }

    fn three_groups() -> (Model, Vec<State>) {
        let mut model = Model::default();
        let mut states = vec![State::new()];
        for sequence in 1..=3 {
            model.stage(set(sequence, sequence as u8 % 2));
            states.push(model.state().clone());
        }
        (model, states)
    }

    #[test]
    fn any_prefix_may_survive_when_nothing_was_acknowledged() {
        let (model, states) = three_groups();
        for (position, state) in states.iter().enumerate() {
            assert_eq!(model.clone().recover(state, position as u64, Loss::Power), Ok(3 - position));
        }
    }

    #[test]
    fn a_state_that_is_no_prefix_is_found() {
        let (mut model, _) = three_groups();
        let mut hole = State::new();
        set(2, 0).apply(&mut hole);
        assert!(model.recover(&hole, 2, Loss::Power).is_err());
    }

    #[test]
    fn a_relaxed_group_outlives_the_process_and_not_the_power() {
        let (mut model, states) = three_groups();
        model.acknowledge_relaxed();
        assert!(model.clone().recover(&states[2], 2, Loss::Process).is_err());
        assert_eq!(model.recover(&states[2], 2, Loss::Power), Ok(1));
    }

    #[test]
    fn a_strict_group_outlives_the_power() {
        let (mut model, states) = three_groups();
        model.acknowledge_strict();
        assert!(model.clone().recover(&states[2], 2, Loss::Power).is_err());
        assert_eq!(model.recover(&states[3], 3, Loss::Power), Ok(0));
    }

    #[test]
    fn a_refused_group_may_not_come_back() {
        let (mut model, states) = three_groups();
        model.refuse(2);
        assert_eq!(*model.state(), states[2]);
        assert!(model.recover(&states[3], 3, Loss::Power).is_err());
    }

    #[test]
    fn data_that_survives_a_power_loss_survives_the_next() {
        let (mut model, states) = three_groups();
        model.recover(&states[2], 2, Loss::Power).expect("a prefix");
        assert!(model.recover(&states[1], 1, Loss::Power).is_err());
    }
}
