//! Errors on their way to JavaScript.
//!
//! Invariant: an error crosses as its stable number; the sentence follows it (`"2 The storage is full..."`) or is
//! asked for with `last_error`.

use varve::error::Error;
use wasm_bindgen::JsError;

/// The status of an error: its negated number.
pub(crate) fn status(error: &Error) -> i32 {
    -(error.code() as i32)
}

/// The exception of an error.
pub(crate) fn exception(error: Error) -> JsError {
    JsError::new(&error.numbered())
}
