//! Reads documents in blocks for workers, from a source or from memory.
//!
//! A block consists of pieces of documents, each of which starts and ends at a cut point. Workers
//! take turns with the reader of blocks: each fills a block, releases the reader, and works on it.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::reserve::{append, check_step, push};

/// The approximate size of a block.
const BLOCK_BYTES: usize = 1 << 20;
/// A buffer that grew larger is not kept for the next block.
const MAX_KEPT_BYTES: usize = 4 * BLOCK_BYTES;
/// The maximum number of pieces in a block.
const MAX_BLOCK_PIECES: usize = 1 << 16;
/// The limit of text without a cut point if there is no memory limit.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 30;
/// How often a thread that waits for the reader checks whether to stop.
const WAIT_INTERVAL: Duration = Duration::from_millis(20);

/// A stream of documents.
pub trait DocumentSource: Send {
    /// Appends the next bytes of the current document to `buffer`, about `max_bytes` or fewer.
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        max_bytes: usize,
    ) -> std::result::Result<ReadStatus, Box<dyn std::error::Error + Send + Sync>>;

    /// For error messages: the file of the last bytes read, and their offset in it, if the bytes
    /// are those of the file.
    fn location(&self) -> (Option<String>, Option<u64>);

    /// The number of stored (compressed) bytes read so far.
    fn consumed(&self) -> u64 {
        0
    }

    /// Where reading can start again after the last complete document.
    fn position(&self) -> Position {
        Position::default()
    }
}

/// Where a source of documents can start again. What the numbers mean is the source's matter; later
/// positions are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of the file.
    pub file: u64,
    /// Bytes or rows of the file before it.
    pub offset: u64,
    /// Documents of the file before it.
    pub documents: u64,
    /// Lines of the file before it.
    pub line: u64,
}

/// What follows the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// The document may continue.
    More,
    /// The document is complete; another may follow.
    DocumentEnd,
    /// There are no more documents, and nothing was read.
    CorpusEnd,
}

/// Knows where text may be cut, and which bytes it may have.
pub(crate) trait Cutter {
    /// The last cut point of `text`, which starts at a cut point and may continue.
    fn cut(&self, text: &[u8]) -> Option<usize>;

    /// The first byte that is not allowed, and its offset.
    fn forbidden(&self, _bytes: &[u8]) -> Option<(u8, usize)> {
        None
    }
}

/// Produces blocks for workers.
pub(crate) trait BlockReader: Send {
    type Block: Pieces + Default;

    /// Fills a block; it stays empty at the end of the corpus.
    fn fill(&mut self, block: &mut Self::Block, cutter: &impl Cutter) -> Result<()>;
}

/// The pieces of a block, each a text and a range of it.
pub(crate) trait Pieces {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)>;
}

// ---------------------------------------------------------------------- from a source

/// Reads blocks from a source of documents.
pub(crate) struct SourceReader<'s> {
    source: &'s mut dyn DocumentSource,
    /// The maximum length of text without a cut point.
    max_bytes: usize,
    /// Bytes after the last cut point, for the next block.
    pending: Vec<u8>,
    /// Whether the next piece continues a document.
    is_open: bool,
    ended: bool,
}

/// A block that owns its bytes.
#[derive(Default)]
pub(crate) struct OwnedBlock {
    pub(crate) bytes: Vec<u8>,
    /// The end of each piece in `bytes`.
    pub(crate) ends: Vec<usize>,
    /// Whether the first piece continues a document.
    pub(crate) continues: bool,
    /// Whether the last piece is not the end of its document; all others are.
    pub(crate) is_open: bool,
    /// The position after the last document that ends here.
    pub(crate) position: Option<Position>,
    /// The number of stored bytes read until the end of the block.
    pub(crate) consumed: u64,
}

impl Pieces for OwnedBlock {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| (&self.bytes[..], start..end))
    }
}

impl<'s> SourceReader<'s> {
    pub(crate) fn new(source: &'s mut dyn DocumentSource, max_bytes: usize) -> Self {
        Self { source, max_bytes, pending: Vec::new(), is_open: false, ended: false }
    }

    fn check_alphabet(&self, bytes: &[u8], cutter: &impl Cutter) -> Result<()> {
        let Some((byte, at)) = cutter.forbidden(bytes) else { return Ok(()) };
        let (path, start) = self.source.location();
        let offset = start.map(|start| start + at as u64);
        Err(Error::ForbiddenByte { byte, offset, path })
    }

