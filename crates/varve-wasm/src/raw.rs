//! The raw exports: points, writes, commits, frames.
//!
//! Keys and values come through the scratch, results go through the out cells. Each export documents what is where, and
//! wasm-bindgen copies that to its declarations.
//!
//! Invariants: a pointer that an export returns is valid until the next call on the same store. A write that is staged here has its
//! room in the log: no commit is refused for lack of room.

use std::rc::Rc;

use varve::error::Error;
use varve::frame;
use varve::options::Durability;
use varve::store::Entry;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::registry::{self, Open, raw, with_bytes};
use crate::scratch;

/// Makes the scratch `bytes` long. Returns where it begins. Null: there is no memory for that many bytes, and no scratch.
#[wasm_bindgen]
pub fn varve_scratch(bytes: usize) -> *const u8 {
    registry::scratch(|scratch| scratch.reserve(bytes))
}

/// Makes room for the input of one call. Returns where it begins, or null.
#[wasm_bindgen]
pub fn varve_input(bytes: usize) -> *const u8 {
    scratch::reserve_input(bytes)
}

/// Frees the last result, which was long.
#[wasm_bindgen]
pub fn varve_release_answer() {
    drop(scratch::take_answer());
}

/// The address of the 16 out cells.
#[wasm_bindgen]
pub fn varve_out() -> *const u32 {
    scratch::out()
}

/// Sets the time of a store: milliseconds since 1970.
#[wasm_bindgen]
pub fn varve_now(h: u32, ms: f64) -> i32 {
    raw(h, |open| {
        open.store.set_now(ms as u64);
        Ok(0)
    })
}

/// Stages a set of the key and the value in the scratch. Returns how many bytes are staged; its sequence is in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_set(h: u32, key: usize, value: usize) -> i32 {
    with_bytes(h, |open, scratch| {
        let (key, value) = scratch.pair(key, value);
        let sequence = open.store.set(key, value)?;
        Ok(staged(open, sequence))
    })
}

/// Stages a delete. Returns the same as `varve_set`.
#[wasm_bindgen]
pub fn varve_delete(h: u32, key: usize) -> i32 {
    with_bytes(h, |open, scratch| {
        let sequence = open.store.delete(scratch.bytes(key))?;
        Ok(staged(open, sequence))
    })
}

/// Stages the removal of a range; an empty end means the end of the store. Returns the same as `varve_set`.
#[wasm_bindgen]
pub fn varve_delete_range(h: u32, start: usize, end: usize) -> i32 {
    with_bytes(h, |open, scratch| {
        let (start, end) = scratch.pair(start, end);
        // Encoded keys never begin with 0xff.
        let sequence = open.store.delete_range(start, if end.is_empty() { &[0xff] } else { end })?;
        Ok(staged(open, sequence))
    })
}

/// Stages the items of a batch: all of them or, on an error, none. `snapshot` is the one that its transaction read. Returns the same as
/// `varve_set`. For a conflict, the cells have its key (0 and 1) and the sequence found (2 and 3).
#[wasm_bindgen]
pub fn varve_batch(h: u32, length: usize, snapshot: u32) -> i32 {
    with_bytes(h, |open, bytes| {
        let batch = frame::parse_batch(bytes.bytes(length), open.store.clock())?;
        let checked = batch.check(&open.store, snapshot);
        if let Err(Error::Conflict(conflict)) = &checked {
            scratch::answer(conflict.key.clone());
            scratch::set_out_u64(2, conflict.found);
        }
        checked?;
        let sequence = open.store.stage(&batch.ops)?;
        Ok(staged(open, sequence))
    })
}

#[inline]
fn staged(open: &Open, sequence: u64) -> u32 {
    scratch::set_out_u64(0, sequence);
    open.store.pending_bytes() as u32
}

/// Finds a value. Returns 1, with pointer and length in cells 0 and 1, or 0.
#[wasm_bindgen]
pub fn varve_get(h: u32, key: usize) -> i32 {
    with_bytes(h, |open, scratch| found(open, 0, scratch.bytes(key), |_| {}))
}

