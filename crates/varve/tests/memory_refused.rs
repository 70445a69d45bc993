//! When no memory is left, requests are refused, nothing is half done, and the store goes on.
//!
//! An allocator stands in for the 4 GiB of WebAssembly: on a thread that enables it, it refuses long allocations. An allocation that
//! was not requested in a fallible way first ends the process, as it ends an instance there.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use varve::frame::{header, run};
use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{MemorySlots, SlotPool};
use varve::{Durability, Error, Host, Options, Store};

thread_local! {
    static MOST: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Limited;

// SAFETY: the system's allocator does the work; a refused allocation is not touched.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as our caller promises.
        if layout.size() > MOST.get() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && size > MOST.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller promises.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// Runs something for which no allocation gets more than `most` bytes.
fn with_at_most<R>(most: usize, run: impl FnOnce() -> R) -> R {
    MOST.set(most);
    let done = run();
    MOST.set(usize::MAX);
    done
}

type MemoryStore = Store<SlotPool<MemorySlots>>;

const MIB: usize = 1 << 20;

fn open(slots: MemorySlots, entropy: u64) -> MemoryStore {
    let host = Host { now_ms: 0, entropy, store_id: [8; 16] };
    let pool = SlotPool::open(slots).expect("a pool");
    Store::open(pool, Options::default(), host).expect("opens").0
}

fn op(number: u32, operation: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut op = number.to_le_bytes().to_vec();
    op.extend_from_slice(&[operation, 2, 0, 0]);
    op.extend_from_slice(&(key.len() as u32).to_le_bytes());
    op.extend_from_slice(&(value.len() as u32).to_le_bytes());
    op.extend_from_slice(key);
    op.extend_from_slice(value);
    op.resize(op.len().next_multiple_of(4), 0);
    op
}

/// The status of the only answer, and all of the response.
fn send(store: &mut MemoryStore, op: &[u8], out: &mut Vec<u8>) -> u8 {
    let frame = [&header(0, 0, 1)[..], op].concat();
    run(store, &frame, out).expect("a well-formed frame runs");
    out[8 + 4]
}

/// The story: before a write was refused on a full storage, the waiting data had to be flushed; there was no memory for that, and this
/// poisoned the store.
#[test]
fn a_full_storage_without_memory_for_a_flush_refuses_the_write_and_goes_on() {
    let mut store = open(MemorySlots::new(20), 1);
    let mut count = 0_u32;
    let mut set = |store: &mut MemoryStore| {
        let set = store.set(&count.to_be_bytes(), &[count as u8; 60_000]);
        set.and_then(|_| store.commit(Durability::Relaxed)).map(|_| count += 1)
    };
    while store.stats().frozen == 0 {
        set(&mut store).expect("there is room");
    }
    let slots = store.storage_mut().device_mut();
    let bytes = slots.bytes();
    slots.set_limit(Some(bytes));
    let refused = with_at_most(MIB, || (0..100).find_map(|_| set(&mut store).err()));
    assert_eq!(refused, Some(Error::StorageFull));
    assert!(!store.is_poisoned());
    for n in 0..count {
        assert_eq!(store.has(&n.to_be_bytes()), Ok(true), "{n}");
    }
    with_at_most(MIB, || {
        store.delete(&0_u32.to_be_bytes()).and_then(|_| store.commit(Durability::Strict)).expect("accepted");
    });
    store.storage_mut().device_mut().set_limit(None);
    store.flush().expect("with memory again");
}

#[test]
fn an_answer_for_which_a_vector_would_grow_to_twice_its_length_takes_what_it_needs() {
    let mut store = open(MemorySlots::new(8), 1);
    store.set(b"long", &vec![7; 8 * MIB]).expect("staged");
    let mut out = Vec::with_capacity(8 * MIB);
    assert_eq!(with_at_most(12 * MIB, || send(&mut store, &op(1, 1, b"long", b""), &mut out)), 0);
    assert_eq!(out.len(), 8 + 16 + 8 * MIB);
    let mut out = Vec::new();
    assert_eq!(with_at_most(4 * MIB, || send(&mut store, &op(1, 1, b"long", b""), &mut out)), 2);
}

/// The story: a scan had moved on although there was no memory for the answer, so the next batch left out the entries of that answer.
#[test]
fn a_scan_whose_batch_finds_no_memory_is_over_and_leaves_nothing_out() {
    let mut store = open(MemorySlots::new(8), 1);
    for n in 0..100_u32 {
        store.set(&n.to_be_bytes(), &[n as u8; 60_000]).expect("staged");
    }
    let batch_bytes = (MIB as u32).to_le_bytes();
    let scan = [&[128 | 4 | 2, 0, 0, 0, 255, 255, 255, 255][..], &batch_bytes, &[0; 8]].concat();
    let next = op(1, 8, &[9, 0, 0, 0], &batch_bytes);
    assert_eq!(send(&mut store, &op(1, 7, &[9, 0, 0, 0], &scan), &mut Vec::new()), 0);
    assert_eq!(send(&mut store, &next, &mut Vec::new()), 0);
    let mut out = Vec::new();
    assert_eq!(with_at_most(MIB, || send(&mut store, &next, &mut out)), 2);
    assert!(out.windows(9).any(|bytes| bytes == b"no memory"));
    assert_eq!(store.stats().cursors, 0);
    assert_eq!(send(&mut store, &next, &mut out), 2, "it does not go on behind what was lost");
}

/// The story: a scan in reverse took the memory for a long value without asking for it, and where there was none, the instance ended.
#[test]
fn a_scan_in_reverse_asks_for_the_memory_of_a_long_value() {
    let mut store = open(MemorySlots::new(8), 1);
    store.set(b"long", &vec![7; 8 * MIB]).expect("staged");
    for reverse in [false, true] {
        let mut scan = store.scan(ScanOptions { reverse, ..ScanOptions::default() }).expect("opened");
        let mut batch = Batch::new(true, true);
        let refused = with_at_most(4 * MIB, || store.scan_next(&mut scan, MIB, &mut batch));
        assert_eq!(refused, Err(Error::NO_MEMORY));
        batch.reset(true, true);
        assert_eq!(store.scan_next(&mut scan, MIB, &mut batch), Ok(Progress::Finished));
        assert_eq!(batch.count(), 1, "it stayed where it was");
    }
}
