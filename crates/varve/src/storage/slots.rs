//! The files that a host provides: numbered files with fixed names, some of them open.
//!
//! Invariant: only the host opens and closes slots, between turns. The pool reads, writes, flushes and shortens open
//! slots, and needs nothing else from a host.

/// Why a host's file operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotError {
    /// Quota or disk: nothing was written. (A host may also report this by a short count.)
    Full,
    /// The operation failed, and it is unknown what was done.
    Io,
    /// The slot is not open.
    Closed,
    /// The bytes are not here yet (reads only). The host fetches them, and makes the call on the store again.
    Pending,
}

/// Files of a host, numbered from 0. Offsets are bytes from the start of the file.
pub trait Slots {
    /// How many slots exist, open or not. Never shrinks.
    fn count(&self) -> u32;

    /// Whether `slot` can be used now.
    fn is_open(&self, slot: u32) -> bool;

    /// Length of the file in bytes. The pool tracks lengths itself and asks only when it cannot know.
    fn size(&self, slot: u32) -> u64;

    /// Reads at most `into.len()` bytes and returns how many it read; fewer only at the end of the file.
    ///
    /// # Errors
    /// See [`SlotError`].
    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError>;

    /// Writes from the front of `bytes` and returns how many bytes the host reports as written. A count below
    /// `bytes.len()` means that there was no room for the rest; the count itself may be wrong (Firefox).
    ///
    /// # Errors
    /// See [`SlotError`].
    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError>;

    /// Makes everything written to `slot` durable.
    ///
    /// # Errors
    /// See [`SlotError`].
    fn flush(&mut self, slot: u32) -> Result<(), SlotError>;

    /// Cuts the file to `bytes`.
    ///
    /// # Errors
    /// See [`SlotError`].
    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError>;
}
