//! Shared parts of the manifest's tests: random numbers, and edits that follow one another.

use varve::manifest::{Edit, Version};
use varve::table::TableMeta;

/// Random numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }
}

/// A table of level 0 with a key as long as asked for.
fn table(id: u64, key_bytes: usize) -> TableMeta {
    TableMeta {
        id,
        size: 100 + id,
        footer_hash: id.wrapping_mul(0x9e37_79b9),
        entries: 3,
        min_sequence: id,
        max_sequence: id,
        min_key: vec![b'k'; key_bytes],
        max_key: vec![b'k'; key_bytes],
        ..TableMeta::default()
    }
}

/// The edit that adds table `id` (with a key of `key_bytes`) after `version`, and drops all but the two newest.
pub fn next_edit(version: &Version, key_bytes: usize) -> Edit {
    let id = version.floors.next_table;
    let removed = version.level(0).iter().skip(1).map(|table| table.id).collect();
    let mut floors = version.floors;
    floors.next_table = id + 1;
    floors.last_sequence = id;
    Edit { added: vec![(0, table(id, key_bytes))], removed, floors, clients: version.clients.clone() }
}
