//! Native benches of Varve beside fjall, redb and RocksDB.
//!
//! | what | command |
//! |---|---|
//! | `benches/micro.rs`: ns, bytes and allocations of one operation | `npm run bench:native -- micro` |
//! | `src/bin/scale.rs`: millions of pairs, and what they cost on disk and in memory | `npm run bench:native -- scale` |
//!
//! Invariant: within one run every engine has the same durability, the same memory, and the same data in the same order,
//! and each read is compared with the written data.

pub mod allocations;
pub mod data;
pub mod engine;
pub mod engines;
pub mod host;
pub mod process;
pub mod report;
