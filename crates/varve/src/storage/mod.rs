//! Where bytes are stored: the contract between the engine and a storage, and one storage made of a pool of slot files.
//!
//! ```text
//! engine --Storage--> SlotPool --Slots--> a host's files (OPFS handles, real files, RAM, a simulated disk)
//! ```
//!
//! The engine uses named files ([`FileName`]). Most hosts cannot create, rename or remove a file inside one synchronous
//! turn, and no host promises that a new name survives a power cut. So a [`SlotPool`] keeps a few long-lived files, the
//! slots, and writes into the first page of each slot which files the slot contains now.
//!
//! Invariant: a storage never interprets the bytes that it stores, so it cannot distinguish a good file from a torn
//! one: the layers above check every byte they read.

#[cfg(unix)]
mod files;
mod growth;
mod memory;
mod name_map;
mod placement;
mod pool;
mod pool_files;
mod reserve;
mod slot_header;
mod slots;
mod space;
mod strays;

#[cfg(unix)]
pub use files::{FileSlots, SharedSlots};
pub use memory::MemorySlots;
pub use name_map::Place;
pub use pool::SlotPool;
pub use reserve::{MANIFEST_RESERVE_BYTES, RESERVE_BYTES};
pub use slot_header::{Claim, SLOT_HEADER_BYTES, SlotHeader};
pub use slots::{SlotError, Slots};
pub(crate) use strays::{Needed, Part, parts};

use crate::error::Result;
use crate::types::{FileName, StoreId};

/// Pieces of room on a full storage, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// The pieces that any file may use.
    pub free: Vec<u64>,
    /// The room that is set aside for a table.
    pub set_aside: u64,
}

impl Pieces {
    /// The most bytes that a table is sure to find in one piece.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest_free().max(self.set_aside)
    }

    /// Whether a table of `bytes` bytes fits no free piece, and the room that is set aside is longer than any free
    /// piece.
    #[must_use]
    pub(crate) fn only_reserve_fits(&self, bytes: u64) -> bool {
        let free = self.longest_free();
        free < bytes && free < self.set_aside
    }

    /// How many bytes each table can have in one piece if the tables have `bytes` bytes in total. It goes down to `least` if there is no
    /// room for all of them.
    #[must_use]
    pub(crate) fn for_tables(&self, bytes: u64, least: u64) -> u64 {
        let all = || self.free.iter().chain([&self.set_aside]);
        let mut piece = self.longest();
        // Each piece takes a whole number of tables; the rest of the piece stays empty.
        while piece > least && all().map(|room| room / piece * piece).sum::<u64>() < bytes {
            piece = (piece / 8 * 7).max(least);
        }
        piece
    }

    fn longest_free(&self) -> u64 {
        self.free.iter().copied().max().unwrap_or(0)
    }
}

/// Takes bytes that no needed file contains: see [`Storage::visit_strays`].
pub type StrayVisitor<'a> = dyn FnMut(Option<(FileName, u64)>, &[u8]) -> Result<()> + 'a;

/// The calls that the engine needs from the place where its files are stored.
///
/// A storage over asynchronous files takes writes at once. It refuses a read of bytes that are not in memory with
/// [`Error::Pending`](crate::error::Error::Pending), and remembers which bytes these are. The error goes up to the caller of the store,
/// who fetches the bytes and makes the same call again; they stay in memory until that call has another result. No other call returns it.
pub trait Storage {
    /// Every file found, with the number of its readable bytes. A recycled file may have more readable bytes than were
    /// written to it under its current name; the rest is then old content.
    fn list(&self) -> Vec<(FileName, u64)>;

    /// The store these files belong to from now on; files of any other store are no longer listed.
    fn adopt(&mut self, store: StoreId);

    /// Makes `file` exist. Its name becomes durable with its first [`sync`](Self::sync). `bytes_hint` is its expected
    /// length in bytes.
    ///
    /// # Errors
    /// [`Error::StorageFull`](crate::error::Error::StorageFull) when there is no room.
    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()>;

