//! What a client calls a scan or a snapshot that it has open.
//!
//! Invariant: numbers are of their client alone. It chooses them itself, so that it can go on under them when another
//! process has opened the store; those of nobody (client 0: callers in the engine's own realm) the store chooses.

/// A scan or a snapshot, by its client and the number that it has there.
///
/// A number alone is one of client 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The client; 0 for nobody that could ask again.
    pub client: u64,
    /// Its number, above 0.
    pub number: u32,
}

impl From<u32> for Name {
    fn from(number: u32) -> Self {
        Self { client: 0, number }
    }
}
