//! The name that a client uses for a scan or a snapshot that it has open.
//!
//! Invariant: a number belongs to one client. The client chooses it itself, so that it can go on using it when another
//! process has opened the store. The store chooses the numbers of client 0 (callers in the engine's own realm).

/// Names a scan or a snapshot by its client and its number there.
///
/// A number alone belongs to client 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The client; 0 for a caller that cannot ask again.
    pub client: u64,
    /// Its number, above 0.
    pub number: u32,
}

impl From<u32> for Name {
    fn from(number: u32) -> Self {
        Self { client: 0, number }
    }
}
