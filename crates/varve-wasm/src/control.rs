//! The control plane: what is called rarely.
//!
//! Invariant: every function that can fail throws `"<code number> <sentence>"`. Numbers of tables and sizes travel
//! as f64, exact up to 2^53.

use js_sys::{Object, Reflect, Uint8Array};
use varve::compact::JobKind;
use varve::error::Error;
use varve::options::{Host, Options};
use varve::storage::SlotPool;
use varve::store::{RecoveryReport, Stats, Store};
use varve::types::{FileName, StoreId};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsError, JsValue};

use crate::fault::exception;
use crate::host::HostSlots;
use crate::registry::{self, Open};

/// Spare room that an idle store keeps, in bytes.
const SPARE_BYTES: u64 = 256 << 10;

/// A memtable takes at most this part of the memory.
const MEMTABLE_SHARE: usize = 8;

/// Opens the store in a registered device, or makes a new one there. Answers its number and what recovery found.
///
/// # Errors
/// As `varve::store::Store::open`.
#[wasm_bindgen]
pub fn open_store(
    device: u32,
    settings: &JsValue,
    now_ms: f64,
    entropy_low: u32,
    entropy_high: u32,
    store_id: &[u8],
) -> Result<JsValue, JsError> {
    let host = Host {
        now_ms: now_ms as u64,
        entropy: u64::from(entropy_high) << 32 | u64::from(entropy_low),
        store_id: StoreId::try_from(store_id)
            .map_err(|_| exception(Error::InvalidArgument("A store id has 16 bytes.")))?,
    };
    let pool = SlotPool::open(HostSlots::new(device)).map_err(exception)?;
    let (store, report) = Store::open(pool, options(settings), host).map_err(exception)?;
    let opened = report_object(&report);
    set(&opened, "handle", f64::from(registry::add(Open::new(store))));
    Ok(opened.into())
}

fn options(settings: &JsValue) -> Options {
    let field = |name: &str| Reflect::get(settings, &JsValue::from_str(name)).ok();
    let number = |name: &str| field(name).and_then(|value| value.as_f64());
    let mut options = Options::default();
    if let Some(bytes) = number("memory_bytes") {
        options.memory_bytes = bytes as usize;
        options.memtable_bytes_max = options.memtable_bytes_max.min(options.memory_bytes / MEMTABLE_SHARE);
        options.memtable_bytes_min = options.memtable_bytes_min.min(options.memtable_bytes_max);
    }
    if let Some(files) = number("files_max") {
        options.files_max = files as u64;
    }
    if let Some(log) = field("log").and_then(|value| value.as_bool()) {
        options.log = log;
    }
    // Negative: as much as suits the store.
    if let Some(bytes) = number("history_bytes") {
        options.history_bytes = (bytes >= 0.0).then_some(bytes as u64);
    }
    options
}

fn report_object(report: &RecoveryReport) -> Object {
    let state = if report.new {
        "new"
    } else if report.torn {
        "torn"
    } else if report.clean {
        "clean"
    } else {
        "replayed"
    };
    let object = Object::new();
    put(&object, "state", &JsValue::from_str(state));
    set(&object, "records", report.records as f64);
    set(&object, "recordsDropped", report.records_dropped as f64);
    object
}

/// Commits, seals and closes a store. It is gone afterwards, unless this answers `Busy`.
///
/// # Errors
/// `Busy` when no slot is free for what is still in memory; what the last flush answered.
#[wasm_bindgen]
pub fn close_store(h: u32) -> Result<(), JsError> {
    registry::close(h).map_err(exception)
}

/// The sentence of the last error that a raw export answered with.
#[wasm_bindgen]
#[must_use]
pub fn last_error(h: u32) -> String {
    registry::last_error(h)
}

fn with<R>(h: u32, call: impl FnOnce(&mut Open) -> Result<R, Error>) -> Result<R, JsError> {
    registry::with(h, call).map_err(exception)
}

/// Flushes the log.
///
/// # Errors
/// As `varve::store::Store::sync`.
#[wasm_bindgen]
pub fn sync(h: u32) -> Result<(), JsError> {
    with(h, |open| open.store.sync())
}

