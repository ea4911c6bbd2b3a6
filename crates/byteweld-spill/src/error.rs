//! What can go wrong with counts on disk.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why counts cannot be written to disk or read back.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused: no such folder, no right to write, no space left.
    Io {
        /// The folder of the temporary file.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The temporary file does not hold what was written.
    Damaged {
        /// Its folder.
        folder: PathBuf,
    },
    /// A count passes 64 bits.
    Overflow(String),
    /// Two pre-tokens cannot be in memory together.
    Memory(String),
    /// The caller asked to stop.
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
                "{}: the temporary file of counts does not hold what was written to it; was it cut, or is \
                 the disk broken? count again, with TMPDIR on another disk",
                folder.display()
            ),
            Error::Overflow(message) | Error::Memory(message) => f.write_str(message),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
