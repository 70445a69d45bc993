//! How numbers and keys become bytes and come back.
//!
//! Invariant: nothing here allocates in answer to a number it read, and nothing here panics on bytes it was
//! given: everything that Varve reads from a file passes through this room first.

pub mod bytes;
pub mod frame;
pub mod hash;
pub mod reader;
pub mod room;
pub mod varint;
