//! The work on one store, phase by phase.
//!
//! Invariant: the keys of a store of `n` pairs are those of the numbers below `n`, in random order of keys, and a read is
//! compared with the last written value. Every phase prints one line of JSON when it is over.

use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;
use serde_json::{Value, json};
use varve_bench::data::{Rng, key, value};
use varve_bench::engine::{Engine, Outcome};
use varve_bench::process::{disk_bytes, resident_bytes, resident_bytes_max, written_bytes};

use crate::choice::Choice;

/// Bytes of a pair.
const PAIR_BYTES: u64 = 64;
/// Writes of one transaction.
const TRANSACTION: usize = 10_000;
/// Threads that read batches beside each other.
const READERS: u64 = 10;
/// Pairs that are iterated over, and read in ranges.
const SCANNED: usize = 500_000;
/// Pairs of one range.
const RANGE: usize = 100;
/// Writes while others read, at most.
const WRITES_BESIDE: u64 = 400_000;
/// Samples of the room in use during the load.
const SAMPLES: u64 = 50;

/// A phase that is being timed.
struct Clock {
    name: &'static str,
    started: Instant,
    working: ProcessTime,
}

impl Clock {
    fn start(name: &'static str) -> Self {
        eprint!("\r\x1b[K  {name} ...");
        Self { name, started: Instant::now(), working: ProcessTime::now() }
    }

    fn stop(self, engine: &str, ops: u64, more: Value) {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu_seconds = self.working.elapsed().as_secs_f64();
        let rate = ops as f64 / seconds;
        eprintln!(
            "\r\x1b[K  {engine} {}: {seconds:.2} s ({cpu_seconds:.2} s of processor), {rate:.0}/s {more}",
            self.name
        );
        let phase = json!({
            "name": self.name,
            "ops": ops,
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "rss": resident_bytes(),
            "more": more,
        });
        println!("{phase}");
    }
}

/// The maximum memory use that the engine reported.
struct Memory(u64);

impl Memory {
    fn look<E: Engine>(&mut self, engine: &E) {
        self.0 = self.0.max(engine.memory_bytes().unwrap_or(0));
    }
}

/// Runs all phases.
pub fn run<E: Engine>(choice: &Choice, pairs: u64) -> Outcome {
    let folder = choice.folder(E::NAME);
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder)?;
    eprintln!("{} {pairs} pairs", E::NAME);
    let mut memory = Memory(0);
    points::<E>(choice, &folder.join("points"), pairs, &mut memory)?;
    std::fs::remove_dir_all(folder.join("points"))?;
    transactions::<E>(choice, &folder.join("transactions"), pairs)?;
    std::fs::remove_dir_all(&folder)?;
    let summary = json!({ "engine_memory_max": memory.0, "rss_max": resident_bytes_max() });
    println!("{}", json!({ "name": "memory", "more": summary }));
    Ok(())
}

fn points<E: Engine>(choice: &Choice, folder: &Path, pairs: u64, memory: &mut Memory) -> Outcome {
    let settings = choice.settings();
    let reads = pairs.min(choice.reads_max);
    let mut engine = E::open(folder, &settings)?;
    load(&mut engine, folder, pairs, memory)?;
    read(&mut engine, "read", pairs, reads, memory)?;

    engine.close()?;
    let clock = Clock::start("open");
    let mut engine = E::open(folder, &settings)?;
    engine.get(&key::<32>(0), |_| ())?;
    clock.stop(E::NAME, 1, Value::Null);
    read(&mut engine, "read after reopen", pairs, reads, memory)?;

    let wanted = SCANNED.min(pairs as usize);
    let clock = Clock::start("iterate");
    let found = engine.scan(&[], wanted)?;
    expect(found, wanted)?;
    clock.stop(E::NAME, found as u64, Value::Null);

    let mut rng = Rng::new(5);
    let clock = Clock::start("range");
    let mut found = 0;
    for _ in 0..wanted / RANGE {
        // A range that begins among the last keys is shorter.
        found += engine.scan(&key::<32>(rng.below(pairs)), RANGE)?;
    }
    clock.stop(E::NAME, found as u64, Value::Null);
    memory.look(&engine);

    let writes = WRITES_BESIDE.min(pairs / 5);
    let written = |number: u64| number.wrapping_mul(0x9e37_79b1) % pairs;
    let mut keys = vec![[0; 32]; 1 << 16];
    keys.iter_mut().for_each(|into| *into = key(rng.below(pairs)));
    let clock = Clock::start("read while writing");
    let beside = engine.beside(
        writes,
        |number| (key(written(number)), value(written(number), 1)),
        |number| keys[(number % (1 << 16)) as usize],
    )?;
    expect(beside.missing, 0)?;
    clock.stop(E::NAME, writes + beside.reads, json!({ "writes": writes, "reads": beside.reads }));
    engine.finish_jobs()?;

    let clock = Clock::start("compact");
    engine.compact()?;
    let space = disk_bytes(folder) as f64 / (pairs * PAIR_BYTES) as f64;
    clock.stop(E::NAME, pairs, json!({ "space": space, "file_bytes": disk_bytes(folder) }));
    read(&mut engine, "read after compact", pairs, reads, memory)?;

    let clock = Clock::start("delete");
    for number in 0..pairs {
        engine.delete(&key::<32>(number))?;
    }
    clock.stop(E::NAME, pairs, Value::Null);
    expect(engine.scan(&[], 1)?, 0)?;
    memory.look(&engine);
    engine.finish_jobs()?;
    engine.close()
}

