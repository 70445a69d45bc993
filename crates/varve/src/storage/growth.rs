//! How slots grow, and what happens when there is no more room.
//!
//! Invariant: a record is written only into bytes that were written before, as zeros. So when the room ends, it is the
//! write of zeros that fails: the bytes that the refused record would have changed are untouched.

use super::pool::{SlotPool, Use, failed};
use super::slots::{SlotError, Slots};
use crate::error::{Error, Result};

/// Smallest and largest step by which a WAL segment or manifest grows, in bytes.
const GROWTH_BYTES: (u64, u64) = (64 << 10, 256 << 10);

/// In the middle of a call, at most this many granted bytes are written at once: for a large storage that is little.
const USED_UP_BYTES_MAX: u64 = 8 << 20;

/// The smallest size in bytes that Chromium grants a file.
const GRANT_BYTES_MIN: u64 = 1 << 20;

/// Two totals count as about equal if they differ by at most one part in this many of all bytes.
const NEAR_SHARE: u64 = 8;

impl<D: Slots> SlotPool<D> {
    /// Writes zeros until `slot` is at least `need` bytes long, in steps.
    pub(super) fn grow(&mut self, slot: u32, need: u64) -> Result<()> {
        while self.slots[slot as usize].size < need {
            let size = self.slots[slot as usize].size;
            let zeros = vec![0; (grown(size) - size) as usize];
            self.slots[slot as usize].dirty = true;
            match self.device.write(slot, size, &zeros) {
                Ok(len) if len == zeros.len() => self.lengthened(slot, grown(size)),
                Ok(_) | Err(SlotError::Full) => {
                    // The count may be wrong, the length is not.
                    self.slots[slot as usize].size = self.device.size(slot);
                    self.was_refused();
                    // Now it may have the length that it was granted.
                    let size = self.slots[slot as usize].size;
                    return if size >= need { Ok(()) } else { Err(Error::StorageFull) };
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// The device refused to make a slot longer. Others may have been granted more than they were written to: Chromium grants an open file
    /// the next power of two, 1 MiB at least, and a file that grows by less finds no room for that. So all slots are written as far as
    /// possible.
    pub(super) fn was_refused(&mut self) {
        if !self.full {
            // First the room that manifests need for the store to open: they cannot use the room of any other slot.
            self.full = true;
            let bytes = self.manifest_reserve_bytes();
            for slot in self.manifest_slots().into_iter().flatten() {
                let _ = self.grow(slot, bytes);
            }
            let mut bytes_left = USED_UP_BYTES_MAX;
            for slot in 0..self.slots.len() as u32 {
                self.use_up(slot, &mut bytes_left);
            }
        }
        self.ran_out();
    }

    /// Writes zeros up to the size that a slot may have been granted, but at most `bytes_left`.
    fn use_up(&mut self, slot: u32, bytes_left: &mut u64) {
        let known = &mut self.slots[slot as usize];
        let granted = known.reached.max(known.size).next_power_of_two().max(GRANT_BYTES_MIN);
        if known.state != Use::Open || known.is_of_manifest() || !self.device.is_open(slot) {
            return;
        }
        known.dirty = true;
        while known.size < granted && *bytes_left > 0 {
            let zeros = vec![0; (granted - known.size).min(GROWTH_BYTES.0).min(*bytes_left) as usize];
            *bytes_left -= zeros.len() as u64;
            let written = self.device.write(slot, known.size, &zeros);
            known.size = self.device.size(slot);
            if written != Ok(zeros.len()) {
                return;
            }
        }
    }

    /// There is no more room.
    pub(super) fn ran_out(&mut self) {
        self.full = true;
        self.full_bytes = self.all_bytes();
    }

    /// Whether slots cannot grow, or could not when all of them together were about as long as now: the room that was freed since then is
    /// soon used up.
    pub(super) fn is_tight(&self) -> bool {
        let margin = self.full_bytes / NEAR_SHARE;
        self.full || self.full_bytes > 0 && self.all_bytes().abs_diff(self.full_bytes) <= margin
    }

    /// By how much slots may grow once they could not: by what was returned since then, if that is little. `None` if they may grow by more.
    pub(super) fn returned_when_full(&self) -> Option<u64> {
        let returned = self.full_bytes.saturating_sub(self.all_bytes());
        (self.full || (1..=self.full_bytes / NEAR_SHARE).contains(&returned)).then_some(returned)
    }

    pub(super) fn all_bytes(&self) -> u64 {
        self.slots.iter().map(|known| known.size).sum()
    }

    /// Notes that a slot was written up to `size`, beyond its former end.
    pub(super) fn lengthened(&mut self, slot: u32, size: u64) {
        let known = &mut self.slots[slot as usize];
        self.room_bytes = self.room_bytes.map(|room| room.saturating_sub(size.saturating_sub(known.size)));
        known.size = size;
        self.full = false;
    }

    /// A write came back short. Inside what was written before, that is a fault of the device; beyond it there is no
    /// more room, and the appended bytes are cut off again.
    pub(super) fn cut_short(&mut self, slot: u32, end: u64) -> Error {
        let size = self.slots[slot as usize].size;
        if end <= size {
            return Error::Io("a write inside the file was cut short");
        }
        if self.device.size(slot) > size && self.device.truncate(slot, size).is_err() {
            self.slots[slot as usize].size = self.device.size(slot);
        }
        self.was_refused();
        Error::StorageFull
    }
}

/// The length after the next step: 64 KiB, then doubling, at most 256 KiB at a time.
fn grown(size: u64) -> u64 {
    let (step_min, step_max) = GROWTH_BYTES;
    let step = size.clamp(step_min, step_max);
    (size.saturating_add(step) / step_min * step_min).max(step_min)
}

#[cfg(test)]
mod tests {
    use super::grown;

    #[test]
    fn growth_doubles_to_steps_of_256_kib() {
        let mut sizes = vec![4096];
        for _ in 0..6 {
            sizes.push(grown(sizes[sizes.len() - 1]));
        }
        let kib: Vec<u64> = sizes.iter().map(|size| size >> 10).collect();
        assert_eq!(kib, [4, 64, 128, 256, 512, 768, 1024]);
        assert_eq!((grown(0) >> 10, grown((70 << 10) + 1) >> 10), (64, 128));
    }
}
