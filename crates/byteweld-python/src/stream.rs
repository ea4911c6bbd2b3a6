//! Encodes the documents of a corpus, block by block, for datasets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use byteweld_core::documents::{DocumentSource, Position, ReadStatus};
use byteweld_core::encode::{Allowed, EncodedBlock, StreamError, StreamOptions};
use byteweld_core::{Error, Result};
use byteweld_corpus::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};

use crate::convert::threads;
use crate::engine::{Engine, array};
use crate::error::raise;
use crate::inputs::{Arguments, FinishedFile, Inputs, Skip};
use crate::limit::Signals;
use crate::names::{ByName, Named, Names};
use crate::text::Text;

/// What becomes of special tokens that occur in text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecialText {
    /// An error.
    Fail,
    /// They are text.
    Text,
    /// They become their ids.
    Special,
}

impl Named for SpecialText {
    const WHAT: &'static str = "special_text";
    const NAMES: Names<Self> = &[
        ("fail", || SpecialText::Fail),
        ("text", || SpecialText::Text),
        ("special", || SpecialText::Special),
    ];
}

/// The arguments of `Encoder.encode_corpus` beside the corpus.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StreamArguments {
    start: Option<PositionTuple>,
    documents: Option<Py<PyAny>>,
    special_text: ByName<SpecialText>,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    marks_empty: bool,
    num_threads: Option<i128>,
}

/// Where reading can start again: file, offset, documents, line.
type PositionTuple = (u64, u64, u64, u64);

/// What happened while reading: finished files as (file, bytes, digest, documents, lines), skipped records
/// as (file, line, row, offset, reason), and the number of all skipped records.
pub(crate) type Events = (
    Vec<(u64, u64, Option<u128>, u64, u64)>,
    Vec<(u64, Option<u64>, Option<u64>, Option<u64>, String)>,
    u64,
);

