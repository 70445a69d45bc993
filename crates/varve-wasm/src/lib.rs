//! Varve in WebAssembly.
//!
//! Numbers go in and out; bytes go in through the scratch or the input, and come out where the out cells say. [`raw`] and
//! [`scan`] are called millions of times, [`control`] and [`job`] rarely. One instance serves one store, or the jobs of one compactor;
//! a store is a number, because one that follows another on the same device takes over what that had open.
//!
//! ```text
//! JavaScript --scratch--> exports ----> Store<SlotPool<HostSlots>> ----varve_host----> slots of a device
//!            <--out cells--                                        (negative: no room, failed, closed)
//! ```
//!
//! wasm-bindgen declares the exports to TypeScript, so that both sides are one. Its glue is not used: it has one instance to a
//! realm, and exports of numbers need none. Imports are raw for the same reason: each instance has its own.
//!
//! Invariant: nothing unwinds across the boundary. An export answers 0 or more, or the negated number of an
//! error code whose sentence `varve_last_error` tells. Unsafe code is in [`scratch`], and in `varve-host` where the host is called,
//! and nowhere else in the project.

mod control;
mod job;
mod raw;
mod registry;
mod scan;
mod scratch;
