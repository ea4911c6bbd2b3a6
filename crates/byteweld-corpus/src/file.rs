//! One file that is being read: its window, its place, its errors. The formats are in the modules.

mod records;
mod text;
mod valid;
mod warc;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::change_detector::ChangeDetector;
use crate::decompress::{self, DictionaryTooLarge};
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::options::{OnError, Options, Unit};
use crate::report::{FileRange, FinishedFile, Position};
use crate::stored::{Interrupt, Source, Stopped, Stored};
use crate::utf8;

/// The read size where a file must be searched for the ends of documents.
pub(crate) const WINDOW_BYTES: usize = 256 << 10;

/// The maximum read size there, and where the file is not searched.
const MAX_WINDOW_BYTES: usize = 1 << 20;
const MAX_READ_BYTES: usize = 16 << 20;

/// What kind of documents a file holds, by its name and the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    JsonLines,
    Warc,
}

impl Format {
    fn of(path: &Path, json_lines: bool) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let plain = decompress::SUFFIXES.iter().find_map(|end| name.strip_suffix(end));
        let ends_in = |extension: &str| plain.unwrap_or(&name).ends_with(extension);
        if ends_in(".warc") || ends_in(".wet") {
            Self::Warc
        } else if json_lines || ends_in(".jsonl") || ends_in(".ndjson") {
            Self::JsonLines
        } else {
            Self::Text
        }
    }
}

/// What a file is read from.
pub(crate) enum Opened {
    File(ChangeDetector),
    Stream(Box<dyn Read + Send>),
}

/// What a read returned or found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    DocumentEnd,
    /// A document was skipped, for this reason.
    Skipped(String),
    FileEnd,
}

pub(crate) struct OpenFile {
    pub(crate) path: Arc<PathBuf>,
    options: Arc<Options>,
    format: Format,
    interrupt: Interrupt,
    /// The part of the file that is read, if not all of it.
    range: Option<FileRange>,
    stored: Stored,
    /// The decompressed content.
    input: Box<dyn Read + Send>,
    /// `None` for a stream.
    detector: Option<ChangeDetector>,
    /// Bytes read from `input`; those before `start` are consumed.
    window: Vec<u8>,
    start: usize,
    at_end: bool,
    /// Why `input` ended, for the next read.
    failure: Option<std::io::Error>,
    /// The number of decompressed bytes read so far.
    decompressed: u64,
    /// The number of decompressed bytes returned or skipped so far.
    offset: u64,
    /// The lines so far, where they are counted.
    line: u64,
    /// The number of documents returned so far.
    pub(crate) documents: u64,
    /// Whether a part of the current document has been returned.
    is_open_document: bool,
    /// The offset of the current document, or of the last one.
    document_start: u64,
    /// Whether a document has ended.
    has_ended: bool,
    /// The rest of the content of the current WARC record.
    content_left: u64,
    checker: utf8::Checker,
    /// Where each long document starts, and whether it is UTF-8: from a first pass over the file,
    /// which is made when the first long document is found.
    long_documents: Option<VecDeque<(u64, bool)>>,
    /// Whether the open document is a long one that is UTF-8.
    is_checked: bool,
}

impl OpenFile {
    pub(crate) fn new(
        path: Arc<PathBuf>,
        opened: Opened,
        consumed: Arc<AtomicU64>,
        options: Arc<Options>,
        interrupt: Interrupt,
        range: Option<FileRange>,
    ) -> Result<Self> {
        let max_bytes = decompress::BUFFER_BYTES;
        let (source, detector) = match opened {
            Opened::File(detector) => (Source::File(detector.file()), Some(detector)),
            Opened::Stream(stream) => (Source::Stream(stream), None),
        };
        let is_stream = !detector.as_ref().is_some_and(ChangeDetector::is_regular);
        let buffer_bytes = detector.as_ref().map_or(max_bytes, |file| file.buffer_bytes(max_bytes));
        if let (Some(range), Source::File(file)) = (range, &source) {
            let moved = (&**file).seek(SeekFrom::Start(range.start));
            moved.map_err(|error| Error::Io { path: path.to_path_buf(), error })?;
        }
        let has_digest = options.digest && range.is_none();
        let length = range.map(|range| range.stop.saturating_sub(range.start));
        let stored =
            Stored::new(source, is_stream, consumed, Arc::clone(&interrupt), has_digest, length);
        let first = range.map_or(0, |range| range.start);
        let mut file = Self {
            format: Format::of(&path, options.json_lines),
            path,
            options,
            interrupt,
            range,
            stored,
            input: Box::new(std::io::empty()),
            detector,
            window: Vec::new(),
            start: 0,
            at_end: false,
            failure: None,
            decompressed: first,
            offset: first,
            line: range.map_or(0, |range| range.line),
            documents: 0,
            is_open_document: false,
            document_start: first,
            has_ended: false,
            content_left: 0,
            checker: utf8::Checker::default(),
            long_documents: None,
            is_checked: false,
        };
        let stored = file.stored.clone();
        let input = match range {
            Some(_) => decompress::open_plain(stored, buffer_bytes),
            None => decompress::open(stored, buffer_bytes, &file.options.limits),
        };
        file.input = input.map_err(|error| file.input_error(error))?;
        Ok(file)
    }

