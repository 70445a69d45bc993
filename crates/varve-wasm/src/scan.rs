//! The raw exports of scans.
//!
//! ```text
//! open: u8 flags | u8[3] 0 | u32 limit | u32 batch bytes | u32 lower_len | u32 upper_len | lower | upper
//! next: the batch that varve::scan::Batch encodes
//! ```
//!
//! Invariant: a scan that is finished, or failed, is closed; its number then answers an error.

use varve::frame;
use varve::scan::Progress;

use crate::registry::{Open, raw};
use crate::scratch;

/// Opens a scan; answers its number, above 0.
#[unsafe(no_mangle)]
pub extern "C" fn varve_scan_open(h: u32, length: usize) -> i32 {
    raw(h, |open| {
        let scan = frame::parse_scan(scratch::bytes(length))?;
        open.store.open_cursor(scan.options, scan.want_keys, scan.want_values)
    })
}

/// Brings the next batch of about `bytes`: 1 when there may be more, 0 when the scan is finished.
#[unsafe(no_mangle)]
pub extern "C" fn varve_scan_next(h: u32, scan: u32, bytes: usize) -> i32 {
    raw(h, |open| {
        let Open { store, answer, .. } = open;
        let (progress, batch) = store.next_of_cursor(scan, bytes)?;
        let more = progress == Progress::More;
        answer.clear();
        batch.encode(if more { scan } else { 0 }, answer);
        scratch::set_out_bytes(answer);
        Ok(u32::from(more))
    })
}

/// Closes a scan before its end.
#[unsafe(no_mangle)]
pub extern "C" fn varve_scan_close(h: u32, scan: u32) -> i32 {
    raw(h, |open| {
        open.store.close_cursor(scan);
        Ok(0)
    })
}
