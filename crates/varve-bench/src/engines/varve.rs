//! Varve over files, its jobs on two threads of their own.
//!
//! It is made for one thread. Where the others have writers and readers in threads, it runs their operations in turns, as
//! its worker runs those of several tabs: five reads to a write, or one operation of each writer in one commit. Batches of many
//! threads are read by readers, which share memory as large as the store's.

use std::path::Path;

use varve::scan::{Batch, Progress, ScanOptions};
use varve::{Durability, Op, Options};

use crate::engine::{Beside, Concurrent, Engine, Outcome, Settings, all};
use crate::host::{FileHost, FileStore};

/// A buffered log goes to the operating system in pieces of this size, as `varve/synchronous` does.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of one step of a scan.
const SCAN_BYTES: usize = 256 << 10;
/// Reads for each write.
const READS_PER_WRITE: u64 = 5;

/// See the module.
pub struct Varve {
    host: FileHost,
    batch: Batch,
    buffered: bool,
    memory_bytes: usize,
}

impl Varve {
    fn stage(&mut self, ops: &[Op<'_>]) -> Outcome {
        let buffered = self.buffered;
        self.host.write(
            |store| store.stage(ops).map(|_| ()),
            |store| match buffered {
                true if store.pending_bytes() < BUFFER_BYTES => Durability::Memory,
                _ => Durability::Relaxed,
            },
        )
    }
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Op<'a> {
    Op::Set { key, value, expires: None }
}

impl Engine for Varve {
    const NAME: &'static str = "varve";

    fn open(dir: &Path, settings: &Settings) -> Outcome<Self> {
        let options = Options {
            memory_bytes: settings.memory_bytes,
            memtable_bytes_max: settings.memtable_bytes,
            // As in Chromium and Firefox.
            files_max: 1000,
            ..Options::default()
        };
        let host = FileHost::open(dir, options)?;
        let Settings { buffered, memory_bytes, .. } = *settings;
        Ok(Self { host, batch: Batch::new(true, true), buffered, memory_bytes })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.stage(&[set(key, value)])
    }

    fn delete(&mut self, key: &[u8]) -> Outcome {
        self.stage(&[Op::Delete { key }])
    }

    fn get<R>(&mut self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = self.host.store().find(key, |entry| show(entry.map(|entry| entry.value)));
        found.map_err(Into::into)
    }

    fn write(&mut self, pairs: &[([u8; 32], [u8; 32])]) -> Outcome {
        let ops: Vec<_> = pairs.iter().map(|(key, value)| set(key, value)).collect();
        self.stage(&ops)
    }

    fn scan(&mut self, from: &[u8], count: usize) -> Outcome<usize> {
        let store = self.host.store();
        let options =
            ScanOptions { lower: from.to_vec(), limit: Some(count as u64), ..ScanOptions::default() };
        let mut cursor = store.scan(options)?;
        let mut found = 0;
        loop {
            self.batch.reset(true, true);
            let progress = store.scan_next(&mut cursor, SCAN_BYTES, &mut self.batch)?;
            found += self.batch.count() as usize;
            if progress == Progress::Finished {
                return Ok(found);
            }
        }
    }

    fn flush(&mut self) -> Outcome {
        self.host.flush()
    }

    fn finish_jobs(&mut self) -> Outcome {
        self.host.finish_jobs()
    }

    fn compact(&mut self) -> Outcome {
        self.host.compact()
    }

    fn memory_bytes(&self) -> Option<u64> {
        let stats = self.host.store().stats();
        Some(stats.memtable_bytes + stats.frozen_bytes + stats.cache_bytes + stats.resident_bytes)
    }

    fn notes(&self) -> String {
        let stats = self.host.store().stats();
        let levels: Vec<_> =
            stats.levels.iter().map(|level| format!("{}/{}", level.tables, level.bytes >> 20)).collect();
        format!(
            "levels (tables/MiB) {}, cache {}/{} KiB, hits {} misses {}, resident {} KiB, {} flushes, {} compactions, {} moves, tables written {:.2} times",
            levels.join(" "),
            stats.cache_bytes >> 10,
            stats.cache_bytes_max >> 10,
            stats.cache_hits,
            stats.cache_misses,
            stats.resident_bytes >> 10,
            stats.flushes,
            stats.compactions,
            stats.moves,
            stats.write_amplification(),
        )
    }

    fn close(self) -> Outcome {
        self.host.close()
    }
}

impl Concurrent for Varve {
    fn get_all_from_all(
        &mut self,
        threads: u64,
        batches: u64,
        keys: impl Fn(u64, u64) -> Vec<[u8; 32]> + Sync,
    ) -> Outcome<u64> {
        let reader = self.host.reader()?;
        let memory_bytes = self.memory_bytes / threads as usize;
        all(threads, |thread| {
            let local = reader.open(memory_bytes);
            let mut found = 0;
            for key in (0..batches).flat_map(|batch| keys(thread, batch)) {
                found += u64::from(local.find(&key, |entry| entry.is_some())?);
            }
            Ok(found)
        })
    }

    fn beside(
        &mut self,
        writes: u64,
        pair: impl Fn(u64) -> ([u8; 32], [u8; 32]) + Sync,
        key: impl Fn(u64) -> [u8; 32] + Sync,
    ) -> Outcome<Beside> {
        let mut beside = Beside::default();
        for number in 0..writes {
            let (written, value) = pair(number);
            self.put(&written, &value)?;
            for _ in 0..READS_PER_WRITE {
                beside.missing += u64::from(self.get(&key(beside.reads), |value| value.is_none())?);
                beside.reads += 1;
            }
        }
        Ok(beside)
    }

    fn put_from_all(
        &mut self,
        threads: u64,
        each: u64,
        pair: impl Fn(u64, u64) -> ([u8; 16], [u8; 100]) + Sync,
    ) -> Outcome {
        for number in 0..each {
            let pairs: Vec<_> = (0..threads).map(|thread| pair(thread, number)).collect();
            let stage = |store: &mut FileStore| {
                pairs.iter().try_for_each(|(key, value)| store.set(key, value).map(|_| ()))
            };
            self.host.write(stage, |_| Durability::Relaxed)?;
        }
        Ok(())
    }

    fn get_from_all(
        &mut self,
        threads: u64,
        each: u64,
        key: impl Fn(u64, u64) -> [u8; 16] + Sync,
    ) -> Outcome<u64> {
        let mut found = 0;
        for number in 0..each {
            for thread in 0..threads {
                found += u64::from(self.get(&key(thread, number), |value| value.is_some())?);
            }
        }
        Ok(found)
    }
}
