//! Reads documents from files.
//!
//! A [`Reader`] reads a list of files and returns their documents in pieces, so that no file has to
//! fit in memory: text files (a document is a file, a line, or the text between two separators) and
//! JSON lines (one field of each record). Compression is recognized by the first bytes of a file.
//! What must be in memory at once, a record or a compressor's dictionary, has a limit ([`Limits`]).
//!
//! Not here: globs and folders (Python resolves them), pre-tokens, counts.

#![forbid(unsafe_code)]

mod byte_counts;
mod change_detector;
mod decompress;
mod error;
mod json;
mod memory;
mod reader;
mod utf8;

pub use byte_counts::{ByteCounts, Outside};
pub use decompress::{decompress, decompress_head, is_compressed};
pub use error::{Error, Result};
pub use memory::Limits;
pub use reader::{OnError, Options, ReadStatus, Reader, Unit};
