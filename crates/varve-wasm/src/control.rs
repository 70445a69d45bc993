//! The control plane: exports that are called rarely.
//!
//! Invariant: numbers of tables and sizes travel as f64, exact up to 2^53, or as u64 in two out cells; longer results lie where
//! cells 0 (pointer) and 1 (length) point.

use varve::compact::JobKind;
use varve::error::Error;
use varve::options::{Host, Options};
use varve::storage::SlotPool;
use varve::store::{RecoveryReport, Stats, Store};
use varve::types::{FileName, StoreId};
use varve::{Encryption, manifest::key_slots};
use varve_host::HostSlots;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::registry::{self, Open, last_error, status, with};
use crate::scratch;

/// Spare room that an idle store keeps, in bytes.
const SPARE_BYTES: u64 = 256 << 10;

/// A memtable takes at most this part of the memory.
const MEMTABLE_SHARE: usize = 8;

/// Bytes of a store id and of the entropy after it.
const OPENING_BYTES: usize = 24;

/// Opens the store in a registered device, or makes a new one there. The scratch has a store id and entropy (8 bytes). `log`: bit 0 is set
/// if there is a log, bit 1 if the storage commits its writes later. A history below 0 means the default amount for the store. Returns the
/// store's number. The input is as for [`varve_change_keys`], with what wraps the keys of a new store; without any, nothing is
/// encrypted. Cell 0 has the state in which the store was found (0 new, 1 clean, 2 replayed, 3 torn), cells 2 and 4 the number of
/// records read and dropped, cells 6 to 9 the store's id.
#[wasm_bindgen]
pub fn varve_open(
    device: u32,
    memory_bytes: f64,
    files_max: u32,
    log: u32,
    history_bytes: f64,
    now_ms: f64,
) -> i32 {
    status(host(now_ms).and_then(|host| {
        let mut options = Options {
            memory_bytes: memory_bytes as usize,
            files_max: u64::from(files_max),
            log: log & 1 != 0,
            flush_when_full: log & 2 == 0,
            history_bytes: (history_bytes >= 0.0).then_some(history_bytes as u64),
            encryption: encryption()?,
            ..Options::default()
        };
        let mut pool = SlotPool::open(HostSlots::new(device))?;
        if log & 2 != 0 {
            pool.leave_table_room();
            // A flush must fit into the reserved room.
            options.memtable_bytes_min = 1 << 20;
        }
        options.memtable_bytes_max = options.memtable_bytes_max.min(options.memory_bytes / MEMTABLE_SHARE);
        options.memtable_bytes_min = options.memtable_bytes_min.min(options.memtable_bytes_max);
        let (store, report) = Store::open(pool, options, host)?;
        put_report(&report);
        for (cell, bytes) in (6..).zip(store.id().chunks_exact(4)) {
            scratch::set_out(cell, u32::from_le_bytes(bytes.try_into().unwrap_or_default()));
        }
        Ok(registry::add(Open::new(store)))
    }))
}

/// The wrapped data keys of the store in a registered device, in cells 0 and 1. Returns 1 if there are any, else 0.
#[wasm_bindgen]
pub fn varve_key_slots(device: u32) -> i32 {
    status(SlotPool::open(HostSlots::new(device)).and_then(|pool| {
        let found = key_slots(&pool)?;
        let has_keys = found.is_some();
        scratch::answer(found.unwrap_or_default());
        Ok(u32::from(has_keys))
    }))
}

/// Changes the data keys of a store, and the bytes that wrap them. The input is `varint count | { u16 number | key 32 B } * count | 16 random
/// bytes, fresh for each call | the wrapped keys`.
#[wasm_bindgen]
pub fn varve_change_keys(h: u32) -> i32 {
    let mut given = Some(encryption());
    with(h, &mut |open| given.take().map_or(Ok(0), |keys| open.store.change_keys(keys?).map(|()| 0)))
}

/// The numbers of the data keys that files need, two bytes each, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_keys_in_use(h: u32) -> i32 {
    with(h, &mut |open| {
        let keys = open.store.keys_in_use()?;
        scratch::answer(keys.iter().flat_map(|key| key.to_le_bytes()).collect());
        Ok(0)
    })
}

/// Takes the input as data keys, and overwrites it.
#[inline(never)]
fn encryption() -> Result<Encryption, Error> {
    let input = Zeroizing::new(scratch::take_input());
    Encryption::decode(&input)
}

