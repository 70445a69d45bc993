//! Frames: every operation that a page called in one turn, in one binary message, and their answers in another.
//!
//! ```text
//! request:  u32 "VRF2" | u32 count | u64 client | u32 answered | u32 0 | operation*
//! operation u32 request | u8 op | u8 durability | u16 snapshot | u32 key len | u32 value len | key | value | pad 4
//!           the snapshot is the one that a read is of, that a batch's transaction read, that is opened or let go; 0 for none
//! batch:    value: u32 count | { u8 kind | u8 flags | u16 0 | u32 key len | u32 value len | key | value | pad 4 }*
//!           kind:  0 delete, 1 set, 2 delete from the key up to the value (empty: the end)
//!                  3 the transaction read the key, 4 it read the keys up to the value (empty: the end)
//!           value: u64 expires in ms (since 1970, if flags & 4), if flags & 1 | u64 sequence that the key must have (0: absent), if flags & 2 | value
//! response: u32 "VRF2" | u32 count | { u32 request | u8 status | u8 0 * 3 | u32 payload len | u32 0 | payload | pad 4 }*
//! ```
//!
//! The client is who sends it: a random number, one for each opening by a page, 0 for nobody that could ask again. Numbers of
//! requests rise by one and wrap; all those before `answered` have their answers. Numbers of scans and snapshots are chosen by
//! the client and are its own.
//!
//! A scan and a snapshot are answered with u64 sequence | u64 now in ms, what they see, in front of the first batch. Should that
//! not be in the log (it was refused), the time is 0: they cannot be opened again when this process is gone.
//!
//! A frame may be sent again to another process, as it was. Writes in it that were done are answered with their sequence, and not
//! done twice; see `store/clients.rs`. Its reads see the store as it was before the writes that come behind them.
//!
//! The payload of an error is its code and a sentence; of a conflict, its code, the u64 sequence found and the key.
//!
//! Invariant: operations run in order and see what the frame wrote before them; all writes of a frame
//! are one group commit. Decoding takes arbitrary bytes: a malformed frame is refused whole, before
//! anything of it ran.

mod changes;
mod request;
mod response;
mod run;

pub use request::{
    Batch, FRAME_HEADER_BYTES, FRAME_MAGIC, Frame, Operation, Request, ScanRequest, header, parse,
    parse_batch, parse_scan,
};
pub use run::{run, run_part};
