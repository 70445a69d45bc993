//! Clients that outlive their leaders: they keep requests that are not answered, and send them again to the leader that opens the
//! store next. Every write happens once.
//!
//! ```text
//! client 1   frame frame frame      sent -> run -> answered        what is not answered when the leader dies is sent again
//! client 2   frame frame            |  flush, merge, quota, time between them
//! leader     store on a disk        dies at any call to the disk, also while it opens; its answers may be lost
//! ```
//! The oracle needs no history: every write sets a key of its own, so its first sequence can be read back. Invariants under test:
//! - A write that was answered has the sequence of its receipt, ever after; one that was refused never appears.
//! - The sequences in use are those of the writes that are there: none happened twice, none was lost.
//! - The writes of a client are there in the order of its requests, and its reads see the writes before them and none behind.
//! - A delete that was done reports whether its key was there, whoever answers.
//! - A snapshot that is opened again sees what it saw, or is refused.
//! - A transaction is not done if what it read was written since its snapshot, also one that was opened again while a job ran.
//! - When everything is answered, nothing is kept for any client.

mod client;
mod oracle;

use varve::frame::run;
use varve::options::{Durability, Host, Options};
use varve::storage::SlotPool;
use varve::{Error, Store};

use self::client::Client;
use crate::compactor::SimStore;
use crate::disk::{Disk, FullStyle};
use crate::rng::Rng;
use crate::slot::{Keep, PowerLoss};
use crate::trace::Crash;
use crate::workload::{START_MS, options};

/// Steps of one run.
const STEPS: u64 = 300;
/// Clients that live at the same time.
const CLIENTS_MAX: usize = 4;
/// Attempts to open a store.
const OPENINGS_MAX: u32 = 20;

/// A failure in words.
type Outcome<T = ()> = Result<T, String>;

/// Counts of what happened in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Leaders that died.
    pub takeovers: u64,
    /// Writes that were answered.
    pub writes: u64,
    /// Writes that one leader did and another leader answered.
    pub repeated: u64,
    /// Writes that were refused.
    pub refused: u64,
    /// Calls that got the answer to make them again.
    pub retries: u64,
    /// Snapshots that another leader opened again.
    pub restored: u64,
    /// Transactions that were done.
    pub transactions: u64,
    /// Transactions that were refused because of a conflict.
    pub conflicts: u64,
    /// Acknowledged writes that were lost with the power, or with a process that only had them in memory.
    pub lost: u64,
}

impl Totals {
    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Self) {
        self.takeovers += other.takeovers;
        self.writes += other.writes;
        self.repeated += other.repeated;
        self.refused += other.refused;
        self.retries += other.retries;
        self.restored += other.restored;
        self.transactions += other.transactions;
        self.conflicts += other.conflicts;
        self.lost += other.lost;
    }
}

/// Runs the clients of a seed.
///
/// # Errors
/// The fault, in words.
pub fn take_over(seed: u64) -> Result<Totals, String> {
    let mut world = World::new(seed)?;
    for step in 0..STEPS {
        world.step().map_err(|what| format!("step {step}: {what}"))?;
    }
    world.finish().map_err(|what| format!("in the end: {what}"))?;
    Ok(world.totals)
}

struct World {
    rng: Rng,
    disk: Disk,
    options: Options,
    store: Option<SimStore>,
    clients: Vec<Client>,
    fuse: Crash,
    openings: u64,
    clients_made: u64,
    now_ms: u64,
    levels: Vec<Durability>,
    /// Whether clients delete their keys: in every second run, and with transactions.
    deletes: bool,
    /// Whether clients have transactions, and come late to a new leader: in three of eight runs.
    transacts: bool,
    totals: Totals,
}

impl World {
    fn new(seed: u64) -> Outcome<Self> {
        let mut rng = Rng::new(seed);
        let transacts = (3..6).contains(&(seed % 8));
        let options = options(&mut rng);
        let disk =
            Disk::new(rng.within(8, 40) as u32, rng.pick(&[FullStyle::Refuses, FullStyle::Shortens]), seed);
        let levels = [Durability::Memory, Durability::Relaxed, Durability::Strict];
        let levels = levels[rng.index(2)..=rng.within(1, 2) as usize].to_vec();
        let mut world = Self {
            rng,
            disk,
            options,
            store: None,
            clients: Vec::new(),
            fuse: Crash::Process,
            openings: 0,
            clients_made: 0,
            now_ms: START_MS,
            levels,
            deletes: transacts || seed.is_multiple_of(2),
            transacts,
            totals: Totals::default(),
        };
        world.open(&mut Vec::new())?;
        Ok(world)
    }

