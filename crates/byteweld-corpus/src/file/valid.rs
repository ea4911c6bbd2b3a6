//! Documents that must be UTF-8: an error if they are not, or skipped as a whole.

use std::collections::VecDeque;
use std::io::{Seek as _, SeekFrom};
use std::sync::Arc;

use super::{MAX_WINDOW_BYTES, OpenFile, Opened, Step, WINDOW_BYTES};
use crate::change_detector::ChangeDetector;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::utf8;

/// With [`crate::OnError::Skip`], a longer document of a regular file is not held in memory to
/// check it.
const MAX_HELD_BYTES: usize = 64 << 20;

pub(super) const NOT_UTF8: &str = "not UTF-8";

impl OpenFile {
    /// Reads a part of a document; what is not UTF-8 is an error.
    pub(super) fn read_checked(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<Step> {
        let before = buffer.len();
        let step = self.read_piece(buffer, want)?;
        self.checker.add(&buffer[before..]);
        let is_end = step == Step::DocumentEnd;
        let invalid = if is_end { self.checker.finish() } else { self.checker.invalid_at() };
        let Some(at) = invalid else { return Ok(step) };
        buffer.truncate(before);
        Err(Error::Content {
            path: self.path.to_path_buf(),
            line: self.last_line().map(|line| line + u64::from(!is_end)),
            offset: Some(self.document_start + at),
            message: "the text is not UTF-8; pass on_error='replace' or 'skip' (--on-error)"
                .to_owned(),
        })
    }

    /// Reads a document and skips it if it is not UTF-8. A long one is returned in pieces.
    pub(super) fn read_valid_document(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
    ) -> Result<Step> {
        let start = buffer.len();
        if self.is_checked {
            let step = self.read_piece(buffer, want)?;
            self.is_checked = step == Step::More;
            return Ok(step);
        }
        loop {
            match self.read_piece(buffer, WINDOW_BYTES)? {
                Step::More if buffer.len() - start <= self.held_bytes() => {}
                Step::More => {
                    let Some(detector) = self.regular() else {
                        let message = format!(
                            "a document of more than {} bytes, and a pipe, device or stream cannot \
                             be read twice to check that all of it is UTF-8; copy it to a file, or \
                             pass on_error='replace' (--on-error replace)",
                            self.options.limits.record_bytes
                        );
                        return Err(self.content(Some(self.document_start), &message));
                    };
                    if self.long_documents.is_none() {
                        self.long_documents = Some(self.check_long_documents(detector.again())?);
                    }
                    if self.is_valid_long_document() {
                        self.is_checked = true;
                        return Ok(Step::More);
                    }
                    self.drain(buffer, start)?;
                    return Ok(Step::Skipped(NOT_UTF8.to_owned()));
                }
                Step::DocumentEnd if std::str::from_utf8(&buffer[start..]).is_ok() => {
                    return Ok(Step::DocumentEnd);
                }
                Step::DocumentEnd => {
                    buffer.truncate(start);
                    return Ok(Step::Skipped(NOT_UTF8.to_owned()));
                }
                other => return Ok(other),
            }
        }
    }

    /// The file, if it can be read twice.
    fn regular(&self) -> Option<&ChangeDetector> {
        self.detector.as_ref().filter(|detector| detector.is_regular())
    }

    /// The maximum length of a document that is held in memory to check it.
    fn held_bytes(&self) -> usize {
        let is_regular = self.regular().is_some();
        self.options.limits.record_bytes.min(if is_regular { MAX_HELD_BYTES } else { usize::MAX })
    }

    /// Reads on to the end of a document, and forgets it from `start` on.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<()> {
        self.is_checked = false;
        loop {
            buffer.truncate(start);
            if self.read_piece(buffer, WINDOW_BYTES)? != Step::More {
                buffer.truncate(start);
                return Ok(());
            }
        }
    }

    /// Whether the current document, a long one, is UTF-8.
    fn is_valid_long_document(&mut self) -> bool {
        let at = self.document_start;
        let Some(found) = &mut self.long_documents else { return false };
        while found.front().is_some_and(|(start, _)| *start < at) {
            found.pop_front();
        }
        matches!(found.front(), Some((start, true)) if *start == at)
    }

    /// Reads the whole file a first time, to check its long documents: where each starts, and
    /// whether it is UTF-8.
    fn check_long_documents(&self, detector: ChangeDetector) -> Result<VecDeque<(u64, bool)>> {
        let shared = detector.file();
        let mut file = &*shared;
        let system = |error| Error::Io { path: self.path.to_path_buf(), error };
        let position = file.stream_position().map_err(system)?;
        file.rewind().map_err(system)?;
        let mut first = OpenFile::new(
            Arc::clone(&self.path),
            Opened::File(detector),
            Arc::default(),
            Arc::new(Options { digest: false, ..(*self.options).clone() }),
            Arc::clone(&self.interrupt),
            self.range,
        )?;
        let (mut found, mut buffer) = (VecDeque::new(), Vec::new());
        let (mut checker, mut length) = (utf8::Checker::default(), 0_u64);
        loop {
            buffer.clear();
            let step = match first.read_piece(&mut buffer, MAX_WINDOW_BYTES) {
                Err(Error::Damaged { .. }) => break, // not valid; the second pass gets there, too
                step => step?,
            };
            checker.add(&buffer);
            length += buffer.len() as u64;
            match step {
                Step::DocumentEnd => {
                    let is_valid = checker.finish().is_none();
                    let start = first.document_start;
                    if length > self.held_bytes() as u64 {
                        found.push_back((start, is_valid));
                    }
                    length = 0;
                }
                Step::FileEnd => break,
                Step::More | Step::Skipped(_) => {}
            }
        }
        file.seek(SeekFrom::Start(position)).map_err(system)?;
        Ok(found)
    }
}
