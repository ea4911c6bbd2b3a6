//! Reads the documents of a list of files, in pieces.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memmem;

use crate::change_detector::ChangeDetector;
use crate::decompress::{DictionaryTooLarge, Interrupt, Stopped};
use crate::error::{Error, Result};
use crate::memory::{Limits, append, reserve};
use crate::{decompress, json, utf8};

/// The read size where a file must be searched for the ends of documents.
const WINDOW_BYTES: usize = 256 << 10;

/// The maximum read size there, and where the file is not searched.
const MAX_WINDOW_BYTES: usize = 1 << 20;
const MAX_READ_BYTES: usize = 16 << 20;

/// With [`OnError::Skip`], a longer document of a regular file is not held in memory to check it.
const MAX_HELD_BYTES: usize = 64 << 20;

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
    /// What to do with an invalid document.
    pub on_error: OnError,
    /// How much may be held in memory.
    pub limits: Limits,
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
    interrupt: Interrupt,
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
    limits: Limits,
    interrupt: Interrupt,
    /// Whether each long document is UTF-8, from a first pass over the file, which is made when the
    /// first long document is found.
    long_documents: Option<VecDeque<bool>>,
    /// Whether the open document is a long one that is UTF-8.
    is_checked: bool,
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
            interrupt: Arc::new(|| false),
        }
    }

    /// Stops reading with [`Error::Interrupted`] when `interrupt` returns true. It is called often.
    pub fn set_interrupt(&mut self, interrupt: impl Fn() -> bool + Send + Sync + 'static) {
        self.interrupt = Arc::new(interrupt);
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
                match self.open_file(path) {
                    Err(error) if self.is_skipped(&error, true) => {
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
            let before = buffer.len();
            let step = if file.is_json {
                file.read_record(buffer, &self.options)
            } else if self.options.on_error == OnError::Skip {
                file.read_valid_document(buffer, want, &self.options.unit)
            } else {
                let replace = self.options.on_error == OnError::Replace;
                file.read_text(buffer, want, &self.options.unit, replace)
            };
            match step {
                Ok(Step::More) => return Ok(ReadStatus::More),
                Ok(Step::DocumentEnd) => return Ok(ReadStatus::DocumentEnd),
                Ok(Step::Skipped) => self.skipped += 1,
                Ok(Step::FileEnd) => self.open = None,
                Err(error) => {
                    // Nothing is skipped of which a part was returned.
                    let is_start = file.offset == 0;
                    if !self.is_skipped(&error, is_start) {
                        return Err(error);
                    }
                    buffer.truncate(before);
                    self.skipped += 1;
                    self.open = None;
                }
            }
        }
    }

    fn open_file(&self, path: PathBuf) -> Result<OpenFile> {
        let detector = match File::open(&path) {
            Ok(file) => ChangeDetector::new(file),
            Err(error) => return Err(Error::Io { path, error }),
        };
        let consumed = Arc::clone(&self.consumed);
        OpenFile::new(
            Arc::new(path),
            detector,
            consumed,
            self.options.limits,
            Arc::clone(&self.interrupt),
        )
    }

    /// Whether a file with this error is skipped.
    fn is_skipped(&self, error: &Error, is_start: bool) -> bool {
        self.options.on_error == OnError::Skip && is_start && is_unreadable_file(error)
    }

    /// Replaces the content of `buffer` by the next document; false at the end of the corpus.
    pub fn next_document(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        loop {
            match self.read(buffer, WINDOW_BYTES.max(buffer.len()))? {
                ReadStatus::DocumentEnd => return Ok(true),
                ReadStatus::CorpusEnd => return Ok(false),
                ReadStatus::More if buffer.len() <= self.options.limits.record_bytes => {}
                ReadStatus::More => match &mut self.open {
                    Some(file) if self.options.on_error == OnError::Skip => {
                        file.drain(buffer, 0, &self.options.unit)?;
                        self.skipped += 1;
                    }
                    Some(file) => return Err(file.document_too_large()),
                    None => {}
                },
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
    fn new(
        path: Arc<PathBuf>,
        detector: ChangeDetector,
        consumed: Arc<AtomicU64>,
        limits: Limits,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let input = decompress::open(&detector, consumed, &limits, Arc::clone(&interrupt));
        let input = input.map_err(|error| match error.kind() {
            ErrorKind::Unsupported => {
                Error::Content { path: path.to_path_buf(), line: None, message: error.to_string() }
            }
            ErrorKind::OutOfMemory => Error::OutOfMemory,
            _ => Error::Io { path: path.to_path_buf(), error },
        })?;
        let is_json = is_json_lines(&path);
        Ok(Self {
            path,
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
            limits,
            interrupt,
            long_documents: None,
            is_checked: false,
        })
    }

    fn io(&self, error: std::io::Error) -> Error {
        if error.kind() == ErrorKind::OutOfMemory {
            return Error::OutOfMemory;
        }
        if error.raw_os_error().is_some() {
            return Error::Io { path: self.path.to_path_buf(), error };
        }
        let inner = error.get_ref();
        if inner.is_some_and(|inner| inner.is::<Stopped>()) {
            return Error::Interrupted;
        }
        if let Some(found) = inner.and_then(|inner| inner.downcast_ref::<DictionaryTooLarge>()) {
            let limit = self.limits.dictionary_bytes;
            return self.too_large(&found.to_string(), limit, "skip the file");
        }
        // All other errors come from decompressors.
        let message = match error.kind() {
            ErrorKind::UnexpectedEof => "the archive is truncated".to_owned(),
            _ => format!("the archive is damaged: {error}"),
        };
        Error::Content { path: self.path.to_path_buf(), line: None, message }
    }

    /// The error of something that must be in memory at once and is larger than its limit.
    fn too_large(&self, found: &str, limit: usize, or_skip: &str) -> Error {
        let (whose, more) = if self.limits.is_budget {
            ("the memory budget leaves for it", "a larger one")
        } else {
            ("are allowed without a memory budget", "one")
        };
        let message = format!(
            "{found}, more than the {limit} bytes that {whose}; pass {more} as memory= (--memory), \
             or {or_skip} with on_error='skip' (--on-error skip)"
        );
        let line = self.is_json.then_some(self.line).filter(|&line| line > 0);
        let path = self.path.to_path_buf();
        Error::TooLarge { path, line, message, is_budget: self.limits.is_budget }
    }

    fn document_too_large(&self) -> Error {
        let limit = self.limits.record_bytes;
        let line = self.is_json.then_some(self.line);
        let message = format!(
            "a document of more than {limit} bytes, which must be in memory as a whole here; split \
             it with lines or a separator (--lines, --separator), or skip it with on_error='skip' \
             (--on-error skip)"
        );
        let is_budget = self.limits.is_budget;
        Error::TooLarge { path: self.path.to_path_buf(), line, message, is_budget }
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
        if (self.interrupt)() {
            return Err(Error::Interrupted);
        }
        // What is not reserved here is reserved while reading, which may fail, too.
        reserve(buffer, want.min(WINDOW_BYTES) + 64)?;
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
        // Replacing may triple a text.
        let want = want.clamp(1 << 12, MAX_READ_BYTES) / if replace { 3 } else { 1 };
        if matches!(unit, Unit::File) && !replace && self.start == self.window.len() {
            // The file is not searched, so it bypasses the window.
            let before = buffer.len();
            if self.read_into(buffer, want)? {
                self.offset += (buffer.len() - before) as u64;
                self.is_open_document = true;
                return Ok(Step::More);
            }
        }
        if self.start == self.window.len() && !self.fill(want.min(MAX_WINDOW_BYTES))? {
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
            utf8::append_replaced(&rest[..take], ends || self.at_end, buffer)?
        } else {
            append(buffer, &rest[..take])?;
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

    /// Reads a text document and skips it if it is not UTF-8. A long one is returned in pieces.
    fn read_valid_document(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
        unit: &Unit,
    ) -> Result<Step> {
        let start = buffer.len();
        if self.is_checked {
            let step = self.read_text(buffer, want, unit, false)?;
            self.is_checked = step == Step::More;
            return Ok(step);
        }
        loop {
            match self.read_text(buffer, WINDOW_BYTES, unit, false)? {
                Step::More if buffer.len() - start <= self.held_bytes() => {}
                Step::More => {
                    if !self.detector.is_regular() {
                        return Err(self.content(&format!(
                            "a document of more than {} bytes, and a pipe or device cannot be read \
                             twice to check that all of it is UTF-8; copy it to a file, or pass \
                             on_error='replace' (--on-error replace)",
                            self.limits.record_bytes
                        )));
                    }
                    if self.next_long_is_valid(unit)? {
                        self.is_checked = true;
                        return Ok(Step::More);
                    }
                    self.drain(buffer, start, unit)?;
                    return Ok(Step::Skipped);
                }
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

    /// The maximum length of a document that is held in memory to check it.
    fn held_bytes(&self) -> usize {
        let is_regular = self.detector.is_regular();
        self.limits.record_bytes.min(if is_regular { MAX_HELD_BYTES } else { usize::MAX })
    }

    /// Reads on to the end of a document, and forgets it from `start` on.
    fn drain(&mut self, buffer: &mut Vec<u8>, start: usize, unit: &Unit) -> Result<()> {
        self.is_checked = false;
        loop {
            buffer.truncate(start);
            if self.read_text(buffer, WINDOW_BYTES, unit, false)? != Step::More {
                buffer.truncate(start);
                return Ok(());
            }
        }
    }

    /// Whether the next long document is UTF-8.
    fn next_long_is_valid(&mut self, unit: &Unit) -> Result<bool> {
        let mut found = match self.long_documents.take() {
            Some(found) => found,
            None => self.check_long_documents(unit)?,
        };
        let is_valid = found.pop_front().unwrap_or(false);
        self.long_documents = Some(found);
        Ok(is_valid)
    }

    /// Reads the whole file a first time, to check its long documents; in order, whether each is
    /// UTF-8.
    fn check_long_documents(&self, unit: &Unit) -> Result<VecDeque<bool>> {
        let shared = self.detector.file();
        let mut file = &*shared;
        let system = |error| Error::Io { path: self.path.to_path_buf(), error };
        let position = file.stream_position().map_err(system)?;
        file.rewind().map_err(system)?;
        let mut first = OpenFile::new(
            Arc::clone(&self.path),
            self.detector.again(),
            Arc::default(),
            self.limits,
            Arc::clone(&self.interrupt),
        )?;
        let (mut found, mut buffer) = (VecDeque::new(), Vec::new());
        let (mut checker, mut length) = (utf8::Checker::default(), 0_u64);
        loop {
            buffer.clear();
            let step = first.read_text(&mut buffer, MAX_WINDOW_BYTES, unit, false)?;
            checker.add(&buffer);
            length += buffer.len() as u64;
            match step {
                Step::DocumentEnd => {
                    let is_valid = checker.finish();
                    if length > self.held_bytes() as u64 {
                        found.push_back(is_valid);
                    }
                    length = 0;
                }
                Step::FileEnd => break,
                Step::More | Step::Skipped => {}
            }
        }
        file.seek(SeekFrom::Start(position)).map_err(system)?;
        Ok(found)
    }

    /// Reads the text of the next JSON record, skipping empty lines.
    fn read_record(&mut self, buffer: &mut Vec<u8>, options: &Options) -> Result<Step> {
        let start = buffer.len();
        let found = loop {
            let limit = self.limits.record_bytes;
            let Some(length) = self.find_line(limit)? else {
                self.line += 1;
                if options.on_error == OnError::Skip {
                    self.drain_line()?;
                    return Ok(Step::Skipped);
                }
                return Err(self.too_large("the record is too long", limit, "skip it"));
            };
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
            let found = json::field(record, &options.field);
            if let Ok(text) = &found {
                json::unescape(text, buffer).map_err(|_| Error::OutOfMemory)?;
            }
            break found.map(drop);
        };
        let is_utf8 = std::str::from_utf8(&buffer[start..]).is_ok();
        match (found, options.on_error) {
            (Ok(()), _) if is_utf8 => {}
            (Ok(()), OnError::Replace) => {
                let mut text = Vec::new();
                append(&mut text, &buffer[start..])?;
                let limit = self.limits.record_bytes;
                if utf8::replaced_length(&text) > limit {
                    let found = "the text is too long after replacing what is not UTF-8";
                    return Err(self.too_large(found, limit, "skip it"));
                }
                buffer.truncate(start);
                utf8::append_replaced(&text, true, buffer)?;
            }
            (_, OnError::Skip) => {
                buffer.truncate(start);
                return Ok(Step::Skipped);
            }
            (Ok(()), OnError::Fail) => {
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

    /// The length of the next line, its ending included; 0 at the end of the file, and `None` if it
    /// is longer than `limit`.
    fn find_line(&mut self, limit: usize) -> Result<Option<usize>> {
        let mut searched = 0;
        loop {
            let rest = &self.window[self.start..];
            if let Some(at) = memchr::memchr(b'\n', &rest[searched..]) {
                let length = searched + at + 1;
                return Ok((length <= limit).then_some(length));
            }
            searched = rest.len();
            if searched > limit {
                return Ok(None);
            }
            // Double the window, so that one long line takes linear time.
            let want = WINDOW_BYTES.max(searched).min(limit - searched + 1);
            if !self.fill(want)? {
                return Ok(Some(searched));
            }
        }
    }

    /// Reads on to the end of a line without holding it.
    fn drain_line(&mut self) -> Result<()> {
        loop {
            let rest = &self.window[self.start..];
            let found = memchr::memchr(b'\n', rest);
            let length = found.map_or(rest.len(), |at| at + 1);
            self.start += length;
            self.offset += length as u64;
            if found.is_some() || !self.fill(WINDOW_BYTES)? {
                return Ok(());
            }
        }
    }
}

/// Whether a file is missing, cannot be opened, or needs too large a dictionary. Running out of
/// memory or file descriptors is different: it is not the file's fault.
fn is_unreadable_file(error: &Error) -> bool {
    use ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    match error {
        Error::Io { error, .. } => {
            matches!(error.kind(), NotFound | PermissionDenied | IsADirectory)
        }
        Error::TooLarge { line: None, .. } => true,
        _ => false,
    }
}

/// Whether a file's name ends in a suffix of JSON lines, optionally compressed.
fn is_json_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = decompress::SUFFIXES.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}
