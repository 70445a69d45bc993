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

#[cfg(test)]
mod tests {
    use super::*;

    /// What JavaScript does between calls: it writes through the pointer that it was given.
    fn write(at: *const u8, bytes: &[u8]) {
        // SAFETY: `reserve` answered `at` for at least this many bytes, and no slice of the scratch is in use.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast_mut(), bytes.len()) };
    }

    /// One test, for the regions are one: to be run under Miri, which sees every access.
    #[test]
    fn what_is_written_between_calls_is_read_in_the_next_one() {
        let at = reserve(8);
        write(at, b"siltfine");
        assert_eq!(pair(4, 4), (&b"silt"[..], &b"fine"[..]));
        assert_eq!(reserve(4), at, "it moves only to grow");
        write(at, b"sand");
        assert_eq!(bytes(8), b"sandfine");
        assert_eq!(bytes(1000), b"sandfine", "never beyond its end");
        assert_eq!(pair(6, 1000), (&b"sandfi"[..], &b"ne"[..]));
        assert_eq!(pair(usize::MAX, 1).0, b"sandfine");

        let grown = reserve(1 << 16);
        write(grown, &[7; 1 << 16]);
        assert_eq!(bytes(1 << 16), [7; 1 << 16]);

        set_out_u64(0, 0x1122_3344_5566_7788);
        set_out(16, 1);
        // SAFETY: the cells are 16, and nobody writes them now.
        let cells = unsafe { std::slice::from_raw_parts(out(), 16) };
        assert_eq!(cells[..2], [0x5566_7788, 0x1122_3344]);
    }
}
