//! RocksDB: its log is given to the operating system with every write, and not flushed (its default).
//!
//! Settings that differ from the defaults: the sizes of memtable and cache; Bloom filters of 10 bits; LZ4. Indexes and filters
//! are beside the cache, as by default: inside it, data blocks push out filters of megabytes. It takes threads of readers and
//! writers.

use std::path::Path;

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WaitForCompactOptions, WriteBatch};

use crate::engine::{Engine, Outcome, Settings, Shared};

/// See the module.
pub struct RocksDb {
    db: DB,
    cache: Cache,
}

impl Shared for RocksDb {
    fn set(&self, key: &[u8], value: &[u8]) -> Outcome {
        Ok(self.db.put(key, value)?)
    }

    fn has(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.db.get_pinned(key)?.is_some())
    }

    fn get_batch(&self, keys: &[[u8; 32]]) -> Outcome<u64> {
        let snapshot = self.db.snapshot();
        let mut found = 0;
        for key in keys {
            found += u64::from(snapshot.get_pinned(key)?.is_some());
        }
        Ok(found)
    }
}

impl Engine for RocksDb {
    const NAME: &'static str = "rocksdb";

    fn open(dir: &Path, settings: &Settings) -> Outcome<Self> {
        let cache = Cache::new_lru_cache(settings.cache_bytes());
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        blocks.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_write_buffer_size(settings.memtable_bytes);
        options.set_max_write_buffer_number(3);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_manual_wal_flush(settings.buffered);
        Ok(Self { db: DB::open(&options, dir)?, cache })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.set(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome {
        Ok(self.db.delete(key)?)
    }

    fn get<R>(&mut self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        Ok(show(self.db.get_pinned(key)?.as_deref()))
    }

    fn write(&mut self, pairs: &[([u8; 32], [u8; 32])]) -> Outcome {
        let mut batch = WriteBatch::default();
        for (key, value) in pairs {
            batch.put(key, value);
        }
        Ok(self.db.write(batch)?)
    }

    fn get_all(&mut self, keys: &[[u8; 32]]) -> Outcome<u64> {
        self.get_batch(keys)
    }

    fn scan(&mut self, from: &[u8], count: usize) -> Outcome<usize> {
        let mut iterator = self.db.raw_iterator();
        iterator.seek(from);
        let mut found = 0;
        while found < count && iterator.valid() {
            std::hint::black_box(iterator.item());
            found += 1;
            if found < count {
                iterator.next();
            }
        }
        iterator.status()?;
        Ok(found)
    }

    fn flush(&mut self) -> Outcome {
        Ok(self.db.flush()?)
    }

    fn finish_jobs(&mut self) -> Outcome {
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn compact(&mut self) -> Outcome {
        self.flush()?;
        self.db.compact_range::<&[u8], &[u8]>(None, None);
        self.finish_jobs()
    }

    fn memory_bytes(&self) -> Option<u64> {
        let memtables = self.db.property_int_value("rocksdb.cur-size-all-mem-tables").ok().flatten();
        Some(memtables? + self.cache.get_usage() as u64)
    }

    fn close(self) -> Outcome {
        Ok(self.db.flush_wal(false)?)
    }
}