/// Encodes a corpus. `receive` is called with each block in order: ids, ends of documents,
/// whether it ends inside a document, bytes of text, stored bytes read so far, special tokens in the
/// text, position, events. `progress` is called now and then. Returns the events after the last block.
pub(crate) fn encode_corpus(
    py: Python<'_>,
    engine: &Engine,
    corpus: Arguments,
    arguments: StreamArguments,
    receive: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Events> {
    let threads = threads(arguments.num_threads)?;
    let mut inputs = Inputs::new(corpus, Limits::default());
    let signals = Signals::new();
    let watched = Arc::clone(&signals);
    inputs.set_interrupt(move || watched.is_stopped());
    let documents = arguments.documents.map(|documents| documents.bind(py).try_iter());
    let documents = documents.transpose()?.map(Bound::unbind);
    let mut source = Source::new(inputs, documents, arguments.start);
    let log = Arc::clone(&source.log);
    let special_text = arguments.special_text.0;
    let stream = StreamOptions {
        allowed: if special_text == SpecialText::Special { Allowed::All } else { Allowed::None },
        refuses: special_text == SpecialText::Fail,
        prefix: &arguments.prefix,
        suffix: &arguments.suffix,
        marks_empty: arguments.marks_empty,
    };
    let texts: Vec<&str> = engine.encoder.special_texts().collect();
    let receive = receive.clone().unbind();
    let progress = progress.map(|call| call.clone().unbind());
    let (mut failure, mut documents) = (None, 0);
    let encoded = py.detach(|| {
        let mut pass_on = |block: EncodedBlock| -> Result<()> {
            documents += block.ends.len() as u64;
            let events = lock(&log).take(documents);
            Python::attach(|py| give(py, &receive, &texts, block, events)).map_err(|error| {
                failure = Some(error);
                Error::Interrupted
            })
        };
        let mut report = || {
            signals.go_on(|py| progress.as_ref().map_or(Ok(()), |call| call.call0(py).map(drop)))
        };
        engine.encoder.encode_source(&mut source, &stream, threads, &mut pass_on, &mut report)
    });
    match encoded {
        Ok(()) => {
            source.note();
            Ok(lock(&log).take(u64::MAX))
        }
        Err(_) if failure.is_some() => failure.map_or(Ok(Events::default()), Err),
        Err(StreamError { error, document }) => {
            let error = signals.cause(raise(py, error));
            if let Some(document) = document {
                error.value(py).setattr("document", document)?;
            }
            Err(error)
        }
    }
}

fn give(
    py: Python<'_>,
    receive: &Py<PyAny>,
    texts: &[&str],
    block: EncodedBlock,
    events: Events,
) -> PyResult<()> {
    let specials = PyDict::new(py);
    for (index, count) in block.specials {
        specials.set_item(texts.get(index), count)?;
    }
    let Position { file, offset, documents, line } = block.position.unwrap_or_default();
    let position = block.position.map(|_| (file, offset, documents, line));
    let (ids, ends) = (array(py, block.ids), array(py, block.ends));
    let (open, bytes, read) = (block.is_open, block.text_bytes, block.consumed);
    receive.call1(py, (ids, ends, open, bytes, read, specials, position, events)).map(drop)
}

// ---------------------------------------------------------------------- the source

/// The documents of files and tables, then those of an iterator, and a log of what happened.
struct Source {
    inputs: Inputs,
    is_over: bool,
    /// The iterator, how many documents to skip, and how many were read.
    documents: Option<Py<PyIterator>>,
    skip: u64,
    read: u64,
    /// The number of documents read in all.
    ended: u64,
    log: Arc<Mutex<Log>>,
    skipped: u64,
}

/// The file number of documents that an iterator gives.
const ITERATOR: u64 = u64::MAX >> 1;

impl Source {
    fn new(
        mut inputs: Inputs,
        documents: Option<Py<PyIterator>>,
        start: Option<PositionTuple>,
    ) -> Self {
        let (file, offset, number, line) = start.unwrap_or_default();
        let is_over = file == ITERATOR;
        if !is_over {
            inputs.start_at(byteweld_corpus::Position { file, offset, documents: number, line });
        }
        let skip = if is_over { offset } else { 0 };
        let log = Arc::default();
        Self { inputs, is_over, documents, skip, read: 0, ended: 0, log, skipped: 0 }
    }

    /// Notes what has happened before the end of the current document.
    fn note(&mut self) {
        let (finished, skips) = (self.inputs.take_finished(), self.inputs.take_skips());
        let skipped = self.inputs.skipped();
        if finished.is_empty() && skips.is_empty() && skipped == self.skipped {
            return;
        }
        let more = skipped - self.skipped;
        self.skipped = skipped;
        lock(&self.log).entries.push_back((self.ended, finished, skips, more));
    }

    /// Reads the next document of the iterator; false if there are none.
    fn next_document(&mut self, buffer: &mut Vec<u8>) -> PyResult<bool> {
        let Some(documents) = &self.documents else { return Ok(false) };
        Python::attach(|py| {
            for document in documents.bind(py).clone() {
                let document = document?;
                self.read += 1;
                if self.read <= self.skip {
                    continue;
                }
                let text: Text = document.extract()?;
                if std::str::from_utf8(text.as_ref()).is_err() {
                    let number = self.read - 1;
                    return Err(PyValueError::new_err(format!(
                        "documents[{number}] is not UTF-8; decode it first, for example with \
                         errors='replace'"
                    )));
                }
                crate::error::reserve(py, buffer, text.as_ref().len())?;
                buffer.extend_from_slice(text.as_ref());
                return Ok(true);
            }
            if self.read < self.skip {
                return Err(PyValueError::new_err(format!(
                    "there are {} documents, but {} were read before the interruption; pass the \
                     same documents, or start over with overwrite=True (--force)",
                    self.read, self.skip
                )));
            }
            Ok(false)
        })
    }
}

impl DocumentSource for Source {
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        max_bytes: usize,
    ) -> std::result::Result<ReadStatus, Box<dyn std::error::Error + Send + Sync>> {
        let mut status = ReadStatus::CorpusEnd;
        if !self.is_over {
            status = DocumentSource::read(&mut self.inputs, buffer, max_bytes)?;
            self.is_over = status == ReadStatus::CorpusEnd;
        }
        if self.is_over && self.next_document(buffer)? {
            status = ReadStatus::DocumentEnd;
        }
        if status == ReadStatus::DocumentEnd {
            self.ended += 1;
            self.note();
        }
        Ok(status)
    }

    fn location(&self) -> (Option<String>, Option<u64>) {
        DocumentSource::location(&self.inputs)
    }

    fn consumed(&self) -> u64 {
        self.inputs.consumed().bytes()
    }

    fn position(&self) -> Position {
        if self.is_over {
            let read = self.read;
            return Position { file: ITERATOR, offset: read, documents: read, line: 0 };
        }
        let byteweld_corpus::Position { file, offset, documents, line } = self.inputs.position();
        Position { file, offset, documents, line }
    }
}

/// What happened, with the number of documents that had been read.
#[derive(Default)]
struct Log {
    entries: VecDeque<(u64, Vec<FinishedFile>, Vec<Skip>, u64)>,
}

impl Log {
    /// Takes what happened before the end of this document.
    fn take(&mut self, documents: u64) -> Events {
        let mut events = Events::default();
        while self.entries.front().is_some_and(|(number, ..)| *number <= documents)
            && let Some((_, finished, skips, skipped)) = self.entries.pop_front()
        {
            let files =
                finished.into_iter().map(|f| (f.file, f.bytes, f.digest, f.documents, f.lines));
            events.0.extend(files);
            let skips = skips.into_iter().map(|s| (s.file, s.line, s.row, s.offset, s.reason));
            events.1.extend(skips);
            events.2 += skipped;
        }
        events
    }
}

fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
