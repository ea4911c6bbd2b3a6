//! Reads the documents of a list of files, in pieces.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::change_detector::ChangeDetector;
use crate::error::{Error, Result};
use crate::file::{OpenFile, Opened, Step, WINDOW_BYTES};
use crate::options::{OnError, Options};
use crate::report::{FileRange, FinishedFile, Position, Skip, Skips};
use crate::stored::Interrupt;

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

type Opener = Box<dyn FnMut(&Path) -> io::Result<Option<Box<dyn Read + Send>>> + Send>;

/// Reads a list of files.
pub struct Reader {
    files: Vec<PathBuf>,
    /// The index of the open file, or of the next one.
    file: usize,
    options: Arc<Options>,
    open: Option<OpenFile>,
    opener: Option<Opener>,
    range: Option<FileRange>,
    /// Where reading starts.
    start: Position,
    position: Position,
    finished: Vec<FinishedFile>,
    skips: Skips,
    consumed: Arc<AtomicU64>,
    last_location: (Option<Arc<PathBuf>>, Option<u64>),
    interrupt: Interrupt,
}

impl Reader {
    /// Creates a reader. Each file is opened when the previous one is finished.
    pub fn new(files: Vec<PathBuf>, options: Options) -> Self {
        Self {
            files,
            file: 0,
            options: Arc::new(options),
            open: None,
            opener: None,
            range: None,
            start: Position::default(),
            position: Position::default(),
            finished: Vec::new(),
            skips: Skips::default(),
            consumed: Arc::new(AtomicU64::new(0)),
            last_location: (None, None),
            interrupt: Arc::new(|| false),
        }
    }

    /// Stops reading with [`Error::Interrupted`] when `interrupt` returns true. It is called often.
    pub fn set_interrupt(&mut self, interrupt: impl Fn() -> bool + Send + Sync + 'static) {
        self.interrupt = Arc::new(interrupt);
    }

    /// Asks `opener` for the bytes of each file, as they are stored; `None` means that the file
    /// system has them. What it returns is read like a pipe: once, and without noticing changes.
    pub fn set_opener(
        &mut self,
        opener: impl FnMut(&Path) -> io::Result<Option<Box<dyn Read + Send>>> + Send + 'static,
    ) {
        self.opener = Some(Box::new(opener));
    }

    /// Reads only this part of each file, as it is stored. It must start and end between two
    /// documents, or where text may be cut; its offsets and lines are those of the file. An opener
    /// returns the bytes from its start on. There is no other position to start at.
    pub fn set_range(&mut self, range: FileRange) {
        self.range = Some(range);
    }

    /// Starts where another reader of the same files, with the same options, was: before the first
    /// read. Earlier files are not opened; of this one, what is before the position is read, for
    /// its digest, but not parsed. A position after the last file leaves nothing to read.
    pub fn start_at(&mut self, position: Position) {
        self.file = usize::try_from(position.file).unwrap_or(usize::MAX);
        self.open = None;
        self.start = position;
        self.position = position;
    }

    /// The place after the last complete document, and after the last file at the end of the
    /// corpus.
    ///
    /// After [`ReadStatus::DocumentEnd`] and [`ReadStatus::CorpusEnd`], what [`Reader::take_skips`],
    /// [`Reader::skipped`] and [`Reader::take_finished`] tell is what happened up to there; a reader
    /// that starts there tells the rest.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The files read to their end since the last call, if [`Options::digest`] is set.
    pub fn take_finished(&mut self) -> Vec<FinishedFile> {
        std::mem::take(&mut self.finished)
    }

    /// What was skipped since the last call: the first 1,000.
    pub fn take_skips(&mut self) -> Vec<Skip> {
        self.skips.take()
    }

    /// The number of documents skipped.
    pub fn skipped(&self) -> u64 {
        self.skips.total()
    }

    /// A counter of the (compressed) bytes read from disk.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// The file of the last bytes returned, and their (decompressed) offset in it. There is no
    /// offset for JSON and replaced text, whose bytes are not those of the file.
    pub fn location(&self) -> (Option<&Path>, Option<u64>) {
        (self.last_location.0.as_ref().map(|path| path.as_path()), self.last_location.1)
    }

