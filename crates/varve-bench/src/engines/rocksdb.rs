//! RocksDB: its log is given to the operating system with every write, and not flushed (its default).
//!
//! Settings that differ from the defaults: the sizes of memtable and cache; Bloom filters of 10 bits; LZ4. Indexes and filters
//! are beside the cache, as by default: inside it, data blocks push out filters of megabytes. It takes threads of readers and
//! writers.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WaitForCompactOptions, WriteBatch};

use crate::engine::{Beside, Engine, Outcome, Settings, all, both};

/// See the module.
pub struct RocksDb {
    db: DB,
    cache: Cache,
}

impl RocksDb {
    /// Looks keys up at one read point; returns how many were there.
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
        Ok(self.db.put(key, value)?)
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

    fn get_all_from_all(
        &mut self,
        threads: u64,
        batches: u64,
        keys: impl Fn(u64, u64) -> Vec<[u8; 32]> + Sync,
    ) -> Outcome<u64> {
        let this = &*self;
        all(threads, |thread| (0..batches).map(|batch| this.get_batch(&keys(thread, batch))).sum())
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

    fn beside(
        &mut self,
        writes: u64,
        pair: impl Fn(u64) -> ([u8; 32], [u8; 32]) + Sync,
        key: impl Fn(u64) -> [u8; 32] + Sync,
    ) -> Outcome<Beside> {
        let db = &self.db;
        let write = || {
            for number in 0..writes {
                let (key, value) = pair(number);
                db.put(key, value)?;
            }
            Ok(())
        };
        both(write, |over| {
            let mut beside = Beside::default();
            while !over.load(Relaxed) {
                beside.missing += u64::from(db.get_pinned(key(beside.reads))?.is_none());
                beside.reads += 1;
            }
            Ok(beside)
        })
    }

    fn put_from_all(
        &mut self,
        threads: u64,
        each: u64,
        pair: impl Fn(u64, u64) -> ([u8; 16], [u8; 100]) + Sync,
    ) -> Outcome {
        let db = &self.db;
        all(threads, |thread| {
            for number in 0..each {
                let (key, value) = pair(thread, number);
                db.put(key, value)?;
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn get_from_all(
        &mut self,
        threads: u64,
        each: u64,
        key: impl Fn(u64, u64) -> [u8; 16] + Sync,
    ) -> Outcome<u64> {
        let db = &self.db;
        all(threads, |thread| {
            let mut found = 0;
            for number in 0..each {
                found += u64::from(db.get_pinned(key(thread, number))?.is_some());
            }
            Ok(found)
        })
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
