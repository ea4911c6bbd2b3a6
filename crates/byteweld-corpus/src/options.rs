//! How files are read.

use crate::memory::Limits;

/// What a document is in a text file.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The file.
    File,
    /// A line, with its line ending.
    Line,
    /// The text between two separators, which do not belong to any document.
    Separator(Vec<u8>),
}

/// What to do with an invalid document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Invalid records are an error. Bytes of text files are only checked if
    /// [`Options::require_utf8`] says so.
    Fail,
    /// Invalid records, documents that are not UTF-8, and files that are missing or cannot be
    /// opened are skipped; so are records and dictionaries that are larger than their limits. To
    /// check UTF-8, a document is held in memory; if it is long, its file is read twice instead.
    Skip,
    /// Invalid UTF-8 is replaced by U+FFFD; records that are invalid otherwise are an error.
    Replace,
}

/// The options of reading.
#[derive(Clone, Debug)]
pub struct Options {
    /// What a document is in a text file.
    pub unit: Unit,
    /// The field of a JSON record that holds the text.
    pub field: String,
    /// Whether every text file holds JSON lines, whatever its name.
    pub json_lines: bool,
    /// What to do with an invalid document.
    pub on_error: OnError,
    /// With [`OnError::Fail`], whether text that is not UTF-8 is an error; otherwise its bytes are
    /// returned as they are.
    pub require_utf8: bool,
    /// Whether to report finished files with their digests.
    pub digest: bool,
    /// How much may be held in memory.
    pub limits: Limits,
}
