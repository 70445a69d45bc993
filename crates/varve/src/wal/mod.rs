//! WAL segments: the writes that are not in tables yet.
//!
//! ```text
//! segment header 48 B | record | record | ...          (records: see `codec::frame`; payloads: see `record`)
//! ```
//!
//! A segment is flushed to its end before the header of the next one is written, and that header names the end. So only
//! the newest segment may be torn. A record contains the length that was durable when it was written. A seal is a
//! record without a payload which promises that everything before it is durable, so a sealed segment shows any damage.
//!
//! Invariant: [`scan_segment`] returns the records before the first bad one, or [`Error::Corrupt`] when the bad bytes
//! include bytes that were promised to be durable. It never returns a record that was not written.
//!
//! [`Error::Corrupt`]: crate::error::Error::Corrupt

mod entry;
mod header;
mod record;
mod salvage;
mod scan;
mod stray;

pub use crate::codec::frame::RECORD_HEADER_BYTES;
pub use entry::Entry;
pub(crate) use entry::{key_at, put_entry};
pub(crate) use header::may_have_salt;
pub use header::{HeaderError, SEGMENT_HEADER_BYTES, SEGMENT_VERSION, SegmentHeader, segment_salt};
pub use record::{Entries, Record, Records};
pub use salvage::{Piece, find_salt, salvage_segment};
pub use scan::{Scan, Tail, header_was_lost, scan_segment};
pub(crate) use scan::{decrypt_segment, decrypt_span, verify_segment};
pub(crate) use stray::{Chain, LOST_SEGMENT, end_of_segment, is_longer, lost_segment, strays};