    fn store(&mut self) -> Outcome<&mut SimStore> {
        self.store.as_mut().ok_or_else(|| "no store".to_owned())
    }

    fn living(&mut self) -> Option<usize> {
        let living: Vec<usize> = (0..self.clients.len()).filter(|&at| self.clients[at].lives).collect();
        if living.is_empty() { None } else { Some(self.rng.pick(&living)) }
    }

    fn step(&mut self) -> Outcome {
        match self.rng.weighted(&[12, 16, 12, 5, 2, 2, 1, 1]) {
            0 => {
                if let Some(at) = self.living() {
                    self.clients[at].send(&mut self.rng, &self.levels);
                }
            }
            1 => {
                if let Some(at) = self.living() {
                    self.run_next(at)?;
                }
            }
            2 => {
                if let Some(at) = self.living() {
                    self.clients[at].receive(&mut self.totals)?;
                }
            }
            3 => self.maintain()?,
            4 => self.disk.arm_fuse(self.rng.below(30)),
            5 => {
                self.fuse = self.crash();
                self.take_over()?;
            }
            6 => match self.rng.below(3) {
                0 => self.disk.limit(Some(self.rng.pick(&[0, 10_000, 300_000]))),
                _ => self.disk.limit(None),
            },
            _ => self.come_or_go()?,
        }
        self.fuse = self.crash();
        let is_poisoned = self.store()?.is_poisoned();
        if self.disk.is_dead() || is_poisoned {
            if is_poisoned && !self.disk.is_dead() {
                self.fuse = Crash::Process;
            }
            self.take_over()?;
        }
        Ok(())
    }

    fn crash(&mut self) -> Crash {
        if self.rng.chance(3, 4) {
            return Crash::Process;
        }
        let keep = self.rng.pick(&[Keep::None, Keep::All, Keep::Sectors, Keep::Prefix]);
        Crash::Power(PowerLoss { keep, torn_sectors: self.rng.chance(1, 2), garbage: false })
    }

    fn come_or_go(&mut self) -> Outcome {
        let living = self.clients.iter().filter(|client| client.lives).count();
        if living < CLIENTS_MAX && (living == 0 || self.rng.chance(2, 3)) {
            self.clients_made += 1;
            // Some start close to the value where the numbers of requests wrap.
            let first = self.rng.pick(&[0, 7, u32::MAX - 20]);
            self.clients.push(Client::new(self.clients_made, first, self.deletes, self.transacts));
        } else if let Some(at) = self.living() {
            self.clients[at].lives = false;
            if self.rng.chance(1, 2) {
                let id = self.clients[at].id;
                self.store()?.remove_client(id);
            }
        }
        Ok(())
    }

    /// The leader runs the oldest frame of a client that it has not run.
    fn run_next(&mut self, at: usize) -> Outcome {
        let store = self.store.as_mut().ok_or("no store")?;
        let Some(sent) = self.clients[at].frames.iter_mut().find(|sent| sent.response.is_none()) else {
            return Ok(());
        };
        let mut response = Vec::new();
        run(store, &sent.bytes, &mut response)
            .map_err(|error| format!("a frame was refused whole: {error}"))?;
        if !self.disk.is_dead() && !store.is_poisoned() {
            sent.response = Some(response);
        }
        self.add_slots()
    }

    fn add_slots(&mut self) -> Outcome {
        if self.disk.is_dead() {
            return Ok(());
        }
        let wanted = self.store()?.storage_mut().wanted_slots();
        self.disk.add_slots(wanted);
        match self.store()?.storage_mut().added() {
            Err(error) if !self.disk.is_dead() => Err(format!("slots were added: {error}")),
            _ => Ok(()),
        }
    }

    fn maintain(&mut self) -> Outcome {
        let kind = self.rng.below(7);
        self.now_ms += self.rng.below(1000);
        let now_ms = self.now_ms;
        let store = self.store()?;
        store.set_now(now_ms);
        let done = match kind {
            0 => store.flush(),
            1 => store.compact(),
            2 => store.freeze_active(),
            3 | 4 => store.run_slice(100).map(|_| ()),
            5 => store.sync(),
            _ => store.seal(),
        };
        match done {
            Ok(()) | Err(Error::StorageFull | Error::Poisoned | Error::Io(_)) => self.add_slots(),
            Err(error) => Err(format!("maintenance: {error}")),
        }
    }

