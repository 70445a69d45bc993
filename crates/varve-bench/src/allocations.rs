//! A global allocator that counts while counting is on.
//!
//! Only Rust's allocations pass here: allocations of RocksDB in C++ do not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counted.
pub struct Counting;

fn count(bytes: usize) {
    if COUNTING.load(Relaxed) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size.saturating_sub(layout.size()));
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

/// Allocations and bytes of the whole process, background threads included, while `work` runs.
pub fn counted(work: impl FnOnce()) -> (u64, u64) {
    let before = (ALLOCATIONS.load(Relaxed), BYTES.load(Relaxed));
    COUNTING.store(true, Relaxed);
    work();
    COUNTING.store(false, Relaxed);
    (ALLOCATIONS.load(Relaxed) - before.0, BYTES.load(Relaxed) - before.1)
}
