//! Varve's host over real files: threads and a folder do the work of a browser's workers.
//!
//! ```text
//! the thread of the store              flusher, compactor (a thread each)
//!   take_job -- order: spec, inputs -->  Job::step: reads its inputs itself
//!   lend a slot  <-- ask --------------  an output begins
//!       -- file -->                      writes and flushes it
//!   reclaim      <-- finished ---------
//!   finish_job   <-- done -------------
//! ```
//!
//! Invariant: the store lives on one thread. Other threads work only in files of their own and through messages.

mod files;
mod worker;

pub use files::{LentSlots, Traffic};

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use varve::compact::{JobInput, JobKind, JobSpec};
use varve::storage::{SharedSlots, SlotPool, Storage};
use varve::store::{JobTicket, Reader};
use varve::types::FileName;
use varve::{Durability, Host, Options, Store};

use crate::engine::Outcome;
use worker::{Answer, Input, Message, Order, Worker};

/// Spare room kept by an idle store, as in the browser.
const SPARE_BYTES: u64 = 256 << 10;
/// Writes between two checks for due jobs.
const WRITES_UNWATCHED: u32 = 32;

/// The store of a folder.
pub type FileStore = Store<SlotPool<LentSlots>>;

/// An output that a worker writes.
struct Lent {
    file: FileName,
    slot: u32,
    /// Its writer has not returned it.
    out: bool,
}

struct Running {
    ticket: JobTicket,
    outputs: Vec<Lent>,
}

/// A store with its workers.
pub struct FileHost {
    store: FileStore,
    /// Dropped before the workers: then a worker that waits for an answer gets an error and ends.
    messages: Receiver<Message>,
    flusher: Worker,
    compactor: Worker,
    running: Vec<Running>,
    unwatched: u32,
}

impl FileHost {
    /// Opens the store in `folder`, or makes it.
    ///
    /// # Errors
    /// The error of the file system or the store; the other methods do the same.
    pub fn open(folder: &Path, options: Options) -> Outcome<Self> {
        let slots = LentSlots::open(folder)?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let entropy = crate::data::mix(now.as_nanos() as u64);
        let host = Host { now_ms: now.as_millis() as u64, entropy, store_id: *b"varve-bench-host" };
        let (store, _) = Store::open(SlotPool::open(slots)?, options, host)?;
        let (sender, messages) = channel();
        let flusher = Worker::start(sender.clone());
        let compactor = Worker::start(sender);
        let mut host = Self { store, messages, flusher, compactor, running: Vec::new(), unwatched: 0 };
        // There is room on the disk of a benchmark: spare files may go back to it.
        host.store.storage_mut().set_room(Some(1 << 40));
        host.provide_slots()?;
        host.store.refill_reserve()?;
        Ok(host)
    }

    /// The store, for reads.
    #[must_use]
    pub fn store(&self) -> &FileStore {
        &self.store
    }

    /// A reader of the store as it is now.
    ///
    /// # Errors
    /// As [`Store::reader`].
    pub fn reader(&mut self) -> varve::Result<Reader> {
        self.store.reader()
    }

    /// Runs `stage` to stage something, once no writer has to wait, and commits it with `durability`; then looks after
    /// jobs now and then.
    pub fn write(
        &mut self,
        stage: impl FnOnce(&mut FileStore) -> varve::Result<()>,
        durability: impl FnOnce(&FileStore) -> Durability,
    ) -> Outcome {
        while self.store.is_stalled() {
            self.wait()?;
        }
        stage(&mut self.store)?;
        let durability = durability(&self.store);
        self.store.commit(durability)?;
        self.unwatched += 1;
        if self.unwatched >= WRITES_UNWATCHED {
            self.watch()?;
        }
        Ok(())
    }

    /// Receives messages from the workers, and hands out due jobs.
    pub fn watch(&mut self) -> Outcome {
        self.unwatched = 0;
        while let Ok(message) = self.messages.try_recv() {
            self.receive(message)?;
        }
        self.hand_out()
    }

    /// Goes on until no job is due or under way.
    pub fn finish_jobs(&mut self) -> Outcome {
        self.watch()?;
        while !self.running.is_empty() {
            self.wait()?;
        }
        self.store.release()?;
        Ok(())
    }

    /// Flushes all memtables.
    pub fn flush(&mut self) -> Outcome {
        self.store.freeze_active()?;
        self.finish_jobs()
    }

