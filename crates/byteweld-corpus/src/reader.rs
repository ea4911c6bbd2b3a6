//! Documents in pieces, file after file.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memmem;

use crate::error::{Error, Result};
use crate::watch::Watch;
use crate::{decompress, json, utf8};

/// How much is read from a file at once where documents must be found in it.
const WINDOW_BYTES: usize = 256 << 10;

/// Some programs write it at the start of a file; it is no part of the first record.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a document is in a text file.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The file.
    File,
    /// A line, with its line ending.
    Line,
    /// What lies between two separators; they belong to no document.
    Separator(Vec<u8>),
}

/// What to do with a document that cannot be read as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// A record that is not what it should be is an error. Bytes of text files are taken as they are.
    Fail,
    /// Such records are left out, and so are documents that are not UTF-8, and files that are gone or may not
    /// be opened. To know the second, a document is held in memory whole.
    Skip,
    /// What is not UTF-8 is replaced by U+FFFD; records that are broken otherwise are an error.
    Replace,
}

/// How to read.
#[derive(Clone, Debug)]
pub struct Options {
    /// What a document is in a text file.
    pub unit: Unit,
    /// The field of a JSON record that holds the text.
    pub field: String,
    /// What to do with what cannot be read.
    pub on_error: OnError,
}

/// What came after the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The document may go on.
    More,
    /// The document is complete.
    DocumentEnd,
    /// There are no more documents; nothing was read.
    CorpusEnd,
}

/// A reader of many files.
pub struct Reader {
    files: std::vec::IntoIter<PathBuf>,
    options: Options,
    open: Option<OpenFile>,
    consumed: Arc<AtomicU64>,
    skipped: u64,
    last_place: (Option<Arc<PathBuf>>, Option<u64>),
}

struct OpenFile {
    path: Arc<PathBuf>,
    input: Box<dyn std::io::Read + Send>,
    watch: Watch,
    is_json: bool,
    /// Bytes read from `input` and not given out.
    window: Vec<u8>,
    start: usize,
    at_end: bool,
    /// Whether the current document has been given out in part.
    begun: bool,
    documents: u64,
    /// The number of the JSON record read last; the first is 1.
    line: u64,
    /// How many of the file's (unpacked) bytes have been given out or passed over.
    offset: u64,
}

impl Reader {
    /// Makes a reader. Files are opened one after another, when their turn comes.
    pub fn new(files: Vec<PathBuf>, options: Options) -> Self {
        Self {
            files: files.into_iter(),
            options,
            open: None,
            consumed: Arc::new(AtomicU64::new(0)),
            skipped: 0,
            last_place: (None, None),
        }
    }

    /// A counter of bytes taken from the files, as they are on disk.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// How many documents were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The file that the bytes given out last are from, and where in it (unpacked) they start; not for JSON
    /// and replaced text, whose bytes are not those of the file.
    pub fn place(&self) -> (Option<&Path>, Option<u64>) {
        (self.last_place.0.as_ref().map(|path| path.as_path()), self.last_place.1)
    }

