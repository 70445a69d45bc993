//! fjall: its journal is given to the operating system with every write (its default).
//!
//! Settings that differ from the defaults: the sizes of memtable and cache. It takes threads of readers and
//! writers.

use std::path::Path;
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};

use crate::engine::{Engine, Outcome, Settings, Shared};

/// It counts as idle after this long without work in the background.
const QUIET: Duration = Duration::from_millis(300);

/// See the module.
pub struct Fjall {
    db: Database,
    keys: Keyspace,
    buffered: bool,
}

impl Shared for Fjall {
    fn set(&self, key: &[u8], value: &[u8]) -> Outcome {
        Ok(self.keys.insert(key, value)?)
    }

    fn has(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.keys.get(key)?.is_some())
    }

    fn get_batch(&self, keys: &[[u8; 32]]) -> Outcome<u64> {
        let snapshot = self.db.snapshot();
        let mut found = 0;
        for key in keys {
            found += u64::from(snapshot.get(&self.keys, key)?.is_some());
        }
        Ok(found)
    }
}

impl Engine for Fjall {
    const NAME: &'static str = "fjall";

    fn open(dir: &Path, settings: &Settings) -> Outcome<Self> {
        let buffered = settings.buffered;
        let db = Database::builder(dir)
            .cache_size(settings.cache_bytes() as u64)
            .manual_journal_persist(buffered)
            .open()?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.memtable_bytes as u64)
                .manual_journal_persist(buffered)
        };
        let keys = db.keyspace("bench", options)?;
        Ok(Self { db, keys, buffered })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.set(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome {
        Ok(self.keys.remove(key)?)
    }

    fn get<R>(&mut self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        Ok(show(self.keys.get(key)?.as_deref()))
    }

    fn write(&mut self, pairs: &[([u8; 32], [u8; 32])]) -> Outcome {
        let mode = if self.buffered { None } else { Some(PersistMode::Buffer) };
        let mut batch = self.db.batch().durability(mode);
        for (key, value) in pairs {
            batch.insert(&self.keys, *key, *value);
        }
        Ok(batch.commit()?)
    }

    fn get_all(&mut self, keys: &[[u8; 32]]) -> Outcome<u64> {
        self.get_batch(keys)
    }

    fn scan(&mut self, from: &[u8], count: usize) -> Outcome<usize> {
        let mut found = 0;
        for guard in self.keys.range(from..).take(count) {
            std::hint::black_box(guard.into_inner()?);
            found += 1;
        }
        Ok(found)
    }

    fn flush(&mut self) -> Outcome {
        self.keys.rotate_memtable_and_wait()?;
        Ok(())
    }

    fn finish_jobs(&mut self) -> Outcome {
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(10));
            let busy = self.db.outstanding_flushes() > 0
                || self.db.active_compactions() > 0
                || self.keys.sealed_memtable_count() > 0;
            if busy {
                quiet_since = Instant::now();
            }
        }
        Ok(())
    }

    fn compact(&mut self) -> Outcome {
        self.flush()?;
        self.finish_jobs()?;
        Ok(self.keys.major_compact()?)
    }

    fn notes(&self) -> String {
        format!("{} tables, {} in level 0", self.keys.table_count(), self.keys.l0_table_count())
    }

    fn close(self) -> Outcome {
        Ok(self.db.persist(PersistMode::Buffer)?)
    }
}
