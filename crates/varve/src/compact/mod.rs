//! Flush and compaction: jobs that turn a memtable or some tables into new tables.
//!
//! A job does no I/O: it asks for ranges of its input files (`Step::Need`), returns bytes to write (`Step::Write`) and
//! names each finished table. It can run in another worker, because everything it needs is in its [`JobSpec`]. It can
//! be killed at any step: its outputs are then orphans.
//!
//! ```text
//! JobSpec --decode--> Job --step(budget)--> Need / Write / Finished / Done --result--> JobResult
//! ```

mod below;
mod inputs;
mod job;
mod keep;
mod limit;
mod output;
mod pick;
mod spec;

pub(crate) use inputs::ChunkBlocks;
pub use job::{Job, Step};
pub(crate) use pick::{IDLE_SHARE, JOB_SHARE_SMALL, Levels, Merge, Pick, Situation, covered, entry_bytes};
pub use spec::{JobInput, JobKind, JobResult, JobSpec};
