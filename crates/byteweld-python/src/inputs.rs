//! `Inputs`: the documents of files and tables, in order. Every binding that reads a corpus uses it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use byteweld_core::documents::{DocumentSource, ReadStatus};
use byteweld_corpus::{FileRange, Limits, OnError, Options, Position, Reader, Unit};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twox_hash::xxhash3_128;

use crate::error::NoMemory;
use crate::names::ByName;
use crate::remote::{RemoteReader, is_remote};
use crate::table_reader::{Step, TableReader};

/// Skipped documents are listed up to this number between two calls, and counted beyond it.
const MAX_LISTED_SKIPS: usize = 1000;

/// A file is hashed in blocks of this size.
const HASH_BYTES: usize = 1 << 20;

// ---------------------------------------------------------------------- arguments

/// The dict of `Corpus.engine_arguments()`.
pub(crate) struct Arguments {
    inputs: Vec<Input>,
    /// Opens the URL of a remote file.
    open_remote: Py<PyAny>,
    unit: Unit,
    field: String,
    json_lines: bool,
    on_error: OnError,
    require_utf8: bool,
    digest: bool,
}

/// A file that the engine reads, a part of one, or a table that Python opens (`corpus/_tables.py`).
enum Input {
    File(PathBuf),
    Range(PathBuf, FileRange),
    Table(Py<PyAny>),
}

/// A `FileRange` of Python: the path of the file, start, stop, lines before it.
type RangeTuple = (PathBuf, u64, u64, u64);

impl<'py> FromPyObject<'_, 'py> for Arguments {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let dict = object.cast::<PyDict>()?;
        let get = |key: &'static str| {
            dict.get_item(key)?.ok_or_else(|| PyKeyError::new_err(format!("no argument {key}")))
        };
        let separator: Option<Vec<u8>> = get("separator")?.extract()?;
        let unit = match separator {
            Some(separator) if separator.is_empty() => {
                let message = "separator is empty; it must be at least one byte";
                return Err(PyValueError::new_err(message));
            }
            Some(separator) => Unit::Separator(separator), // overrides the unit
            None => get("unit")?.extract::<ByName<Unit>>()?.0,
        };
        // Only some callers set these.
        let flag = |key: &'static str| match dict.get_item(key)? {
            Some(value) => value.extract::<bool>(),
            None => Ok(false),
        };
        let inputs = get("inputs")?.try_iter()?.map(|item| {
            let item = item?;
            match item.extract() {
                Ok(path) => Ok(Input::File(path)),
                Err(_) if item.hasattr("open_table")? => Ok(Input::Table(item.unbind())),
                Err(_) => {
                    let (path, start, stop, line) = item.extract::<RangeTuple>()?;
                    Ok(Input::Range(path, FileRange { start, stop, line }))
                }
            }
        });
        Ok(Self {
            inputs: inputs.collect::<PyResult<_>>()?,
            open_remote: get("open_remote")?.unbind(),
            unit,
            field: get("field")?.extract()?,
            json_lines: get("json_lines")?.extract()?,
            on_error: get("on_error")?.extract::<ByName<OnError>>()?.0,
            require_utf8: flag("require_utf8")?,
            digest: flag("digest")?,
        })
    }
}

// ---------------------------------------------------------------------- what was read

/// A document that was skipped.
#[derive(Clone, Debug)]
pub(crate) struct Skip {
    pub(crate) file: u64,
    /// The line of a JSON record, from 1.
    pub(crate) line: Option<u64>,
    /// The row of a table, from 0.
    pub(crate) row: Option<u64>,
    /// The (decompressed) offset in a file.
    pub(crate) offset: Option<u64>,
    pub(crate) reason: String,
}

/// A file that was read to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedFile {
    pub(crate) file: u64,
    /// Size and XXH3-128 of the stored bytes; a table in memory and a part of a file have none.
    pub(crate) bytes: u64,
    pub(crate) digest: Option<u128>,
    pub(crate) documents: u64,
    pub(crate) lines: u64,
}

/// Counts the stored bytes read so far.
#[derive(Default)]
pub(crate) struct Consumed {
    finished: AtomicU64,
    /// The counter of the open part.
    open: Mutex<Arc<AtomicU64>>,
}

impl Consumed {
    /// The number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.finished.load(Ordering::Relaxed) + open.load(Ordering::Relaxed)
    }

    fn start(&self, counter: Arc<AtomicU64>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.finished.fetch_add(open.load(Ordering::Relaxed), Ordering::Relaxed);
        *open = counter;
    }
}

