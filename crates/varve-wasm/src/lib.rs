//! Varve in WebAssembly.
//!
//! Two halves. [`raw`] is called millions of times: numbers in, numbers out, bytes through a scratch region.
//! [`control`] is called rarely and made by wasm-bindgen. One instance serves all stores of a worker; a store is
//! a number.
//!
//! ```text
//! JavaScript --scratch--> raw ----> Store<SlotPool<HostSlots>> ----varve_host----> slots of a device
//!            <--out cells--                                     (negative: no room, failed, closed)
//! ```
//!
//! Invariant: nothing unwinds across the boundary. A raw export answers 0 or more, or the negated number of an
//! error code whose sentence `last_error` tells; a control function throws `"<code number> <sentence>"`. Unsafe
//! code is in [`scratch`], and in `varve-tools` where the host is called, and nowhere else in the project.

mod control;
mod fault;
mod host;
mod job;
mod raw;
mod registry;
mod scan;
mod scratch;
