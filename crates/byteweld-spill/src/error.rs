//! The errors of counts on disk.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why counts cannot be written to disk or read back.
#[derive(Debug)]
pub enum Error {
    /// The operating system failed: no such folder, no permission, no space left.
    Io {
        /// The folder of the temporary file.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The temporary file does not contain what was written.
    Damaged {
        /// Its folder.
        folder: PathBuf,
    },
    /// A count exceeds 64 bits.
    Overflow(String),
    /// The memory budget is too small for two pre-tokens.
    Memory(String),
    /// The system has no more memory.
    OutOfMemory {
        /// How many bytes could not be allocated.
        bytes: usize,
    },
    /// The caller requested a stop.
    Interrupted,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { folder, error } => write!(f, "{}: {error}", folder.display()),
            Error::Damaged { folder } => write!(
                f,
                "{}: the temporary file of counts does not contain what was written to it; it may \
                 have been truncated, or the disk may be faulty; count again with TMPDIR on \
                 another disk",
                folder.display()
            ),
            Error::Overflow(message) | Error::Memory(message) => f.write_str(message),
            Error::OutOfMemory { bytes } => write!(f, "cannot allocate {bytes} bytes"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// Reserves space for `more` values.
#[inline]
pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    let bytes = more.saturating_mul(size_of::<T>());
    values.try_reserve(more).map_err(|_| Error::OutOfMemory { bytes })
}