/// Why the inputs cannot be read.
#[derive(Debug)]
pub(crate) enum InputError {
    Corpus(byteweld_corpus::Error),
    /// What Python raised while it read for the engine.
    Python(PyErr),
}

impl From<byteweld_corpus::Error> for InputError {
    fn from(error: byteweld_corpus::Error) -> Self {
        Self::Corpus(error)
    }
}

pub(crate) type Result<T> = std::result::Result<T, InputError>;

/// Whether to stop; called often.
pub(crate) type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

// ---------------------------------------------------------------------- the inputs

/// Consecutive files for one reader, a part of a file, or a table.
enum Part {
    Files(Vec<PathBuf>),
    Range(PathBuf, FileRange),
    Table(Py<PyAny>),
}

impl Part {
    /// The number of files.
    fn len(&self) -> u64 {
        match self {
            Self::Files(paths) => paths.len() as u64,
            Self::Range(..) | Self::Table(_) => 1,
        }
    }
}

/// The part that is being read.
pub(crate) enum Open {
    /// A reader.
    Files(Reader),
    /// A table.
    Table(TableReader),
}

/// Reads files and tables in order.
pub(crate) struct Inputs {
    parts: std::vec::IntoIter<Part>,
    open: Option<Open>,
    /// The index of the first file of the open part, and of the next part.
    first: u64,
    next: u64,
    open_remote: Arc<Py<PyAny>>,
    options: Options,
    /// Where reading starts; later, the beginning of the open part.
    start: Position,
    consumed: Arc<Consumed>,
    interrupt: Interrupt,
    /// Those of finished parts, and of the open table.
    skipped: u64,
    skips: Vec<Skip>,
    finished: Vec<FinishedFile>,
}

