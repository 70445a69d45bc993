//! The open stores and jobs of this instance, by number, and the last error.
//!
//! Invariant: a number is not used again while its store or job is open; a call on a number that is not open returns
//! `Closed`. Host imports never call back, so a call borrows the store or job in place.

use core::cell::RefCell;
use std::rc::Rc;

use varve::error::Error;
use varve::storage::SlotPool;
use varve::store::Store;
use varve::table::Block;
use varve_host::HostSlots;

use crate::job::CompactionJob;
use crate::scratch::Scratch;

/// The engine over the slots of a JavaScript device.
pub(crate) type HostStore = Store<SlotPool<HostSlots>>;

/// An open store, and the block that its last result points into.
pub(crate) struct Open {
    pub(crate) store: HostStore,
    /// The block that contains the last value.
    pub(crate) block: Option<Rc<Block>>,
    /// The sequence up to which the log was sealed.
    pub(crate) sealed: u64,
}

impl Open {
    pub(crate) fn new(store: HostStore) -> Self {
        let sealed = store.last_sequence();
        Self { store, block: None, sealed }
    }
}

/// Items by number.
struct Numbered<T>(Vec<Option<Box<T>>>);

impl<T> Numbered<T> {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn add(&mut self, one: T) -> u32 {
        let at = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[at] = Some(Box::new(one));
        at as u32
    }

    fn get(&mut self, number: u32) -> Result<&mut T, Error> {
        self.0.get_mut(number as usize).and_then(Option::as_deref_mut).ok_or(Error::Closed)
    }

    fn remove(&mut self, number: u32) -> Option<Box<T>> {
        self.0.get_mut(number as usize)?.take()
    }
}

/// The data of calls on stores: the stores, and the bytes that came with the call.
struct Instance {
    stores: Numbered<Open>,
    scratch: Scratch,
}

thread_local! {
    static INSTANCE: RefCell<Instance> =
        const { RefCell::new(Instance { stores: Numbered::new(), scratch: Scratch::new() }) };
    static JOBS: RefCell<Numbered<CompactionJob>> = const { RefCell::new(Numbered::new()) };
    static ERROR: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// The return value of a call: its number, or the negated number of its error. The error is kept for `varve_last_error`.
#[inline]
pub(crate) fn status(result: Result<u32, Error>) -> i32 {
    match result {
        Ok(answer) => answer.min(i32::MAX as u32) as i32,
        Err(error) => failed(error),
    }
}

#[cold]
#[inline(never)]
fn failed(error: Error) -> i32 {
    let number = -(error.code() as i32);
    ERROR.set(Some(error));
    number
}

/// Passes the last error of a call to `read`, and keeps it.
pub(crate) fn last_error<R>(read: impl FnOnce(&Error) -> R) -> R {
    ERROR.with_borrow(|error| read(error.as_ref().unwrap_or(&Error::Closed)))
}

/// Stores an open store. Returns its number.
pub(crate) fn add(open: Open) -> u32 {
    INSTANCE.with_borrow_mut(|instance| instance.stores.add(open))
}

/// Closes a store and removes it, also if closing reports an error.
pub(crate) fn close(handle: u32) -> Result<u32, Error> {
    INSTANCE.with_borrow_mut(|instance| {
        let Some(mut open) = instance.stores.remove(handle) else { return Ok(0) };
        open.store.close().map(|()| 0)
    })
}

/// Runs a call on a store, inlined: for the calls that are made most often.
#[inline]
pub(crate) fn raw(handle: u32, call: impl FnOnce(&mut Open) -> Result<u32, Error>) -> i32 {
    with_bytes(handle, |open, _| call(open))
}

/// As [`raw`], for a call that reads the scratch.
#[inline]
pub(crate) fn with_bytes(handle: u32, call: impl FnOnce(&mut Open, &Scratch) -> Result<u32, Error>) -> i32 {
    INSTANCE.with_borrow_mut(|Instance { stores, scratch }| {
        status(stores.get(handle).and_then(|open| call(open, scratch)))
    })
}

/// Runs a call on the scratch alone.
pub(crate) fn scratch<R>(call: impl FnOnce(&mut Scratch) -> R) -> R {
    INSTANCE.with_borrow_mut(|instance| call(&mut instance.scratch))
}

/// Runs a call on a store. This is one function in the compiled program, instead of code in every export.
#[inline(never)]
pub(crate) fn with(handle: u32, call: &mut dyn FnMut(&mut Open) -> Result<u32, Error>) -> i32 {
    raw(handle, call)
}

/// Runs a call on two stores.
pub(crate) fn with_two(
    first: u32,
    second: u32,
    call: impl FnOnce(&mut Open, &mut Open) -> Result<u32, Error>,
) -> i32 {
    INSTANCE.with_borrow_mut(|Instance { stores, .. }| {
        let Some(mut other) = stores.remove(second) else { return failed(Error::Closed) };
        let answer = status(stores.get(first).and_then(|open| call(open, &mut other)));
        stores.0[second as usize] = Some(other);
        answer
    })
}

/// Stores a job. Returns its number.
pub(crate) fn add_job(job: CompactionJob) -> u32 {
    JOBS.with_borrow_mut(|jobs| jobs.add(job))
}

/// Runs a call on a job.
pub(crate) fn job(number: u32, call: impl FnOnce(&mut CompactionJob) -> Result<u32, Error>) -> i32 {
    JOBS.with_borrow_mut(|jobs| status(jobs.get(number).and_then(call)))
}

/// Removes a job.
pub(crate) fn drop_job(number: u32) {
    JOBS.with_borrow_mut(|jobs| drop(jobs.remove(number)));
}