    /// Fills `into` with the bytes of `file` from `offset` on.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::error::Error::Corrupt) ("short read") when the file ends earlier;
    /// [`Error::Pending`](crate::error::Error::Pending) when the bytes have to be fetched first.
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()>;

    /// Passes the bytes that none of the `needed` files contains to `visit`, in slots whose page is damaged. Each piece begins at a page, and
    /// goes on as far as a segment may begin there. Files are given with the number of bytes that are needed. A piece behind one of them comes with the file and the
    /// number of its byte that would be there. The default passes nothing, for a storage that cannot lose a file's name alone.
    ///
    /// # Errors
    /// Those of `visit`, and [`Error::Pending`](crate::error::Error::Pending).
    fn visit_strays(&self, needed: &[(FileName, u64)], visit: &mut StrayVisitor<'_>) -> Result<()> {
        let _ = (needed, visit);
        Ok(())
    }

    /// Makes sure that `file`, a log, can be written up to `bytes`, even if the storage becomes full later. Returns the length up to which
    /// it can be written now. A storage without a limit returns `bytes`.
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
    /// [`Error::StorageFull`](crate::error::Error::StorageFull): no part of `bytes` is readable at `offset` (a table
    /// ends where it ended before). [`Error::Io`](crate::error::Error::Io): the content of the file there is unknown,
    /// and the caller must not acknowledge any write any more.
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes everything written to `file` durable.
    ///
    /// # Errors
    /// After any error it is unknown what is durable; a retry that succeeds proves nothing.
    fn sync(&mut self, file: FileName) -> Result<()>;

    /// Forgets `file`; its room may be used again at once. After a crash it may be listed again.
    ///
    /// # Errors
    /// When there is no such file.
    fn delete(&mut self, file: FileName) -> Result<()>;

    /// Writes that deleted files are gone, so that the next opening does not list them. This is not flushed, and may fail.
    fn drop_claims(&mut self) {}

    /// How much room the files take, spare ones included.
    fn bytes_on_disk(&self) -> u64;

    /// How much more can be written before the storage is full, spare files included; `None` when this is unknown.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// How much room is set aside for a table, once the storage has refused to give more room; 0 when that room has become too small.
    /// `None` while no room was refused.
    fn room_when_full(&self) -> Option<u64> {
        None
    }

    /// The pieces of room that tables can use, once the storage has refused to give more room; `None` before that.
    fn pieces_when_full(&self) -> Option<Pieces> {
        None
    }

    /// How many files the storage can contain at most in its current state, even if there is more room.
    fn places(&self) -> u64 {
        u64::MAX
    }

    /// Releases the room of `file` beyond its first `bytes` bytes, which the caller will not read again. Other files may use that room;
    /// [`shrink`](Self::shrink) returns it to the host.
    fn trim(&mut self, file: FileName, bytes: u64) {
        let _ = (file, bytes);
    }

    /// Returns spare room to the host until at most `keep_bytes` of it are left; the room that is set aside for deletes
    /// stays.
    ///
    /// # Errors
    /// [`Error::Io`](crate::error::Error::Io) when a spare file cannot be cut.
    fn shrink(&mut self, keep_bytes: u64) -> Result<()> {
        let _ = keep_bytes;
        Ok(())
    }

    /// Whether the bytes of a file are overwritten when it is deleted, as far as they can still be reached. A store wants this while it has
    /// files from before it was encrypted. The default does nothing, for a storage that gives all bytes of a deleted file back.
    fn set_wiping(&mut self, is_wiping: bool) {
        let _ = is_wiping;
    }

    /// Overwrites what files have left that were deleted before. The default does nothing.
    fn wipe_unused(&mut self) {}

    /// Whether the room set aside for deletes on a full storage is complete. A storage without such room returns
    /// `true`.
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

    /// Like [`create`](Self::create), but uses the room set aside.
    ///
    /// # Errors
    /// [`Error::StorageFull`](crate::error::Error::StorageFull) when it is used up, or there is none.
    fn create_from_reserve(&mut self, file: FileName) -> Result<()> {
        let _ = file;
        Err(crate::error::Error::StorageFull)
    }
}