    /// Appends the next bytes of the current document to `buffer`, about `want` bytes.
    pub fn read(&mut self, buffer: &mut Vec<u8>, want: usize) -> Result<ReadStatus> {
        loop {
            let index = self.file as u64;
            let Some(file) = &mut self.open else {
                if self.file >= self.files.len() {
                    let end = Position { file: self.files.len() as u64, ..Position::default() };
                    self.position = self.position.max(end);
                    return Ok(ReadStatus::CorpusEnd);
                }
                self.open_next()?;
                continue;
            };
            let (before, piece_start) = (buffer.len(), file.piece_start());
            let step = file.read(buffer, want);
            let offset = piece_start.unwrap_or(file.document_start());
            self.last_location =
                (Some(Arc::clone(&file.path)), file.is_verbatim().then_some(offset));
            match step {
                Ok(Step::More) => return Ok(ReadStatus::More),
                Ok(Step::DocumentEnd) => {
                    file.documents += 1;
                    self.position = file.position(index);
                    return Ok(ReadStatus::DocumentEnd);
                }
                Ok(Step::Skipped(reason)) => {
                    let (line, offset) = (file.last_line(), Some(file.document_start()));
                    self.skips.add(Skip { file: index, line, offset, reason });
                }
                Ok(Step::FileEnd) => self.finish_file(),
                Err(Error::Damaged { offset, message, .. })
                    if self.options.on_error == OnError::Skip && !file.is_partly_returned() =>
                {
                    buffer.truncate(before);
                    file.finish()?;
                    let (line, offset, reason) = (None, Some(offset), message);
                    self.skips.add(Skip { file: index, line, offset, reason });
                    self.finish_file();
                }
                Err(error) => {
                    // Nothing is skipped of which a part was returned.
                    let is_start = file.is_start();
                    buffer.truncate(before);
                    self.skip_file(error, is_start)?;
                }
            }
        }
    }

    fn finish_file(&mut self) {
        let finished = self.open.as_ref().and_then(|file| file.finished(self.file as u64));
        self.finished.extend(finished);
        self.close();
    }

    fn close(&mut self) {
        self.open = None;
        self.file += 1;
    }

    fn open_next(&mut self) -> Result<()> {
        let start =
            if self.start.file == self.file as u64 { self.start } else { Position::default() };
        let opened = self.open_file().and_then(|mut file| {
            if !start.is_file_start() {
                file.start_at(start)?;
            }
            Ok(file)
        });
        match opened {
            Ok(file) => {
                self.open = Some(file);
                Ok(())
            }
            Err(error) => self.skip_file(error, start.is_file_start()),
        }
    }

    fn open_file(&mut self) -> Result<OpenFile> {
        let path = &self.files[self.file];
        let failed = |error| Error::Io { path: path.clone(), error };
        let stream = match &mut self.opener {
            Some(opener) => opener(path).map_err(failed)?,
            None => None,
        };
        let opened = match stream {
            Some(stream) => Opened::Stream(stream),
            None => Opened::File(ChangeDetector::new(File::open(path).map_err(failed)?)),
        };
        OpenFile::new(
            Arc::new(path.clone()),
            opened,
            Arc::clone(&self.consumed),
            Arc::clone(&self.options),
            Arc::clone(&self.interrupt),
            self.range,
        )
    }

    /// Skips a file with an error, if the options say so, and nothing of it was returned.
    fn skip_file(&mut self, error: Error, is_start: bool) -> Result<()> {
        let reason = unreadable_file(&error);
        match reason {
            Some(reason) if self.options.on_error == OnError::Skip && is_start => {
                // A file is skipped once, not once for each of its parts.
                if self.range.is_none_or(|range| range.start == 0) {
                    let file = self.file as u64;
                    self.skips.add(Skip { file, line: None, offset: None, reason });
                }
                self.close();
                Ok(())
            }
            _ => Err(error),
        }
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
                        file.drain(buffer, 0)?;
                        let (line, offset) = (file.last_line(), Some(file.document_start()));
                        let reason = "too large".to_owned();
                        self.skips.add(Skip { file: self.file as u64, line, offset, reason });
                    }
                    Some(file) => return Err(file.document_too_large()),
                    None => {}
                },
            }
        }
    }
}

/// Why a file is missing, cannot be opened, or needs too large a dictionary. Running out of memory
/// or file descriptors is different: it is not the file's fault.
fn unreadable_file(error: &Error) -> Option<String> {
    use ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    match error {
        Error::Io { error, .. } => {
            let is_unreadable = matches!(error.kind(), NotFound | PermissionDenied | IsADirectory);
            is_unreadable.then(|| format!("cannot be opened: {error}"))
        }
        Error::TooLarge { line: None, offset: None, .. } => {
            Some("too large a dictionary".to_owned())
        }
        _ => None,
    }
}