/// Writes all pairs, and measures the cost.
fn load<E: Engine>(engine: &mut E, folder: &Path, pairs: u64, memory: &mut Memory) -> Outcome {
    let before = written_bytes();
    let (mut space_max, mut bytes_max): (f64, u64) = (0.0, 0);
    let mut slowest: f64 = 0.0;
    let clock = Clock::start("write");
    let each = (pairs / SAMPLES).max(1);
    for number in 0..pairs {
        let called = (number % 64 == 0).then(Instant::now);
        engine.put(&key::<32>(number), &value::<32>(number, 0))?;
        if let Some(called) = called {
            slowest = slowest.max(called.elapsed().as_secs_f64());
        }
        if number % each == each - 1 {
            let bytes = disk_bytes(folder);
            bytes_max = bytes_max.max(bytes);
            // The first few MiB mostly show the size of an empty store.
            if number > pairs / 4 {
                space_max = space_max.max(bytes as f64 / ((number + 1) * PAIR_BYTES) as f64);
            }
            memory.look(engine);
            eprint!("\r\x1b[K  write {}%", (number + 1) * 100 / pairs);
        }
    }
    let room = bytes_max as f64 / (pairs * PAIR_BYTES) as f64;
    clock.stop(E::NAME, pairs, json!({ "space_max": space_max, "room": room, "slowest_ms": slowest * 1e3 }));
    let clock = Clock::start("background work after it");
    engine.finish_jobs()?;
    let written = written_bytes() - before;
    let amplification = written as f64 / (pairs * PAIR_BYTES) as f64;
    let bytes = disk_bytes(folder);
    let space = bytes as f64 / (pairs * PAIR_BYTES) as f64;
    let notes = engine.notes();
    clock.stop(
        E::NAME,
        0,
        json!({ "write_amplification": amplification, "file_bytes": bytes, "space": space, "notes": notes }),
    );
    Ok(())
}

fn read<E: Engine>(
    engine: &mut E,
    name: &'static str,
    pairs: u64,
    reads: u64,
    memory: &mut Memory,
) -> Outcome {
    let mut rng = Rng::new(3);
    let clock = Clock::start(name);
    for _ in 0..reads {
        let number = rng.below(pairs);
        let known = |found: &[u8]| found == value::<32>(number, 0) || found == value::<32>(number, 1);
        if !engine.get(&key::<32>(number), |found| found.is_some_and(known))? {
            return Err(format!("{name}: pair {number} is missing or wrong").into());
        }
    }
    memory.look(engine);
    clock.stop(E::NAME, reads, json!({ "notes": engine.notes() }));
    Ok(())
}

/// A store written and read in transactions.
fn transactions<E: Engine>(choice: &Choice, folder: &Path, pairs: u64) -> Outcome {
    let mut engine = E::open(folder, &choice.settings())?;
    let clock = Clock::start("transactions: write");
    let mut batch = Vec::with_capacity(TRANSACTION);
    for number in 0..pairs {
        batch.push((key(number), value(number, 0)));
        if batch.len() == TRANSACTION || number == pairs - 1 {
            engine.write(&batch)?;
            batch.clear();
        }
    }
    clock.stop(E::NAME, pairs, Value::Null);
    engine.finish_jobs()?;
    let reads = pairs.min(choice.reads_max);
    let mut rng = Rng::new(7);
    let clock = Clock::start("transactions: read");
    let mut keys = Vec::with_capacity(TRANSACTION);
    let mut found = 0;
    for number in 0..reads {
        keys.push(key(rng.below(pairs)));
        if keys.len() == TRANSACTION || number == reads - 1 {
            found += engine.get_all(&keys)?;
            keys.clear();
        }
    }
    expect(found, reads)?;
    clock.stop(E::NAME, reads, Value::Null);

    let batches = (reads / TRANSACTION as u64 / READERS).max(1);
    let wanted = READERS * batches * TRANSACTION as u64;
    let clock = Clock::start("transactions: read by 10 threads");
    let found = engine.get_all_from_all(READERS, batches, |thread, batch| {
        let mut rng = Rng::new(100 + thread * batches + batch);
        (0..TRANSACTION).map(|_| key(rng.below(pairs))).collect()
    })?;
    expect(found, wanted)?;
    clock.stop(E::NAME, wanted, Value::Null);
    engine.close()
}

fn expect<T: PartialEq + std::fmt::Display>(found: T, wanted: T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("{found} found, {wanted} expected").into()) }
}
