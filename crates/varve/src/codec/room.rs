//! Memory for what may be long. An allocation that fails ends a WebAssembly instance; what is asked for here is refused instead.
//!
//! Invariant: whoever is refused has changed nothing yet, so that the store goes on.

use crate::error::{Error, Result};

/// What is at least as long leaves a margin.
const LONG_BYTES: usize = 256 << 10;
/// Memory that long things leave for all that is short, which is not asked for here.
const MARGIN_BYTES: usize = 1 << 20;

/// Makes room for `more` bytes, twice what there was where memory allows.
#[inline]
pub(crate) fn reserve(into: &mut Vec<u8>, more: usize) -> Result<()> {
    if more <= into.capacity() - into.len() { Ok(()) } else { grow(into, more) }
}

#[cold]
#[inline(never)]
fn grow(into: &mut Vec<u8>, more: usize) -> Result<()> {
    // What the vector will ask for.
    let grown = into.capacity().saturating_mul(2).max(into.len() + more);
    if claim(grown).is_ok() {
        into.reserve(more);
        return Ok(());
    }
    reserve_exact(into, more)
}

/// Makes room for `more` bytes and no others.
pub(crate) fn reserve_exact(into: &mut Vec<u8>, more: usize) -> Result<()> {
    if more > into.capacity() - into.len() {
        claim(into.len() + more)?;
    }
    into.reserve_exact(more);
    Ok(())
}

/// So many zeros.
///
/// # Errors
/// [`Error::NO_MEMORY`].
pub fn zeros(bytes: usize) -> Result<Vec<u8>> {
    claim(bytes)?;
    Ok(vec![0; bytes])
}

/// Refuses what needs so many bytes, in one piece or in many, where that would leave no margin.
#[inline]
pub(crate) fn claim(bytes: usize) -> Result<()> {
    if bytes < LONG_BYTES { Ok(()) } else { claim_long(bytes) }
}

#[inline(never)]
fn claim_long(bytes: usize) -> Result<()> {
    let mut claimed: Vec<u8> = Vec::new();
    let claim = claimed.try_reserve_exact(bytes.saturating_add(MARGIN_BYTES));
    // Else the compiler sees that nothing uses it.
    core::hint::black_box(&claimed);
    claim.map_err(|_| Error::NO_MEMORY)
}
