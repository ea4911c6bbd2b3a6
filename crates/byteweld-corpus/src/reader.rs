//! Reads the documents of a list of files, in pieces.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memmem;

use crate::change_detector::ChangeDetector;
use crate::error::{Error, Result};
use crate::{decompress, json, utf8};

/// The read size where a file must be searched for the ends of documents.
const WINDOW_BYTES: usize = 256 << 10;

/// Some programs write it at the start of a file; it is not part of the first record.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

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
    /// Invalid records are an error. Bytes of text files are not checked.
    Fail,
    /// Invalid records, documents that are not UTF-8, and files that are missing or cannot be
    /// opened are skipped. To check UTF-8, a whole document is held in memory.
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
    /// What to do with an invalid document.
    pub on_error: OnError,
}

/// What follows the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// The document may continue.
    More,
    /// The document is complete.
    DocumentEnd,
    /// There are no more documents; nothing was read.
    CorpusEnd,
}

/// Reads a list of files.
pub struct Reader {
    files: std::vec::IntoIter<PathBuf>,
    options: Options,
    open: Option<OpenFile>,
    consumed: Arc<AtomicU64>,
    skipped: u64,
    last_location: (Option<Arc<PathBuf>>, Option<u64>),
}

struct OpenFile {
    path: Arc<PathBuf>,
    input: Box<dyn std::io::Read + Send>,
    detector: ChangeDetector,
    is_json: bool,
    /// Bytes read from `input`; those before `start` are consumed.
    window: Vec<u8>,
    start: usize,
    at_end: bool,
    /// Whether a part of the current document has been returned.
    is_open_document: bool,
    documents: u64,
    /// The line of the last JSON record, counted from 1.
    line: u64,
    /// The number of decompressed bytes returned or skipped so far.
    offset: u64,
}

impl Reader {
    /// Creates a reader. Each file is opened when the previous one is finished.
    pub fn new(files: Vec<PathBuf>, options: Options) -> Self {
        Self {
            files: files.into_iter(),
            options,
            open: None,
            consumed: Arc::new(AtomicU64::new(0)),
            skipped: 0,
            last_location: (None, None),
        }
    }

    /// A counter of the (compressed) bytes read from disk.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// The number of documents skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The file of the last bytes returned, and their (decompressed) offset in it. There is no
    /// offset for JSON and replaced text, whose bytes are not those of the file.
    pub fn location(&self) -> (Option<&Path>, Option<u64>) {
        (self.last_location.0.as_ref().map(|path| path.as_path()), self.last_location.1)
    }

