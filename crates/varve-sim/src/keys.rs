//! The data keys of encrypted stores, as a host handles them.
//!
//! A host learns its data keys from the slots in the manifest. Here the slots list the numbers of the keys, and a number decides what the
//! key is. So whatever crash a change of keys meets, the next opening has exactly the keys that the manifest has.

use varve::manifest::key_slots;
use varve::storage::Storage;
use varve::{Encryption, Keyring, Store};

use crate::disk::Disk;
use crate::model::Model;
use crate::rng::Rng;
use crate::session::{Outcome, Session};
use crate::trace::{Op, Trace};

/// Bytes of a value that are searched for on the disk, behind its number.
const CANARY: std::ops::Range<usize> = 8..24;
/// How many values are searched for.
const CANARIES: usize = 4;
/// Compactions after which a store has to be encrypted.
const COMPACTIONS_MAX: u32 = 10;

/// Encrypts a third of the traces from their start, lets some others become encrypted, and changes keys in the middle of both.
pub(crate) fn add_keys(rng: &mut Rng, trace: &mut Trace) {
    let is_encrypted = rng.chance(1, 3);
    if is_encrypted {
        trace.options.encryption = with_keys(&[1], 0);
    }
    if rng.chance(1, if is_encrypted { 2 } else { 8 }) {
        for _ in 0..rng.within(1, 5) {
            trace.ops.insert(rng.index(trace.ops.len() + 1), Op::ChangeKeys);
        }
    }
}

fn with_keys(numbers: &[u16], seed: u64) -> Encryption {
    let keys = numbers.iter().map(|&number| (number, [number as u8; 32])).collect();
    let mut bytes = [0xa5; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let slots = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Encryption { keyring: Keyring::new([0; 16], keys, bytes).expect("numbers ascend"), slots }
}

/// The keys that a host gives to the opening with this number.
pub(crate) fn keys_of<S: Storage>(storage: &S, trace: &Trace, opening: u64) -> varve::Result<Encryption> {
    let Some(slots) = key_slots(storage)? else { return Ok(trace.options.encryption.clone()) };
    let numbers: Vec<_> = slots.as_chunks().0.iter().map(|&number| u16::from_le_bytes(number)).collect();
    Ok(with_keys(&numbers, opening))
}

/// Makes a new key the newest, and drops those that no file needs.
pub(crate) fn change_keys<S: Storage>(store: &mut Store<S>, seed: u64) -> varve::Result<()> {
    let mut numbers = store.keys_in_use()?;
    numbers.retain(|number| *number > 0);
    numbers.push(numbers.last().map_or(1, |newest| newest + 1));
    store.change_keys(with_keys(&numbers, seed))
}

impl Session<'_> {
    /// Brings a store that became encrypted to the end of that, and looks for every value that the trace ever set.
    pub(crate) fn look_for_plain_values(&mut self) -> Outcome {
        let is_plain = self.store()?.key_slots().is_empty();
        if is_plain || self.trace.options.encryption.keyring.current() > 0 {
            return Ok(());
        }
        for _ in 0..COMPACTIONS_MAX {
            if !self.make(|store| store.keys_in_use())?.map_err(|error| error.to_string())?.contains(&0) {
                let values = self.trace.ops.iter().flat_map(Op::values).filter_map(|value| value.get(CANARY));
                return match values.filter(is_telling).find(|value| self.disk.contains(value)) {
                    Some(value) => {
                        Err(format!("the disk shows a value from before encryption: {value:02x?}"))
                    }
                    None => Ok(()),
                };
            }
            self.perform(&Op::Compact)?;
        }
        Err("a store never becomes encrypted".to_owned())
    }
}

fn is_telling(bytes: &&[u8]) -> bool {
    bytes.iter().any(|byte| *byte != bytes[0])
}

/// No value of a store that was always encrypted lies on the disk in plain.
pub(crate) fn look_for_values(trace: &Trace, disk: &Disk, model: &Model) -> Outcome {
    if trace.options.encryption.keyring.current() == 0 {
        return Ok(());
    }
    let values = model.state().values().filter_map(|(value, _)| value.get(CANARY)).filter(is_telling);
    for value in values.take(CANARIES) {
        if disk.contains(value) {
            return Err(format!("the disk shows a value of an encrypted store: {value:02x?}"));
        }
    }
    Ok(())
}
