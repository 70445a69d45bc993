//! Encoding of response frames.

use super::request::FRAME_MAGIC;
use crate::error::{Error, Result};
use crate::options::Receipt;

const OK: u8 = 0;
const MISSING: u8 = 1;
const ERROR: u8 = 2;
/// u32 request | u8 status | u8 1 if an entry in it expires | u8[2] 0 | u32 payload bytes | u32 0
const HEADER_BYTES: usize = 16;

/// Builds a response frame; responses are appended in the order of their requests.
pub(super) struct Responses<'a> {
    out: &'a mut Vec<u8>,
    /// Where the payload of the last response begins.
    last: usize,
}

impl<'a> Responses<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, count: usize) -> Self {
        out.clear();
        out.extend_from_slice(&FRAME_MAGIC.to_le_bytes());
        out.extend_from_slice(&(count as u32).to_le_bytes());
        Self { out, last: 0 }
    }

    /// Adds a response. `write` appends its payload.
    pub(super) fn ok(&mut self, request: u32, write: impl FnOnce(&mut Vec<u8>)) {
        self.answer(request, OK, write);
    }

    /// Adds a response that may fail. If it fails, nothing is added.
    pub(super) fn try_ok(
        &mut self,
        request: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let start = self.out.len();
        self.begin(request, OK);
        let written = write(self.out);
        if written.is_ok() {
            self.end();
        } else {
            self.out.truncate(start);
        }
        written
    }

    /// Bytes of the response frame so far.
    pub(super) fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Sets the number of responses.
    pub(super) fn count(&mut self, answers: usize) {
        self.out[4..8].copy_from_slice(&(answers as u32).to_le_bytes());
    }

    pub(super) fn missing(&mut self, request: u32) {
        self.answer(request, MISSING, |_| {});
    }

    /// Adds an error: its code and its sentence. For a conflict, the code is followed by the sequence found (0 when the
    /// key is absent) and the key.
    pub(super) fn error(&mut self, request: u32, error: &Error) {
        self.answer(request, ERROR, |out| {
            out.extend_from_slice(&u32::from(error.code() as u8).to_le_bytes());
            if let Error::Conflict(conflict) = error {
                out.extend_from_slice(&conflict.found.to_le_bytes());
                out.extend_from_slice(&conflict.key);
            } else {
                out.extend_from_slice(error.message().as_bytes());
            }
        });
    }

    /// Where the payload of the last response begins.
    pub(super) fn last_at(&self) -> usize {
        self.last
    }

    /// An entry in the last response expires.
    pub(super) fn expires(&mut self) {
        self.out[self.last - HEADER_BYTES + 5] = 1;
    }

    /// Adds the receipt of a write. `is_missing`: of a delete that asked whether its key was there, and it was not.
    pub(super) fn receipt(&mut self, request: u32, receipt: Receipt, is_missing: bool) {
        self.answer(request, if is_missing { MISSING } else { OK }, |out| {
            out.extend_from_slice(&receipt.sequence.to_le_bytes());
            out.extend_from_slice(&u32::from(receipt.durability as u8).to_le_bytes());
        });
    }

    fn answer(&mut self, request: u32, status: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.begin(request, status);
        write(self.out);
        self.end();
    }

    fn begin(&mut self, request: u32, status: u8) {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&request.to_le_bytes());
        header[4] = status;
        self.out.extend_from_slice(&header);
        self.last = self.out.len();
    }

    /// Records the length of the payload.
    fn end(&mut self) {
        let length = (self.out.len() - self.last) as u32;
        self.out[self.last - 8..self.last - 4].copy_from_slice(&length.to_le_bytes());
        pad_to_4(self.out);
    }
}

pub(super) fn pad_to_4(out: &mut Vec<u8>) {
    while !out.len().is_multiple_of(4) {
        out.push(0);
    }
}
