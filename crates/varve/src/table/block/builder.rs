//! Builds the raw bytes of one data block; `mod.rs` has the picture.
//!
//! Invariant: every tail entry shares as many bytes as possible with the head of its run.

use crate::codec::bytes::common_prefix;
use crate::codec::varint::{put_u64, zigzag};
use crate::types::{Kind, Sequence};

/// A data block under construction.
pub(in crate::table) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: usize,
    /// Entries in the last run.
    run_entries: usize,
    head_key: Vec<u8>,
    head_sequence: Sequence,
}

impl BlockBuilder {
    pub fn new(restart_interval: usize) -> Self {
        Self {
            bytes: Vec::new(),
            restarts: Vec::new(),
            restart_interval: restart_interval.max(1),
            run_entries: 0,
            head_key: Vec::new(),
            head_sequence: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of the block if it were finished now.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// Appends an entry. The caller must add entries in order.
    pub fn add(&mut self, key: &[u8], sequence: Sequence, kind: Kind, expires: Option<u64>, value: &[u8]) {
        let suffix = if self.run_entries == self.restart_interval || self.is_empty() {
            self.begin_run(key, sequence, value.len());
            key
        } else {
            let shared = common_prefix(&self.head_key, key);
            put_u64(&mut self.bytes, shared as u64);
            put_u64(&mut self.bytes, (key.len() - shared) as u64);
            put_u64(&mut self.bytes, value.len() as u64);
            &key[shared..]
        };
        self.bytes.push(kind as u8 | if expires.is_some() { Kind::EXPIRES } else { 0 });
        let is_head = self.run_entries == 0;
        let difference = sequence.wrapping_sub(self.head_sequence) as i64;
        put_u64(&mut self.bytes, if is_head { sequence } else { zigzag(difference) });
        if let Some(expires) = expires {
            put_u64(&mut self.bytes, expires);
        }
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(value);
        self.run_entries += 1;
    }

    fn begin_run(&mut self, key: &[u8], sequence: Sequence, value_len: usize) {
        self.restarts.push(self.bytes.len() as u32);
        self.run_entries = 0;
        self.head_key.clear();
        self.head_key.extend_from_slice(key);
        self.head_sequence = sequence;
        put_u64(&mut self.bytes, key.len() as u64);
        put_u64(&mut self.bytes, value_len as u64);
    }

    /// Ends the block and returns its raw bytes; [`BlockBuilder::clear`] makes room for the next.
    pub fn finish(&mut self) -> &[u8] {
        for offset in &self.restarts {
            self.bytes.extend_from_slice(&offset.to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.run_entries = 0;
    }
}
