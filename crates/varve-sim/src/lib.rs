//! Simulator for varve: seeded runs of the whole engine against a disk that crashes, tears and fills up.
//!
//! ```text
//! seed -> workload -> trace -> run ( session: store + disk + model ) -> outcome: hash, failure, totals
//!                       ^                                                          |
//!                       +--------------------- shrink <----------------------------+
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`rng`] | the only source of chance |
//! | [`slot`] | one file: durable bytes, unsynced changes, what a power loss leaves |
//! | [`disk`] | all files, faults, the power switch |
//! | [`change`], [`difference`] | what a history is made of, and how states differ |
//! | [`model`] | the oracle: history, floors, which histories may come true |
//! | [`trace`] | operations, spelled out |
//! | [`workload`] | makes a trace from a seed |
//! | [`writes`], [`reads`], [`jobs`] | what a session does to its store |
//! | [`scan`], [`compactor`] | a scan and what it must deliver; a job and its outputs |
//! | [`transactions`] | transactions over open snapshots, and conditional writes |
//! | [`frames`] | operations through the frame protocol |
//! | [`changes`] | the change feed |
//! | [`full_disk`], [`snapshots`] | what a full disk must still accept; reads at a read point |
//! | [`session`], [`recovery`], [`run`] | carries a trace out and compares every answer |
//! | [`exhaustive`], [`histories`] | crashes short traces everywhere, in all ways; what a crash may leave |
//! | [`takeovers`] | clients that outlive their leaders, and what must be there once |
//! | [`waiting`] | a storage whose reads wait, and their driver |
//! | [`metamorphic`] | one trace under any options, for runs to be compared |
//! | [`record`] | a trace for the compiled WebAssembly to replay |
//! | [`rot`] | flips bytes of a closed store and asks for its data |
//! | [`shrink`] | makes a failing trace short |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod change;
pub mod changes;
pub mod compactor;
pub mod difference;
pub mod disk;
pub mod exhaustive;
pub mod frames;
pub mod full_disk;
pub mod histories;
pub mod jobs;
mod keys;
pub mod metamorphic;
pub mod model;
pub mod pages;
pub mod reads;
pub mod record;
pub mod recovery;
pub mod rng;
pub mod rot;
pub mod run;
pub mod scan;
pub mod session;
pub mod shrink;
pub mod slot;
pub mod snapshots;
pub mod takeovers;
pub mod trace;
pub mod transactions;
pub mod waiting;
pub mod workload;
pub mod writes;
