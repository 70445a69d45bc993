//! The states that a crash may leave, and whether a store contains exactly that.
//!
//! Invariant: by the clock of the store that is checked, no past contains an entry after its expiry. The other entries
//! expire at the time that their write set.

use std::collections::BTreeMap;

use varve::Store;
use varve::storage::Storage;

use crate::change::State;
use crate::difference::difference;
use crate::scan::contents;
use crate::waiting::AtOnce;

/// States of a history, expired entries included, one for each place where it may have been cut.
#[derive(Debug, Clone)]
pub struct Histories {
    /// The states, the shortest past first.
    pub states: Vec<State>,
    /// When writes expire, by their sequences.
    pub expiries: BTreeMap<u64, u64>,
}

/// The content of a store by its own clock.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its entries.
    pub state: State,
    /// When those of them that expire do so, by their sequences.
    pub expiries: BTreeMap<u64, u64>,
    /// Its clock.
    pub now_ms: u64,
}

impl Found {
    /// Reads a store.
    ///
    /// # Errors
    /// The store failed, or its reads differ from one another.
    pub fn read<S: Storage>(store: &Store<S>) -> Result<Self, String> {
        let state = contents(store, &AtOnce).map_err(|error| format!("reading all: {error:?}"))?;
        let mut expiries = BTreeMap::new();
        for (key, (_, sequence)) in &state {
            let expires = store.find(key, |entry| entry.and_then(|entry| entry.expires));
            if let Some(at) = expires.map_err(|error| format!("reading an expiry: {error:?}"))? {
                expiries.insert(*sequence, at);
            }
        }
        Ok(Self { state, expiries, now_ms: store.now_ms() })
    }
}

impl Histories {
    /// How many histories there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// A state as a store contains it by a clock.
    fn alive(&self, state: &State, now_ms: u64) -> State {
        let is_alive = |sequence| self.expiries.get(sequence).is_none_or(|&at| at > now_ms);
        let alive = state.iter().filter(|(_, (_, sequence))| is_alive(sequence));
        alive.map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    /// Returns the histories that equal the found state.
    ///
    /// # Errors
    /// The state is none of them: the error lists the differences from the nearest one.
    pub fn narrowed(&self, found: &Found) -> Result<Self, String> {
        for (_, sequence) in found.state.values() {
            let (wanted, expires) = (self.expiries.get(sequence), found.expiries.get(sequence));
            if wanted != expires {
                return Err(format!("sequence {sequence} expires at {expires:?}, not {wanted:?}"));
            }
        }
        let is_found = |state: &&State| self.alive(state, found.now_ms) == found.state;
        let states: Vec<State> = self.states.iter().filter(is_found).cloned().collect();
        if states.is_empty() {
            return Err(self.differs(found));
        }
        Ok(Self { states, expiries: self.expiries.clone() })
    }

    /// The histories that may be followed by a write of that sequence, each with the write behind it.
    #[must_use]
    pub fn with(&self, key: &[u8], value: &[u8], sequence: u64) -> Self {
        let mut later = self.clone();
        // The sequences of changes that were cut are used again.
        later.states.retain(|state| state.values().all(|(_, earlier)| *earlier < sequence));
        later.expiries.split_off(&sequence);
        for state in &mut later.states {
            state.insert(key.to_vec(), (value.to_vec(), sequence));
        }
        later
    }

    fn differs(&self, found: &Found) -> String {
        let differences = |state| difference(&self.alive(state, found.now_ms), &found.state);
        let nearest = self.states.iter().map(differences).min_by_key(Vec::len).unwrap_or_default();
        let first = nearest.first().map_or("", String::as_str);
        format!(
            "{} keys at {} are none of {} states; the nearest has {} differences, first: {first}",
            found.state.len(),
            found.now_ms,
            self.states.len(),
            nearest.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(entries: &[(u8, u64)], now_ms: u64, expiries: &[(u64, u64)]) -> Found {
        let state = entries.iter().map(|&(key, sequence)| (vec![key], (vec![9], sequence))).collect();
        Found { state, expiries: expiries.iter().copied().collect(), now_ms }
    }

    /// Nothing, then key 1, then key 1 and key 2, which expires at 50.
    fn histories() -> Histories {
        let states = [&[][..], &[(1, 1)], &[(1, 1), (2, 2)]].map(|entries| found(entries, 0, &[]).state);
        Histories { states: states.into(), expiries: BTreeMap::from([(2, 50)]) }
    }

    #[test]
    fn expired_entries_may_be_gone_and_are_gone_by_the_clock() {
        let kept = |found: &Found| histories().narrowed(found).map(|histories| histories.count()).ok();
        assert_eq!(kept(&found(&[(1, 1), (2, 2)], 49, &[(2, 50)])), Some(1));
        assert_eq!(kept(&found(&[(1, 1)], 49, &[])), Some(1));
        assert_eq!(kept(&found(&[(1, 1)], 50, &[])), Some(2));
        assert_eq!(kept(&found(&[(1, 1), (2, 2)], 50, &[(2, 50)])), None);
    }

    #[test]
    fn an_expiry_that_moved_is_reported() {
        for moved in [&[][..], &[(2, 51)], &[(1, 60), (2, 50)]] {
            assert!(histories().narrowed(&found(&[(1, 1), (2, 2)], 10, moved)).is_err());
        }
    }
}
