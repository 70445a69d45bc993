//! Reads a store through its cursors and compares with the oracle.
//!
//! Batches are decoded from the bytes that JavaScript gets, so that their encoding is under test as well.

use std::collections::VecDeque;

use varve::codec::reader::{Reader, Truncated};
use varve::scan::{Batch, Cursor, Progress, ScanOptions};
use varve::storage::Storage;
use varve::{Error, Store};

use crate::change::{State, show};
use crate::trace::Range;
use crate::waiting::{Fetcher, patiently};

/// Batches after which the test decides that a scan goes round in circles.
const BATCHES_MAX: usize = 1_000_000;

/// Batches of one size after which a scan to the end takes larger ones. Each batch seeks again in all tables: hundreds of them, with
/// an entry a batch, would take minutes.
const BATCHES_MANY: usize = 50;

/// Entries in the order of a scan.
pub type Entries = VecDeque<(Vec<u8>, Vec<u8>)>;

/// The fault of a scan.
#[derive(Debug)]
pub enum ScanError {
    /// The store returned an error.
    Store(Error),
    /// The store returned something impossible.
    Wrong(String),
}

/// A cursor and the entries that it still has to deliver.
#[derive(Debug)]
pub struct Expectation {
    cursor: Cursor,
    left: Entries,
    batch_bytes: usize,
}

impl Expectation {
    /// Opens a cursor on a range of the present state.
    ///
    /// # Errors
    /// The error of the store.
    pub fn open<S: Storage>(
        store: &Store<S>,
        state: &State,
        range: &Range,
        batch_bytes: usize,
    ) -> Result<Self, Error> {
        let Range { lower, upper, reverse, limit } = range.clone();
        let cursor = store.scan(ScanOptions { lower, upper, reverse, limit })?;
        Ok(Self { cursor, left: expected(state, range), batch_bytes })
    }

    /// The sequence that the cursor reads at.
    #[must_use]
    pub fn snapshot(&self) -> u64 {
        self.cursor.snapshot()
    }

    /// Reads a batch and compares it; returns the entries, and whether there may be more.
    ///
    /// # Errors
    /// The store failed, or delivered other entries than it should.
    pub fn step<S: Storage>(
        &mut self,
        store: &Store<S>,
        host: &impl Fetcher,
    ) -> Result<(Entries, bool), ScanError> {
        let (progress, batch) = next(store, host, &mut self.cursor, self.batch_bytes)?;
        let found =
            decode(&batch).map_err(|Truncated| ScanError::Wrong("a batch does not decode".to_owned()))?;
        for (position, (key, value)) in found.iter().enumerate() {
            match self.left.pop_front() {
                Some((wanted, content)) if wanted == *key && content == *value => {}
                wanted => return Err(ScanError::Wrong(unexpected(position, key, value, wanted))),
            }
        }
        if progress == Progress::Finished
            && let Some((key, _)) = self.left.front()
        {
            return Err(ScanError::Wrong(format!("the scan ended before {}", show(key))));
        }
        Ok((found, progress == Progress::More))
    }

    /// Reads to the end and compares; returns all entries.
    ///
    /// # Errors
    /// As [`Expectation::step`].
    pub fn finish<S: Storage>(mut self, store: &Store<S>, host: &impl Fetcher) -> Result<Entries, ScanError> {
        let mut all = Entries::new();
        for batches in 1..BATCHES_MAX {
            if batches % BATCHES_MANY == 0 {
                self.batch_bytes *= 8;
            }
            let (mut found, more) = self.step(store, host)?;
            all.append(&mut found);
            if !more {
                return Ok(all);
            }
        }
        Err(ScanError::Wrong("the scan never ends".to_owned()))
    }
}

