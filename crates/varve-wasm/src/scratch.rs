//! The regions that calls share with JavaScript.
//!
//! ```text
//! scratch: bytes in                      (made by varve_scratch, else never moved)
//! input:   bytes in, of one call         (made by varve_input; the call takes them as its own)
//! out:     16 u32 cells, bytes out       0 pointer or sequence low, 1 length or sequence high, 2.. as the call says
//! answer:  bytes out                     cells 0 and 1 name them, or where else they lie
//! ```
//!
//! All regions except the cells may be long, so allocating them may fail. Then the pointer is null, and JavaScript refuses the call.
//!
//! Invariant: JavaScript writes the scratch only between calls, and a call reads it only before it returns, so no
//! borrow outlives a call. There are no threads.

use core::cell::{RefCell, UnsafeCell};

struct Regions {
    scratch: UnsafeCell<Vec<u8>>,
    out: UnsafeCell<[u32; 16]>,
}

// SAFETY: a WebAssembly instance without shared memory has one thread.
unsafe impl Sync for Regions {}

static REGIONS: Regions = Regions { scratch: UnsafeCell::new(Vec::new()), out: UnsafeCell::new([0; 16]) };

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A vector of zeros; empty if there is no memory for them.
fn zeros(bytes: usize) -> Vec<u8> {
    varve::codec::room::zeros(bytes).unwrap_or_default()
}

/// The address of the first byte; null for no bytes.
fn start(bytes: &[u8]) -> *const u8 {
    if bytes.is_empty() { core::ptr::null() } else { bytes.as_ptr() }
}

/// Makes the scratch `bytes` long, at least one, and drops its old contents. Returns where it begins. Null: there is no memory, and no
/// scratch.
pub(crate) fn reserve(bytes: usize) -> *const u8 {
    // SAFETY: one thread, and no other call has a slice of the scratch while this one runs.
    let scratch = unsafe { &mut *REGIONS.scratch.get() };
    *scratch = Vec::new();
    *scratch = zeros(bytes);
    start(scratch)
}

/// Makes the input `bytes` long, at least one. Returns where it begins, or null if there is no memory.
pub(crate) fn reserve_input(bytes: usize) -> *const u8 {
    INPUT.with_borrow_mut(|input| {
        *input = zeros(bytes);
        start(input)
    })
}

/// Takes the input: the caller owns it.
pub(crate) fn take_input() -> Vec<u8> {
    INPUT.take()
}

/// Keeps bytes for JavaScript to read, and puts their address and length in the out cells.
pub(crate) fn answer(bytes: Vec<u8>) {
    set_out_bytes(&bytes);
    ANSWER.set(bytes);
}

/// Takes the bytes that were kept, to overwrite them.
pub(crate) fn take_answer() -> Vec<u8> {
    let mut answer = ANSWER.take();
    answer.clear();
    answer
}

/// The first `length` bytes of the scratch, or fewer if it is shorter.
pub(crate) fn bytes<'a>(length: usize) -> &'a [u8] {
    // SAFETY: one thread; JavaScript writes between calls only, and `reserve` runs in a call of its own.
    let scratch = unsafe { &*REGIONS.scratch.get() };
    scratch.get(..length).unwrap_or(scratch)
}

/// Two adjacent slices at the start of the scratch.
pub(crate) fn pair<'a>(first: usize, second: usize) -> (&'a [u8], &'a [u8]) {
    let all = bytes(first.saturating_add(second));
    all.split_at(first.min(all.len()))
}

/// The address of the out cells.
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

/// Puts the address of bytes in out cell 0 (pointer) and their length in cell 1.
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

    /// Does what JavaScript does between calls: writes through the pointer that it got.
    fn write(at: *const u8, bytes: &[u8]) {
        // SAFETY: `reserve` returned `at` for at least this many bytes, and no slice of the scratch is in use.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast_mut(), bytes.len()) };
    }

    /// One test, because the regions are global. Run it under Miri, which checks every access.
    #[test]
    fn what_is_written_between_calls_is_read_in_the_next_one() {
        let at = reserve(8);
        write(at, b"siltfine");
        assert_eq!(pair(4, 4), (&b"silt"[..], &b"fine"[..]));
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
        // SAFETY: there are 16 cells, and nothing writes to them now.
        let cells = unsafe { std::slice::from_raw_parts(out(), 16) };
        assert_eq!(cells[..2], [0x5566_7788, 0x1122_3344]);
    }
}
