//! From a file's name to its slot.
//!
//! Invariant: a lookup allocates nothing and costs a few nanoseconds, since every block read and every WAL append
//! makes one. The hash has no random seed (the engine has no randomness); names are ours, nobody can choose
//! them to collide, and nothing depends on the order of the map.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::types::FileName;

/// Maps names to slot numbers.
pub(super) type NameMap = HashMap<FileName, u32, BuildHasherDefault<NameHasher>>;

/// One multiplication for each number fed.
#[derive(Default)]
pub(super) struct NameHasher {
    state: u64,
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio: consecutive ids spread over the high bits, which are folded into the low ones.
        let mixed = (self.state.rotate_left(7) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.state = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.state.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn names_of_a_large_store_rarely_share_a_hash() {
        let build = BuildHasherDefault::<NameHasher>::default();
        let names = (0..3000).flat_map(|id| [FileName::table(id), FileName::wal(id)]);
        let hashes: HashSet<u64> = names.map(|name| build.hash_one(name) >> 40).collect();
        assert!(hashes.len() > 5980, "{} of 6000 are distinct in their high bits", hashes.len());
    }
}
