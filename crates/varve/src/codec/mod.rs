//! How numbers and keys become bytes and come back.
//!
//! Invariant: nothing here allocates memory because of a number it read, and nothing here panics on the bytes it gets.
//! Everything that Varve reads from a file passes through this module first.

pub mod bytes;
pub mod cipher;
pub mod frame;
pub mod hash;
pub mod reader;
pub mod room;
pub mod varint;