/// Whether a key exists.
#[wasm_bindgen]
pub fn varve_has(h: u32, key: usize) -> i32 {
    with_bytes(h, |open, scratch| Ok(u32::from(open.store.has(scratch.bytes(key))?)))
}

/// Finds a value in a snapshot or, for 0, in the current state of the store, with its sequence (cells 2 and 3) and its expiry (cells 4 and
/// 5, an f64; 0 for none).
#[wasm_bindgen]
pub fn varve_get_entry(h: u32, key: usize, snapshot: u32) -> i32 {
    with_bytes(h, |open, bytes| {
        let clock = open.store.clock();
        found(open, snapshot, bytes.bytes(key), |entry| {
            scratch::set_out_u64(2, entry.sequence);
            scratch::set_out_u64(4, (clock.to_host(entry.expires.unwrap_or(0)) as f64).to_bits());
        })
    })
}

/// Finds a value and puts the address of its bytes in the cells: they are in a memtable, or in a block that is kept for it.
#[inline]
fn found(open: &mut Open, snapshot: u32, key: &[u8], more: impl FnOnce(&Entry<'_>)) -> Result<u32, Error> {
    let Open { store, block, .. } = open;
    store.find_in(snapshot, key, |entry| match entry {
        Some(entry) => {
            scratch::set_out_bytes(entry.value);
            more(&entry);
            if let Some(holder) = entry.block {
                *block = Some(Rc::clone(holder));
            }
            1
        }
        None => 0,
    })
}

/// Makes everything staged as durable as requested (1 memory, 2 relaxed, 3 strict). Returns the level reached; the last sequence
/// is in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_commit(h: u32, durability: u32) -> i32 {
    raw(h, |open| {
        let asked = u8::try_from(durability).ok().and_then(Durability::from_byte);
        let asked = asked.ok_or(Error::InvalidArgument("There is no such durability."))?;
        let receipt = open.store.commit(asked)?;
        scratch::set_out_u64(0, receipt.sequence);
        Ok(receipt.durability as u32)
    })
}

/// Bytes staged but not logged.
#[wasm_bindgen]
pub fn varve_pending(h: u32) -> i32 {
    raw(h, |open| Ok(open.store.pending_bytes() as u32))
}

/// 1 while something is logged and not flushed.
#[wasm_bindgen]
pub fn varve_unsynced(h: u32) -> i32 {
    raw(h, |open| Ok(u32::from(open.store.is_unsynced())))
}

/// Writes since the log was sealed.
#[wasm_bindgen]
pub fn varve_unsealed(h: u32) -> i32 {
    raw(h, |open| Ok(open.store.last_sequence().saturating_sub(open.sealed).min(i32::MAX as u64) as u32))
}

/// The sequence of the last acknowledged write, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_acknowledged(h: u32) -> i32 {
    raw(h, |open| {
        scratch::set_out_u64(0, open.store.acknowledged());
        Ok(0)
    })
}

/// 1 while a writer should wait for a flush or a compaction.
#[wasm_bindgen]
pub fn varve_stalled(h: u32) -> i32 {
    raw(h, |open| Ok(u32::from(open.store.is_stalled())))
}

/// A response ends when it has this many bytes; the frame continues in another response.
const RESPONSE_BYTES: usize = 4 << 20;

/// Runs a request frame, from one of its requests on, and makes a response frame (cells 0 and 1). Returns the request to continue from, or
/// 0 when all are done.
#[wasm_bindgen]
pub fn varve_frame(h: u32, length: usize, from: usize) -> i32 {
    with_bytes(h, |open, bytes| {
        let mut answer = scratch::take_answer();
        let next = frame::run_part(&mut open.store, bytes.bytes(length), from, RESPONSE_BYTES, &mut answer)?;
        scratch::answer(answer);
        Ok(next as u32)
    })
}
