//! Slots in RAM: the `memory` storage of a browser without files, and the quota of tests.
//!
//! Invariant: with a limit set, the sum of all lengths never exceeds it. A write that has to grow a slot over the limit
//! writes as much as fits and returns the short count, as browsers do; overwriting always works.

use super::slots::{SlotError, Slots};

/// Slot files in memory, all open.
#[derive(Debug, Clone, Default)]
pub struct MemorySlots {
    slots: Vec<Vec<u8>>,
    bytes_max: Option<u64>,
}

impl MemorySlots {
    /// `count` empty slots without a limit.
    ///
    /// ```
    /// use varve::storage::{MemorySlots, SlotPool, Storage};
    /// let mut pool = SlotPool::open(MemorySlots::new(8)).unwrap();
    /// pool.adopt([7; 16]);
    /// ```
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self { slots: vec![Vec::new(); count as usize], bytes_max: None }
    }

    /// `count` empty slots that together may contain `bytes_max` bytes.
    #[must_use]
    pub fn with_limit(count: u32, bytes_max: u64) -> Self {
        Self { bytes_max: Some(bytes_max), ..Self::new(count) }
    }

    /// Sets or removes the limit. Bytes that are already stored stay.
    pub fn set_limit(&mut self, bytes_max: Option<u64>) {
        self.bytes_max = bytes_max;
    }

    /// Appends `count` empty slots; call [`SlotPool::added`](super::SlotPool::added) afterwards.
    pub fn add(&mut self, count: u32) {
        self.slots.resize(self.slots.len() + count as usize, Vec::new());
    }

    /// The sum of all lengths.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.slots.iter().map(|slot| slot.len() as u64).sum()
    }

    /// All bytes of a slot.
    #[must_use]
    pub fn slot(&self, slot: u32) -> &[u8] {
        self.slots.get(slot as usize).map_or(&[], Vec::as_slice)
    }

    /// All bytes of a slot, to damage them in a test; `None` when there is no such slot.
    pub fn slot_mut(&mut self, slot: u32) -> Option<&mut Vec<u8>> {
        self.slots.get_mut(slot as usize)
    }

    /// How many more bytes may be stored.
    fn room(&self) -> u64 {
        self.bytes_max.map_or(u64::MAX, |bytes_max| bytes_max.saturating_sub(self.bytes()))
    }
}

impl Slots for MemorySlots {
    fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    fn is_open(&self, slot: u32) -> bool {
        (slot as usize) < self.slots.len()
    }

    fn size(&self, slot: u32) -> u64 {
        self.slot(slot).len() as u64
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        let bytes = self.slots.get(slot as usize).ok_or(SlotError::Closed)?;
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let len = into.len().min(bytes.len() - start);
        into[..len].copy_from_slice(&bytes[start..start + len]);
        Ok(len)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        let size = self.slots.get(slot as usize).ok_or(SlotError::Closed)?.len() as u64;
        let end_max = size.saturating_add(self.room());
        let end = offset.saturating_add(bytes.len() as u64).min(end_max);
        let len = end.saturating_sub(offset) as usize;
        if len == 0 && !bytes.is_empty() {
            return Err(SlotError::Full);
        }
        let into = &mut self.slots[slot as usize];
        let start = usize::try_from(offset).map_err(|_| SlotError::Full)?;
        if into.len() < start + len {
            into.resize(start + len, 0);
        }
        into[start..start + len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        if self.is_open(slot) { Ok(()) } else { Err(SlotError::Closed) }
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        let into = self.slots.get_mut(slot as usize).ok_or(SlotError::Closed)?;
        into.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        into.shrink_to_fit();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_over_the_limit_is_short_and_overwriting_still_works() {
        let mut slots = MemorySlots::with_limit(2, 10);
        assert_eq!(slots.write(0, 0, &[1; 6]), Ok(6));
        assert_eq!(slots.write(1, 0, &[2; 6]), Ok(4));
        assert_eq!(slots.write(1, 4, &[3]), Err(SlotError::Full));
        assert_eq!(slots.write(1, 0, &[4; 4]), Ok(4));
        assert_eq!((slots.bytes(), slots.slot(1)), (10, &[4; 4][..]));
        assert_eq!(slots.truncate(0, 1), Ok(()));
        assert_eq!(slots.write(1, 4, &[5; 9]), Ok(5));
    }

    #[test]
    fn a_read_is_short_at_the_end_and_closed_slots_are_reported() {
        let mut slots = MemorySlots::new(1);
        assert_eq!(slots.write(0, 2, &[9; 2]), Ok(2));
        let mut into = [7; 8];
        assert_eq!(slots.read(0, 1, &mut into), Ok(3));
        assert_eq!(into, [0, 9, 9, 7, 7, 7, 7, 7]);
        assert_eq!(slots.read(0, 99, &mut into), Ok(0));
        assert_eq!(slots.read(1, 0, &mut into), Err(SlotError::Closed));
        slots.add(1);
        assert_eq!(slots.read(1, 0, &mut into), Ok(0));
    }
}
