//! What a host gives: numbered files with fixed names, some of them open.
//!
//! Invariant: a slot is opened and closed by the host only, between turns. The pool reads, writes, flushes and
//! shortens slots that are open, and asks nothing else of a host.

/// Why a host's file operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotError {
    /// Quota or disk: nothing was written. (A host may also tell this by a short count.)
    Full,
    /// The operation failed and says nothing of what happened.
    Io,
    /// The slot is not open.
    Closed,
}

/// Files of a host, numbered from 0. Offsets are bytes from the start of the file.
pub trait Slots {
    /// How many slots exist, open or not. Never shrinks.
    fn count(&self) -> u32;

    /// Whether `slot` can be used now.
    fn is_open(&self, slot: u32) -> bool;

    /// Length of the file in bytes. The pool tracks lengths itself and asks only when it cannot know.
    fn size(&self, slot: u32) -> u64;

    /// Reads at most `into.len()` bytes and answers how many; fewer only at the end of the file.
    ///
    /// # Errors
    /// See [`SlotError`].
    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError>;

    /// Writes from the front of `bytes` and answers how many bytes the host says it wrote. A count below
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
