//! A thread that runs jobs, one after the other.
//!
//! Invariant: every order is answered with `Done` or `Failed`, and nothing after that.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use varve::compact::{Job, Step};
use varve::storage::SLOT_HEADER_BYTES;

use crate::engine::Outcome;

/// Entries of one step.
const BUDGET: usize = 1 << 16;

/// A job for a worker.
pub struct Order {
    /// Its number.
    pub job: u32,
    /// The specification that [`Job::decode`] takes.
    pub spec: Vec<u8>,
    /// Its input tables, by number.
    pub inputs: HashMap<u64, Input>,
}

/// Where a table lies.
pub struct Input {
    /// The slot that holds it.
    pub file: Arc<File>,
    /// Its first byte, from the start of the slot.
    pub start: u64,
}

/// A worker's message about a job.
pub struct Message {
    /// Its number.
    pub job: u32,
    /// The contents.
    pub answer: Answer,
}

/// See [`Message`].
pub enum Answer {
    /// A slot is wanted for this table.
    Lend(u64, Sender<Arc<File>>),
    /// A table is written: its number and size.
    Finished(u64, u64),
    /// The job is over, its tables are flushed to the disk, with this result.
    Done(Vec<u8>),
    /// The job failed.
    Failed(String),
}

/// The store's end of the thread; dropping it lets the thread end.
pub struct Worker {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread; it sends its reports to `messages`.
    pub fn start(messages: Sender<Message>) -> Self {
        let (orders, inbox) = channel();
        let thread = std::thread::spawn(move || serve(&inbox, &messages));
        Self { orders: Some(orders), thread: Some(thread) }
    }

    /// Hands a job in.
    pub fn order(&self, order: Order) -> Outcome {
        let orders = self.orders.as_ref().ok_or("the worker has ended")?;
        orders.send(order).map_err(|_| "the worker has died".into())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(inbox: &Receiver<Order>, messages: &Sender<Message>) {
    while let Ok(order) = inbox.recv() {
        let job = order.job;
        let answer = match run(order, messages) {
            Ok(result) => Answer::Done(result),
            Err(error) => Answer::Failed(error.to_string()),
        };
        // The store is closed: no caller waits for an answer.
        if messages.send(Message { job, answer }).is_err() {
            return;
        }
    }
}

fn run(order: Order, messages: &Sender<Message>) -> Outcome<Vec<u8>> {
    let Order { job: number, spec, inputs } = order;
    let mut job = Job::decode(spec)?;
    let mut output: Option<(u64, Arc<File>)> = None;
    let mut syncing = Syncing::default();
    loop {
        match job.step(BUDGET)? {
            Step::Working => {}
            Step::Need(need) => {
                let Input { file, start } =
                    inputs.get(&need.file.id).ok_or("a job asked for a table that it was not given")?;
                job.feed(read(file, start + need.offset, need.len)?);
            }
            Step::Write { table, offset } => {
                let file = match output.take().filter(|(number, _)| *number == table) {
                    Some((_, file)) => file,
                    None => {
                        let (reply, slot) = channel();
                        messages.send(Message { job: number, answer: Answer::Lend(table, reply) })?;
                        slot.recv()?
                    }
                };
                file.write_all_at(&job.take_output(), SLOT_HEADER_BYTES + offset)?;
                output = Some((table, file));
            }
            Step::Finished { table, size } => {
                if let Some((_, file)) = output.take() {
                    syncing.begin(file)?;
                }
                messages.send(Message { job: number, answer: Answer::Finished(table, size) })?;
            }
            Step::Done => {
                syncing.end()?;
                return Ok(job.result());
            }
        }
    }
}

/// Reads into memory that was not zeroed before. Only this thread uses the file's position: all others name their offsets.
fn read(mut file: &File, offset: u64, len: u32) -> Outcome<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(u64::from(len)).read_to_end(&mut bytes)?;
    if bytes.len() < len as usize { Err("a table is shorter than its blocks say".into()) } else { Ok(bytes) }
}

/// Flushes one table to the disk while the next is written: otherwise a third of a merge's time would be waiting.
#[derive(Default)]
struct Syncing {
    last: Option<JoinHandle<std::io::Result<()>>>,
}

impl Syncing {
    fn begin(&mut self, file: Arc<File>) -> Outcome {
        self.end()?;
        self.last = Some(std::thread::spawn(move || file.sync_data()));
        Ok(())
    }

    fn end(&mut self) -> Outcome {
        match self.last.take().map(JoinHandle::join) {
            Some(Ok(synced)) => Ok(synced?),
            Some(Err(_)) => Err("a flush panicked".into()),
            None => Ok(()),
        }
    }
}
