//! Files to documents.
//!
//! A [`Reader`] goes through a list of files and gives their documents in pieces, so that no file need be in
//! memory whole: text files (a file, a line, or what lies between two separators is a document) and JSON
//! lines (one field of each record). Compression is recognised by the file's first bytes.
//!
//! What is not here: globs and folders (Python resolves them), pre-tokens, counts.

#![forbid(unsafe_code)]

mod decompress;
mod error;
mod json;
mod reader;
mod utf8;
mod watch;

pub use decompress::{decompress, is_compressed};
pub use error::{Error, Result};
pub use reader::{OnError, Options, Piece, Reader, Unit};
