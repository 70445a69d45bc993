//! A job on the compactor's side: blocks in, blocks out.
//!
//! Invariant: `varve_job_step` returns what to do next, and is not called again before that is done: the needed bytes fed, the
//! output read.

use varve::Error;
use varve::compact::{Job, Step};
use varve::types::FileKind;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::registry::{add_job, drop_job, job, status};
use crate::scratch;

const WORKING: u32 = 0;
const NEED: u32 = 1;
const WRITE: u32 = 2;
const FINISHED: u32 = 3;
const DONE: u32 = 4;

/// A flush or compaction in progress.
pub(crate) struct CompactionJob(Job);

/// Starts the job whose specification is the input. Returns its number.
#[wasm_bindgen]
pub fn varve_job_new() -> i32 {
    status(Job::decode(scratch::take_input()).map(|job| add_job(CompactionJob(job))))
}

/// Handles up to `entries` entries. Returns 0 working, 1 bytes are needed, 2 the output must be written, 3 a table is finished, 4 done. The
/// table number is in cells 0 and 1, an offset or the size of the finished table in 2 and 3, the number of needed bytes in 4. Of a step that
/// fails, cells 2 and 3 have the number of the table that is damaged, or 0.
#[wasm_bindgen]
pub fn varve_job_step(number: u32, entries: usize) -> i32 {
    job(number, |CompactionJob(job)| {
        let step = job.step(entries).inspect_err(|error| scratch::set_out_u64(2, damaged_table(error)))?;
        let (step, table, offset, length) = match step {
            Step::Working => (WORKING, 0, 0, 0),
            Step::Need(need) => (NEED, need.file.id, need.offset, need.len),
            Step::Write { table, offset } => (WRITE, table, offset, 0),
            Step::Finished { table, size } => (FINISHED, table, size, 0),
            Step::Done => (DONE, 0, 0, 0),
        };
        scratch::set_out_u64(0, table);
        scratch::set_out_u64(2, offset);
        scratch::set_out(4, length);
        Ok(step)
    })
}

fn damaged_table(error: &Error) -> u64 {
    let Error::Corrupt(damage) = error else { return 0 };
    damage.file.filter(|file| file.kind == FileKind::Table).map_or(0, |file| file.id)
}

/// Supplies the input as the bytes that were needed.
#[wasm_bindgen]
pub fn varve_job_feed(number: u32) -> i32 {
    job(number, |CompactionJob(job)| {
        job.feed(scratch::take_input());
        Ok(0)
    })
}

/// The bytes to write, once, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_job_output(number: u32) -> i32 {
    job(number, |CompactionJob(job)| {
        scratch::answer(job.take_output());
        Ok(0)
    })
}

/// The result that the engine needs to install the outputs, in cells 0 and 1.
#[wasm_bindgen]
pub fn varve_job_result(number: u32) -> i32 {
    job(number, |CompactionJob(job)| {
        scratch::answer(job.result());
        Ok(0)
    })
}

/// Closes a job.
#[wasm_bindgen]
pub fn varve_job_free(number: u32) {
    drop_job(number);
}