/// Flushes and seals the log.
///
/// # Errors
/// As `varve::store::Store::seal`.
#[wasm_bindgen]
pub fn seal(h: u32) -> Result<(), JsError> {
    with(h, |open| {
        open.store.seal()?;
        open.sealed = open.store.last_sequence();
        Ok(())
    })
}

/// Flushes what the next opening would replay, if it is much. Before closing.
///
/// # Errors
/// As `varve::store::Store::fold_log`.
#[wasm_bindgen]
pub fn fold_log(h: u32) -> Result<(), JsError> {
    with(h, |open| open.store.fold_log())
}

/// Gives room back to the browser. For longer idle moments.
///
/// # Errors
/// As `varve::store::Store::shrink`.
#[wasm_bindgen]
pub fn shrink(h: u32) -> Result<(), JsError> {
    with(h, |open| open.store.shrink(SPARE_BYTES))
}

/// Tells how many bytes the quota leaves: compactions then stay small enough to fit.
///
/// # Errors
/// `Closed`.
#[wasm_bindgen]
pub fn set_room(h: u32, bytes: f64) -> Result<(), JsError> {
    with(h, |open| {
        open.store.storage_mut().set_room(Some(bytes as u64));
        Ok(())
    })
}

/// Completes the reserve that deletes need on a full storage, and gives back the room of files that only wait for
/// the next edit. For idle moments.
///
/// # Errors
/// As `varve::store::Store::release`.
#[wasm_bindgen]
pub fn release(h: u32) -> Result<(), JsError> {
    with(h, |open| {
        open.store.refill_reserve()?;
        open.store.release()
    })
}

/// Asks for everything to be flushed and merged by the jobs that are offered from now on.
///
/// # Errors
/// As `varve::store::Store::ask_for_compaction`.
#[wasm_bindgen]
pub fn ask_for_compaction(h: u32) -> Result<(), JsError> {
    with(h, |open| open.store.ask_for_compaction())
}

/// Freezes the active memtable, so that the next job flushes it.
///
/// # Errors
/// As `varve::store::Store::freeze_active`.
#[wasm_bindgen]
pub fn freeze(h: u32) -> Result<(), JsError> {
    with(h, |open| open.store.freeze_active())
}

/// The next job that is due, as `{ id, kind, spec, bytes_hint }`, or undefined.
///
/// # Errors
/// `Closed`; what the manifest's storage answered when tables only had to move or go.
#[wasm_bindgen]
pub fn take_job(h: u32) -> Result<JsValue, JsError> {
    let Some(ticket) = with(h, |open| open.store.take_job())? else { return Ok(JsValue::UNDEFINED) };
    let kind = match ticket.kind {
        JobKind::Flush => "flush",
        JobKind::Compaction => "compaction",
    };
    let object = Object::new();
    set(&object, "id", f64::from(ticket.id));
    put(&object, "kind", &JsValue::from_str(kind));
    put(&object, "spec", &Uint8Array::from(ticket.spec.as_slice()));
    set(&object, "bytes_hint", ticket.bytes_hint as f64);
    Ok(object.into())
}

/// Claims a slot for an output table; the caller closes it and hands it to the compactor.
///
/// # Errors
/// `Busy` when no slot is free, `StorageFull`.
#[wasm_bindgen]
pub fn lend(h: u32, table: f64, bytes_hint: f64) -> Result<u32, JsError> {
    let (file, bytes_hint) = (FileName::table(table as u64), bytes_hint as u64);
    with(h, |open| match open.store.storage_mut().lend(file, bytes_hint) {
        // The history goes before work has to wait for room.
        Err(Error::StorageFull | Error::Busy) if open.store.drop_history()? => {
            open.store.storage_mut().lend(file, bytes_hint)
        }
        lent => lent,
    })
}

/// Takes a lent table back, its slot open again.
///
/// # Errors
/// When the slot is not open, or shorter than `size`.
#[wasm_bindgen]
pub fn reclaim(h: u32, table: f64, size: f64) -> Result<(), JsError> {
    with(h, |open| open.store.storage_mut().reclaim(FileName::table(table as u64), size as u64))
}

/// Gives a lent table up.
///
/// # Errors
/// `Closed`.
#[wasm_bindgen]
pub fn abandon(h: u32, table: f64) -> Result<(), JsError> {
    with(h, |open| {
        open.store.storage_mut().abandon(FileName::table(table as u64));
        Ok(())
    })
}

