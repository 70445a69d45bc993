//! Varve: an embedded, durable, ordered key-value store.
//!
//! This crate is the engine: a log-structured merge tree with no I/O, no clock and no randomness of its
//! own. Everything comes in as an argument or through the small [`storage::Storage`] contract, so the same
//! code runs over OPFS slot files in a browser, over files natively ([`storage::FileSlots`]), over RAM in a
//! test, and over a simulated disk that crashes. Keys and values are bytes.
//!
//! | module | what it is |
//! |---|---|
//! | [`store`] | the engine: staging, commit, reads, recovery, jobs |
//! | `memtable` | the image of a WAL segment with a B+tree over it |
//! | `wal` | segments and records; torn tail against corruption |
//! | `table` | SSTables: blocks, filter, index, footer |
//! | `cache` | S3-FIFO block cache |
//! | `manifest` | which tables make up the store; two slots |
//! | [`scan`] | ordered reads: a merge of all sources |
//! | [`compact`] | flush and compaction as blocks-in, blocks-out jobs |
//! | [`storage`] | the storage contract, and the pool of slot files |
//! | `frame` | the binary protocol between a page and the engine |
//! | [`check`] | verifying every byte of a store while it is open |
//! | [`repair`] | salvaging what can be read of a damaged one |
//! | `codec` | varints, bounded reading, checksums, comparing |
//!
//! Modules without a link are public for the tests and the hosts in the repository of Varve. They may change in any version.
#![cfg_attr(varve_size, feature(optimize_attribute))]
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[doc(hidden)]
pub mod cache;
pub mod check;
#[doc(hidden)]
pub mod codec;
pub mod compact;
pub mod error;
#[doc(hidden)]
pub mod frame;
#[doc(hidden)]
pub mod manifest;
#[doc(hidden)]
pub mod memtable;
#[cfg(not(feature = "mutants"))]
mod mutant;
#[cfg(feature = "mutants")]
pub mod mutant;
#[cfg(feature = "nonces")]
pub mod nonces;
pub mod options;
pub mod repair;
pub mod scan;
pub mod storage;
pub mod store;
#[doc(hidden)]
pub mod table;
pub mod types;
mod view;
#[doc(hidden)]
pub mod wal;

pub use codec::cipher::{Encryption, Keyring};
pub use error::{Code, Error, Result};
pub use manifest::key_slots;
pub use options::{Durability, Host, Options, Receipt};
pub use store::{Op, RecoveryReport, Store};

/// Its example is compiled.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../README.md")]
struct Readme;