/// The values that a host supplies when a store opens.
fn host(now_ms: f64) -> Result<Host, Error> {
    let missing = Error::InvalidArgument("A store id has 16 bytes, and entropy 8.");
    registry::scratch(|scratch| {
        let bytes = scratch.bytes(OPENING_BYTES);
        let Some((id, entropy)) = bytes.split_first_chunk() else { return Err(missing) };
        let Some(entropy) = entropy.first_chunk() else { return Err(missing) };
        let (now_ms, entropy) = (now_ms as u64, u64::from_le_bytes(*entropy));
        Ok(Host { now_ms, entropy, store_id: StoreId::from(*id) })
    })
}

fn put_report(report: &RecoveryReport) {
    let state = if report.new {
        0
    } else if report.torn {
        3
    } else if report.clean {
        1
    } else {
        2
    };
    scratch::set_out(0, state);
    scratch::set_out_u64(2, report.records);
    scratch::set_out_u64(4, report.records_dropped);
}

/// Commits, seals and closes a store. Its number is not valid afterwards.
#[wasm_bindgen]
pub fn varve_close(h: u32) -> i32 {
    status(registry::close(h))
}

/// The sentence of the last error that an export returned, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_last_error() {
    scratch::answer(last_error(Error::message).into_bytes());
}

/// Flushes the log.
#[wasm_bindgen]
pub fn varve_sync(h: u32) -> i32 {
    with(h, &mut |open| open.store.sync().map(|()| 0))
}

/// Flushes and seals the log.
#[wasm_bindgen]
pub fn varve_seal(h: u32) -> i32 {
    with(h, &mut |open| {
        open.store.seal()?;
        open.sealed = open.store.last_sequence();
        Ok(0)
    })
}

/// Flushes the writes that the next open would replay, if they are many. Call it before closing.
#[wasm_bindgen]
pub fn varve_fold_log(h: u32) -> i32 {
    with(h, &mut |open| open.store.fold_log().map(|()| 0))
}

/// Returns free room to the browser. Call it on a full storage, and with `idle` in longer idle times: then merges also remove overwritten
/// entries.
#[wasm_bindgen]
pub fn varve_shrink(h: u32, idle: bool) -> i32 {
    with(h, &mut |open| {
        if idle {
            open.store.begin_idle()?;
        }
        open.store.shrink(SPARE_BYTES).map(|()| 0)
    })
}

/// Sets how many bytes the quota leaves: compactions then stay small enough to fit.
#[wasm_bindgen]
pub fn varve_set_room(h: u32, bytes: f64) -> i32 {
    with(h, &mut |open| {
        open.store.storage_mut().set_room(Some(bytes as u64));
        Ok(0)
    })
}

/// Asks for tables to be rewritten without the entries that newer tables hide. Call it when a write was refused for lack
/// of room before it reached the engine.
#[wasm_bindgen]
pub fn varve_want_room(h: u32) -> i32 {
    with(h, &mut |open| {
        open.store.want_room();
        Ok(0)
    })
}

/// Sets how many bytes spare files may keep when a table is removed.
#[wasm_bindgen]
pub fn varve_set_spare(h: u32, bytes: f64) -> i32 {
    with(h, &mut |open| {
        open.store.storage_mut().set_spare(bytes as u64);
        Ok(0)
    })
}

/// Completes the reserve that deletes need on a full storage, and frees the room of files that only wait for the next
/// edit. Call it in idle times.
#[wasm_bindgen]
pub fn varve_release(h: u32) -> i32 {
    with(h, &mut |open| {
        open.store.refill_reserve()?;
        open.store.release().map(|()| 0)
    })
}

/// Requests that the jobs offered from now on flush and merge everything.
#[wasm_bindgen]
pub fn varve_ask_for_compaction(h: u32) -> i32 {
    with(h, &mut |open| open.store.ask_for_compaction().map(|()| 0))
}

/// Freezes the active memtable, so that the next job flushes it. For tests that replay the work of the native engine.
#[wasm_bindgen]
pub fn varve_freeze(h: u32) -> i32 {
    with(h, &mut |open| open.store.freeze_active().map(|()| 0))
}

