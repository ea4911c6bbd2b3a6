//! The errors of reading a corpus.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a corpus cannot be read.
#[derive(Debug)]
pub enum Error {
    /// The operating system reported an error.
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
        /// What was found, what was expected, what to do.
        message: String,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Error::Content { path, line: Some(line), message } => {
                write!(f, "{}:{line}: {message}", path.display())
            }
            Error::Content { path, line: None, message } => {
                write!(f, "{}: {message}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {}
