//! A job on the compactor's side: blocks in, blocks out.
//!
//! Invariant: `step` says what to do next and is not called again before that is done: `need` answered by
//! `feed`, `output` taken.

use varve::compact::{Job, Step};
use varve::table::Need;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::fault::exception;

const WORKING: u32 = 0;
const NEED: u32 = 1;
const WRITE: u32 = 2;
const FINISHED: u32 = 3;
const DONE: u32 = 4;

/// A flush or compaction in progress.
#[wasm_bindgen]
pub struct CompactionJob {
    job: Job,
    need: Option<Need>,
    table: u64,
    offset: u64,
}

#[wasm_bindgen]
impl CompactionJob {
    /// Starts the job that a specification describes.
    ///
    /// # Errors
    /// When the bytes are no specification.
    #[wasm_bindgen(constructor)]
    pub fn new(spec: Vec<u8>) -> Result<CompactionJob, JsError> {
        let job = Job::decode(spec).map_err(exception)?;
        Ok(Self { job, need: None, table: 0, offset: 0 })
    }

    /// Handles up to `entries` entries: 0 working, 1 need, 2 write, 3 table finished, 4 done.
    ///
    /// # Errors
    /// When an input is damaged; the job is over.
    pub fn step(&mut self, entries: u32) -> Result<u32, JsError> {
        Ok(match self.job.step(entries as usize).map_err(exception)? {
            Step::Working => WORKING,
            Step::Need(need) => {
                self.need = Some(need);
                NEED
            }
            Step::Write { table, offset } => {
                (self.table, self.offset) = (table, offset);
                WRITE
            }
            Step::Finished { table, size } => {
                (self.table, self.offset) = (table, size);
                FINISHED
            }
            Step::Done => DONE,
        })
    }

    /// Table, offset and length of what `step` needs.
    #[must_use]
    pub fn need(&self) -> Vec<f64> {
        let Some(need) = &self.need else { return Vec::new() };
        vec![need.file.id as f64, need.offset as f64, f64::from(need.len)]
    }

    /// Hands over what was needed.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        self.need = None;
        self.job.feed(bytes);
    }

    /// The bytes to write, once.
    pub fn output(&mut self) -> Vec<u8> {
        self.job.take_output()
    }

    /// The table that is written, or was finished.
    #[must_use]
    pub fn output_table(&self) -> f64 {
        self.table as f64
    }

    /// Where the bytes belong; after a finished table its size.
    #[must_use]
    pub fn output_offset(&self) -> f64 {
        self.offset as f64
    }

    /// What the engine needs to make the outputs count.
    #[must_use]
    pub fn result(&self) -> Vec<u8> {
        self.job.result()
    }
}
