//! Where bytes live: what the engine asks of a storage, and one storage made of a pool of slot files.
//!
//! ```text
//! engine --Storage--> SlotPool --Slots--> a host's files (OPFS handles, real files, RAM, a simulated disk)
//! ```
//!
//! The engine speaks of named files ([`FileName`]). Most hosts cannot create, rename or remove a file inside one
//! synchronous turn, and none promises that a new name survives a power cut; so a [`SlotPool`] keeps a few
//! long-lived files, the slots, and writes into the first page of each what it holds at the moment.
//!
//! Invariant: a storage keeps no meaning of its own. It never interprets what it holds, so it cannot tell a good
//! file from a torn one: the layers above check every byte they read.

mod growth;
mod memory;
mod name_map;
mod pool;
mod pool_files;
mod reserve;
mod slot_header;
mod slots;
mod space;

pub use memory::MemorySlots;
pub use name_map::Place;
pub use pool::SlotPool;
pub use reserve::{MANIFEST_RESERVE_BYTES, RESERVE_BYTES};
pub use slot_header::{Claim, SLOT_HEADER_BYTES, SlotHeader};
pub use slots::{SlotError, Slots};

use crate::error::Result;
use crate::types::{FileName, StoreId};

/// Whether the bytes of a read are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// They were copied.
    Ready,
    /// An asynchronous host has yet to fetch them; run the read again when it has.
    Pending,
}

/// Pieces of room on a full storage, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// Those that anything may have.
    pub free: Vec<u64>,
    /// What is set aside for a table.
    pub set_aside: u64,
}

impl Pieces {
    /// The most bytes that a table is sure to find in one piece.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest_free().max(self.set_aside)
    }

    /// Whether a table of so many bytes has more room in what is set aside than anywhere.
    #[must_use]
    pub fn only_reserve_fits(&self, bytes: u64) -> bool {
        let free = self.longest_free();
        free < bytes && free < self.set_aside
    }

    /// How many bytes each table finds in one piece where tables of `bytes` in all are written; as few as `least`, where there is no room
    /// for all of them.
    #[must_use]
    pub fn for_tables(&self, bytes: u64, least: u64) -> u64 {
        let all = || self.free.iter().chain([&self.set_aside]);
        let mut piece = self.longest();
        // Each piece takes some tables, and what they leave of it nothing.
        while piece > least && all().map(|room| room / piece * piece).sum::<u64>() < bytes {
            piece = (piece / 8 * 7).max(least);
        }
        piece
    }

    fn longest_free(&self) -> u64 {
        self.free.iter().copied().max().unwrap_or(0)
    }
}

/// What the engine asks of the place its files live in.
///
/// A synchronous host answers every call at once; an asynchronous one may answer [`Fetch::Pending`] to a read.
pub trait Storage {
    /// Every file found, with the number of its readable bytes. A recycled file may read longer than what was
    /// written to it under its present name, and the rest is then whatever it held before.
    fn list(&self) -> Vec<(FileName, u64)>;

    /// The store these files belong to from now on; files of any other store are no longer listed.
    fn adopt(&mut self, store: StoreId);

    /// Makes `file` exist. Its name becomes durable with its first [`sync`](Self::sync). `bytes_hint` is how long it
    /// will be, as far as is known.
    ///
    /// # Errors
    /// [`Error::StorageFull`](crate::error::Error::StorageFull) when there is no room.
    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()>;

    /// Fills `into` with the bytes of `file` from `offset` on.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::error::Error::Corrupt) ("short read") when the file ends before.
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<Fetch>;

    /// Makes sure that `file`, a log, can be written up to `bytes`, however full the storage becomes. Answers up to where it can be
    /// written now. A storage that has no end says so of all that is asked.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn make_sure(&mut self, file: FileName, bytes: u64) -> Result<u64> {
        let _ = file;
        Ok(bytes)
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// [`Error::StorageFull`](crate::error::Error::StorageFull): nothing of `bytes` is readable at `offset` (of a
    /// table: it ends where it ended before). [`Error::Io`](crate::error::Error::Io): what the file holds there is
    /// unknown, and the caller must not acknowledge anything any more.
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes all that was written to `file` durable.
    ///
    /// # Errors
    /// After any error it is unknown what is durable; retrying proves nothing.
    fn sync(&mut self, file: FileName) -> Result<()>;

    /// Forgets `file`; its room may be used again at once. After a crash it may be listed again.
    ///
    /// # Errors
    /// When there is no such file.
    fn delete(&mut self, file: FileName) -> Result<()>;

    /// How much room the files take, spare ones included.
    fn bytes_on_disk(&self) -> u64;

    /// How much more can be written before the storage is full, spare files included; `None` where nobody knows.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// How much is set aside for a table, once the storage has refused to give more room, and 0 when that has become short; `None`
    /// before that.
    fn room_when_full(&self) -> Option<u64> {
        None
    }

    /// The pieces of room that tables can have, once the storage has refused to give more room.
    fn pieces_when_full(&self) -> Option<Pieces> {
        None
    }

    /// How many files it can hold at most as it is now, however much room there is.
    fn places(&self) -> u64 {
        u64::MAX
    }

    /// Lets go of what `file` has beyond its first `bytes` bytes, which the caller will not read again. Other files may go there;
    /// [`shrink`](Self::shrink) gives it back.
    fn trim(&mut self, file: FileName, bytes: u64) {
        let _ = (file, bytes);
    }

    /// Gives back spare room until at most `keep_bytes` of it are left; what is set aside for deletes stays.
    ///
    /// # Errors
    /// [`Error::Io`](crate::error::Error::Io) when a spare file cannot be cut.
    fn shrink(&mut self, keep_bytes: u64) -> Result<()> {
        let _ = keep_bytes;
        Ok(())
    }

    /// Whether the room set aside for deletes on a full storage is complete. A storage without one says yes.
    fn reserve_intact(&self) -> bool {
        true
    }

    /// Completes the room set aside for deletes.
    ///
    /// # Errors
    /// [`Error::StorageFull`](crate::error::Error::StorageFull) when there is no room for it now.
    fn ensure_reserve(&mut self) -> Result<()> {
        Ok(())
    }

    /// Like [`create`](Self::create), out of the room set aside.
    ///
    /// # Errors
    /// [`Error::StorageFull`](crate::error::Error::StorageFull) when it is used up, or there is none.
    fn create_from_reserve(&mut self, file: FileName) -> Result<()> {
        let _ = file;
        Err(crate::error::Error::StorageFull)
    }
}
