//! All errors, as one enum.
//!
//! Invariant: every error has a stable [`Code`] that the TypeScript side shares (`VARVE_CORRUPT` for [`Code::Corrupt`]
//! and so on), and a sentence for the user: what to do. Large contents are boxed: every result has room for an
//! error, and is copied at each return.

use core::fmt;

use crate::types::{FileName, Sequence, decimal};

/// A result whose error is [`Error`] unless it names another.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// An error of the engine or of its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that should be there are missing or fail their checksum.
    Corrupt(Box<Damage>),
    /// The storage has no room (quota or disk); no part of the failed write was kept.
    StorageFull,
    /// Another context has the store open.
    Locked,
    /// The store was closed.
    Closed,
    /// A condition of the write did not hold, or data that its transaction had read was written since. No part of the write
    /// was kept.
    Conflict(Box<Conflict>),
    /// The key is not valid.
    InvalidKey(&'static str),
    /// The value is not valid.
    InvalidValue(&'static str),
    /// An earlier write to the storage failed: the store is read-only until it is reopened.
    Poisoned,
    /// The files were written in a format this code does not know.
    Version {
        /// The format version found.
        found: u16,
        /// The format version this code writes.
        supported: u16,
    },
    /// The store is encrypted and the key does not fit, or is missing; or there is a key and the store is not encrypted. Nothing was
    /// changed.
    Key(&'static str),
    /// An argument is out of range.
    InvalidArgument(&'static str),
    /// The storage failed, and it is unknown what was written.
    Io(&'static str),
    /// The call depended on state of the process that had the store open before, and that state is lost.
    Retry,
    /// Bytes of the storage are not in memory yet. The call changed nothing but caches, and finished no work that it would do twice:
    /// fetch the bytes and make it again.
    Pending,
}

/// The known facts about damaged bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file, when it is known.
    pub file: Option<FileName>,
    /// Offset in bytes from the start of the file.
    pub offset: u64,
    /// The fault, in a few words.
    pub what: &'static str,
}

/// Why a write with conditions was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The key that changed since it was read.
    pub key: Vec<u8>,
    /// The sequence of its entry now; 0 when it has none.
    pub found: Sequence,
}

/// The stable number of an error, shared with TypeScript (`js/src/errors.ts`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Code {
    /// `VARVE_CORRUPT`
    Corrupt = 1,
    /// `VARVE_STORAGE_FULL`
    StorageFull = 2,
    /// `VARVE_LOCKED`
    Locked = 3,
    /// `VARVE_CLOSED`
    Closed = 4,
    /// `VARVE_CONFLICT`
    Conflict = 5,
    /// `VARVE_INVALID_KEY`
    InvalidKey = 6,
    /// `VARVE_INVALID_VALUE`
    InvalidValue = 7,
    /// `VARVE_POISONED`
    Poisoned = 8,
    /// `VARVE_VERSION`
    Version = 9,
    /// `VARVE_INVALID_ARGUMENT`
    InvalidArgument = 10,
    /// `VARVE_IO`
    Io = 11,
    /// `VARVE_RETRY`
    Retry = 12,
    /// No caller of the package ever gets this: the host makes the call again.
    Pending = 13,
    /// `VARVE_KEY`
    Key = 14,
}

impl Error {
    /// There is not enough memory for the call; no part of it was done.
    pub const NO_MEMORY: Self = Self::InvalidArgument(
        "The engine has no memory for so much at once. Read or write less at a time, or open the store with less memory for its cache.",
    );

    /// A file is encrypted under a data key that was not given.
    pub const NO_KEY: Self = Self::Key("The store is encrypted. Open it with its key.");

    /// A data key of the right number does not decrypt.
    pub const WRONG_KEY: Self = Self::Key("This is not the key of the store. Nothing was changed.");

    /// There is a key, but nothing that it decrypts.
    pub const NOT_ENCRYPTED: Self =
        Self::Key("The store is not encrypted. Open it without a key; encrypt() encrypts it.");

    /// Whether this error only means a lack of room or of memory: nothing was changed, and the store stays usable.
    #[must_use]
    pub(crate) fn is_lack(&self) -> bool {
        *self == Self::StorageFull || *self == Self::NO_MEMORY
    }

    /// An [`Error::Corrupt`] at a place in a file.
    #[cold]
    #[must_use]
    pub fn corrupt(file: FileName, offset: u64, what: &'static str) -> Self {
        Self::Corrupt(Box::new(Damage { file: Some(file), offset, what }))
    }

    /// An [`Error::Conflict`] for a key that has the sequence `found`.
    #[cold]
    #[must_use]
    pub fn conflict(key: &[u8], found: Sequence) -> Self {
        Self::Conflict(Box::new(Conflict { key: key.to_vec(), found }))
    }

    /// The stable number of this error.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Corrupt(_) => Code::Corrupt,
            Self::StorageFull => Code::StorageFull,
            Self::Locked => Code::Locked,
            Self::Closed => Code::Closed,
            Self::Conflict(_) => Code::Conflict,
            Self::InvalidKey(_) => Code::InvalidKey,
            Self::InvalidValue(_) => Code::InvalidValue,
            Self::Poisoned => Code::Poisoned,
            Self::Version { .. } => Code::Version,
            Self::InvalidArgument(_) => Code::InvalidArgument,
            Self::Io(_) => Code::Io,
            Self::Retry => Code::Retry,
            Self::Pending => Code::Pending,
            Self::Key(_) => Code::Key,
        }
    }

    /// The event and the remedy, as a sentence. It is built without `core::fmt`: the compiled engine would contain that only for this.
    #[must_use]
    pub fn message(&self) -> String {
        let mut said = String::new();
        match self {
            Self::Corrupt(damage) => {
                put(&mut said, &["The store is damaged: ", damage.what]);
                if let Some(file) = damage.file {
                    put(&mut said, &[" in ", &file.label(), " at byte ", &decimal(damage.offset)]);
                }
                said.push('.');
            }
            Self::Version { found, supported } => {
                let (found, supported) = (decimal((*found).into()), decimal((*supported).into()));
                put(&mut said, &["The store has format version ", &found, ", this code knows ", &supported]);
                said.push_str(". Reload to get the newer code.");
            }
            Self::Io(what) => put(&mut said, &["The storage failed: ", what, "."]),
            Self::InvalidKey(what)
            | Self::InvalidValue(what)
            | Self::InvalidArgument(what)
            | Self::Key(what) => said.push_str(what),
            Self::StorageFull => said.push_str(
                "The storage is full: nothing of this write was kept. Delete data or ask for more room, then try again.",
            ),
            Self::Locked => {
                said.push_str("Another tab or worker has this store open. Close it there, or wait longer.");
            }
            Self::Closed => said.push_str("The store is closed. Open it again."),
            Self::Conflict(_) => said.push_str("A condition of this write did not hold. Read again and retry."),
            Self::Retry => said.push_str(
                "The tab that led the store is gone, and with it what this call depended on. Call again.",
            ),
            Self::Pending => said.push_str("Bytes are missing."),
            Self::Poisoned => said.push_str(
                "An earlier write to the storage failed, so nothing more is accepted. Reopen the store to recover.",
            ),
        }
        said
    }
}

fn put(into: &mut String, parts: &[&str]) {
    for part in parts {
        into.push_str(part);
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for Error {}
