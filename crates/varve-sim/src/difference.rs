//! How two states differ, in words and in numbers.

use crate::change::{State, show};

/// How many keys differ between two states.
pub(crate) fn distance_between(expected: &State, found: &State) -> usize {
    let missing = expected.iter().filter(|(key, entry)| found.get(*key) != Some(entry)).count();
    missing + found.keys().filter(|key| !expected.contains_key(*key)).count()
}

/// The differences between two states, each a sentence.
#[must_use]
pub fn difference(expected: &State, found: &State) -> Vec<String> {
    let mut differences = Vec::new();
    for (key, (value, sequence)) in expected {
        match found.get(key) {
            None => differences.push(format!("{} missing (sequence {sequence})", show(key))),
            Some((other, other_sequence)) if (other, other_sequence) != (value, sequence) => differences
                .push(format!(
                    "{} holds {} bytes of sequence {other_sequence}, not {} bytes of sequence {sequence}",
                    show(key),
                    other.len(),
                    value.len()
                )),
            Some(_) => {}
        }
    }
    for (key, (_, sequence)) in found {
        if !expected.contains_key(key) {
            differences.push(format!("{} should be gone (sequence {sequence})", show(key)));
        }
    }
    differences
}