/// The next job that is due: 0 none, 1 a flush, 2 a compaction. Cells 0 and 1 point to its specification. Its number is in cell 2,
/// 1 in cell 3 if it frees as much room as it takes, and the maximum size of one output in cells 4 and 5.
#[wasm_bindgen]
pub fn varve_take_job(h: u32) -> i32 {
    with(h, &mut |open| {
        let Some(ticket) = open.store.take_job()? else { return Ok(0) };
        scratch::answer(ticket.spec);
        scratch::set_out(2, ticket.id);
        scratch::set_out(3, u32::from(ticket.gives_room));
        scratch::set_out_u64(4, ticket.bytes_hint);
        Ok(match ticket.kind {
            JobKind::Flush => 1,
            JobKind::Compaction => 2,
        })
    })
}

/// Claims a slot for an output table. The caller closes it and passes it to the compactor. Returns 1 + the slot, or 0 when no slot is
/// spare.
#[wasm_bindgen]
pub fn varve_lend(h: u32, table: f64, bytes_hint: f64) -> i32 {
    let (file, bytes_hint) = (FileName::table(table as u64), bytes_hint as u64);
    with(h, &mut |open| {
        let lent = match open.store.storage_mut().lend(file, bytes_hint) {
            // The history is dropped before work has to wait for room.
            Err(Error::StorageFull) if open.store.drop_history()? => {
                open.store.storage_mut().lend(file, bytes_hint)
            }
            lent => lent,
        };
        Ok(lent?.map_or(0, |slot| slot + 1))
    })
}

/// Takes a lent table back. Its slot must be open again and not shorter than `size`.
#[wasm_bindgen]
pub fn varve_reclaim(h: u32, table: f64, size: f64) -> i32 {
    with(h, &mut |open| {
        open.store.storage_mut().reclaim(FileName::table(table as u64), size as u64).map(|()| 0)
    })
}

/// Aborts a lent table.
#[wasm_bindgen]
pub fn varve_abort_lent(h: u32, table: f64) -> i32 {
    with(h, &mut |open| {
        open.store.storage_mut().abort_lent(FileName::table(table as u64));
        Ok(0)
    })
}

/// Bytes of an input table, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_read_input(h: u32, table: f64, offset: f64, length: u32) -> i32 {
    with(h, &mut |open| {
        scratch::answer(open.store.read_input(table as u64, offset as u64, length)?);
        Ok(0)
    })
}

/// Installs the outputs of a job in the store. The input is the result of the job.
#[wasm_bindgen]
pub fn varve_finish_job(h: u32, id: u32) -> i32 {
    let result = scratch::take_input();
    with(h, &mut |open| open.store.finish_job(id, &result).map(|()| 0))
}

/// Drops a job that failed. `full` means that it failed for lack of room. The job will be offered again.
#[wasm_bindgen]
pub fn varve_fail_job(h: u32, id: u32, full: u32) -> i32 {
    with(h, &mut |open| {
        open.store.fail_job(id, full != 0);
        Ok(0)
    })
}

/// Notes that a running job cannot read a table.
#[wasm_bindgen]
pub fn varve_note_damage(h: u32, table: f64) -> i32 {
    with(h, &mut |open| {
        open.store.note_damage(table as u64);
        Ok(0)
    })
}

/// 1 if the store has a table that a job of this session could not read.
#[wasm_bindgen]
pub fn varve_has_damage(h: u32) -> i32 {
    with(h, &mut |open| Ok(u32::from(open.store.has_damage())))
}

/// Works on a due job for about `entries` entries; 1 when there is more to do.
#[wasm_bindgen]
pub fn varve_run_slice(h: u32, entries: usize) -> i32 {
    with(h, &mut |open| open.store.run_slice(entries).map(u32::from))
}

/// Number of slots that the host should add.
#[wasm_bindgen]
pub fn varve_wanted_slots(h: u32) -> i32 {
    with(h, &mut |open| Ok(open.store.storage().wanted_slots()))
}

/// Registers slots that the host added.
#[wasm_bindgen]
pub fn varve_slots_added(h: u32) -> i32 {
    with(h, &mut |open| open.store.storage_mut().added().map(|()| 0))
}

/// Numbers about a store, as f64, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_stats(h: u32) -> i32 {
    with(h, &mut |open| {
        let numbers = stats_numbers(&open.store.stats());
        scratch::answer(numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
        Ok(0)
    })
}

/// The numbers of a store one after another, then the numbers of each level; `js/src/wasm/stats.ts` has their names.
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
