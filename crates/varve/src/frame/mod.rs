//! Frames: all operations that a page called in one turn are one binary message, and their responses are another.
//!
//! ```text
//! request:  u32 "VRF2" | u32 count | u64 client | u32 answered | u32 0 | operation*
//! operation u32 request | u8 op | u8 durability | u16 snapshot | u32 key len | u32 value len | key | value | pad 4
//!           the snapshot is the one that a read is of, that a batch's transaction read, that is opened or released; 0 for none
//! delete:   value: empty, or one byte that asks whether the key is there: if not, the response has the status 1 and its receipt
//! batch:    value: u32 count | { u8 kind | u8 flags | u16 0 | u32 key len | u32 value len | key | value | pad 4 }*
//!           kind:  0 delete, 1 set, 2 delete from the key up to the value (empty: the end)
//!                  3 the transaction read the key, 4 it read the keys up to the value (empty: the end)
//!           value: u64 expires in ms (since 1970, if flags & 4), if flags & 1 | u64 sequence that the key must have (0: absent), if flags & 2 | value
//! response: u32 "VRF2" | u32 count | { u32 request | u8 status | u8 expires | u16 0 | u32 payload len | u32 0 | payload | pad 4 }*
//!           expires: 1 if an entry expires that get many or the first batch of a scan brings
//! ```
//!
//! The client number names the sender: a random number, one each time a page opens the store, or 0 for a sender that cannot
//! ask again. Request numbers rise by one and wrap. The sender has the responses to all requests before `answered`. The client
//! chooses the numbers of scans and snapshots; they belong to that client.
//!
//! The response to a scan or a snapshot is its read point, u64 sequence | u64 now in ms, before the first batch. If that read
//! point is not in the log (the log write was refused), the time is 0: then they cannot be opened again when this process is
//! gone.
//!
//! A frame may be sent again, unchanged, to another process. If its writes were already done, the response is their sequence, and
//! they are not done twice; see `store/clients.rs`. Its reads see the store as it was before the writes that come after them.
//!
//! The payload of an error is its code and a sentence. For a conflict it is the code, the u64 sequence found and the key.
//!
//! Invariant: operations run in order and see the earlier writes of the frame; all writes of a frame are one group
//! commit. Decoding accepts arbitrary bytes: a malformed frame is refused as a whole, before any of it runs.

mod changes;
mod request;
mod response;
mod run;

pub use request::{
    Batch, FRAME_HEADER_BYTES, FRAME_MAGIC, Frame, Operation, Request, header, parse, parse_batch, parse_scan,
};
pub use run::{run, run_part};
