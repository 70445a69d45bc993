//! The name that a client uses for a scan or a snapshot that it has open.
//!
//! Invariant: a number belongs to one client. The client chooses it itself, so that it can go on using it when another
//! process has opened the store. For client 0, a caller in the engine's own realm, either that caller chooses them, or the
//! store does. The host of the engine has numbers of its own.

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