    #[cold]
    fn too_long(&self, bytes: usize) -> Error {
        let (path, _) = self.source.location();
        let prefix = path.map_or(String::new(), |path| format!("{path}: "));
        Error::Memory(format!(
            "{prefix}a text of more than {bytes} bytes cannot be cut and does not fit in the memory \
             budget (1 GiB if there is none); use a larger budget, a pattern, or shorter documents"
        ))
    }
}

impl BlockReader for SourceReader<'_> {
    type Block = OwnedBlock;

    fn fill(&mut self, block: &mut OwnedBlock, cutter: &impl Cutter) -> Result<()> {
        self.read_pieces(block, cutter)?;
        block.consumed = self.source.consumed();
        Ok(())
    }
}

impl SourceReader<'_> {
    fn read_pieces(&mut self, block: &mut OwnedBlock, cutter: &impl Cutter) -> Result<()> {
        block.bytes.clear();
        if block.bytes.capacity() > MAX_KEPT_BYTES {
            block.bytes = Vec::new(); // a long record, whose memory others may need
        }
        block.ends.clear();
        block.continues = self.is_open;
        block.is_open = false;
        block.position = None;
        std::mem::swap(&mut block.bytes, &mut self.pending);
        let mut piece_start = 0;
        let mut try_at = BLOCK_BYTES; // the length of the open piece at which to try the next cut
        while !self.ended {
            let before = block.bytes.len();
            let max_bytes = (try_at + piece_start).saturating_sub(before).max(1 << 16);
            let status = self.source.read(&mut block.bytes, max_bytes).map_err(Error::Source)?;
            self.check_alphabet(&block.bytes[before..], cutter)?;
            match status {
                ReadStatus::More => {
                    let open = block.bytes.len() - piece_start;
                    if open < try_at {
                        continue;
                    }
                    let cut = cutter.cut(&block.bytes[piece_start..]).map(|at| piece_start + at);
                    if cut.is_none() && piece_start == 0 {
                        if open >= self.max_bytes {
                            return Err(self.too_long(self.max_bytes));
                        }
                        // Doubling keeps the total cost of tries linear.
                        try_at = (2 * open).min(self.max_bytes);
                        continue;
                    }
                    let cut = cut.unwrap_or(piece_start);
                    append(&mut self.pending, &block.bytes[cut..])?;
                    block.bytes.truncate(cut);
                    if cut > piece_start {
                        push(&mut block.ends, cut)?;
                        block.is_open = true;
                    }
                    self.is_open = block.is_open;
                    return Ok(());
                }
                ReadStatus::DocumentEnd => {
                    piece_start = block.bytes.len();
                    push(&mut block.ends, piece_start)?;
                    block.position = Some(self.source.position());
                    self.is_open = false;
                    // A block that continues a document ends with it, so that the ends of long
                    // documents are also ends of blocks, where reading can start again.
                    let is_continued = block.continues && block.ends.len() == 1;
                    if is_continued
                        || piece_start >= BLOCK_BYTES
                        || block.ends.len() >= MAX_BLOCK_PIECES
                    {
                        return Ok(());
                    }
                }
                ReadStatus::CorpusEnd => {
                    self.ended = true;
                    if block.bytes.len() > piece_start {
                        push(&mut block.ends, block.bytes.len())?;
                    }
                }
            }
        }
        Ok(())
    }
}

// ---------------------------------------------------------------------- from memory

/// Reads blocks from documents in memory, without copying.
pub(crate) struct MemoryReader<'d, T> {
    documents: &'d [T],
    next: usize,
    /// The offset of the next piece in the next document.
    offset: usize,
}

impl Pieces for Vec<(&[u8], Range<usize>)> {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)> {
        self.iter().cloned()
    }
}

impl<'d, T: AsRef<[u8]> + Sync> MemoryReader<'d, T> {
    pub(crate) fn new(documents: &'d [T]) -> Self {
        Self { documents, next: 0, offset: 0 }
    }
}

