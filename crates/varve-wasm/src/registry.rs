//! The open stores of this instance, by number.
//!
//! Invariant: a number is not used again while its store is open; a call on a number that is not open answers
//! `Closed`. Host imports never call back, so a store is used once at a time: a raw call borrows it where it is, which is
//! quickest; others take it out of the list and put it back, which are two functions of the program and not code in every export.

use core::cell::RefCell;
use std::rc::Rc;

use varve::error::Error;
use varve::storage::SlotPool;
use varve::store::Store;
use varve::table::Block;

use crate::fault;
use crate::host::HostSlots;

/// The engine over the slots of a JavaScript device.
pub(crate) type HostStore = Store<SlotPool<HostSlots>>;

/// An open store, and what its last answer points into.
pub(crate) struct Open {
    pub(crate) store: HostStore,
    /// The last error of a raw call.
    pub(crate) error: Option<Error>,
    /// The last answer that is not in place anywhere else.
    pub(crate) answer: Vec<u8>,
    /// The block that the last value lies in.
    pub(crate) block: Option<Rc<Block>>,
    /// The sequence up to which the log was sealed.
    pub(crate) sealed: u64,
}

impl Open {
    pub(crate) fn new(store: HostStore) -> Self {
        let sealed = store.last_sequence();
        Self { store, error: None, answer: Vec::new(), block: None, sealed }
    }

    /// Keeps the error for `last_error`; answers its status.
    #[cold]
    #[inline(never)]
    fn failed(&mut self, error: Error) -> i32 {
        let status = fault::status(&error);
        self.error = Some(error);
        status
    }
}

thread_local! {
    static STORES: RefCell<Vec<Option<Box<Open>>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an open store; answers its number.
pub(crate) fn add(open: Open) -> u32 {
    STORES.with_borrow_mut(|stores| {
        let at = stores.iter().position(Option::is_none).unwrap_or_else(|| {
            stores.push(None);
            stores.len() - 1
        });
        stores[at] = Some(Box::new(open));
        at as u32
    })
}

fn take(handle: u32) -> Option<Box<Open>> {
    STORES.with_borrow_mut(|stores| stores.get_mut(handle as usize)?.take())
}

fn put(handle: u32, open: Box<Open>) {
    STORES.with_borrow_mut(|stores| {
        if let Some(place) = stores.get_mut(handle as usize) {
            *place = Some(open);
        }
    });
}

/// Closes a store and forgets it, unless it has to wait for a slot.
pub(crate) fn close(handle: u32) -> Result<(), Error> {
    let Some(mut open) = take(handle) else { return Ok(()) };
    let result = open.store.close();
    if matches!(result, Err(Error::Busy)) {
        put(handle, open);
    }
    result
}

/// Runs a call on a store.
pub(crate) fn with<R>(handle: u32, call: impl FnOnce(&mut Open) -> Result<R, Error>) -> Result<R, Error> {
    let Some(mut open) = take(handle) else { return Err(Error::Closed) };
    let result = call(&mut open);
    put(handle, open);
    result
}

/// Runs a raw call: its answer, or the status of its error, which is kept for `last_error`.
#[inline]
pub(crate) fn raw(handle: u32, call: impl FnOnce(&mut Open) -> Result<u32, Error>) -> i32 {
    STORES.with_borrow_mut(|stores| {
        let Some(Some(open)) = stores.get_mut(handle as usize) else { return fault::status(&Error::Closed) };
        match call(open) {
            Ok(answer) => answer.min(i32::MAX as u32) as i32,
            Err(error) => open.failed(error),
        }
    })
}

/// The sentence of the last error of a store.
pub(crate) fn last_error(handle: u32) -> String {
    with(handle, |open| Ok(open.error.take())).ok().flatten().unwrap_or(Error::Closed).message()
}
