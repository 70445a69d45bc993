//! Checks and repairs stores, as a WebAssembly module separate from the engine's.
//!
//! Few programs ever call it, so the engine's module does not contain it. One instance does one piece of work: it is made for
//! a check or a repair and dropped with it. Calls take and return numbers; bytes go through one buffer.
//!
//! ```text
//! check    tools_input(page) check_page ... check_begin -> { check_step -> 1: read need_*, tools_input(bytes) check_feed }*
//! repair   repair_key_slots tools_input(id, entropy, keys) repair_begin -> { repair_step, repair_wanted -> add slots, repair_added }*
//! then     tools_report -> JSON at tools_output
//! ```
//!
//! Invariant: nothing unwinds. An answer below 0 is the negated number of an error code, whose sentence is at `tools_output`.

mod report;

use std::cell::RefCell;

use varve::check::{Check, CheckStep, SlotPage};
use varve::repair::{Repair, RepairOptions, key_slots};
use varve::{Encryption, Error};
use varve_host::HostSlots;
use zeroize::{Zeroize, Zeroizing};

/// The work of this instance.
#[derive(Default)]
struct Tools {
    input: Vec<u8>,
    output: Vec<u8>,
    pages: Vec<SlotPage>,
    check: Option<Check>,
    need: (u32, u64, u32),
    repair: Option<Repair<HostSlots, HostSlots>>,
}

thread_local! {
    static TOOLS: RefCell<Tools> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut Tools) -> R) -> R {
    TOOLS.with_borrow_mut(work)
}

/// Runs `work`; an error becomes its negated number.
fn attempt(work: impl FnOnce(&mut Tools) -> Result<i32, Error>) -> i32 {
    with(|tools| {
        work(tools).unwrap_or_else(|error| {
            tools.output = error.to_string().into_bytes();
            -(error.code() as i32)
        })
    })
}

/// Makes room for `length` bytes of input; returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn tools_input(length: u32) -> *mut u8 {
    with(|tools| {
        tools.input.clear();
        tools.input.resize(length as usize, 0);
        tools.input.as_mut_ptr()
    })
}

/// The address of the last report or sentence.
#[unsafe(no_mangle)]
pub extern "C" fn tools_output() -> *const u8 {
    with(|tools| tools.output.as_ptr())
}

/// Its length, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn tools_output_length() -> u32 {
    with(|tools| tools.output.len() as u32)
}

/// Bytes done.
#[unsafe(no_mangle)]
pub extern "C" fn tools_done() -> f64 {
    with(|tools| tools.progress().0 as f64)
}

/// Bytes to do.
#[unsafe(no_mangle)]
pub extern "C" fn tools_total() -> f64 {
    with(|tools| tools.progress().1 as f64)
}

/// Writes the report of the check or the repair, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tools_report() {
    with(|tools| {
        tools.output = match (&tools.check, &tools.repair) {
            (Some(check), _) => report::check(check.report()),
            (_, Some(repair)) => report::repair(repair.report()),
            _ => String::new(),
        }
        .into_bytes();
    });
}

/// Takes the input as the first page of a slot that has `bytes` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn check_page(slot: u32, bytes: f64) {
    with(|tools| {
        let page = std::mem::take(&mut tools.input);
        tools.pages.push(SlotPage { slot, bytes: bytes as u64, page });
    });
}

/// Starts a check of the slots whose pages were given. The input has the data keys, as `varve_change_keys` of the engine takes them.
/// `log_end` is -1 where it is not known, and -2 where the store is not open: then its log may be torn.
#[unsafe(no_mangle)]
pub extern "C" fn check_begin(log_end: f64) -> i32 {
    attempt(|tools| {
        let encryption = Encryption::decode(&Zeroizing::new(std::mem::take(&mut tools.input)))?;
        let check = |log_end| Check::new(&tools.pages, log_end, &encryption.keyring);
        tools.check = Some(match log_end {
            -2.0 => check(Some(0))?.of_closed_store(),
            _ => check((log_end >= 0.0).then_some(log_end as u64))?,
        });
        tools.pages = Vec::new();
        Ok(0)
    })
}

/// Does a part of the check: 0 more to do, 1 bytes are needed, 2 done.
#[unsafe(no_mangle)]
pub extern "C" fn check_step() -> i32 {
    attempt(|tools| {
        let Some(check) = &mut tools.check else { return Err(Error::Closed) };
        Ok(match check.step()? {
            CheckStep::Working => 0,
            CheckStep::Need { slot, offset, len } => {
                tools.need = (slot, offset, len);
                1
            }
            CheckStep::Done => 2,
        })
    })
}

/// The slot to read from next.
#[unsafe(no_mangle)]
pub extern "C" fn need_slot() -> u32 {
    with(|tools| tools.need.0)
}

/// The offset of that read, in bytes from the start of the slot.
#[unsafe(no_mangle)]
pub extern "C" fn need_offset() -> f64 {
    with(|tools| tools.need.1 as f64)
}

/// The length of that read, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn need_length() -> u32 {
    with(|tools| tools.need.2)
}

/// Takes the input as the bytes that were needed.
#[unsafe(no_mangle)]
pub extern "C" fn check_feed() {
    with(|tools| {
        let bytes = std::mem::take(&mut tools.input);
        if let Some(check) = &mut tools.check {
            check.feed(bytes);
        }
    });
}

/// Puts the wrapped data keys of device `source` where reports are; 0 if there are none, else 1.
#[unsafe(no_mangle)]
pub extern "C" fn repair_key_slots(source: u32) -> i32 {
    attempt(|tools| {
        let found = key_slots(&HostSlots::new(source))?;
        let has_keys = found.is_some();
        tools.output = found.unwrap_or_default();
        Ok(i32::from(has_keys))
    })
}

/// Starts a repair of device `source` into the empty device `target`; the input is a store id (16 bytes), entropy (8), and
/// data keys as the engine takes them in `varve_change_keys`, if there are any.
#[unsafe(no_mangle)]
pub extern "C" fn repair_begin(source: u32, target: u32, drop_older: u32, files_max: u32) -> i32 {
    attempt(|tools| {
        let mut store_id = [0; 16];
        let mut entropy = [0; 8];
        for (into, from) in store_id.iter_mut().chain(&mut entropy).zip(&tools.input) {
            *into = *from;
        }
        let options = RepairOptions {
            drop_older: drop_older != 0,
            store_id,
            entropy: u64::from_le_bytes(entropy),
            files_max: u64::from(files_max),
            encryption: Encryption::decode(tools.input.get(24..).unwrap_or_default())?,
        };
        tools.input.zeroize();
        tools.repair = Some(Repair::new(HostSlots::new(source), HostSlots::new(target), options)?);
        Ok(0)
    })
}

/// Does a part of the repair: 0 done, 1 more to do.
#[unsafe(no_mangle)]
pub extern "C" fn repair_step() -> i32 {
    attempt(|tools| match &mut tools.repair {
        Some(repair) => repair.step().map(i32::from),
        None => Err(Error::Closed),
    })
}

impl Tools {
    fn progress(&self) -> (u64, u64) {
        match (&self.check, &self.repair) {
            (Some(check), _) => check.progress(),
            (_, Some(repair)) => repair.progress(),
            _ => (0, 0),
        }
    }
}
