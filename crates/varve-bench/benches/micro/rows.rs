//! The rows: the data that is loaded before, and the operation.
//!
//! Keys have 16 bytes, values 100 unless a row has another size; both are random. Everything fits in the memory that each
//! engine is given, so reads measure the engine and not the disk.

use std::hint::black_box;
use std::path::Path;

use varve_bench::data::{Rng, json, key, key_in_order, value};
use varve_bench::engine::{Engine, Outcome, Settings};

/// A store and what is done to it.
pub trait Subject {
    /// Does that many operations.
    fn run(&mut self, ops: u64) -> Outcome;

    /// Waits until no work is left in the background.
    fn finish_jobs(&mut self) -> Outcome;
}

struct Running<E, W> {
    engine: E,
    work: W,
}

impl<E: Engine, W: FnMut(&mut E, u64) -> Outcome> Subject for Running<E, W> {
    fn run(&mut self, ops: u64) -> Outcome {
        (self.work)(&mut self.engine, ops)
    }

    fn finish_jobs(&mut self) -> Outcome {
        self.engine.finish_jobs()
    }
}

fn running<E: Engine + 'static>(
    engine: E,
    work: impl FnMut(&mut E, u64) -> Outcome + 'static,
) -> Box<dyn Subject> {
    Box::new(Running { engine, work })
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Put,
    PutBuffered,
    GetMemtable,
    GetTable,
    PutGet,
    PutInOrder,
    Get,
    Delete,
    PutLarge,
    PutSmall,
    PutFromAll,
    GetFromAll,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    /// Its folder.
    pub id: &'static str,
    pub title: &'static str,
    pub work: Work,
    /// The published figure for a store of this kind, on another machine, in nanoseconds.
    pub published_ns: Option<f64>,
}

const fn row(id: &'static str, title: &'static str, work: Work, published_ns: f64) -> Row {
    Row { id, title, work, published_ns: Some(published_ns) }
}

pub const ROWS: [Row; 12] = [
    row("put", "put", Work::Put, 354.0),
    Row { id: "put-buffered", title: "put, log buffered", work: Work::PutBuffered, published_ns: None },
    row("get-memtable", "get, memtable", Work::GetMemtable, 93.0),
    row("get-table", "get, SSTable", Work::GetTable, 132.0),
    row("put-get", "put + get", Work::PutGet, 532.0),
    row("write-seq", "sequential write", Work::PutInOrder, 420.0),
    row("read-rand", "random read", Work::Get, 212.0),
    row("delete", "delete", Work::Delete, 348.0),
    row("put-large", "large values (4 KB of JSON)", Work::PutLarge, 4900.0),
    row("put-small", "small values (8 B)", Work::PutSmall, 438.0),
    row("put-concurrent", "concurrent writes (4)", Work::PutFromAll, 599.0),
    row("get-concurrent", "concurrent reads (4)", Work::GetFromAll, 304.0),
];

/// Keys that random writes choose from.
const KEYS: u64 = 1_000_000;
/// The amount that one memtable of any engine holds.
const IN_MEMTABLE: u64 = 10_000;
const IN_TABLE: u64 = 100_000;
const LOADED: u64 = 200_000;
/// Tasks of the concurrent rows.
const TASKS: u64 = 4;
/// Different values, made before the timing starts.
const VALUES: usize = 64;

fn load<E: Engine>(engine: &mut E, entries: u64) -> Outcome {
    for number in 0..entries {
        engine.put(&key::<16>(number), &value::<100>(number, 0))?;
    }
    Ok(())
}

/// A store that was loaded as its row asks, and the operation on it.
pub fn subject<E: Engine + 'static>(row: &Row, folder: &Path) -> Outcome<Box<dyn Subject>> {
    let settings =
        Settings { memory_bytes: 64 << 20, memtable_bytes: 4 << 20, buffered: row.work == Work::PutBuffered };
    let mut engine = E::open(folder, &settings)?;
    match row.work {
        Work::GetMemtable => load(&mut engine, IN_MEMTABLE)?,
        Work::GetTable | Work::GetFromAll => {
            load(&mut engine, IN_TABLE)?;
            engine.compact()?;
        }
        Work::Get | Work::Delete => {
            load(&mut engine, LOADED)?;
            engine.finish_jobs()?;
        }
        _ => {}
    }
    Ok(operation(row.work, engine))
}

