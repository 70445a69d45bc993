//! Point reads, scans and cursors of a session, against the oracle's state.
//!
//! Invariant: a read fails only where the machine died in it.

use crate::change::show;
use crate::scan::{Entries, ScanError, contents};
use crate::session::{Outcome, Session};

impl Session<'_> {
    pub(crate) fn get(&mut self, key: &[u8]) -> Outcome {
        let found = self.make(|store| {
            store.find(key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
        })?;
        let found = match found {
            Ok(found) => found,
            Err(_) if self.disk.is_dead() => return Ok(()),
            Err(error) => return Err(format!("get {}: {error:?}", show(key))),
        };
        if found.as_ref() != self.model.state().get(key) {
            let short =
                |value: Option<(Vec<u8>, u64)>| value.map(|(value, sequence)| (value.len(), sequence));
            let (found, wanted) = (short(found), short(self.model.state().get(key).cloned()));
            return Err(format!("get {}: {found:?}, not {wanted:?} (bytes, sequence)", show(key)));
        }
        let (value, sequence) = found.unwrap_or_default();
        self.observed.bytes(&value);
        self.observed.number(sequence);
        Ok(())
    }

    pub(crate) fn scanned(&mut self, entries: Result<Entries, ScanError>) -> Outcome {
        match entries {
            Ok(entries) => {
                for (key, value) in entries {
                    self.observed.bytes(&key);
                    self.observed.bytes(&value);
                }
                Ok(())
            }
            Err(ScanError::Store(_)) if self.disk.is_dead() => Ok(()),
            Err(ScanError::Store(error)) => Err(format!("scan: {error}")),
            Err(ScanError::Wrong(what)) => Err(what),
        }
    }

    pub(crate) fn step_cursor(&mut self, which: usize) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let Some(cursor) = self.cursors.get_mut(which) else { return Ok(()) };
        let stepped = cursor.step(store, &self.disk);
        if matches!(stepped, Ok((_, false))) {
            self.cursors.remove(which);
        }
        self.scanned(stepped.map(|(entries, _)| entries)).map_err(|what| format!("open cursor: {what}"))
    }

    pub(crate) fn compare_all(&mut self) -> Outcome {
        let store = self.store.as_ref().ok_or("no store")?;
        let found = contents(store, &self.disk).map_err(|error| format!("reading all: {error:?}"))?;
        let differences = crate::difference::difference(self.model.state(), &found);
        differences.into_iter().next().map_or(Ok(()), Err)
    }
}
