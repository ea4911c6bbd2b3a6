//! Reads blocks of text for workers, from a source of documents or from documents in memory.
//!
//! A block consists of pieces of documents, each of which starts and ends at a cut point.

use std::ops::Range;

use super::counter::CountOptions;
use crate::error::{Error, Result};
use crate::reserve::{append, push};

/// The approximate size of a block.
const BLOCK_BYTES: usize = 1 << 20;
/// A buffer that grew larger is not kept for the next block.
const MAX_KEPT_BYTES: usize = 4 * BLOCK_BYTES;
/// The maximum number of pieces in a block.
const MAX_BLOCK_PIECES: usize = 1 << 16;

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

/// Produces blocks for workers.
pub(super) trait BlockReader: Send {
    type Block: Pieces + Default;

    /// Fills a block; it stays empty at the end of the corpus.
    fn fill(&mut self, block: &mut Self::Block, options: &CountOptions<'_>) -> Result<()>;
}

/// The pieces of a block, each a text and a range of it.
pub(super) trait Pieces {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)>;
}

// ---------------------------------------------------------------------- from a source

/// Reads blocks from a source of documents.
pub(super) struct SourceReader<'s> {
    source: &'s mut dyn DocumentSource,
    /// The maximum length of text without a cut point.
    max_bytes: usize,
    /// Bytes after the last cut point, for the next block.
    pending: Vec<u8>,
    ended: bool,
}

/// A block that owns its bytes.
#[derive(Default)]
pub(super) struct OwnedBlock {
    bytes: Vec<u8>,
    /// The end of each piece in `bytes`.
    ends: Vec<usize>,
}

impl Pieces for OwnedBlock {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| (&self.bytes[..], start..end))
    }
}

impl<'s> SourceReader<'s> {
    pub(super) fn new(source: &'s mut dyn DocumentSource, max_bytes: usize) -> Self {
        Self { source, max_bytes, pending: Vec::new(), ended: false }
    }

    fn check_alphabet(&self, bytes: &[u8], options: &CountOptions<'_>) -> Result<()> {
        let Some((byte, at)) = options.forbidden(bytes) else { return Ok(()) };
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

    fn fill(&mut self, block: &mut OwnedBlock, options: &CountOptions<'_>) -> Result<()> {
        block.bytes.clear();
        if block.bytes.capacity() > MAX_KEPT_BYTES {
            block.bytes = Vec::new(); // a long record, whose memory others may need
        }
        block.ends.clear();
        std::mem::swap(&mut block.bytes, &mut self.pending);
        let mut piece_start = 0;
        let mut try_at = BLOCK_BYTES; // the length of the open piece at which to try the next cut
        while !self.ended {
            let before = block.bytes.len();
            let max_bytes = (try_at + piece_start).saturating_sub(before).max(1 << 16);
            let status = self.source.read(&mut block.bytes, max_bytes).map_err(Error::Source)?;
            self.check_alphabet(&block.bytes[before..], options)?;
            match status {
                ReadStatus::More => {
                    let open = block.bytes.len() - piece_start;
                    if open < try_at {
                        continue;
                    }
                    let cut = options.cut(&block.bytes[piece_start..]).map(|at| piece_start + at);
                    if cut.is_none() && piece_start == 0 {
                        try_at = 2 * open; // doubling keeps the total cost of tries linear
                        if try_at > self.max_bytes {
                            return Err(self.too_long(open));
                        }
                        continue;
                    }
                    let cut = cut.unwrap_or(piece_start);
                    append(&mut self.pending, &block.bytes[cut..])?;
                    block.bytes.truncate(cut);
                    if cut > piece_start {
                        push(&mut block.ends, cut)?;
                    }
                    return Ok(());
                }
                ReadStatus::DocumentEnd => {
                    piece_start = block.bytes.len();
                    push(&mut block.ends, piece_start)?;
                    if piece_start >= BLOCK_BYTES || block.ends.len() >= MAX_BLOCK_PIECES {
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
pub(super) struct MemoryReader<'d, T> {
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
    pub(super) fn new(documents: &'d [T]) -> Self {
        Self { documents, next: 0, offset: 0 }
    }
}

impl<'d, T: AsRef<[u8]> + Sync> BlockReader for MemoryReader<'d, T> {
    type Block = Vec<(&'d [u8], Range<usize>)>;

    fn fill(&mut self, block: &mut Self::Block, options: &CountOptions<'_>) -> Result<()> {
        block.clear();
        let mut taken = 0;
        while taken < BLOCK_BYTES && block.len() < MAX_BLOCK_PIECES {
            let Some(document) = self.documents.get(self.next) else { break };
            let document = document.as_ref();
            let start = self.offset;
            let end = start + first_piece(&document[start..], options);
            if let Some((byte, at)) = options.forbidden(&document[start..end]) {
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
fn first_piece(document: &[u8], options: &CountOptions<'_>) -> usize {
    let mut try_at = BLOCK_BYTES;
    while try_at < document.len() {
        if let Some(cut) = options.cut(&document[..try_at]) {
            return cut;
        }
        try_at *= 2; // doubling keeps the total cost of tries linear
    }
    document.len()
}
