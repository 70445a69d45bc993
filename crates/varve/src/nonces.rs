//! Every nonce of this thread, for the simulator, which proves that none repeats: the feature `nonces`, which only the simulator turns on.
//!
//! Invariant: a nonce counts when it is given out, written or not. A copy of a disk that is opened twice from one state repeats nonces
//! and is no fault, so the caller decides when to [`watch`].

use std::cell::RefCell;
use std::collections::HashSet;

/// The random bytes of a keyring, and a number.
type Nonce = ([u8; 16], [u8; 8]);

thread_local! {
    static SEEN: RefCell<Option<HashSet<Nonce>>> = const { RefCell::new(None) };
}

/// Begins anew, or ends. Returns how many nonces there were.
pub fn watch(is_on: bool) -> usize {
    SEEN.replace(is_on.then(HashSet::new)).map_or(0, |seen| seen.len())
}

/// A nonce is given out.
///
/// # Panics
/// When it was given out before.
pub(crate) fn given_out(nonce: Nonce) {
    SEEN.with_borrow_mut(|seen| {
        let is_new = seen.as_mut().is_none_or(|seen| seen.insert(nonce));
        assert!(is_new, "a nonce is used twice");
    });
}
