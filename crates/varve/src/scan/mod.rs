//! Ordered reads over all sources of a view: a merge of cursors, and the scan that turns it into
//! batches of live entries.
//!
//! ```text
//! memtable cursors --\
//! level 0 cursors  ---+--> Merge (key asc, sequence desc) --> visible at snapshot --> Batch
//! level 1+ cursors --/
//! ```

mod batch;
mod cursor;
mod gaps;
mod merge;
mod source;

pub use batch::Batch;
pub(crate) use cursor::Known;
pub use cursor::{Cursor, Progress, ScanOptions, ScanRequest};
pub(crate) use gaps::Gaps;
pub(crate) use merge::{Merge, Start};
pub(crate) use source::{LevelCursor, Source};
