//! Builds a memtable from existing bytes: at recovery, and when staged records are rolled back.
//!
//! Invariant: the index contains what [`Records`] finds in the image, and nothing else.

use super::index::Index;
use super::{IMAGE_BYTES_MAX, Memtable};
use crate::error::{Error, Result};
use crate::types::{FileName, Sequence};
use crate::wal::{Record, Records, SEGMENT_HEADER_BYTES, SegmentHeader};

impl Memtable {
    /// The memtable of a segment that [`scan_segment`](crate::wal::scan_segment) found good up to `end`.
    ///
    /// # Errors
    /// `Error::Corrupt` when the bytes up to `end` are not whole records, or when the contents of a record make no
    /// sense.
    pub fn from_segment(bytes: Vec<u8>, header: SegmentHeader, end: usize, file: FileName) -> Result<Self> {
        Self::replayed(bytes, header, end, file, &mut |_| {})
    }

    /// As [`from_segment`](Self::from_segment); shows every record, the oldest first.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn replayed(
        mut bytes: Vec<u8>,
        header: SegmentHeader,
        end: usize,
        file: FileName,
        show: &mut dyn FnMut(&Record<'_>),
    ) -> Result<Self> {
        if end < SEGMENT_HEADER_BYTES || end > bytes.len() || end as u64 > IMAGE_BYTES_MAX {
            return Err(Error::corrupt(file, end as u64, "a WAL segment has an impossible length"));
        }
        bytes.truncate(end);
        let index = replay(&bytes, header.salt, show)
            .map_err(|offset| Error::corrupt(file, offset as u64, "a WAL record makes no sense"))?;
        Ok(Self { image: bytes, header, index, open: None })
    }

    /// Adds all entries of another memtable. They must be newer than everything here.
    ///
    /// # Panics
    /// When they are not newer, or when the image would pass [`IMAGE_BYTES_MAX`].
    pub fn append(&mut self, newer: &Self) {
        for record in
            Records::new(&newer.image, newer.header.salt).flatten().filter(|record| record.count > 0)
        {
            self.begin(record.client, record.request, record.first_sequence, record.count as u32);
            for entry in record.entries.flatten() {
                self.push(entry.kind, entry.expires, entry.key, entry.value);
            }
            self.end(0);
        }
    }

    /// Removes every record from `end` on, which is the start of a record; an open record too. Builds the index of the
    /// remaining records again, so this costs as much as writing them did.
    ///
    /// # Panics
    /// When `end` is not where a record starts or ends.
    pub fn rollback(&mut self, end: usize) {
        assert!((SEGMENT_HEADER_BYTES..=self.image.len()).contains(&end), "a rollback shortens the image");
        self.image.truncate(end);
        self.open = None;
        self.index =
            replay(&self.image, self.header.salt, &mut |_| {}).expect("a rollback ends at a record boundary");
    }
}

/// Indexes all records of an image; `Err` is the offset of a record that makes no sense.
fn replay(image: &[u8], salt: u64, show: &mut dyn FnMut(&Record<'_>)) -> Result<Index, usize> {
    let mut index = Index::new();
    let mut records = Records::new(image, salt);
    let mut at = records.position();
    while let Some(record) = records.next() {
        let record = record.map_err(|_| at)?;
        if !index.admits(record.first_sequence, record.count) {
            return Err(at);
        }
        show(&record);
        for (sequence, entry) in (record.first_sequence..).zip(record.entries) {
            let entry = entry.map_err(|_| at)?;
            index.add(image, entry.offset, sequence, entry.kind, entry.key, entry.value);
        }
        at = records.position();
    }
    if records.position() == image.len() { Ok(index) } else { Err(records.position()) }
}

impl Index {
    /// Whether `count` entries from `first` on can follow the indexed entries.
    pub(super) fn admits(&self, first: Sequence, count: u64) -> bool {
        let base = if self.base == 0 { first } else { self.base };
        first > self.last && first - base + count <= u64::from(u32::MAX)
    }
}
