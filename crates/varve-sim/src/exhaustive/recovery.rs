//! One image: opened, written to, opened again after a second power loss, and opened while the machine dies.

use varve::Store;
use varve::options::{Durability, Host, Options};
use varve::storage::SlotPool;

use super::search::Search;
use crate::compactor::SimStore;
use crate::disk::{CrashPoint, Disk};
use crate::histories::{Found, Histories};
use crate::slot::{Keep, PowerLoss};
use crate::workload::START_MS;

/// The writes into an image that is open.
const KEY: &[u8] = b"after";
const VALUE: &[u8] = b"the crash";

/// Milliseconds after which every entry of a trace that can expire has expired.
const EXPIRED_MS: u64 = 1_000_000;

impl Search {
    /// Opens, compares, writes on, loses the power and compares again. Returns the histories that it can be, and the calls to the
    /// disk that the opening made.
    pub(super) fn recover(
        &mut self,
        disk: &Disk,
        allowed: &Histories,
        options: &Options,
    ) -> Result<(Histories, u64), String> {
        let mut store = self.open(disk, options)?;
        let calls = disk.counts().writes + disk.counts().flushes;
        let found = Found::read(&store)?;
        let left = allowed.narrowed(&found)?;
        let has_expired = left.states.iter().any(|state| state.len() > found.state.len());
        self.tried.expired += u64::from(has_expired);
        let sequence = written(&mut store)?;
        drop(store);
        disk.lose_power(self.loss());
        let store = self.open(disk, options).map_err(|what| format!("then written to: {what}"))?;
        let again = Found::read(&store)?;
        let lost = |what| format!("then written to, power lost: {what}");
        left.with(KEY, VALUE, sequence).narrowed(&again).map_err(lost)?;
        Ok((left, calls))
    }

    /// Opens an image, dies at a call of that opening, loses the power, and checks that the result is the same as after an
    /// opening that did not die.
    pub(super) fn die_recovering(
        &mut self,
        slots: &CrashPoint,
        call: u64,
        left: &Histories,
        options: &Options,
    ) -> Result<(), String> {
        let disk = Disk::holding(slots.clone(), self.rng.bits());
        disk.arm_fuse(call);
        let opened = self.open(&disk, options);
        if !disk.is_dead() {
            return opened.map(|_| ());
        }
        self.tried.second_crashes += 1;
        disk.lose_power(self.loss());
        let store = self.open(&disk, options)?;
        left.narrowed(&Found::read(&store)?).map(|_| ())
    }

    fn loss(&mut self) -> PowerLoss {
        let keep = self.rng.pick(&[Keep::None, Keep::Sectors, Keep::Sectors, Keep::Prefix]);
        PowerLoss { keep, torn_sectors: self.rng.chance(1, 4), garbage: self.rng.chance(1, 4) }
    }

    /// Opens what is on the disk, at some time of the host. The store's clock may be ahead of that time, at most as far as
    /// the clock of any store of this trace was.
    fn open(&mut self, disk: &Disk, options: &Options) -> Result<SimStore, String> {
        let now_ms = self.rng.pick(&[START_MS, self.clock_ms, self.clock_ms + EXPIRED_MS]);
        self.openings += 1;
        let host = Host { now_ms, entropy: self.rng.bits(), store_id: [self.openings as u8; 16] };
        let opened = SlotPool::open(disk.slots()).and_then(|pool| Store::open(pool, options.clone(), host));
        match opened {
            Ok((store, _)) if store.now_ms() < now_ms => {
                Err(format!("opened at {now_ms}, its clock says {}", store.now_ms()))
            }
            Ok((store, _)) => Ok(store),
            Err(error) => Err(format!("open: {error} ({error:?})")),
        }
    }
}

/// Writes a key that must survive everything from here on; returns its sequence.
fn written(store: &mut SimStore) -> Result<u64, String> {
    let result = store.set(KEY, VALUE).and_then(|sequence| {
        store.commit(Durability::Strict)?;
        if !store.is_logged() {
            store.flush()?;
        }
        Ok(sequence)
    });
    result.map_err(|error| format!("a write after recovery: {error} ({error:?})"))
}
