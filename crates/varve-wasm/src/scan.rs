//! The raw exports of scans and snapshots.
//!
//! ```text
//! open: u16 flags | u16 snapshot, 0 for none | u32 limit | u32 batch bytes | u32 lower_len | u32 upper_len | lower | upper
//! next: the batch that varve::scan::Batch encodes
//! ```
//!
//! Invariant: a scan that is finished, or failed, is closed; a call with its number then returns an error.

use varve::frame;
use varve::scan::Progress;
use varve::store::WriteOutcome;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::registry::{raw, with_bytes, with_two};
use crate::scratch;

/// Opens a scan. Returns its number, above 0.
#[wasm_bindgen]
pub fn varve_scan_open(h: u32, length: usize) -> i32 {
    with_bytes(h, |open, scratch| open.store.open_cursor(frame::parse_scan(scratch.bytes(length))?))
}

/// Returns the next batch of about `bytes` in cells 0 and 1. The result is 1 when there may be more, 0 when the scan is finished.
#[wasm_bindgen]
pub fn varve_scan_next(h: u32, scan: u32, bytes: usize) -> i32 {
    raw(h, |open| {
        let (progress, batch) = open.store.next_of_cursor(scan, bytes)?;
        let more = progress == Progress::More;
        let mut answer = scratch::take_answer();
        if let Err(error) = batch.reserve(&mut answer) {
            // The scan has already advanced, and would skip this batch.
            open.store.close_cursor(scan);
            return Err(error);
        }
        batch.encode(if more { scan } else { 0 }, &mut answer);
        scratch::answer(answer);
        Ok(u32::from(more))
    })
}

/// Closes a scan before its end.
#[wasm_bindgen]
pub fn varve_scan_close(h: u32, scan: u32) -> i32 {
    raw(h, |open| {
        open.store.close_cursor(scan);
        Ok(0)
    })
}

/// Takes a snapshot, for the host itself if `of_host` is not 0. Returns its number, above 0; its sequence is in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_snapshot_open(h: u32, of_host: u32) -> i32 {
    raw(h, |open| {
        let number =
            if of_host == 0 { open.store.open_snapshot()? } else { open.store.open_snapshot_of_host()? };
        scratch::set_out_u64(0, open.store.snapshot_sequence(number)?);
        Ok(number)
    })
}

/// Moves to a store the snapshots and scans of a store that was open on the same device before. See `Store::adopt`.
#[wasm_bindgen]
pub fn varve_adopt(h: u32, former: u32) -> i32 {
    with_two(h, former, |open, other| {
        open.store.adopt(&mut other.store);
        Ok(0)
    })
}

/// Closes everything that a client has open. Unless `may_return`, also removes the requests that it could have asked for again.
#[wasm_bindgen]
pub fn varve_release_client(h: u32, client_low: u32, client_high: u32, may_return: u32) -> i32 {
    raw(h, |open| {
        let client = u64::from(client_high) << 32 | u64::from(client_low);
        if may_return == 0 {
            open.store.remove_client(client);
        } else {
            open.store.release_client(client);
        }
        Ok(0)
    })
}

/// Whether a write was done that a client sends again.
#[wasm_bindgen]
pub fn varve_is_done(h: u32, client_low: u32, client_high: u32, request: u32) -> i32 {
    raw(h, |open| {
        let client = u64::from(client_high) << 32 | u64::from(client_low);
        Ok(u32::from(matches!(open.store.outcome_of(client, request), WriteOutcome::Done(..))))
    })
}

/// Closes a snapshot.
#[wasm_bindgen]
pub fn varve_snapshot_close(h: u32, number: u32) -> i32 {
    raw(h, |open| {
        open.store.close_snapshot(number);
        Ok(0)
    })
}
