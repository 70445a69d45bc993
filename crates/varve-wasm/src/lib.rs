//! Varve in WebAssembly.
//!
//! Numbers are arguments and results. Bytes go in through the scratch or the input, and come out where the out cells point. `raw`
//! and `scan` are called millions of times, `control` and `job` rarely. One instance serves one store, or the jobs of one
//! compactor; a store is a number, because a store that follows another on the same device takes over its open scans and snapshots.
//!
//! ```text
//! JavaScript --scratch--> exports ----> Store<SlotPool<HostSlots>> ----varve_host----> slots of a device
//!            <--out cells--                                        (negative: no room, failed, closed, pending)
//! ```
//!
//! wasm-bindgen declares the exports to TypeScript, so that both sides agree. Its glue is not used: it allows one instance per
//! realm, and exports of numbers need no glue. Imports are raw for the same reason: each instance has its own.
//!
//! Invariant: nothing unwinds across the boundary. An export returns 0 or more, or the negated number of an error code.
//! `varve_last_error` returns the sentence of that error.
//!
//! Unsafe code of the package is in one place, `varve-host`, where the host is called. Besides it, `varve-tools` has the attribute
//! `#[unsafe(no_mangle)]` at its exports. Tests and benchmarks have some, too: the unit tests of `scratch` write and read through pointers as
//! JavaScript does, and allocators count, or refuse.

mod control;
mod job;
mod raw;
mod registry;
mod scan;
mod scratch;