    /// Appends the next bytes of the current document to `buffer`, about `want` bytes.
    pub fn read(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<ReadStatus> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.next() else { return Ok(ReadStatus::CorpusEnd) };
                match OpenFile::new(path, Arc::clone(&self.consumed)) {
                    Err(error)
                        if self.options.on_error == OnError::Skip && is_unreadable_file(&error) =>
                    {
                        self.skipped += 1;
                        continue;
                    }
                    opened => self.open = Some(opened?),
                }
            }
            let Some(file) = &mut self.open else { return Ok(ReadStatus::CorpusEnd) };
            let start =
                (!file.is_json && self.options.on_error != OnError::Replace).then_some(file.offset);
            self.last_location = (Some(Arc::clone(&file.path)), start);
            let step = if file.is_json {
                file.read_record(buffer, &self.options)?
            } else if self.options.on_error == OnError::Skip {
                file.read_valid_document(buffer, &self.options.unit)?
            } else {
                let replace = self.options.on_error == OnError::Replace;
                file.read_text(buffer, want, &self.options.unit, replace)?
            };
            match step {
                Step::More => return Ok(ReadStatus::More),
                Step::DocumentEnd => return Ok(ReadStatus::DocumentEnd),
                Step::Skipped => self.skipped += 1,
                Step::FileEnd => self.open = None,
            }
        }
    }

    /// Replaces the content of `buffer` by the next document; false at the end of the corpus.
    pub fn next_document(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        loop {
            match self.read(buffer, WINDOW_BYTES.max(buffer.len()))? {
                ReadStatus::More => {}
                ReadStatus::DocumentEnd => return Ok(true),
                ReadStatus::CorpusEnd => return Ok(false),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    More,
    DocumentEnd,
    Skipped,
    FileEnd,
}

impl OpenFile {
    fn new(path: PathBuf, consumed: Arc<AtomicU64>) -> Result<Self> {
        let (input, detector) =
            decompress::open(&path, consumed).map_err(|error| match error.kind() {
                std::io::ErrorKind::Unsupported => {
                    Error::Content { path: path.clone(), line: None, message: error.to_string() }
                }
                _ => Error::Io { path: path.clone(), error },
            })?;
        let is_json = is_json_lines(&path);
        Ok(Self {
            path: Arc::new(path),
            input,
            detector,
            is_json,
            window: Vec::new(),
            start: 0,
            at_end: false,
            is_open_document: false,
            documents: 0,
            line: 0,
            offset: 0,
        })
    }

    fn io(&self, error: std::io::Error) -> Error {
        if error.raw_os_error().is_some() {
            return Error::Io { path: self.path.to_path_buf(), error };
        }
        // All other errors come from decompressors.
        let message = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "the archive is truncated".to_owned(),
            _ => format!("the archive is damaged: {error}"),
        };
        Error::Content { path: self.path.to_path_buf(), line: None, message }
    }

    fn content(&self, message: &str) -> Error {
        let line = self.is_json.then_some(self.line);
        Error::Content { path: self.path.to_path_buf(), line, message: message.to_owned() }
    }

    /// Reads more of the file into the window; false at its end.
    fn fill(&mut self, want: usize) -> Result<bool> {
        let mut window = std::mem::take(&mut self.window);
        window.drain(..self.start);
        self.start = 0;
        let read = self.read_into(&mut window, want);
        self.window = window;
        read
    }

    /// Appends more of the file to `buffer`; false at its end.
    fn read_into(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let read = self.input.by_ref().take(want as u64).read_to_end(buffer);
        self.at_end = matches!(read, Ok(0));
        if self.at_end || read.is_err() {
            // An archive truncated while being read is not damaged: report the change instead.
            if let Some(change) = self.detector.find_change() {
                return Err(Error::Content {
                    path: self.path.to_path_buf(),
                    line: None,
                    message: change,
                });
            }
        }
        let read = read.map_err(|e| self.io(e))?;
        Ok(read > 0)
    }

    /// Reads a part of a text document.
    fn read_text(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
        unit: &Unit,
        replace: bool,
    ) -> Result<Step> {
        let want = want.clamp(1 << 12, 16 << 20);
        if matches!(unit, Unit::File) && !replace && self.start == self.window.len() {
            // The file is not searched, so it bypasses the window.
            let before = buffer.len();
            if self.read_into(buffer, want)? {
                self.offset += (buffer.len() - before) as u64;
                self.is_open_document = true;
                return Ok(Step::More);
            }
        }
        if self.start == self.window.len() && !self.fill(want)? {
            // The end of the file ends an open document; an empty file is a document, too.
            let is_document =
                self.is_open_document || (matches!(unit, Unit::File) && self.documents == 0);
            return Ok(if is_document { self.end_document() } else { Step::FileEnd });
        }
        let rest = &self.window[self.start..];
        let (take, skip, ends) = match unit {
            Unit::File => (rest.len(), 0, false),
            Unit::Line => match memchr::memchr(b'\n', rest) {
                Some(at) => (at + 1, 0, true),
                None => (rest.len(), 0, false),
            },
            Unit::Separator(separator) => match memmem::find(rest, separator) {
                Some(at) => (at, separator.len(), true),
                // A separator may start in the last bytes.
                None if self.at_end => (rest.len(), 0, false),
                None => (rest.len().saturating_sub(separator.len() - 1), 0, false),
            },
        };
        let remaining = if replace {
            utf8::append_replaced(&rest[..take], ends || self.at_end, buffer)
        } else {
            buffer.extend_from_slice(&rest[..take]);
            0
        };
        let taken = take - remaining;
        self.start += taken;
        self.offset += taken as u64;
        if ends {
            self.start += skip;
            self.offset += skip as u64;
            return Ok(self.end_document());
        }
        self.is_open_document |= taken > 0;
        if taken == 0 {
            self.fill(WINDOW_BYTES)?; // the rest is the start of a character or of a separator
        }
        Ok(Step::More)
    }

    fn end_document(&mut self) -> Step {
        self.is_open_document = false;
        self.documents += 1;
        Step::DocumentEnd
    }

    /// Reads a whole text document and skips it if it is not UTF-8.
    fn read_valid_document(&mut self, buffer: &mut Vec<u8>, unit: &Unit) -> Result<Step> {
        let start = buffer.len();
        loop {
            match self.read_text(buffer, WINDOW_BYTES, unit, false)? {
                Step::More => {}
                Step::DocumentEnd if std::str::from_utf8(&buffer[start..]).is_ok() => {
                    return Ok(Step::DocumentEnd);
                }
                Step::DocumentEnd => {
                    buffer.truncate(start);
                    return Ok(Step::Skipped);
                }
                other => return Ok(other),
            }
        }
    }

    /// Reads the text of the next JSON record, skipping empty lines.
    fn read_record(&mut self, buffer: &mut Vec<u8>, options: &Options) -> Result<Step> {
        let found = loop {
            let length = self.find_line()?;
            if length == 0 {
                return Ok(Step::FileEnd);
            }
            self.line += 1;
            let mut record = &self.window[self.start..self.start + length];
            if self.offset == 0 {
                record = record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record);
            }
            self.start += length;
            self.offset += length as u64;
            if record.trim_ascii().is_empty() {
                continue;
            }
            break if options.on_error == OnError::Replace {
                json::field(String::from_utf8_lossy(record).as_bytes(), &options.field)
            } else {
                json::field(record, &options.field)
            };
        };
        match (found, options.on_error) {
            (Ok(text), _) if std::str::from_utf8(&text).is_ok() => buffer.extend_from_slice(&text),
            (Ok(text), OnError::Replace) => {
                utf8::append_replaced(&text, true, buffer);
            }
            (_, OnError::Skip) => return Ok(Step::Skipped),
            (Ok(_), OnError::Fail) => {
                return Err(self.content(
                    "the text is not UTF-8 (an invalid byte or a lone surrogate); pass \
                     on_error='replace' or 'skip' (--on-error)",
                ));
            }
            (Err(message), _) => {
                return Err(
                    self.content(&format!("{message}; or pass on_error='skip' (--on-error skip)"))
                );
            }
        }
        Ok(Step::DocumentEnd)
    }

    /// The length of the next line, its ending included; 0 at the end of the file.
    fn find_line(&mut self) -> Result<usize> {
        let mut searched = 0;
        loop {
            let rest = &self.window[self.start..];
            if let Some(at) = memchr::memchr(b'\n', &rest[searched..]) {
                return Ok(searched + at + 1);
            }
            searched = rest.len();
            // Double the window, so that one long line takes linear time.
            if !self.fill(WINDOW_BYTES.max(searched))? {
                return Ok(searched);
            }
        }
    }
}

/// Whether a file is missing or cannot be opened. Running out of memory or file descriptors is
/// different: it is not the file's fault.
fn is_unreadable_file(error: &Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    let Error::Io { error, .. } = error else { return false };
    matches!(error.kind(), NotFound | PermissionDenied | IsADirectory)
}

/// Whether a file's name ends in a suffix of JSON lines, optionally compressed.
fn is_json_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = decompress::SUFFIXES.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}
