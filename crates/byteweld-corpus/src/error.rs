//! The errors of reading a corpus.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a corpus cannot be read.
#[derive(Debug)]
pub enum Error {
    /// The operating system, or the source of a stream, reported an error.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file has invalid content.
    Content {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, for formats with lines.
        line: Option<u64>,
        /// The number of decompressed bytes before the record, or before the invalid byte.
        offset: Option<u64>,
        /// What was found, what was expected, what to do.
        message: String,
    },
    /// An archive, or a WARC file, is damaged or truncated: what follows cannot be read.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of decompressed bytes before the damage.
        offset: u64,
        /// What was found.
        message: String,
    },
    /// Something that must be in memory at once is larger than its limit.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, for formats with lines.
        line: Option<u64>,
        /// The number of decompressed bytes before the record.
        offset: Option<u64>,
        /// What was found, what was expected, what to do.
        message: String,
        /// Whether the limit follows from a memory budget.
        is_budget: bool,
    },
    /// The system has no more memory.
    OutOfMemory,
    /// The caller requested a stop.
    Interrupted,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Error::Content { path, line, offset, message }
            | Error::TooLarge { path, line, offset, message, .. } => {
                write!(f, "{}", path.display())?;
                if let Some(line) = line {
                    write!(f, ":{line}")?;
                }
                if let Some(offset) = offset {
                    write!(f, ": byte {offset}")?;
                }
                write!(f, ": {message}")
            }
            Error::Damaged { path, offset, message } => {
                write!(f, "{}: byte {offset}: {message}", path.display())
            }
            Error::OutOfMemory => f.write_str("not enough memory to read the corpus"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
