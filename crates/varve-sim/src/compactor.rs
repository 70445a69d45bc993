//! The compactor worker of the simulation: runs one job step by step, in slots lent to it.
//!
//! It does what the worker in a browser does: ask the engine for input ranges, write outputs through its own
//! handles, flush them, return the slots. Invariant: after any failure of the compactor, [`Compactor::abort`]
//! leaves the pool as if the job had never begun.

use varve::compact::{Job, Step};
use varve::storage::{SLOT_HEADER_BYTES, SlotError, SlotPool, Storage};
use varve::store::JobTicket;
use varve::types::FileName;
use varve::{Error, Result, Store};

use crate::disk::{Disk, SimSlots};
use crate::waiting::patiently;

/// The store of a simulation.
pub type SimStore = Store<SlotPool<SimSlots>>;

/// An output table in a slot.
#[derive(Debug)]
struct Output {
    file: FileName,
    slot: u32,
    lent: bool,
}

/// A job in progress.
pub struct Compactor {
    job: Job,
    ticket: JobTicket,
    outputs: Vec<Output>,
    handles: SimSlots,
}

impl Compactor {
    /// Takes a job.
    ///
    /// # Errors
    /// The job does not decode.
    pub fn start(ticket: JobTicket, disk: &Disk) -> Result<Self> {
        Ok(Self {
            job: Job::decode(ticket.spec.clone())?,
            ticket,
            outputs: Vec::new(),
            handles: disk.slots(),
        })
    }

    /// Makes one step; true when the job is over and installed.
    ///
    /// # Errors
    /// The error of the disk or the engine; the caller should abort the job.
    pub fn step(&mut self, store: &mut SimStore, disk: &Disk, budget: usize) -> Result<bool> {
        match self.job.step(budget)? {
            Step::Working => {}
            Step::Need(need) => {
                let bytes = patiently(disk, || store.read_input(need.file.id, need.offset, need.len))?;
                self.job.feed(bytes);
            }
            Step::Write { table, offset } => {
                let slot = self.output(store, disk, FileName::table(table))?;
                let bytes = self.job.take_output();
                match self.handles.write_lent(slot, SLOT_HEADER_BYTES + offset, &bytes) {
                    Ok(count) if count == bytes.len() => {}
                    Ok(_) | Err(SlotError::Full) => return Err(Error::StorageFull),
                    Err(_) => return Err(Error::Io("the compactor could not write")),
                }
            }
            Step::Finished { table, size } => {
                let file = FileName::table(table);
                let slot = self.output(store, disk, file)?;
                self.handles.flush_lent(slot).map_err(|_| Error::Io("the compactor could not flush"))?;
                disk.set_open(slot, true);
                store.storage_mut().reclaim(file, size)?;
                self.outputs
                    .iter_mut()
                    .filter(|output| output.file == file)
                    .for_each(|output| output.lent = false);
            }
            Step::Done => {
                // From here on the engine owns the outputs, whatever it returns.
                self.outputs.clear();
                store.finish_job(self.ticket.id, &self.job.result())?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives up the job and its slots.
    ///
    /// # Errors
    /// The error of the storage.
    pub fn abort(self, store: &mut SimStore, disk: &Disk) -> Result<()> {
        store.fail_job(self.ticket.id, disk.is_limited());
        for output in self.outputs {
            disk.set_open(output.slot, true);
            if output.lent {
                store.storage_mut().abort_lent(output.file);
            } else {
                store.storage_mut().delete(output.file)?;
            }
        }
        Ok(())
    }

    /// The slot of an output, lent at its first use.
    fn output(&mut self, store: &mut SimStore, disk: &Disk, file: FileName) -> Result<u32> {
        if let Some(output) = self.outputs.iter().find(|output| output.file == file) {
            return Ok(output.slot);
        }
        let storage = store.storage_mut();
        let mut lent = storage.lend(file, self.ticket.bytes_hint)?;
        if lent.is_none() {
            disk.add_slots(storage.wanted_slots());
            storage.added()?;
            lent = storage.lend(file, self.ticket.bytes_hint)?;
        }
        let slot = lent.ok_or(Error::Io("there is no slot to lend"))?;
        disk.set_open(slot, false);
        self.outputs.push(Output { file, slot, lent: true });
        Ok(slot)
    }
}
