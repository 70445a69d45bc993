//! Frames: every operation that a page called in one turn, in one binary message, and their answers in another.
//!
//! ```text
//! request:  u32 "VRF1" | u32 count | { u32 request | u8 op | u8 durability | u16 snapshot | u32 key len | u32 value len | key | value | pad 4 }*
//!           the snapshot is the one that a read is of, that a batch's transaction read, that is let go; 0 for none
//! batch:    value: u32 count | { u8 kind | u8 flags | u16 0 | u32 key len | u32 value len | key | value | pad 4 }*
//!           kind:  0 delete, 1 set, 2 delete from the key up to the value (empty: the end)
//!                  3 the transaction read the key, 4 it read the keys up to the value (empty: the end)
//!           value: u64 expires in ms (since 1970, if flags & 4), if flags & 1 | u64 sequence that the key must have (0: absent), if flags & 2 | value
//! response: u32 "VRF1" | u32 count | { u32 request | u8 status | u8 0 * 3 | u32 payload len | u32 0 | payload | pad 4 }*
//! ```
//!
//! The payload of an error is its code and a sentence; of a conflict, its code, the u64 sequence found and the key.
//!
//! Invariant: operations run in order and see what the frame wrote before them; all writes of a frame
//! are one group commit. Decoding takes arbitrary bytes: a malformed frame is refused whole, before
//! anything of it ran.

mod request;
mod response;
mod run;

pub use request::{Batch, FRAME_MAGIC, Operation, Request, ScanRequest, parse, parse_batch, parse_scan};
pub use run::run;
