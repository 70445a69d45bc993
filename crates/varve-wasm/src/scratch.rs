//! The regions that calls share with JavaScript.
//!
//! ```text
//! scratch: bytes in                      (made by varve_scratch, else never moved)
//! input:   bytes in, of one call         (made by varve_input; the call takes them as its own)
//! out:     16 u32 cells, bytes out       0 pointer or sequence low, 1 length or sequence high, 2.. as the call defines
//! answer:  bytes out                     cells 0 and 1 name them, or where else they lie
//! ```
//!
//! All regions except the cells may be long, so allocating them may fail. Then the pointer is null, and JavaScript refuses the call.
//!
//! Invariant: JavaScript writes the scratch and the input only between calls, through the pointers that it got, and a call borrows the
//! scratch, which lies beside the open stores (`registry`), only before it returns. There are no threads.

use core::cell::{Cell, RefCell};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUT: [Cell<u32>; 16] = const { [const { Cell::new(0) }; 16] };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes a region `bytes` long and drops its old contents. Returns where it begins. Null: there is no memory, and the region is empty.
fn renew(region: &mut Vec<u8>, bytes: usize) -> *mut u8 {
    // First, so that there is room for the new contents.
    *region = Vec::new();
    *region = varve::codec::room::zeros(bytes).unwrap_or_default();
    if region.is_empty() { core::ptr::null_mut() } else { region.as_mut_ptr() }
}

/// The scratch.
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Makes it `bytes` long, at least one. Returns where it begins, or null if there is no memory.
    pub(crate) fn reserve(&mut self, bytes: usize) -> *mut u8 {
        renew(&mut self.0, bytes)
    }

    /// Its first `length` bytes, or fewer if it is shorter.
    #[inline]
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        self.0.get(..length).unwrap_or(&self.0)
    }

    /// Two adjacent slices at its start.
    #[inline]
    pub(crate) fn pair(&self, first: usize, second: usize) -> (&[u8], &[u8]) {
        let all = self.bytes(first.saturating_add(second));
        all.split_at(first.min(all.len()))
    }
}

/// Makes the input `bytes` long, at least one. Returns where it begins, or null if there is no memory.
pub(crate) fn reserve_input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| renew(input, bytes))
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

/// The address of the out cells.
pub(crate) fn out() -> *const u32 {
    OUT.with(|cells| cells.as_ptr().cast())
}

/// Writes one out cell.
#[inline]
pub(crate) fn set_out(cell: usize, value: u32) {
    OUT.with(|cells| {
        if let Some(place) = cells.get(cell) {
            place.set(value);
        }
    });
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
    fn write(at: *mut u8, bytes: &[u8]) {
        // SAFETY: `reserve` returned `at` for at least this many bytes, and no slice of the scratch is in use.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    }

    /// Run it under Miri, which checks every access.
    #[test]
    fn bytes_that_are_written_between_calls_are_read_in_the_next_one() {
        let mut scratch = Scratch::new();
        let at = scratch.reserve(8);
        write(at, b"siltfine");
        assert_eq!(scratch.pair(4, 4), (&b"silt"[..], &b"fine"[..]));
        write(at, b"sand");
        assert_eq!(scratch.bytes(8), b"sandfine");
        assert_eq!(scratch.bytes(1000), b"sandfine", "never beyond its end");
        assert_eq!(scratch.pair(6, 1000), (&b"sandfi"[..], &b"ne"[..]));
        assert_eq!(scratch.pair(usize::MAX, 1).0, b"sandfine");

        let grown = scratch.reserve(1 << 16);
        write(grown, &[7; 1 << 16]);
        assert_eq!(scratch.bytes(1 << 16), [7; 1 << 16]);

        set_out_u64(0, 0x1122_3344_5566_7788);
        set_out(16, 1);
        // SAFETY: there are 16 cells, and nothing writes to them now.
        let cells = unsafe { std::slice::from_raw_parts(out(), 16) };
        assert_eq!(cells[..2], [0x5566_7788, 0x1122_3344]);
    }
}
