//! The engines, one file each, and how each differs from the rest.

mod fjall;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod varve;

pub use fjall::Fjall;
pub use redb::Redb;
#[cfg(feature = "rocksdb")]
pub use rocksdb::RocksDb;
pub use varve::Varve;
