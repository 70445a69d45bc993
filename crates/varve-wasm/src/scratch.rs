//! The two regions that raw calls share with JavaScript.
//!
//! ```text
//! scratch: bytes in                      (grown by varve_scratch, else never moved)
//! out:     16 u32 cells, bytes out       0 pointer or sequence low, 1 length or sequence high, 2.. as the call says
//! ```
//!
//! Invariant: JavaScript writes the scratch only between calls, and a call reads it only before it returns, so no
//! borrow outlives a call. There are no threads.

use core::cell::UnsafeCell;

struct Regions {
    scratch: UnsafeCell<Vec<u8>>,
    out: UnsafeCell<[u32; 16]>,
}

// SAFETY: a WebAssembly instance without shared memory has one thread.
unsafe impl Sync for Regions {}

static REGIONS: Regions = Regions { scratch: UnsafeCell::new(Vec::new()), out: UnsafeCell::new([0; 16]) };

/// Makes the scratch hold at least `bytes`; answers where it begins.
pub(crate) fn reserve(bytes: usize) -> *const u8 {
    // SAFETY: one thread, and no call holds a slice of the scratch while this one runs.
    let scratch = unsafe { &mut *REGIONS.scratch.get() };
    if scratch.len() < bytes {
        *scratch = Vec::new();
        *scratch = vec![0; bytes];
    }
    scratch.as_ptr()
}

/// The first `length` bytes of the scratch, or fewer where it is shorter.
pub(crate) fn bytes<'a>(length: usize) -> &'a [u8] {
    // SAFETY: one thread; JavaScript writes between calls only, and `reserve` runs in a call of its own.
    let scratch = unsafe { &*REGIONS.scratch.get() };
    scratch.get(..length).unwrap_or(scratch)
}

/// Two neighbours at the start of the scratch.
pub(crate) fn pair<'a>(first: usize, second: usize) -> (&'a [u8], &'a [u8]) {
    let all = bytes(first.saturating_add(second));
    all.split_at(first.min(all.len()))
}

/// Where the out cells are.
pub(crate) fn out() -> *const u32 {
    REGIONS.out.get().cast()
}

/// Writes one out cell.
pub(crate) fn set_out(cell: usize, value: u32) {
    // SAFETY: one thread, and no reference to the cells is ever handed out.
    let cells = unsafe { &mut *REGIONS.out.get() };
    if let Some(place) = cells.get_mut(cell) {
        *place = value;
    }
}

/// Names bytes in out cells 0 (pointer) and 1 (length).
pub(crate) fn set_out_bytes(bytes: &[u8]) {
    set_out(0, bytes.as_ptr() as u32);
    set_out(1, bytes.len() as u32);
}

/// Writes a u64 into two cells, low half first.
pub(crate) fn set_out_u64(cell: usize, value: u64) {
    set_out(cell, value as u32);
    set_out(cell + 1, (value >> 32) as u32);
}
