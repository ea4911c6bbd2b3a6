//! Reads the documents of a table: the strings of one column, in place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use byteweld_corpus::{OnError, Options, Position, append, append_replaced};
use pyo3::exceptions::{PyFileNotFoundError, PyIsADirectoryError, PyPermissionError};
use pyo3::prelude::*;

use crate::arrow::{Batch, Column, ColumnError, Stream};
use crate::inputs::{InputError, Interrupt, Result};

/// About this much text is in a batch, if the table lets us choose.
const BATCH_BYTES: usize = 16 << 20;

/// Interrupts are checked once per this many rows.
const CHECK_EVERY: u64 = 1 << 10;

/// A read takes at least this much, so that it goes on: more than one character.
const MIN_BYTES: usize = 16;

const OR_SKIP: &str = "or pass on_error='skip' (--on-error skip)";

/// What a read gave.
pub(crate) enum Step {
    /// A part of a document.
    More,
    /// The rest of a document.
    DocumentEnd,
    /// The row was skipped, for a reason.
    Skipped(u64, String),
    /// There are no more rows.
    TableEnd,
}

/// Why a row is not a document: in a few words for a list, and what to say and do about it.
#[derive(Clone)]
struct Invalid {
    reason: String,
    message: String,
}

/// A table that is being read. Python opens it (`corpus/_tables.py`), the engine reads its stream.
pub(crate) struct TableReader {
    source: Py<PyAny>,
    path: PathBuf,
    /// Whether it has no stored bytes, so that those of its text are counted.
    is_in_memory: bool,
    /// Whether only a part of the file is read.
    is_part: bool,
    stream: Stream,
    column: std::result::Result<Column, Invalid>,
    batch: Option<Batch>,
    /// The next row in the batch, and in the table.
    next: usize,
    rows: u64,
    documents: u64,
    /// Rows that are not read: they are before the position to start at.
    passed: u64,
    /// The bytes of the current document that were returned, and whether it has bytes to replace.
    taken: usize,
    is_replaced: bool,
    options: Options,
    consumed: Arc<AtomicU64>,
    interrupt: Interrupt,
}