    /// Goes to a position of a new file. What is before it is read, but not parsed.
    pub(crate) fn start_at(&mut self, position: Position) -> Result<()> {
        let mut left = position.offset;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
            if !self.fill(want)? {
                let message = format!(
                    "the file has {} bytes, but reading is to go on at byte {}: it changed since; \
                     start again",
                    self.decompressed, position.offset
                );
                return Err(self.content(None, &message));
            }
            left -= self.window.len() as u64;
            self.start = self.window.len();
        }
        self.offset = position.offset;
        self.document_start = position.offset;
        self.documents = position.documents;
        self.has_ended = position.documents > 0;
        self.line = position.line;
        Ok(())
    }

    /// The place after the last document.
    pub(crate) fn position(&self, file: u64) -> Position {
        Position { file, offset: self.offset, documents: self.documents, line: self.line }
    }

    /// Facts about a file that has been read to its end.
    pub(crate) fn finished(&self, file: u64) -> Option<FinishedFile> {
        self.options.digest.then(|| FinishedFile {
            file,
            bytes: self.stored.bytes_read(),
            digest: self.stored.digest(),
            documents: self.documents,
            lines: self.line,
        })
    }

    /// Reads the rest of the stored bytes, for their digest.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.stored.finish().map_err(|error| self.input_error(error))
    }

    /// Whether a part of the current document was returned, with [`OnError::Skip`].
    pub(crate) fn is_partly_returned(&self) -> bool {
        self.is_checked
    }

    /// Whether nothing of the file was returned or skipped.
    pub(crate) fn is_start(&self) -> bool {
        self.offset == self.range.map_or(0, |range| range.start)
    }

    /// Where the bytes of the next piece start, if the current document is open.
    pub(crate) fn piece_start(&self) -> Option<u64> {
        self.is_open_document.then_some(self.offset)
    }

    /// The offset of the current document, or of the last one.
    pub(crate) fn document_start(&self) -> u64 {
        self.document_start
    }

    /// Whether the bytes of documents are those of the file.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.format != Format::JsonLines && self.options.on_error != OnError::Replace
    }

    /// The line of the last document, where lines are counted.
    pub(crate) fn last_line(&self) -> Option<u64> {
        let has_lines = match self.format {
            Format::Text => matches!(self.options.unit, Unit::Line),
            Format::JsonLines => true,
            Format::Warc => false,
        };
        has_lines.then_some(self.line)
    }

    /// Appends the next part of a document to `buffer`, as the options say.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<Step> {
        match self.options.on_error {
            _ if self.format == Format::JsonLines => self.read_record(buffer),
            OnError::Skip => self.read_valid_document(buffer, want),
            OnError::Fail if self.options.require_utf8 => self.read_checked(buffer, want),
            OnError::Fail | OnError::Replace => self.read_piece(buffer, want),
        }
    }

    /// Appends the next part of a document that is not a JSON record, whether it is UTF-8 or not.
    fn read_piece(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<Step> {
        // Replacing may triple a text.
        let replace = self.options.on_error == OnError::Replace;
        let want = want.clamp(1 << 12, MAX_READ_BYTES) / if replace { 3 } else { 1 };
        if self.format == Format::Warc {
            self.read_content(buffer, want, replace)
        } else {
            self.read_text(buffer, want, replace)
        }
    }

    /// Ends a document, which may be skipped nevertheless.
    fn end_document(&mut self) -> Step {
        self.is_open_document = false;
        self.has_ended = true;
        self.line = self.last_line().map_or(0, |line| line + 1);
        Step::DocumentEnd
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
        let before = buffer.len();
        let mut read = match self.failure.take() {
            Some(error) => Err(error),
            None => self.input.by_ref().take(want as u64).read_to_end(buffer),
        };
        let added = buffer.len() - before;
        self.decompressed += added as u64;
        if added > 0
            && let Err(error) = read
        {
            self.failure = Some(error); // what comes before it is read first
            return Ok(true);
        }
        if matches!(read, Ok(0)) {
            read = self.stored.finish().map(|()| 0);
        }
        self.at_end = matches!(read, Ok(0));
        if self.at_end || read.is_err() {
            // An archive truncated while being read is not damaged: report the change instead.
            let change = self.detector.as_ref().and_then(ChangeDetector::find_change);
            if let Some(change) = change {
                return Err(self.content(None, &change));
            }
        }
        let read = read.map_err(|error| self.input_error(error))?;
        if let (0, Some(range)) = (read, self.range)
            && self.decompressed < range.stop
        {
            let message = format!(
                "the file ends before byte {}, so it changed since the work was planned; start again",
                range.stop
            );
            return Err(self.content(None, &message));
        }
        Ok(read > 0)
    }

    /// Consumes bytes of the window.
    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    fn input_error(&self, error: std::io::Error) -> Error {
        let path = self.path.to_path_buf();
        if let Some(error) = self.stored.take_failure() {
            let is_stopped = error.get_ref().is_some_and(|inner| inner.is::<Stopped>());
            return if is_stopped { Error::Interrupted } else { Error::Io { path, error } };
        }
        let inner = error.get_ref();
        if let Some(found) = inner.and_then(|inner| inner.downcast_ref::<DictionaryTooLarge>()) {
            let limit = self.options.limits.dictionary_bytes;
            let line = self.last_line().filter(|&line| line > 0);
            return self.too_large(line, &found.to_string(), limit, "skip the file");
        }
        // All other errors come from decompressors.
        let message = match error.kind() {
            ErrorKind::OutOfMemory => return Error::OutOfMemory,
            ErrorKind::Unsupported => return self.content(None, &error.to_string()),
            ErrorKind::UnexpectedEof => "the archive is truncated".to_owned(),
            _ => format!("the archive is damaged: {error}"),
        };
        Error::Damaged { path, offset: self.decompressed, message }
    }

    /// The error of something that must be in memory at once and is larger than its limit.
    fn too_large(&self, line: Option<u64>, found: &str, limit: usize, or_skip: &str) -> Error {
        let is_budget = self.options.limits.is_budget;
        let (whose, more) = if is_budget {
            ("the memory budget leaves for it", "a larger one")
        } else {
            ("are allowed without a memory budget", "one")
        };
        let message = format!(
            "{found}, more than the {limit} bytes that {whose}; pass {more} as memory= (--memory), \
             or {or_skip} with on_error='skip' (--on-error skip)"
        );
        let (path, offset) = (self.path.to_path_buf(), line.map(|_| self.document_start));
        Error::TooLarge { path, line, offset, message, is_budget }
    }

    /// The error of an open document that must be in memory as a whole.
    pub(crate) fn document_too_large(&self) -> Error {
        let message = format!(
            "a document of more than {} bytes, which must be in memory as a whole here; split \
             it with lines or a separator (--lines, --separator), or skip it with on_error='skip' \
             (--on-error skip)",
            self.options.limits.record_bytes
        );
        Error::TooLarge {
            path: self.path.to_path_buf(),
            line: self.last_line().map(|line| line + 1),
            offset: Some(self.document_start),
            message,
            is_budget: self.options.limits.is_budget,
        }
    }

    fn content(&self, offset: Option<u64>, message: &str) -> Error {
        let (path, message) = (self.path.to_path_buf(), message.to_owned());
        Error::Content { path, line: offset.and(self.last_line()), offset, message }
    }
}