fn operation<E: Engine + 'static>(work: Work, engine: E) -> Box<dyn Subject> {
    match work {
        Work::Put | Work::PutBuffered => put(engine, random_key, hundred_bytes),
        Work::PutInOrder => put(engine, |number, _| key_in_order::<16>(number), hundred_bytes),
        Work::PutLarge => put(engine, random_key, |number| json(number as u64)),
        Work::PutSmall => put(engine, random_key, |number| value::<8>(number as u64, 0).to_vec()),
        Work::GetMemtable => get(engine, IN_MEMTABLE),
        Work::GetTable => get(engine, IN_TABLE),
        Work::Get => get(engine, LOADED),
        Work::PutGet => put_get(engine),
        Work::Delete => delete(engine),
        Work::PutFromAll => put_from_all(engine),
        Work::GetFromAll => get_from_all(engine),
    }
}

fn random_key(_: u64, rng: &mut Rng) -> [u8; 16] {
    key(rng.below(KEYS))
}

fn hundred_bytes(number: usize) -> Vec<u8> {
    value::<100>(number as u64, 0).to_vec()
}

fn put<E: Engine + 'static>(
    engine: E,
    key: impl Fn(u64, &mut Rng) -> [u8; 16] + 'static,
    value: impl Fn(usize) -> Vec<u8>,
) -> Box<dyn Subject> {
    let values: Vec<_> = (0..VALUES).map(value).collect();
    let mut rng = Rng::new(1);
    let mut number = 0;
    running(engine, move |engine, ops| {
        for _ in 0..ops {
            engine.put(&key(number, &mut rng), &values[number as usize % VALUES])?;
            number += 1;
        }
        Ok(())
    })
}

fn look<E: Engine>(engine: &mut E, key: &[u8; 16]) -> Outcome {
    let last = engine.get(key, |value| black_box(value?.last().copied()))?;
    if last.is_none() {
        return Err("a key is missing".into());
    }
    Ok(())
}

fn get<E: Engine + 'static>(engine: E, entries: u64) -> Box<dyn Subject> {
    let mut rng = Rng::new(2);
    running(engine, move |engine, ops| (0..ops).try_for_each(|_| look(engine, &key(rng.below(entries)))))
}

fn put_get<E: Engine + 'static>(engine: E) -> Box<dyn Subject> {
    let value = value::<100>(0, 0);
    let mut rng = Rng::new(3);
    running(engine, move |engine, ops| {
        for _ in 0..ops {
            let key = random_key(0, &mut rng);
            engine.put(&key, &value)?;
            look(engine, &key)?;
        }
        Ok(())
    })
}

fn delete<E: Engine + 'static>(engine: E) -> Box<dyn Subject> {
    let mut rng = Rng::new(4);
    running(engine, move |engine, ops| {
        (0..ops).try_for_each(|_| engine.delete(&key::<16>(rng.below(LOADED))))
    })
}

fn put_from_all<E: Engine + 'static>(engine: E) -> Box<dyn Subject> {
    let mut base = 0;
    running(engine, move |engine, ops| {
        let each = ops.div_ceil(TASKS);
        base += each;
        engine.put_from_all(TASKS, each, |task, number| {
            (key(((base + number) * TASKS + task) % KEYS), value(number, 0))
        })
    })
}

fn get_from_all<E: Engine + 'static>(engine: E) -> Box<dyn Subject> {
    let mut base = 0;
    running(engine, move |engine, ops| {
        let each = ops.div_ceil(TASKS);
        base += each;
        let found = engine.get_from_all(TASKS, each, |task, number| {
            key(varve_bench::data::mix((base + number) * TASKS + task) % IN_TABLE)
        })?;
        if found < each * TASKS { Err("a key is missing".into()) } else { Ok(()) }
    })
}
