//! Encodes the documents of a corpus, block by block, for datasets.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use byteweld_core::documents::Position;
use byteweld_core::encode::{Allowed, EncodedBlock, StreamError, StreamOptions};
use byteweld_core::{Error, Result};
use byteweld_corpus::{Limits, OnError, Reader, Unit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::threads;
use crate::corpus::{Source, options};
use crate::engine::{Engine, array};
use crate::error::raise;
use crate::limit::Signals;
use crate::names::{ByName, Named, Names};

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

/// The arguments of `Encoder.encode_corpus`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StreamArguments {
    files: Vec<PathBuf>,
    unit: ByName<Unit>,
    separator: Option<Vec<u8>>,
    field: String,
    on_error: ByName<OnError>,
    special_text: ByName<SpecialText>,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    marks_empty: bool,
    num_threads: Option<i128>,
}

/// Where reading can start again: file, offset, documents, line.
type PositionTuple = (u64, u64, u64, u64);

fn position_tuple(position: Position) -> PositionTuple {
    (position.file, position.offset, position.documents, position.line)
}

/// Encodes a corpus. `receive` is called with each block in order: ids, ends of documents,
/// whether it ends inside a document, bytes of text, special tokens in the text, position. `progress` is called with the bytes read.
pub(crate) fn encode_corpus(
    py: Python<'_>,
    engine: &Engine,
    arguments: StreamArguments,
    receive: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let threads = threads(arguments.num_threads)?;
    let reading = options(
        arguments.unit,
        arguments.separator,
        arguments.field,
        arguments.on_error,
        Limits::default(),
    )?;
    let mut reader = Reader::new(arguments.files, reading);
    let signals = Signals::new();
    let watched = Arc::clone(&signals);
    reader.set_interrupt(move || watched.is_stopped());
    let consumed = reader.consumed();
    let mut source = Source(reader);
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
    let mut failure = None;
    let encoded = py.detach(|| {
        let mut pass_on = |block: EncodedBlock| -> Result<()> {
            Python::attach(|py| give(py, &receive, &texts, block)).map_err(|error| {
                failure = Some(error);
                Error::Interrupted
            })
        };
        let mut report = || {
            let bytes = consumed.load(Ordering::Relaxed);
            signals.go_on(|py| {
                progress.as_ref().map_or(Ok(()), |call| call.call1(py, (bytes,)).map(drop))
            })
        };
        engine.encoder.encode_source(&mut source, &stream, threads, &mut pass_on, &mut report)
    });
    let Err(StreamError { error, document }) = encoded else { return Ok(()) };
    if let Some(failure) = failure {
        return Err(failure);
    }
    let error = signals.cause(raise(py, error));
    if let Some(document) = document {
        error.value(py).setattr("document", document)?;
    }
    Err(error)
}

fn give(py: Python<'_>, receive: &Py<PyAny>, texts: &[&str], block: EncodedBlock) -> PyResult<()> {
    let specials = PyDict::new(py);
    for (index, count) in block.specials {
        specials.set_item(texts.get(index), count)?;
    }
    let position = block.position.map(position_tuple);
    let (ids, ends) = (array(py, block.ids), array(py, block.ends));
    receive.call1(py, (ids, ends, block.is_open, block.text_bytes, specials, position)).map(drop)
}
