//! The data keys of an encrypted store: which ones are in use, and how they change.
//!
//! New files are encrypted under the newest key. Files under older ones, and files that are not encrypted, stay as they are until a
//! flush or a merge replaces them; jobs take such tables when nothing is more urgent. So a change of keys can be interrupted at any
//! time: the next opening goes on.
//!
//! Invariant: the keyring has the key of every file that may still be read.

use std::rc::Weak;

use super::Store;
use crate::codec::cipher::{Encryption, KeyNumber};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::types::FileName;
use crate::wal::{SEGMENT_HEADER_BYTES, SegmentHeader};

impl<S: Storage> Store<S> {
    /// The wrapped data keys, as the manifest has them; empty for a store that is not encrypted.
    #[must_use]
    pub fn key_slots(&self) -> &[u8] {
        self.manifest.key_slots()
    }

    /// The numbers of the data keys that files need, in ascending order; 0 stands for files that are not encrypted.
    ///
    /// # Errors
    /// The error of a read; `Pending` when bytes are missing.
    pub fn keys_in_use(&self) -> Result<Vec<KeyNumber>> {
        let keyring = self.manifest.keyring();
        let mut found = vec![keyring.current()];
        if self.jobs.is_any_running() {
            // Its outputs are under the key that was the newest when it began.
            found.extend(keyring.numbers());
        }
        for (_, table) in self.version.tables() {
            found.push(table.key);
        }
        // Scans and snapshots may still read tables that were replaced (seed 1795824460000213).
        for view in self.obsolete.views().iter().filter_map(Weak::upgrade) {
            for level in &view.levels {
                found.extend(level.iter().map(|table| table.meta.key));
            }
        }
        for &segment in &self.segments {
            found.extend(self.key_of_segment(segment)?);
        }
        for kept in &self.history.kept {
            found.extend(self.key_of_segment(kept.id)?);
        }
        // In order without a sort, which is 10 KB of wasm. No key has a higher number than the current one.
        Ok((0..=keyring.current()).filter(|key| found.contains(key)).collect())
    }

    /// The last segment of the history that is not under the newest key: history does not keep old keys in use. 0 for none.
    pub(super) fn old_history(&self) -> u64 {
        let keyring = self.manifest.keyring();
        if !self.wipes && keyring.numbers().count() < 2 {
            return 0;
        }
        let is_old = |segment: &u64| {
            // A segment that cannot be read now is looked at again by the next edit.
            self.key_of_segment(*segment).is_ok_and(|key| key != Some(keyring.current()))
        };
        self.history.kept.iter().map(|kept| kept.id).filter(is_old).max().unwrap_or(0)
    }

    /// Whether an encrypted store may have files that are not encrypted.
    pub(super) fn has_plain_files(&self) -> bool {
        let mut tables = self.version.tables();
        // The oldest of the kept segments has the oldest key (seed 1795846014000182).
        let kept = self.history.kept.iter().take(1).map(|kept| kept.id);
        let mut segments = kept.chain(self.segments.iter().copied());
        self.manifest.keyring().current() > 0
            && (tables.any(|(_, table)| table.key == 0)
                || segments.any(|segment| !matches!(self.key_of_segment(segment), Ok(Some(1..)))))
    }

    /// `None` for a segment that was created and never written to, or is damaged: nothing of it can be read.
    fn key_of_segment(&self, segment: u64) -> Result<Option<KeyNumber>> {
        for memtable in self.frozen.iter().map(|frozen| &frozen.memtable).chain([&self.active]) {
            let header = *memtable.borrow().header();
            if header.segment == segment {
                return Ok(Some(header.key));
            }
        }
        for span in self.history.kept.iter().filter_map(|kept| kept.span) {
            if span.header.segment == segment {
                return Ok(Some(span.header.key));
            }
        }
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match self.storage.read(FileName::wal(segment), 0, &mut bytes) {
            Ok(()) => Ok(SegmentHeader::decode(&bytes).ok().map(|header| header.key)),
            Err(Error::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes the data keys and what wraps them: new files are encrypted under the newest. Encrypts a store that was not encrypted.
    /// When this returns, the manifest, both files of it, has the new keys and only these. Staged writes are committed first.
    ///
    /// # Errors
    /// `InvalidArgument` when a key is missing that [`Store::keys_in_use`] names, or there is none; `StorageFull` and `Io` of the
    /// storage. After every error but `Io` the keys are as before.
    pub fn change_keys(&mut self, encryption: Encryption) -> Result<()> {
        self.check_writable()?;
        let keyring = &encryption.keyring;
        let fits = self.keys_in_use()?.iter().all(|&key| keyring.has(key));
        if keyring.current() == 0 || keyring.current() < self.manifest.keyring().current() || !fits {
            return Err(Error::InvalidArgument("A data key is missing that files of the store still need."));
        }
        let is_new = keyring.current() != self.manifest.keyring().current();
        self.wipes |= self.manifest.keyring().current() == 0;
        if is_new {
            self.log_staged(false)?;
            // These records are in the log, so they must not be rolled back, also if there is no room for the manifest.
            self.promise();
        }
        if self.wipes {
            self.storage.set_wiping(true);
            self.storage.wipe_unused();
        }
        let changed = self.manifest.change_keys(&mut self.storage, &self.version, encryption);
        changed.map_err(|error| self.poison_unless_lack(error))?;
        if is_new {
            self.freeze();
            // Only a header and seals: a link of the chain with nothing to flush.
            self.frozen.pop_back_if(|frozen| frozen.memtable.borrow().is_empty());
            self.refresh_view();
            self.jobs.look_again();
        }
        Ok(())
    }
}
