//! The engines, one file each, and what each does otherwise than the rest.

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
