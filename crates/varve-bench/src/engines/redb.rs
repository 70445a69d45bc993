//! redb: a B+tree without a log.
//!
//! It has no log that is given to the operating system. The nearest is `Durability::None`: a commit that lasts only once a
//! later one is flushed, so it is lost if the process dies. Its writes promise less than those of the others. One flushed
//! commit ends each phase.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use crate::engine::{Beside, Engine, Outcome, Settings, all, both};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("bench");
/// Commits that are not flushed keep the pages they replaced: so one is flushed now and then.
const COMMITS_UNFLUSHED: u32 = 10_000;

/// See the module.
pub struct Redb {
    db: Database,
    unflushed: std::sync::atomic::AtomicU32,
}

impl Redb {
    fn change(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &'static [u8], &'static [u8]>) -> Outcome,
    ) -> Outcome {
        let mut transaction = self.db.begin_write()?;
        if self.unflushed.fetch_add(1, Relaxed) < COMMITS_UNFLUSHED {
            transaction.set_durability(Durability::None)?;
        } else {
            self.unflushed.store(0, Relaxed);
        }
        change(&mut transaction.open_table(TABLE)?)?;
        Ok(transaction.commit()?)
    }

    fn set(&self, key: &[u8], value: &[u8]) -> Outcome {
        self.change(|table| {
            table.insert(key, value)?;
            Ok(())
        })
    }

    fn has(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.db.begin_read()?.open_table(TABLE)?.get(key)?.is_some())
    }
}

impl Redb {
    /// Looks keys up at one read point; returns how many were there.
    fn get_batch(&self, keys: &[[u8; 32]]) -> Outcome<u64> {
        let table = self.db.begin_read()?.open_table(TABLE)?;
        let mut found = 0;
        for key in keys {
            found += u64::from(table.get(key.as_slice())?.is_some());
        }
        Ok(found)
    }
}

impl Engine for Redb {
    const NAME: &'static str = "redb";

    fn open(dir: &Path, settings: &Settings) -> Outcome<Self> {
        std::fs::create_dir_all(dir)?;
        let db = Database::builder().set_cache_size(settings.memory_bytes).create(dir.join("bench.redb"))?;
        let transaction = db.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        Ok(Self { db, unflushed: 0.into() })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.set(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome {
        self.change(|table| {
            table.remove(key)?;
            Ok(())
        })
    }

    fn get<R>(&mut self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let table = self.db.begin_read()?.open_table(TABLE)?;
        let value = table.get(key)?;
        Ok(show(value.as_ref().map(|value| value.value())))
    }

    fn write(&mut self, pairs: &[([u8; 32], [u8; 32])]) -> Outcome {
        self.change(|table| {
            for (key, value) in pairs {
                table.insert(key.as_slice(), value.as_slice())?;
            }
            Ok(())
        })
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
        let table = self.db.begin_read()?.open_table(TABLE)?;
        let mut found = 0;
        for entry in table.range(from..)?.take(count) {
            let (key, value) = entry?;
            std::hint::black_box((key.value(), value.value()));
            found += 1;
        }
        Ok(found)
    }

    fn beside(
        &mut self,
        writes: u64,
        pair: impl Fn(u64) -> ([u8; 32], [u8; 32]) + Sync,
        key: impl Fn(u64) -> [u8; 32] + Sync,
    ) -> Outcome<Beside> {
        let store = &*self;
        let write = || {
            for number in 0..writes {
                let (key, value) = pair(number);
                store.set(&key, &value)?;
            }
            Ok(())
        };
        both(write, |over| {
            let mut beside = Beside::default();
            while !over.load(Relaxed) {
                beside.missing += u64::from(!store.has(&key(beside.reads))?);
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
        let store = &*self;
        all(threads, |thread| {
            for number in 0..each {
                let (key, value) = pair(thread, number);
                store.set(&key, &value)?;
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
        let store = &*self;
        all(threads, |thread| {
            let mut found = 0;
            for number in 0..each {
                found += u64::from(store.has(&key(thread, number))?);
            }
            Ok(found)
        })
    }

    fn flush(&mut self) -> Outcome {
        Ok(self.db.begin_write()?.commit()?)
    }

    fn finish_jobs(&mut self) -> Outcome {
        self.flush()
    }

    fn compact(&mut self) -> Outcome {
        self.flush()?;
        self.db.compact()?;
        Ok(())
    }

    fn close(self) -> Outcome {
        Ok(self.db.begin_write()?.commit()?)
    }
}
