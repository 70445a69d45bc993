//! WAL segments: what was written since the tables were.
//!
//! ```text
//! segment header 48 B | record | record | ...          (records: see `codec::frame`; payloads: see `record`)
//! ```
//!
//! A segment is flushed to its end before the header of the next one is written, and that header names the
//! end. So only the newest segment may be torn. A record carries the length that was durable when it was
//! written; a seal is a record without a payload that promises everything before it, so that a sealed segment
//! shows any damage.
//!
//! Invariant: [`scan_segment`] answers the records in front of the first bad one, or [`Error::Corrupt`] when
//! bytes that were promised are among those that are bad. It never answers a record that was not written.
//!
//! [`Error::Corrupt`]: crate::error::Error::Corrupt

mod entry;
mod header;
mod record;
mod salvage;
mod scan;

pub use crate::codec::frame::RECORD_HEADER_BYTES;
pub use entry::Entry;
pub(crate) use entry::{key_at, put_entry};
pub use header::{HeaderError, SEGMENT_HEADER_BYTES, SEGMENT_VERSION, SegmentHeader, segment_salt};
pub use record::{Entries, Record, Records};
pub use salvage::{Piece, find_salt, salvage_segment};
pub use scan::{Scan, Tail, header_was_lost, scan_segment};