    /// Appends the next bytes of the current document to `buffer`, about `want` of them.
    pub fn read(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<Piece> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.next() else { return Ok(Piece::CorpusEnd) };
                match OpenFile::new(path, Arc::clone(&self.consumed)) {
                    Err(error) if self.options.on_error == OnError::Skip && is_absence(&error) => {
                        self.skipped += 1;
                        continue;
                    }
                    opened => self.open = Some(opened?),
                }
            }
            let Some(file) = &mut self.open else { return Ok(Piece::CorpusEnd) };
            let start =
                (!file.is_json && self.options.on_error != OnError::Replace).then_some(file.offset);
            self.last_place = (Some(Arc::clone(&file.path)), start);
            let step = if file.is_json {
                file.read_record(buffer, &self.options)?
            } else if self.options.on_error == OnError::Skip {
                file.read_valid_document(buffer, &self.options.unit)?
            } else {
                let replace = self.options.on_error == OnError::Replace;
                file.read_text(buffer, want, &self.options.unit, replace)?
            };
            match step {
                Step::More => return Ok(Piece::More),
                Step::DocumentEnd => return Ok(Piece::DocumentEnd),
                Step::Skipped => self.skipped += 1,
                Step::FileEnd => self.open = None,
            }
        }
    }

    /// Puts the next document into `buffer`; false when there are no more.
    pub fn next_document(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        loop {
            match self.read(buffer, WINDOW_BYTES.max(buffer.len()))? {
                Piece::More => {}
                Piece::DocumentEnd => return Ok(true),
                Piece::CorpusEnd => return Ok(false),
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
        let (input, watch) =
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
            watch,
            is_json,
            window: Vec::new(),
            start: 0,
            at_end: false,
            begun: false,
            documents: 0,
            line: 0,
            offset: 0,
        })
    }

    fn io(&self, error: std::io::Error) -> Error {
        if error.raw_os_error().is_some() {
            return Error::Io { path: self.path.to_path_buf(), error };
        }
        // The rest is what decompressors say of archives.
        let message = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                "the archive ends too early; it is truncated".to_owned()
            }
            _ => format!("the archive is damaged: {error}"),
        };
        Error::Content { path: self.path.to_path_buf(), line: None, message }
    }

    fn content(&self, message: &str) -> Error {
        let line = self.is_json.then_some(self.line);
        Error::Content { path: self.path.to_path_buf(), line, message: message.to_owned() }
    }

    /// Reads more into the window; true if something came.
    fn fill(&mut self, want: usize) -> Result<bool> {
        let mut window = std::mem::take(&mut self.window);
        window.drain(..self.start);
        self.start = 0;
        let read = self.read_into(&mut window, want);
        self.window = window;
        read
    }

    /// Appends more of the file; true if something came.
    fn read_into(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let read = self.input.by_ref().take(want as u64).read_to_end(buffer);
        self.at_end = matches!(read, Ok(0));
        if self.at_end || read.is_err() {
            // An archive that was cut short meanwhile is not damaged: say what happened to it.
            if let Some(change) = self.watch.find_change() {
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

    /// Some of a text document.
    fn read_text(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
        unit: &Unit,
        replace: bool,
    ) -> Result<Step> {
        let want = want.clamp(1 << 12, 16 << 20);
        if matches!(unit, Unit::File) && !replace && self.start == self.window.len() {
            // Nothing is looked for in it: it need not go through the window.
            let before = buffer.len();
            if self.read_into(buffer, want)? {
                self.offset += (buffer.len() - before) as u64;
                self.begun = true;
                return Ok(Step::More);
            }
        }
        if self.start == self.window.len() && !self.fill(want)? {
            // The end of the file ends a document that was begun; and a file is one even if it is empty.
            let is_document = self.begun || (matches!(unit, Unit::File) && self.documents == 0);
            return Ok(if is_document { self.end_document() } else { Step::FileEnd });
        }
        let rest = &self.window[self.start..];
        let (take, pass, ends) = match unit {
            Unit::File => (rest.len(), 0, false),
            Unit::Line => match memchr::memchr(b'\n', rest) {
                Some(at) => (at + 1, 0, true),
                None => (rest.len(), 0, false),
            },
            Unit::Separator(separator) => match memmem::find(rest, separator) {
                Some(at) => (at, separator.len(), true),
                // A separator may have begun in the last bytes.
                None if self.at_end => (rest.len(), 0, false),
                None => (rest.len().saturating_sub(separator.len() - 1), 0, false),
            },
        };
        let left = if replace {
            utf8::append_replaced(&rest[..take], ends || self.at_end, buffer)
        } else {
            buffer.extend_from_slice(&rest[..take]);
            0
        };
        let given = take - left;
        self.start += given;
        self.offset += given as u64;
        if ends {
            self.start += pass;
            self.offset += pass as u64;
            return Ok(self.end_document());
        }
        self.begun |= given > 0;
        if given == 0 {
            self.fill(WINDOW_BYTES)?; // what is left is the start of a character or of a separator
        }
        Ok(Step::More)
    }

    fn end_document(&mut self) -> Step {
        self.begun = false;
        self.documents += 1;
        Step::DocumentEnd
    }

    /// A whole text document, if it is UTF-8.
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

    /// The text of the next JSON record. Empty lines are none.
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
                    "the text is not UTF-8 (a wrong byte, or a lone surrogate); pass on_error='replace' or \
                     'skip' (--on-error)",
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
            // Read as much again, so that one long line stays linear.
            if !self.fill(WINDOW_BYTES.max(searched))? {
                return Ok(searched);
            }
        }
    }
}

/// Whether a file is not there to be read; nothing of it was given out. A want of memory or of descriptors is
/// no such thing.
fn is_absence(error: &Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    let Error::Io { error, .. } = error else { return false };
    matches!(error.kind(), NotFound | PermissionDenied | IsADirectory)
}

/// Whether a file's name says JSON lines, with or without a compression's suffix.
fn is_json_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name =
        [".gz", ".zst", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}