impl TableReader {
    /// Opens a table to read it from a row on. The inner error is why it is skipped; a file is
    /// skipped once, not once for each of its parts.
    pub(crate) fn open(
        source: Py<PyAny>,
        options: &Options,
        start: Position,
        interrupt: Interrupt,
    ) -> Result<std::result::Result<Self, Option<String>>> {
        let batch_bytes = BATCH_BYTES.min(options.limits.record_bytes);
        let opened = Python::attach(|py| {
            let table = source.bind(py);
            let name: PathBuf = table.getattr("name")?.extract()?;
            let stream = table.call_method1("open_table", (start.offset, batch_bytes))?;
            let first: u64 = table.getattr("first_row")?.extract()?;
            let columns: Option<Vec<String>> = table.getattr("columns")?.extract()?;
            let is_in_memory = table.getattr("bytes_read")?.is_none();
            let is_part: bool = table.getattr("is_part")?.extract()?;
            Ok((name, Stream::of(&stream)?, first, columns, is_in_memory, is_part))
        });
        let (path, mut stream, first, columns, is_in_memory, is_part) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let (is_unreadable, is_start) = Python::attach(|py| {
                    let is_start = source.bind(py).getattr("is_start")?.extract()?;
                    Ok((is_unreadable_file(py, &error), is_start))
                })
                .map_err(InputError::Python)?;
                return if is_unreadable && options.on_error == OnError::Skip {
                    Ok(Err(bool::then(is_start, || format!("cannot be opened: {error}"))))
                } else {
                    Err(InputError::Python(error))
                };
            }
        };
        // Asking for the schema may call Python, so it is done without the GIL.
        let column = match stream.column(&options.field) {
            Ok(column) => Ok(column),
            Err(ColumnError::Missing(names)) => {
                Err(no_column(&options.field, &columns.unwrap_or(names)))
            }
            Err(ColumnError::Twice) => {
                let reason = format!("the column {:?} is there twice", options.field);
                let message = format!("{reason}; rename one of the two");
                Err(Invalid { reason, message })
            }
            Err(ColumnError::Type(found)) => {
                let reason = format!("the column {:?} is {found}", options.field);
                let message = format!("{reason}; expected a column of strings");
                Err(Invalid { reason, message })
            }
            Err(ColumnError::Broken(message)) => {
                return Err(content(&path, &format!("the table is damaged: {message}")));
            }
        };
        if let Err(Invalid { message, .. }) = &column
            && options.on_error != OnError::Skip
        {
            return Err(content(&path, &format!("{message}; {OR_SKIP}")));
        }
        Ok(Ok(Self {
            source,
            path,
            is_in_memory,
            is_part,
            stream,
            column,
            batch: None,
            next: 0,
            rows: start.offset.max(first),
            documents: start.documents,
            passed: start.offset.saturating_sub(first),
            taken: 0,
            is_replaced: false,
            options: options.clone(),
            consumed: Arc::default(),
            interrupt,
        }))
    }

    pub(crate) fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// A counter of the stored bytes read.
    pub(crate) fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// What the table is called in errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether only a part of the file is read.
    pub(crate) fn is_part(&self) -> bool {
        self.is_part
    }

    /// Whether it has no stored bytes.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// The number of rows before the current document.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of documents returned.
    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    /// Appends the next bytes of the current document to `buffer`, about `want` bytes.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<Step> {
        while self.batch.as_ref().is_none_or(|batch| self.next >= batch.rows()) {
            if !self.next_batch()? {
                return Ok(Step::TableEnd);
            }
        }
        if self.rows.is_multiple_of(CHECK_EVERY) && (self.interrupt)() {
            return Err(byteweld_corpus::Error::Interrupted.into());
        }
        let row = self.rows;
        let Some(batch) = &self.batch else { return Ok(Step::TableEnd) };
        let step = match &self.column {
            Err(invalid) => Err(invalid.clone()),
            Ok(_) => match batch.get(self.next) {
                Some(text) => self.read_text(text, buffer, want)?,
                None => {
                    let reason = "the text is null".to_owned();
                    Err(Invalid { message: reason.clone() + "; expected a string", reason })
                }
            },
        };
        match step {
            Ok((taken, is_replaced, is_end)) => {
                if self.is_in_memory {
                    self.consumed.fetch_add((taken - self.taken) as u64, Ordering::Relaxed);
                }
                self.taken = taken;
                self.is_replaced = is_replaced;
                if !is_end {
                    return Ok(Step::More);
                }
                self.documents += 1;
            }
            Err(Invalid { message, .. }) if self.options.on_error != OnError::Skip => {
                return Err(content(&self.path, &format!("row {row}: {message}; {OR_SKIP}")));
            }
            Err(Invalid { reason, .. }) => {
                self.finish_row();
                return Ok(Step::Skipped(row, reason));
            }
        }
        self.finish_row();
        Ok(Step::DocumentEnd)
    }

    fn finish_row(&mut self) {
        self.next += 1;
        self.rows += 1;
        self.taken = 0;
        self.is_replaced = false;
    }

    /// Appends more of a text: how much of it is taken, whether it is replaced, and whether it has
    /// ended; or why it is not valid.
    fn read_text(
        &self,
        text: &[u8],
        buffer: &mut Vec<u8>,
        want: usize,
    ) -> Result<std::result::Result<(usize, bool, bool), Invalid>> {
        let mut is_replaced = self.is_replaced;
        if self.taken == 0 {
            let limit = self.options.limits.record_bytes;
            if text.len() > limit {
                let found = format!("the text has {} bytes", text.len());
                return self.too_large(&found, limit);
            }
            is_replaced = match std::str::from_utf8(text) {
                Ok(_) => false,
                Err(_) if self.options.on_error == OnError::Replace => true,
                Err(error) => {
                    let at = error.valid_up_to();
                    let reason = "not UTF-8".to_owned();
                    let message = format!(
                        "the text is not UTF-8 at its byte {at}; pass on_error='replace' \
                         (--on-error replace)"
                    );
                    return Ok(Err(Invalid { reason, message }));
                }
            };
        }
        let rest = &text[self.taken..];
        let mut taken = rest.len().min(want.max(MIN_BYTES));
        if is_replaced {
            let is_all = taken == rest.len();
            taken -= append_replaced(&rest[..taken], is_all, buffer)?;
        } else {
            append(buffer, &rest[..taken])?;
        }
        Ok(Ok((self.taken + taken, is_replaced, taken == rest.len())))
    }

    fn too_large<T>(&self, found: &str, limit: usize) -> Result<std::result::Result<T, Invalid>> {
        if self.options.on_error == OnError::Skip {
            let reason = "too large".to_owned();
            return Ok(Err(Invalid { message: reason.clone(), reason }));
        }
        let is_budget = self.options.limits.is_budget;
        let (whose, more) = if is_budget {
            ("the memory budget leaves for it", "a larger one")
        } else {
            ("are allowed without a memory budget", "one")
        };
        let message = format!(
            "row {}: {found}, more than the {limit} bytes that {whose}; pass {more} as memory= \
             (--memory), or skip it with on_error='skip' (--on-error skip)",
            self.rows
        );
        let path = self.path.clone();
        Err(byteweld_corpus::Error::TooLarge { path, line: None, offset: None, message, is_budget }
            .into())
    }

    /// Reads the next batch; false at the end.
    fn next_batch(&mut self) -> Result<bool> {
        if (self.interrupt)() {
            return Err(byteweld_corpus::Error::Interrupted.into());
        }
        self.batch = None; // first, so that two are never in memory
        self.next = 0;
        let found = self.stream.next(self.column.as_ref().ok());
        let state = Python::attach(|py| {
            let source = self.source.bind(py);
            let failure = source.getattr("failure")?;
            if !failure.is_none() {
                return Err(PyErr::from_value(failure));
            }
            source.getattr("bytes_read")?.extract::<Option<u64>>()
        });
        if let Some(bytes) = state.map_err(InputError::Python)? {
            self.consumed.store(bytes, Ordering::Relaxed);
        }
        let damaged = |message: String| {
            // A signal that Python handled in a producer's code is only left in its message.
            if message.contains("KeyboardInterrupt") {
                return byteweld_corpus::Error::Interrupted.into();
            }
            content(&self.path, &format!("the table is damaged after row {}: {message}", self.rows))
        };
        let Some(batch) = found.map_err(damaged)? else {
            if self.passed > 0 {
                let message = "the table has fewer rows than had been read; it has changed";
                return Err(content(&self.path, message));
            }
            return Ok(false);
        };
        let passed = self.passed.min(batch.rows() as u64);
        self.passed -= passed;
        self.next = passed as usize;
        self.batch = Some(batch);
        Ok(true)
    }
}

/// The error of a table's content.
fn content(path: &Path, message: &str) -> InputError {
    let (path, message) = (path.to_path_buf(), message.to_owned());
    byteweld_corpus::Error::Content { path, line: None, offset: None, message }.into()
}

fn no_column(field: &str, columns: &[String]) -> Invalid {
    const SHOWN: usize = 20;
    let mut names: Vec<_> = columns.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    if columns.len() > SHOWN {
        names.push("...".to_owned());
    }
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let reason = format!("no column {field:?}");
    let message = format!(
        "{reason}; the columns are {known}; pass the column of the text as field= (--field)"
    );
    Invalid { reason, message }
}

/// Whether a file is missing or cannot be opened.
fn is_unreadable_file(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyFileNotFoundError>(py)
        || error.is_instance_of::<PyPermissionError>(py)
        || error.is_instance_of::<PyIsADirectoryError>(py)
}
