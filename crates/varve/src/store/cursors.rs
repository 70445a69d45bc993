//! The scans that callers outside the engine have open, by name.

use super::Name;
use crate::error::{Error, Result};
use crate::scan::{Batch, Cursor, ScanRequest};

const NO_ITERATOR: Error = Error::InvalidArgument("This iterator is closed or unknown. Start a new one.");

/// A scan that a caller outside the engine refers to by name.
#[derive(Debug)]
pub(super) struct Numbered {
    name: Name,
    pub(super) cursor: Cursor,
    want_keys: bool,
    want_values: bool,
    want_expiries: bool,
}

/// The open scans.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    open: Vec<Numbered>,
    /// Reused by every batch.
    pub(super) batch: Batch,
    /// The number given last to a caller in this realm.
    last_number: u32,
}

impl Cursors {
    /// The next number for a caller in this realm. Hosts take it as an `i32`.
    pub(super) fn next_number(&self) -> u32 {
        let next = |number: &u32| Some(number % i32::MAX as u32 + 1);
        let mut numbers = core::iter::successors(next(&self.last_number), next);
        numbers.find(|&number| self.get(number.into()).is_err()).unwrap_or(1)
    }

    /// The number was given.
    pub(super) fn gave(&mut self, number: u32) {
        self.last_number = number;
    }

    /// Opens a scan.
    pub(super) fn open(&mut self, name: Name, cursor: Cursor, wanted: &ScanRequest) {
        let ScanRequest { want_keys, want_values, want_expiries, .. } = *wanted;
        self.open.push(Numbered { name, cursor, want_keys, want_values, want_expiries });
    }

    /// The scan of this name.
    pub(super) fn get(&self, name: Name) -> Result<&Cursor> {
        self.open.iter().find(|scan| scan.name == name).map(|scan| &scan.cursor).ok_or(NO_ITERATOR)
    }

    /// Takes the scan of this name, to read on, and the batch that it reads into, reset as it wants. See [`Cursors::put_back`].
    pub(super) fn take(&mut self, name: Name) -> Result<(Numbered, Batch)> {
        let at = self.open.iter().position(|scan| scan.name == name).ok_or(NO_ITERATOR)?;
        let scan = self.open.swap_remove(at);
        let mut batch = std::mem::take(&mut self.batch);
        batch.reset(scan.want_keys, scan.want_values);
        batch.want_expiries(scan.want_expiries);
        Ok((scan, batch))
    }

    /// Keeps the batch, and the scan unless it is finished.
    pub(super) fn put_back(&mut self, scan: Option<Numbered>, batch: Batch) {
        self.batch = batch;
        self.open.extend(scan);
    }

    pub(super) fn close(&mut self, name: Name) {
        self.open.retain(|scan| scan.name != name);
    }

    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    pub(super) fn release_client(&mut self, client: u64) {
        self.open.retain(|scan| scan.name.client != client);
    }

    /// Takes over the scans of another store that can go on here.
    pub(super) fn adopt(&mut self, former: &mut Self, can_go_on: impl Fn(&mut Cursor) -> bool) {
        self.open = core::mem::take(&mut former.open);
        self.open.retain_mut(|scan| can_go_on(&mut scan.cursor));
        self.last_number = former.last_number;
    }

    pub(super) fn see_at_most(&mut self, last: crate::types::Sequence) {
        self.open.iter_mut().for_each(|scan| scan.cursor.see_at_most(last));
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::scan::ScanOptions;
    use crate::view::View;

    /// The story: a server had made 2^31 scans. JavaScript got the highest `i32` as the number of each later one, so none of them could be
    /// read, or closed.
    #[test]
    fn numbers_begin_again_and_pass_over_scans_that_are_open() {
        let mut cursors = Cursors { last_number: i32::MAX as u32 - 1, ..Cursors::default() };
        assert_eq!(cursors.next_number(), i32::MAX as u32);
        cursors.gave(i32::MAX as u32);
        assert_eq!(cursors.next_number(), 1);
        let view = Rc::new(View { memtables: Vec::new(), levels: Vec::new() });
        let request = ScanRequest {
            options: ScanOptions::default(),
            want_keys: true,
            want_values: true,
            want_expiries: false,
            snapshot: 0,
            batch_bytes: 0,
        };
        cursors.open(Name::from(1), Cursor::new(view, 0, 0, ScanOptions::default()), &request);
        assert_eq!(cursors.next_number(), 2);
    }
}