/// Bytes of an input table.
///
/// # Errors
/// `Corrupt` beyond its end.
#[wasm_bindgen]
pub fn read_input(h: u32, table: f64, offset: f64, length: u32) -> Result<Vec<u8>, JsError> {
    with(h, |open| open.store.read_input(table as u64, offset as u64, length))
}

/// Makes the outputs of a job count.
///
/// # Errors
/// What the manifest's storage answered.
#[wasm_bindgen]
pub fn finish_job(h: u32, id: u32, result: &[u8]) -> Result<(), JsError> {
    with(h, |open| open.store.finish_job(id, result))
}

/// Forgets a job that failed; it will be offered again.
///
/// # Errors
/// `Closed`.
#[wasm_bindgen]
pub fn fail_job(h: u32, id: u32) -> Result<(), JsError> {
    with(h, |open| {
        open.store.fail_job(id);
        Ok(())
    })
}

/// Works on a due job for about `entries` entries; answers whether there is more to do.
///
/// # Errors
/// What the job met; it is offered again.
#[wasm_bindgen]
pub fn run_slice(h: u32, entries: u32) -> Result<bool, JsError> {
    with(h, |open| open.store.run_slice(entries as usize))
}

/// How many slots the host should add.
///
/// # Errors
/// `Closed`.
#[wasm_bindgen]
pub fn wanted_slots(h: u32) -> Result<u32, JsError> {
    with(h, |open| Ok(open.store.storage().wanted_slots()))
}

/// Takes in slots that the host added.
///
/// # Errors
/// `Version` when one was written by a newer format.
#[wasm_bindgen]
pub fn slots_added(h: u32) -> Result<(), JsError> {
    with(h, |open| open.store.storage_mut().added())
}

/// Numbers about a store.
///
/// # Errors
/// `Closed`.
#[wasm_bindgen]
pub fn stats(h: u32) -> Result<Vec<f64>, JsError> {
    with(h, |open| Ok(stats_numbers(&open.store.stats())))
}

/// The numbers of a store one after another, then those of each level; `js/src/wasm/stats.ts` has their names.
fn stats_numbers(stats: &Stats) -> Vec<f64> {
    let numbers = [
        stats.sequence,
        stats.memtable_entries,
        stats.memtable_bytes,
        stats.memtable_bytes_max,
        stats.frozen,
        stats.frozen_bytes,
        stats.wal_segments,
        stats.wal_segment_bytes,
        stats.wal_bytes,
        stats.wal_syncs,
        stats.writes,
        stats.cache_bytes,
        stats.cache_bytes_max,
        stats.cache_hits,
        stats.cache_misses,
        stats.filter_checks,
        stats.filter_negatives,
        stats.resident_bytes,
        stats.retained_bytes,
        stats.memory_bytes_max,
        stats.flushes,
        stats.flush_bytes,
        stats.last_flush_ms,
        stats.compactions,
        stats.compaction_bytes_read,
        stats.compaction_bytes_written,
        stats.entries_dropped,
        stats.last_compaction_ms,
        stats.moves,
        stats.drops,
        u64::from(stats.sweeping),
        stats.sweep_bytes,
        stats.sweep_bytes_max,
        u64::from(stats.stalled),
        stats.frozen_max,
        stats.level_0_trigger,
        stats.level_0_stall,
        stats.disk_bytes,
        stats.cursors,
        stats.snapshots,
        stats.snapshot_age_ms,
        stats.obsolete_files,
        stats.epoch,
    ];
    let mut all = vec![stats.write_amplification()];
    all.extend(numbers.map(|number| number as f64));
    for level in &stats.levels {
        let numbers = [level.tables, level.bytes, level.entries, level.target_bytes, level.score];
        all.extend(numbers.map(|number| number as f64));
    }
    all
}

fn set(object: &Object, name: &str, value: f64) {
    put(object, name, &JsValue::from_f64(value));
}

fn put(object: &Object, name: &str, value: &JsValue) {
    // A plain object takes every property.
    let _ = Reflect::set(object, &JsValue::from_str(name), value);
}