/// The next batch of a scan, read until no bytes are missing.
fn next<S: Storage>(
    store: &Store<S>,
    host: &impl Fetcher,
    cursor: &mut Cursor,
    batch_bytes: usize,
) -> Result<(Progress, Batch), ScanError> {
    let next = patiently(host, || {
        let mut batch = Batch::new(true, true);
        let progress = store.scan_next(cursor, batch_bytes, &mut batch)?;
        Ok((progress, batch))
    });
    next.map_err(ScanError::Store)
}

/// Everything in the store, read forward, with the sequences that point reads give.
///
/// # Errors
/// The store failed, or its point reads and scans differ.
pub fn contents<S: Storage>(store: &Store<S>, host: &impl Fetcher) -> Result<State, ScanError> {
    let mut cursor = store.scan(ScanOptions::default()).map_err(ScanError::Store)?;
    let mut state = State::new();
    for _ in 0..BATCHES_MAX {
        let (progress, batch) = next(store, host, &mut cursor, 1 << 16)?;
        let found =
            decode(&batch).map_err(|Truncated| ScanError::Wrong("a batch does not decode".to_owned()))?;
        for (key, value) in found {
            let point = patiently(host, || {
                store.find(&key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
            });
            match point.map_err(ScanError::Store)? {
                Some((other, sequence)) if other == value => {
                    state.insert(key, (value, sequence));
                }
                other => {
                    let other = other.map(|(value, sequence)| (value.len(), sequence));
                    let key = show(&key);
                    return Err(ScanError::Wrong(format!(
                        "{key} is scanned ({} bytes) but read as {other:?}",
                        value.len()
                    )));
                }
            }
        }
        if progress == Progress::Finished {
            return Ok(state);
        }
    }
    Err(ScanError::Wrong("the scan never ends".to_owned()))
}

pub(crate) fn expected(state: &State, range: &Range) -> Entries {
    let upper = range.upper.as_ref();
    let inside =
        state.range(range.lower.clone()..).take_while(|(key, _)| upper.is_none_or(|upper| *key < upper));
    let limit = range.limit.map_or(usize::MAX, |limit| limit as usize);
    let pair = |(key, (value, _)): (&Vec<u8>, &(Vec<u8>, u64))| (key.clone(), value.clone());
    if range.reverse {
        let mut all: Vec<_> = inside.collect();
        all.reverse();
        all.into_iter().take(limit).map(pair).collect()
    } else {
        inside.take(limit).map(pair).collect()
    }
}

fn unexpected(position: usize, key: &[u8], value: &[u8], wanted: Option<(Vec<u8>, Vec<u8>)>) -> String {
    let found = format!("entry {position} of a batch is {} with {} bytes", show(key), value.len());
    match wanted {
        None => format!("{found}, beyond the end of the range"),
        Some((wanted, content)) => format!("{found}, not {} with {} bytes", show(&wanted), content.len()),
    }
}

/// The entries of a batch, from the bytes that JavaScript gets.
///
/// # Errors
/// They end too soon.
pub fn decode(batch: &Batch) -> Result<Entries, Truncated> {
    let mut bytes = Vec::new();
    batch.encode(1, &mut bytes);
    let mut reader = Reader::new(&bytes);
    let [_, count, keys_bytes, values_bytes] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
    let mut ends = Vec::new();
    for _ in 0..2 * count {
        ends.push(reader.u32()? as usize);
    }
    let keys = reader.bytes(keys_bytes.next_multiple_of(4) as usize)?;
    let values = reader.bytes(values_bytes.next_multiple_of(4) as usize)?;
    let (key_ends, value_ends) = ends.split_at(count as usize);
    let parts = |ends: &[usize], blob: &[u8]| -> Result<Vec<Vec<u8>>, Truncated> {
        let mut start = 0;
        let mut parts = Vec::new();
        for &end in ends {
            parts.push(blob.get(start..end).ok_or(Truncated)?.to_vec());
            start = end;
        }
        Ok(parts)
    };
    Ok(parts(key_ends, keys)?.into_iter().zip(parts(value_ends, values)?).collect())
}
