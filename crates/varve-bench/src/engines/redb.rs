//! redb: a B+tree without a log.
//!
//! It has no log that is given to the operating system. The nearest is `Durability::None`: a commit that lasts only once a
//! later one is flushed, so it is lost if the process dies. Its writes promise less than those of the others. One flushed
//! commit ends each phase.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use crate::engine::{Engine, Outcome, Settings, Shared};

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
}

impl Shared for Redb {
    fn set(&self, key: &[u8], value: &[u8]) -> Outcome {
        self.change(|table| {
            table.insert(key, value)?;
            Ok(())
        })
    }

    fn has(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.db.begin_read()?.open_table(TABLE)?.get(key)?.is_some())
    }

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
