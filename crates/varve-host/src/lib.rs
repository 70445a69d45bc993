//! The slots of a JavaScript device, as the engine's `Slots`. Both WebAssembly modules import these functions;
//! `js/src/wasm/host.ts` is their other side.
//!
//! Invariant: the host never throws. A negative answer gives the reason: -1 no room, -2 failed, -3 not open, -4 the bytes of a read are
//! not in memory yet. Offsets travel as f64, exact up to 2^53. The host reads or writes the given bytes during the call only.

use varve::storage::{SlotError, Slots};

// SAFETY: the signatures are those of the functions in `js/src/wasm/host.ts`: numbers in, one number out. The functions marked `safe` get
// no address, so the host touches no memory of this instance for them. It checks every number: for a device or slot that it does not
// know, the result is 0 or negative. `slot_read` and `slot_write` get an address and a length, which the host trusts: their callers
// must vouch for these.
#[link(wasm_import_module = "varve_host")]
unsafe extern "C" {
    safe fn slot_count(device: u32) -> u32;
    safe fn slot_is_open(device: u32, slot: u32) -> u32;
    safe fn slot_size(device: u32, slot: u32) -> f64;
    fn slot_read(device: u32, slot: u32, offset: f64, into: *mut u8, length: u32) -> i32;
    fn slot_write(device: u32, slot: u32, offset: f64, bytes: *const u8, length: u32) -> i32;
    safe fn slot_flush(device: u32, slot: u32) -> i32;
    safe fn slot_truncate(device: u32, slot: u32, bytes: f64) -> i32;
}

/// A device that the host knows under a number.
#[derive(Debug, Clone, Copy)]
pub struct HostSlots {
    device: u32,
}

impl HostSlots {
    /// The device with this number.
    #[must_use]
    pub fn new(device: u32) -> Self {
        Self { device }
    }
}

/// A count, or the reason why there is none.
fn answer(status: i32) -> Result<usize, SlotError> {
    match status {
        -1 => Err(SlotError::Full),
        -3 => Err(SlotError::Closed),
        -4 => Err(SlotError::Pending),
        status => usize::try_from(status).map_err(|_| SlotError::Io),
    }
}

impl Slots for HostSlots {
    fn count(&self) -> u32 {
        slot_count(self.device)
    }

    fn is_open(&self, slot: u32) -> bool {
        slot_is_open(self.device, slot) != 0
    }

    fn size(&self, slot: u32) -> u64 {
        slot_size(self.device, slot) as u64
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        // SAFETY: pointer and length are those of one exclusive slice, which outlives the call.
        answer(unsafe { slot_read(self.device, slot, offset as f64, into.as_mut_ptr(), into.len() as u32) })
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        // SAFETY: pointer and length are those of one slice, which outlives the call; the host only reads.
        answer(unsafe { slot_write(self.device, slot, offset as f64, bytes.as_ptr(), bytes.len() as u32) })
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        answer(slot_flush(self.device, slot)).map(drop)
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        answer(slot_truncate(self.device, slot, bytes as f64)).map(drop)
    }
}
