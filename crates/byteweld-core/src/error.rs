//! The crate's error. The bindings map each kind to one Python exception.

use std::fmt;

/// Why an operation failed.
#[derive(Debug)]
pub enum Error {
    /// A pattern cannot be compiled, or exceeded its limits on a text.
    Pattern(String),
    /// Training cannot start or continue.
    Train(String),
    /// A vocabulary breaks a rule that the engine relies on.
    Vocabulary(String),
    /// A count does not fit in 64 bits.
    Overflow(String),
    /// The memory budget is too small.
    Memory(String),
    /// A file is not what it claims to be.
    Format {
        /// What is wrong.
        message: String,
        /// The byte in the file, if known.
        offset: Option<u64>,
    },
    /// A required key of a file is missing.
    MissingKey(String),
    /// A file is valid, but cannot be represented exactly.
    Unsupported(String),
    /// A byte of a document is not in the alphabet.
    ForbiddenByte {
        /// The byte.
        byte: u8,
        /// Its offset in the file or document, if known.
        offset: Option<u64>,
        /// The file, if known.
        path: Option<String>,
    },
    /// Text contains a special token that is not allowed.
    SpecialToken {
        /// Its text.
        token: String,
        /// Byte offset in the text.
        offset: usize,
    },
    /// Text that is not trusted becomes an id that a special token has, too, and cannot become others.
    AmbiguousId {
        /// The id.
        id: u32,
        /// The text of the special token.
        token: String,
        /// Byte offset in the text.
        offset: usize,
    },
    /// A character that has no token, in a vocabulary without an unk token.
    OutsideAlphabet {
        /// The character, or the byte as `\xNN`.
        character: String,
        /// Byte offset in the text.
        offset: usize,
    },
    /// An id that is not in the vocabulary.
    UnknownId(u32),
    /// The source of documents failed with this error.
    Source(Box<dyn std::error::Error + Send + Sync>),
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
            Error::Pattern(message)
            | Error::Train(message)
            | Error::Vocabulary(message)
            | Error::Overflow(message)
            | Error::Memory(message)
            | Error::Format { message, .. }
            | Error::MissingKey(message)
            | Error::Unsupported(message) => f.write_str(message),
            Error::ForbiddenByte { byte, offset, path } => {
                if let Some(path) = path {
                    write!(f, "{path}: ")?;
                }
                if let Some(offset) = offset {
                    write!(f, "byte {offset}: ")?;
                }
                write!(f, "0x{byte:02X} is not in the alphabet")
            }
            Error::SpecialToken { token, offset } => {
                write!(f, "text contains the special token {token:?} at byte {offset}")
            }
            Error::AmbiguousId { id, token, offset } => write!(
                f,
                "text at byte {offset} becomes id {id}, which the special token {token:?} has, too"
            ),
            Error::OutsideAlphabet { character, offset } => write!(
                f,
                "character {character:?} at byte {offset} is not in the alphabet, and the \
                 vocabulary has no unk token"
            ),
            Error::UnknownId(id) => write!(f, "id {id} is not in the vocabulary"),
            Error::Source(error) => write!(f, "{error}"),
            Error::OutOfMemory { bytes } => write!(f, "cannot allocate {bytes} bytes"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
