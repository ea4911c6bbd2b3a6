//! Reads documents from files.
//!
//! A [`Reader`] reads a list of files and returns their documents in pieces, so that no file has to
//! fit in memory: text files (a document is a file, a line, or the text between two separators),
//! JSON lines (one field of each record) and WARC (the text of each conversion record, as in Common
//! Crawl's WET files). Compression is recognized by the first bytes of a file. What must be in
//! memory at once, a record or a compressor's dictionary, has a limit ([`Limits`]).
//!
//! After each document, [`Reader::position`] says where reading can start again, and the reader
//! tells which files it finished, with their digests, and what it skipped, with the reasons.
//!
//! Not here: globs and folders (Python resolves them), pre-tokens, counts.

#![forbid(unsafe_code)]

mod byte_counts;
mod change_detector;
mod decompress;
mod error;
mod file;
mod json;
mod memory;
mod options;
mod reader;
mod report;
mod stored;
mod utf8;

pub use byte_counts::{ByteCounts, Outside};
pub use decompress::{decompress, decompress_head, is_compressed};
pub use error::{Error, Result};
pub use memory::{Limits, append};
pub use options::{OnError, Options, Unit};
pub use reader::{ReadStatus, Reader};
pub use report::{FileRange, FinishedFile, Position, Skip};
pub use utf8::append_replaced;
