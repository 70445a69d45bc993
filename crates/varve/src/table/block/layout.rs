//! Where the entries of a data block lie, found once when the block is opened.
//!
//! There is one mark per entry: its offset, its run, and the 8 bytes of its key after the common prefix of all keys of
//! the block. With these 16 bytes, a lookup is a search over adjacent numbers, and then reads one entry. Walking a run
//! of 16 would touch one or two more cache lines for each entry on the way.
//!
//! Invariant: every entry that has a mark decodes, and the heads of the marks ascend.

use super::{Entry, Malformed};
use crate::codec::bytes::{common_prefix, head};
use crate::types::Sequence;

/// Longest raw block in bytes; a block with one entry of the largest value fits.
const RAW_BYTES_MAX: usize = (1 << 31) - 1;
/// No entry is shorter.
const ENTRY_BYTES_MIN: usize = 4;

/// The usual number of entries in a run, used to reserve memory.
const RUN_ENTRIES: usize = 16;

/// One run of a data block.
#[derive(Debug, Clone, Copy)]
pub(in crate::table) struct Run {
    /// The sequence of its head.
    pub sequence: Sequence,
    /// The number of its head among the entries of the block.
    pub first: u32,
    /// Where the head's key begins.
    pub key: u32,
    /// Where the head's key ends.
    pub key_end: u32,
    /// Where the run ends.
    pub end: u32,
}

impl Run {
    /// The key of the run's head, in the bytes of its block.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.key as usize..self.key_end as usize]
    }
}

/// The data that a search needs of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// The 8 bytes of its key after the common prefix of all keys of the block.
    pub head: u64,
    /// Where it begins.
    pub offset: u32,
    /// The number of its run.
    pub run: u32,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub marks: Vec<Mark>,
    pub runs: Vec<Run>,
    /// Number of bytes that all keys share.
    pub shared: usize,
}

impl Layout {
    /// Decodes a block once.
    pub fn of(bytes: &[u8]) -> Result<Self, Malformed> {
        let (restarts, entries_end) = restarts_of(bytes)?;
        let mut layout = Self::default();
        layout.find_runs(bytes, restarts, entries_end)?;
        // The prefix that the first and the last head share is common to all entries between two heads.
        let (first, last) = (layout.runs[0], layout.runs[layout.runs.len() - 1]);
        layout.shared = common_prefix(first.key(bytes), last.key(bytes));
        let shared = layout.find_entries(bytes)?;
        // An entry of the last run shares less. This is rare, unless the block is a single run.
        if shared < layout.shared {
            layout.shared = shared;
            layout.find_entries(bytes)?;
        }
        if layout.marks.is_sorted_by_key(|mark| mark.head) {
            Ok(layout)
        } else {
            Err(Malformed("keys out of order"))
        }
    }

    /// The layout of a block of one entry, of which only the front is available.
    pub fn of_one(front: &[u8], entry: &Entry) -> Self {
        let (key, key_end) = (entry.suffix, entry.value);
        let run = Run { sequence: entry.sequence, first: 0, key, key_end, end: entry.next };
        let shared = run.key(front).len();
        Self { marks: vec![Mark { head: 0, offset: 0, run: 0 }], runs: vec![run], shared }
    }

    fn find_runs(&mut self, bytes: &[u8], restarts: &[[u8; 4]], entries_end: u32) -> Result<(), Malformed> {
        let expected = restarts.len().saturating_mul(RUN_ENTRIES).min(bytes.len() / ENTRY_BYTES_MIN);
        self.marks.reserve_exact(expected);
        self.runs.reserve_exact(restarts.len());
        for (index, restart) in restarts.iter().enumerate() {
            let offset = u32::from_le_bytes(*restart);
            let end = restarts.get(index + 1).map_or(entries_end, |next| u32::from_le_bytes(*next));
            if offset >= end || end > entries_end {
                return Err(Malformed("restart points out of order"));
            }
            let head = Entry::decode_head(bytes, offset, end)?;
            self.runs.push(Run {
                sequence: head.sequence,
                first: 0,
                key: head.suffix,
                key_end: head.value,
                end,
            });
        }
        Ok(())
    }

    /// Fills in the marks. Returns how many bytes all keys share, if that is less than assumed.
    fn find_entries(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        self.marks.clear();
        let (mut shared, mut at) = (self.shared, 0);
        for index in 0..self.runs.len() {
            self.runs[index].first = self.marks.len() as u32;
            let run = self.runs[index];
            let (key, key_head) = (run.key(bytes), head(run.key(bytes), self.shared));
            self.marks.push(Mark { head: key_head, offset: at, run: index as u32 });
            at = Entry::decode_head(bytes, at, run.end)?.next;
            while at < run.end {
                let entry = Entry::decode_tail(bytes, at, run.end, run.sequence)?;
                let own = entry.shared as usize;
                if own > key.len() {
                    return Err(Malformed("entry"));
                }
                let head = head_of(key_head, own, entry.suffix(bytes), self.shared);
                self.marks.push(Mark { head, offset: at, run: index as u32 });
                shared = shared.min(own);
                at = entry.next;
            }
        }
        Ok(shared)
    }

    /// Bytes of memory that the layout takes.
    pub fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.marks.capacity() * size_of::<Mark>()
    }
}

/// The restart offsets of a block and where its entries end.
fn restarts_of(bytes: &[u8]) -> Result<(&[[u8; 4]], u32), Malformed> {
    if bytes.len() > RAW_BYTES_MAX {
        return Err(Malformed("block too large"));
    }
    let (rest, count) = bytes.split_last_chunk::<4>().ok_or(Malformed("block cut short"))?;
    let tail_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(4);
    let entries_end = tail_bytes.and_then(|tail| rest.len().checked_sub(tail));
    let entries_end = entries_end.ok_or(Malformed("restart count"))?;
    let (restarts, _) = rest[entries_end..].as_chunks::<4>();
    if restarts.first() != Some(&[0; 4]) {
        return Err(Malformed("first restart point"));
    }
    Ok((restarts, entries_end as u32))
}

/// The head, after `skip` bytes, of a key. The key begins with `shared` bytes of the key of its run's head and
/// continues with `suffix`. The head of that other key is `run_head`.
#[inline]
fn head_of(run_head: u64, shared: usize, suffix: &[u8], skip: usize) -> u64 {
    match shared.checked_sub(skip) {
        None => head(suffix, skip - shared),
        Some(front @ 0..8) => {
            let bits = 8 * front as u32;
            let front_mask = !(u64::MAX >> bits);
            run_head & front_mask | head(suffix, 0) >> bits
        }
        Some(_) => run_head,
    }
}
