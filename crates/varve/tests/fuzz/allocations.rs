//! Counts the bytes that a thread has allocated: the current number, the maximum, and all together.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static SUM: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    MOST.set(MOST.get().max(live));
    SUM.set(SUM.get() + bytes.max(0) as usize);
}

// SAFETY: every call goes to the system's allocator unchanged; the counts belong to one thread and need no
// memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs something and returns the maximum number of bytes that it had allocated at a time.
pub fn most_allocated(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    MOST.set(before);
    run();
    (MOST.get() - before).max(0) as usize
}

/// Runs something and returns the number of bytes that it allocated, freed or not.
#[allow(dead_code, reason = "not for fuzz targets")]
pub fn allocated(run: impl FnOnce()) -> usize {
    let before = SUM.get();
    run();
    SUM.get() - before
}