impl Inputs {
    /// Inputs that are opened one after another.
    pub(crate) fn new(arguments: Arguments, limits: Limits) -> Self {
        let Arguments {
            inputs,
            open_remote,
            unit,
            field,
            json_lines,
            on_error,
            require_utf8,
            digest,
        } = arguments;
        let mut parts: Vec<Part> = Vec::new();
        for input in inputs {
            match (input, parts.last_mut()) {
                (Input::File(path), Some(Part::Files(paths))) => paths.push(path),
                (Input::File(path), _) => parts.push(Part::Files(vec![path])),
                (Input::Range(path, range), _) => parts.push(Part::Range(path, range)),
                (Input::Table(table), _) => parts.push(Part::Table(table)),
            }
        }
        Self {
            parts: parts.into_iter(),
            open: None,
            first: 0,
            next: 0,
            open_remote: Arc::new(open_remote),
            options: Options { unit, field, json_lines, on_error, require_utf8, digest, limits },
            start: Position::default(),
            consumed: Arc::default(),
            interrupt: Arc::new(|| false),
            skipped: 0,
            skips: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Stops reading when `interrupt` returns true. It is called often.
    pub(crate) fn set_interrupt(&mut self, interrupt: impl Fn() -> bool + Send + Sync + 'static) {
        self.interrupt = Arc::new(interrupt);
        match &mut self.open {
            Some(Open::Files(reader)) => {
                let interrupt = Arc::clone(&self.interrupt);
                reader.set_interrupt(move || interrupt());
            }
            Some(Open::Table(table)) => table.set_interrupt(Arc::clone(&self.interrupt)),
            None => {}
        }
    }

    /// A counter of the stored bytes read.
    pub(crate) fn consumed(&self) -> Arc<Consumed> {
        Arc::clone(&self.consumed)
    }

    /// The number of documents skipped.
    pub(crate) fn skipped(&self) -> u64 {
        match &self.open {
            Some(Open::Files(reader)) => self.skipped + reader.skipped(),
            _ => self.skipped,
        }
    }

    /// The documents skipped since the last call, the first ones if there are many.
    pub(crate) fn take_skips(&mut self) -> Vec<Skip> {
        self.collect();
        std::mem::take(&mut self.skips)
    }

    /// The files read to their end since the last call, with the argument `digest`.
    pub(crate) fn take_finished(&mut self) -> Vec<FinishedFile> {
        self.collect();
        std::mem::take(&mut self.finished)
    }

    /// Takes over what the open reader has to tell.
    fn collect(&mut self) {
        let Some(Open::Files(reader)) = &mut self.open else { return };
        for skip in reader.take_skips() {
            if self.skips.len() < MAX_LISTED_SKIPS {
                let byteweld_corpus::Skip { file, line, offset, reason } = skip;
                self.skips.push(Skip { file: self.first + file, line, row: None, offset, reason });
            }
        }
        for done in reader.take_finished() {
            let byteweld_corpus::FinishedFile { file, bytes, digest, documents, lines } = done;
            let file = self.first + file;
            self.finished.push(FinishedFile { file, bytes, digest, documents, lines });
        }
    }

    /// The position after the last complete document; `offset` counts the rows of a table.
    pub(crate) fn position(&self) -> Position {
        match &self.open {
            Some(Open::Table(table)) => Position {
                file: self.first,
                offset: table.rows(),
                documents: table.documents(),
                line: 0,
            },
            Some(Open::Files(reader)) => {
                let position = reader.position();
                Position { file: self.first + position.file, ..position }
            }
            None => self.start,
        }
    }

    /// Starts reading at a position; called before the first read.
    pub(crate) fn start_at(&mut self, position: Position) {
        self.start = position;
    }

    /// The file of the last bytes read, and their offset in it, if the bytes are those of the file.
    pub(crate) fn location(&self) -> (Option<&Path>, Option<u64>) {
        match &self.open {
            Some(Open::Files(reader)) => reader.location(),
            Some(Open::Table(table)) => (Some(table.path()), None),
            None => (None, None),
        }
    }

    /// The part that is being read, or the next one; `None` at the end.
    pub(crate) fn part(&mut self) -> Result<Option<&mut Open>> {
        while self.open.is_none() {
            let Some(part) = self.parts.next() else { return Ok(None) };
            self.first = self.next;
            self.next += part.len();
            if self.start.file >= self.next {
                continue;
            }
            // In the part, its first file is number 0.
            let start = Position { file: self.start.file - self.first, ..self.start };
            match part {
                Part::Files(paths) => {
                    let reader = self.reader(paths, start, None);
                    self.consumed.start(reader.consumed());
                    self.open = Some(Open::Files(reader));
                }
                Part::Range(path, range) => {
                    let reader = self.reader(vec![path], start, Some(range));
                    self.consumed.start(reader.consumed());
                    self.open = Some(Open::Files(reader));
                }
                Part::Table(source) => {
                    let interrupt = Arc::clone(&self.interrupt);
                    match TableReader::open(source, &self.options, start, interrupt)? {
                        Ok(table) => {
                            self.consumed.start(table.consumed());
                            self.open = Some(Open::Table(table));
                        }
                        Err(reason) => {
                            if let Some(reason) = reason {
                                self.skip(None, reason);
                            }
                            self.start = Position { file: self.next, ..Position::default() };
                        }
                    }
                }
            }
        }
        Ok(self.open.as_mut())
    }

    fn reader(&self, paths: Vec<PathBuf>, start: Position, range: Option<FileRange>) -> Reader {
        let has_remote = paths.iter().any(|path| is_remote(path));
        let mut reader = Reader::new(paths, self.options.clone());
        let interrupt = Arc::clone(&self.interrupt);
        reader.set_interrupt(move || interrupt());
        if has_remote {
            let open_remote = Arc::clone(&self.open_remote);
            reader.set_opener(move |path| {
                if !is_remote(path) {
                    return Ok(None);
                }
                let first = range.map_or(0, |range| range.start);
                let stream =
                    RemoteReader::open(&open_remote, path, first, range.map(|range| range.stop))?;
                Ok(Some(Box::new(stream) as Box<dyn Read + Send>))
            });
        }
        if let Some(range) = range {
            reader.set_range(range);
        }
        reader.start_at(start);
        reader
    }

    /// Ends the open part.
    pub(crate) fn finish_part(&mut self) -> Result<()> {
        self.collect();
        match self.open.take() {
            Some(Open::Files(reader)) => self.skipped += reader.skipped(),
            Some(Open::Table(table)) if self.options.digest => {
                let (bytes, digest) = self.hash(&table)?;
                let (file, documents) = (self.first, table.documents());
                self.finished.push(FinishedFile { file, bytes, digest, documents, lines: 0 });
            }
            _ => {}
        }
        self.start = Position { file: self.next, ..Position::default() };
        Ok(())
    }

    /// Reads a table's file once more, since only some of its bytes were needed.
    fn hash(&self, table: &TableReader) -> Result<(u64, Option<u128>)> {
        if table.is_in_memory() || table.is_part() {
            return Ok((0, None));
        }
        let (bytes, digest) = hash_file(table.path(), &self.open_remote, &*self.interrupt)?;
        Ok((bytes, Some(digest)))
    }

    fn skip(&mut self, row: Option<u64>, reason: String) {
        self.skipped += 1;
        if self.skips.len() < MAX_LISTED_SKIPS {
            let file = self.first;
            self.skips.push(Skip { file, line: None, row, offset: None, reason });
        }
    }

    /// Closes everything; there is nothing more to read. The position stays.
    pub(crate) fn close(&mut self) {
        self.collect();
        self.start = self.position();
        self.skipped = self.skipped();
        self.open = None;
        self.parts = Vec::new().into_iter();
    }

    /// Appends the next bytes of the current document to `buffer`, about `want` bytes. After an
    /// error, there is nothing more to read.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<ReadStatus> {
        self.read_next(buffer, want).inspect_err(|_| self.close())
    }

    fn read_next(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<ReadStatus> {
        use byteweld_corpus::ReadStatus as Status;
        loop {
            let status = match self.part()? {
                None => return Ok(ReadStatus::CorpusEnd),
                Some(Open::Files(reader)) => match reader.read(buffer, want)? {
                    Status::More => return Ok(ReadStatus::More),
                    Status::DocumentEnd => return Ok(ReadStatus::DocumentEnd),
                    Status::CorpusEnd => Step::TableEnd,
                },
                Some(Open::Table(table)) => table.read(buffer, want)?,
            };
            match status {
                Step::More => return Ok(ReadStatus::More),
                Step::DocumentEnd => return Ok(ReadStatus::DocumentEnd),
                Step::Skipped(row, reason) => self.skip(Some(row), reason),
                Step::TableEnd => self.finish_part()?,
            }
        }
    }

    /// Appends text of the open table to `buffer`; false at its end.
    pub(crate) fn read_table(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<bool> {
        loop {
            let Some(Open::Table(table)) = &mut self.open else { return Ok(false) };
            match table.read(buffer, want)? {
                Step::More | Step::DocumentEnd => return Ok(true),
                Step::Skipped(row, reason) => self.skip(Some(row), reason),
                Step::TableEnd => return Ok(false),
            }
        }
    }

    /// Replaces the content of `buffer` by the next document; false at the end of the corpus.
    pub(crate) fn next_document(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        self.read_document(buffer).inspect_err(|_| self.close())
    }

    fn read_document(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        loop {
            buffer.clear();
            match self.part()? {
                None => return Ok(false),
                Some(Open::Files(reader)) => {
                    if reader.next_document(buffer)? {
                        return Ok(true);
                    }
                    self.finish_part()?;
                }
                Some(Open::Table(table)) => match table.read(buffer, usize::MAX)? {
                    Step::DocumentEnd => return Ok(true),
                    Step::Skipped(row, reason) => self.skip(Some(row), reason),
                    Step::TableEnd => self.finish_part()?,
                    Step::More => {} // never: it may read all of it
                },
            }
        }
    }
}

/// The size and the XXH3-128 of a file as it is stored.
pub(crate) fn hash_file(
    path: &Path,
    open_remote: &Py<PyAny>,
    interrupt: &dyn Fn() -> bool,
) -> Result<(u64, u128)> {
    let system = |error| byteweld_corpus::Error::Io { path: path.to_path_buf(), error };
    let mut file: Box<dyn Read> = if is_remote(path) {
        Box::new(RemoteReader::open(open_remote, path, 0, None).map_err(system)?)
    } else {
        Box::new(File::open(path).map_err(system)?)
    };
    let mut hasher = xxhash3_128::Hasher::new();
    let mut block = vec![0; HASH_BYTES];
    let mut bytes = 0;
    loop {
        if interrupt() {
            return Err(byteweld_corpus::Error::Interrupted.into());
        }
        match file.read(&mut block).map_err(system)? {
            0 => return Ok((bytes, hasher.finish_128())),
            read => {
                hasher.write(&block[..read]);
                bytes += read as u64;
            }
        }
    }
}

impl DocumentSource for Inputs {
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
    ) -> std::result::Result<ReadStatus, Box<dyn std::error::Error + Send + Sync>> {
        Inputs::read(self, buffer, want).map_err(|error| match error {
            InputError::Corpus(byteweld_corpus::Error::OutOfMemory) => {
                Box::new(NoMemory) as Box<dyn std::error::Error + Send + Sync>
            }
            InputError::Corpus(error) => Box::new(error),
            InputError::Python(error) => Box::new(error),
        })
    }

    fn location(&self) -> (Option<String>, Option<u64>) {
        let (path, offset) = Inputs::location(self);
        (path.map(|path| path.display().to_string()), offset)
    }
}