    /// Merges all tables into one run, and returns room to the disk.
    pub fn compact(&mut self) -> Outcome {
        self.store.ask_for_compaction()?;
        self.finish_jobs()?;
        // Its last inputs are freed with the edits that follow.
        self.store.release()?;
        self.store.shrink(SPARE_BYTES)?;
        Ok(())
    }

    /// Closes the store and its workers.
    pub fn close(mut self) -> Outcome {
        self.finish_jobs()?;
        self.store.shrink(SPARE_BYTES)?;
        self.store.close()?;
        Ok(())
    }

    /// Reads and writes of the files so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.store.storage().device().traffic()
    }

    fn wait(&mut self) -> Outcome {
        self.hand_out()?;
        if self.running.is_empty() {
            return Ok(());
        }
        let message = self.messages.recv()?;
        self.receive(message)?;
        self.watch()
    }

    fn hand_out(&mut self) -> Outcome {
        while self.running.len() < 2
            && let Some(mut ticket) = self.store.take_job()?
        {
            let inputs = self.inputs(&ticket)?;
            let order = Order { job: ticket.id, spec: std::mem::take(&mut ticket.spec), inputs };
            match ticket.kind {
                JobKind::Flush => self.flusher.order(order)?,
                JobKind::Compaction => self.compactor.order(order)?,
            }
            self.running.push(Running { ticket, outputs: Vec::new() });
        }
        Ok(())
    }

    /// The places of the tables that a job reads.
    fn inputs(&self, ticket: &JobTicket) -> Outcome<HashMap<u64, Input>> {
        let mut inputs = HashMap::new();
        if ticket.kind == JobKind::Flush {
            return Ok(inputs);
        }
        if let JobInput::Runs(runs) = JobSpec::decode(ticket.spec.clone())?.input {
            for table in runs.iter().flatten() {
                let pool = self.store.storage();
                let place = pool.place_of(FileName::table(table.id)).ok_or("an input has no slot")?;
                let file = pool.device().file(place.slot).ok_or("an input has no file")?;
                let input = Input { file, start: place.start };
                inputs.insert(table.id, input);
            }
        }
        Ok(inputs)
    }

    fn receive(&mut self, message: Message) -> Outcome {
        let Message { job, answer } = message;
        let at = self.running.iter().position(|running| running.ticket.id == job).ok_or("an unknown job")?;
        match answer {
            Answer::Lend(table, reply) => self.lend(at, table, &reply)?,
            Answer::Finished(table, size) => {
                let file = FileName::table(table);
                for output in self.running[at].outputs.iter_mut().filter(|output| output.file == file) {
                    self.store.storage_mut().device_mut().set_open(output.slot, true);
                    self.store.storage_mut().reclaim(file, size)?;
                    output.out = false;
                }
            }
            Answer::Done(result) => {
                self.running.remove(at);
                self.store.finish_job(job, &result)?;
            }
            Answer::Failed(text) => {
                for output in self.running.remove(at).outputs {
                    let storage = self.store.storage_mut();
                    storage.device_mut().set_open(output.slot, true);
                    if output.out {
                        storage.abort_lent(output.file);
                    } else {
                        storage.delete(output.file)?;
                    }
                }
                self.store.fail_job(job, false);
                return Err(text.into());
            }
        }
        Ok(())
    }

    fn lend(&mut self, at: usize, table: u64, reply: &Sender<Arc<File>>) -> Outcome {
        let file = FileName::table(table);
        if self.store.storage().free_slots() == 0 {
            self.store.release()?;
        }
        self.provide_slots()?;
        let running = &mut self.running[at];
        let slot =
            self.store.storage_mut().lend(file, running.ticket.bytes_hint)?.ok_or("no slot is spare")?;
        let device = self.store.storage_mut().device_mut();
        device.set_open(slot, false);
        reply.send(device.file(slot).ok_or("a slot has no file")?)?;
        running.outputs.push(Lent { file, slot, out: true });
        self.provide_slots()
    }

    fn provide_slots(&mut self) -> Outcome {
        let wanted = self.store.storage().wanted_slots();
        if wanted > 0 {
            self.store.storage_mut().device_mut().add(wanted)?;
            self.store.storage_mut().added()?;
        }
        Ok(())
    }
}
