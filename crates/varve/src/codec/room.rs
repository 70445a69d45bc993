//! Memory for data that may be long. A failed allocation ends a WebAssembly instance. A request made here is refused instead.
//!
//! Invariant: a caller that is refused has changed nothing yet, so the store can continue.

use crate::error::{Error, Result};

/// An allocation of at least this length must leave a margin.
const LONG_BYTES: usize = 256 << 10;
/// Memory that long allocations leave for short ones, which are not requested here.
const MARGIN_BYTES: usize = 1 << 20;

/// Makes room for `more` bytes. Doubles the capacity where memory allows.
#[inline]
pub(crate) fn reserve(into: &mut Vec<u8>, more: usize) -> Result<()> {
    if more <= into.capacity() - into.len() { Ok(()) } else { grow(into, more) }
}

#[cold]
#[inline(never)]
fn grow(into: &mut Vec<u8>, more: usize) -> Result<()> {
    // The size that the vector will ask for.
    let grown = into.capacity().saturating_mul(2).max(into.len() + more);
    if claim(grown).is_ok() {
        into.reserve(more);
        return Ok(());
    }
    reserve_exact(into, more)
}

/// Makes room for exactly `more` bytes.
pub(crate) fn reserve_exact(into: &mut Vec<u8>, more: usize) -> Result<()> {
    if more > into.capacity() - into.len() {
        claim(into.len() + more)?;
    }
    into.reserve_exact(more);
    Ok(())
}

/// A vector of this many zeros.
///
/// # Errors
/// [`Error::NO_MEMORY`].
pub fn zeros(bytes: usize) -> Result<Vec<u8>> {
    claim(bytes)?;
    Ok(vec![0; bytes])
}

/// A copy of `bytes`.
pub(crate) fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    claim(bytes.len())?;
    Ok(bytes.to_vec())
}

/// Refuses a request for this many bytes, in one piece or in many, if it would leave no margin.
#[inline]
pub(crate) fn claim(bytes: usize) -> Result<()> {
    if bytes < LONG_BYTES { Ok(()) } else { claim_long(bytes) }
}

#[inline(never)]
fn claim_long(bytes: usize) -> Result<()> {
    let mut claimed: Vec<u8> = Vec::new();
    let claim = claimed.try_reserve_exact(bytes.saturating_add(MARGIN_BYTES));
    // Otherwise the compiler removes the allocation, because nothing uses it.
    core::hint::black_box(&claimed);
    claim.map_err(|_| Error::NO_MEMORY)
}
