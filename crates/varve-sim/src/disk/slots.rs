//! The slot files of a disk as one process holds them, until that process or the power is gone.

use std::cell::RefCell;
use std::rc::Rc;

use varve::storage::{SlotError, Slots};

use super::Machine;

/// The slot files that one process has open.
#[derive(Debug, Clone)]
pub struct SimSlots {
    pub(super) machine: Rc<RefCell<Machine>>,
    pub(super) power_on: u64,
}

impl SimSlots {
    fn alive(&self) -> Result<(), SlotError> {
        let machine = self.machine.borrow();
        if machine.dead || machine.power_on != self.power_on { Err(SlotError::Closed) } else { Ok(()) }
    }

    fn opened(&self, slot: u32) -> Result<(), SlotError> {
        self.alive()?;
        if self.machine.borrow().open.get(slot as usize) == Some(&true) {
            Ok(())
        } else {
            Err(SlotError::Closed)
        }
    }

    /// Writes to a slot that was lent to the compactor, whose handle is its own.
    ///
    /// # Errors
    /// As [`Slots::write`].
    pub fn write_lent(&self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.alive()?;
        self.machine.borrow_mut().write(slot, offset, bytes)
    }

    /// Flushes a lent slot.
    ///
    /// # Errors
    /// As [`Slots::flush`].
    pub fn flush_lent(&self, slot: u32) -> Result<(), SlotError> {
        self.alive()?;
        self.machine.borrow_mut().flush(slot)
    }
}

impl Slots for SimSlots {
    fn count(&self) -> u32 {
        self.machine.borrow().slots.len() as u32
    }

    fn is_open(&self, slot: u32) -> bool {
        self.opened(slot).is_ok()
    }

    fn size(&self, slot: u32) -> u64 {
        self.machine.borrow().slots.get(slot as usize).map_or(0, |slot| slot.size() as u64)
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        self.opened(slot)?;
        let machine = &mut *self.machine.borrow_mut();
        machine.counts.reads += 1;
        let file = machine.slots.get(slot as usize).ok_or(SlotError::Closed)?;
        let Some(at) = usize::try_from(offset).ok().filter(|at| *at < file.size()) else { return Ok(0) };
        if let Some(waits) = &mut machine.waits
            && !waits.is_here((slot, offset, into.len()))
        {
            return Err(SlotError::Pending);
        }
        Ok(file.read(at, into))
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.opened(slot)?;
        self.machine.borrow_mut().write(slot, offset, bytes)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.opened(slot)?;
        self.machine.borrow_mut().flush(slot)
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.opened(slot)?;
        self.machine.borrow_mut().truncate(slot, bytes)
    }
}