    /// The leader dies. Some of the answers that are on their way arrive. Then another one opens the store, and may die in the
    /// middle of that.
    fn take_over(&mut self) -> Outcome {
        for client in self.clients.iter_mut().filter(|client| client.lives) {
            while self.rng.chance(1, 3) && client.receive(&mut self.totals)? {}
        }
        self.totals.takeovers += 1;
        let mut deaths = vec![self.fuse];
        self.store = None;
        self.go_down(self.fuse);
        let count = self.rng.pick(&[0, 0, 0, 1, 2]);
        for _ in 0..count {
            let crash = self.crash();
            self.disk.arm_fuse(self.rng.below(20));
            deaths.push(crash);
            if self.attempt().is_ok() && !self.disk.is_dead() {
                self.disk.disarm_fuse();
            }
            self.go_down(crash);
        }
        self.open(&mut deaths)?;
        self.verify(&deaths)?;
        self.go_on()
    }

    fn go_down(&self, crash: Crash) {
        match crash {
            Crash::Process => self.disk.kill_process(),
            Crash::Power(loss) => self.disk.lose_power(loss),
        }
    }

    fn open(&mut self, deaths: &mut Vec<Crash>) -> Outcome {
        for _ in 0..OPENINGS_MAX {
            self.disk.disarm_fuse();
            match self.attempt() {
                Ok(store) => {
                    self.store = Some(store);
                    return Ok(());
                }
                Err(Error::StorageFull) => self.disk.limit(None),
                Err(error) => return Err(format!("open after {deaths:?}: {error}")),
            }
            deaths.push(Crash::Process);
            self.disk.kill_process();
        }
        Err("the store does not open however often it is tried".to_owned())
    }

    fn attempt(&mut self) -> varve::Result<SimStore> {
        self.openings += 1;
        let host = Host { now_ms: self.now_ms, entropy: self.rng.bits(), store_id: [7; 16] };
        Ok(Store::open(SlotPool::open(self.disk.slots())?, self.options.clone(), host)?.0)
    }

    /// Clients learn about the new leader: they send their snapshots first, then all unanswered frames, unchanged. They may come late, when
    /// jobs are under way.
    fn go_on(&mut self) -> Outcome {
        let are_late = self.transacts && self.rng.chance(3, 4);
        if are_late {
            let everything = self.rng.chance(1, 2);
            let store = self.store()?;
            let asked = if everything { store.ask_for_compaction() } else { store.freeze_active() };
            asked.map_err(|error| format!("asked for a job at once: {error}"))?;
            let slices = self.rng.within(1, 12);
            self.run_slices(slices)?;
        }
        let store = self.store.as_mut().ok_or("no store")?;
        for client in self.clients.iter_mut().filter(|client| client.lives) {
            client.restore(store, &mut self.totals)?;
        }
        if are_late { self.run_slices(100) } else { Ok(()) }
    }

    /// Works on jobs for so many slices, or until none is due.
    fn run_slices(&mut self, slices: u64) -> Outcome {
        for _ in 0..slices {
            let budget = self.rng.pick(&[1, 10, 100]);
            match self.store()?.run_slice(budget) {
                Ok(false) => break,
                Ok(true) | Err(Error::StorageFull) => self.add_slots()?,
                Err(error) => return Err(format!("a job while clients come: {error}")),
            }
        }
        Ok(())
    }

    /// Everything is answered and read back, and nothing is kept for any client.
    fn finish(&mut self) -> Outcome {
        self.disk.disarm_fuse();
        self.disk.limit(None);
        self.fuse = Crash::Process;
        self.take_over()?;
        self.disk.disarm_fuse();
        self.disk.limit(None);
        for at in 0..self.clients.len() {
            while self.clients[at].lives && !self.clients[at].frames.is_empty() {
                self.run_next(at)?;
                self.clients[at].receive(&mut self.totals)?;
            }
        }
        self.verify(&[])?;
        if let Some(open) = self.clients.iter().filter(|client| client.lives).find_map(Client::open_write) {
            return Err(format!("{open} was never answered"));
        }
        for client in &mut self.clients {
            let store = self.store.as_mut().ok_or("no store")?;
            if client.lives {
                client.acknowledge(store)?;
            } else {
                store.remove_client(client.id);
            }
        }
        match self.store()?.outcomes() {
            0 => Ok(()),
            kept => Err(format!("all is answered, and {kept} outcomes are kept")),
        }
    }
}