impl<'d, T: AsRef<[u8]> + Sync> BlockReader for MemoryReader<'d, T> {
    type Block = Vec<(&'d [u8], Range<usize>)>;

    fn fill(&mut self, block: &mut Self::Block, cutter: &impl Cutter) -> Result<()> {
        block.clear();
        let mut taken = 0;
        while taken < BLOCK_BYTES && block.len() < MAX_BLOCK_PIECES {
            let Some(document) = self.documents.get(self.next) else { break };
            let document = document.as_ref();
            let start = self.offset;
            let end = start + first_piece(&document[start..], cutter);
            if let Some((byte, at)) = cutter.forbidden(&document[start..end]) {
                let offset = Some((start + at) as u64);
                return Err(Error::ForbiddenByte { byte, offset, path: None });
            }
            push(block, (document, start..end))?;
            taken += end - start;
            (self.next, self.offset) =
                if end < document.len() { (self.next, end) } else { (self.next + 1, 0) };
        }
        Ok(())
    }
}

/// The length of a document's first piece: about a block, if it can be cut there.
fn first_piece(document: &[u8], cutter: &impl Cutter) -> usize {
    let mut try_at = BLOCK_BYTES;
    while try_at < document.len() {
        if let Some(cut) = cutter.cut(&document[..try_at]) {
            return cut;
        }
        try_at *= 2; // doubling keeps the total cost of tries linear
    }
    document.len()
}

// ---------------------------------------------------------------------- turns

/// A reader that workers take turns with.
pub(crate) struct SharedReader<F> {
    turn: Mutex<Turn<F>>,
    /// Notified when the reader is returned or a block is done.
    changed: Condvar,
    stop: AtomicBool,
    /// The maximum number of blocks that are read and not done.
    window: u64,
}

struct Turn<F> {
    /// `None` while a worker reads.
    reader: Option<F>,
    /// The number of blocks read, and of those done.
    read: u64,
    done: u64,
}

impl<F: BlockReader> SharedReader<F> {
    pub(crate) fn new(reader: F, window: u64) -> Self {
        let turn = Mutex::new(Turn { reader: Some(reader), read: 0, done: 0 });
        Self { turn, changed: Condvar::new(), stop: AtomicBool::new(false), window }
    }

    /// Makes all workers end after their block.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// The number of blocks that are done.
    pub(crate) fn num_done(&self) -> u64 {
        lock(&self.turn).done
    }

    /// A block is done, so another may be read.
    pub(crate) fn finish_block(&self) {
        lock(&self.turn).done += 1;
        self.changed.notify_all();
    }

    /// Reads the next block. Returns its number, and false at the end of the corpus. While waiting
    /// for the reader, `idle` is called, since a block may take long (a record that is skipped, an
    /// archive of nothing but headers).
    pub(crate) fn fill(
        &self,
        block: &mut F::Block,
        cutter: &impl Cutter,
        idle: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> (u64, Result<bool>) {
        let mut taken = match check_step().and_then(|()| self.take(idle)) {
            Ok(taken) => taken,
            Err(error) => return (u64::MAX, Err(error)),
        };
        let number = taken.number;
        let Some(reader) = &mut taken.reader else { return (number, Ok(false)) };
        let filled = reader.fill(block, cutter);
        if filled.is_err() {
            // Before another worker continues reading, so that the first error is reported.
            self.stop();
        }
        (number, filled.map(|()| block.pieces().next().is_some()))
    }

    fn take(&self, idle: &mut dyn FnMut() -> ControlFlow<()>) -> Result<TakenReader<'_, F>> {
        loop {
            let mut turn = lock(&self.turn);
            let is_free =
                |turn: &Turn<F>| turn.reader.is_some() && turn.read - turn.done < self.window;
            if !is_free(&turn) && !self.stop.load(Ordering::Relaxed) {
                let waited = self.changed.wait_timeout(turn, WAIT_INTERVAL);
                turn = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if is_free(&turn) {
                let number = turn.read;
                turn.read += 1;
                return Ok(TakenReader { shared: self, number, reader: turn.reader.take() });
            }
            drop(turn);
            if idle().is_break() {
                return Err(Error::Interrupted);
            }
        }
    }
}

/// The reader in the hands of one worker, which returns it even if it panics.
struct TakenReader<'s, F> {
    shared: &'s SharedReader<F>,
    number: u64,
    reader: Option<F>,
}

impl<F> Drop for TakenReader<'_, F> {
    fn drop(&mut self) {
        lock(&self.shared.turn).reader = self.reader.take();
        self.shared.changed.notify_all();
    }
}

/// Ignores poisoning: if another worker panicked, its panic propagates to the caller anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
