//! Blocks of text for workers: from a source of documents, or of documents in memory.
//!
//! A block is whole pieces of documents: each starts and ends at a place where a cut changes no pre-token.

use std::ops::Range;

use super::stream::CountOptions;
use crate::error::{Error, Result};

/// About how many bytes a worker takes at once.
const BLOCK_BYTES: usize = 1 << 20;
/// At most how many pieces of documents a worker takes at once.
const BLOCK_PIECES: usize = 1 << 16;
/// Documents, in pieces.
pub trait DocumentSource: Send {
    /// Appends some of the current document's bytes to `buffer`, about `want` of them or fewer.
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
    ) -> std::result::Result<Read, Box<dyn std::error::Error + Send + Sync>>;

    /// For messages: the file that the bytes read last are from, and where in it they start, if they are
    /// there as they were given.
    fn place(&self) -> (Option<String>, Option<u64>);
}

/// What came after the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The document may go on.
    More,
    /// The document is complete; another may follow.
    DocumentEnd,
    /// There are no more documents, and nothing was read.
    CorpusEnd,
}

/// What workers take blocks from.
pub(super) trait Feed: Send {
    type Block: Pieces + Default;

    /// Fills a block; it stays empty when the corpus has ended.
    fn fill(&mut self, block: &mut Self::Block, options: &CountOptions<'_>) -> Result<()>;
}

/// A block's pieces, each as a range of a text.
pub(super) trait Pieces {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)>;
}

// ---------------------------------------------------------------------- from a source

/// A source, with the start of a document that no worker could take yet.
pub(super) struct SourceFeed<'s> {
    source: &'s mut dyn DocumentSource,
    /// How long a text may be that cannot be cut.
    most_bytes: usize,
    pending: Vec<u8>,
    ended: bool,
}

/// Bytes as they were read.
#[derive(Default)]
pub(super) struct ReadBlock {
    bytes: Vec<u8>,
    /// Where the pieces end in `bytes`.
    ends: Vec<usize>,
}

impl Pieces for ReadBlock {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| (&self.bytes[..], start..end))
    }
}

impl<'s> SourceFeed<'s> {
    pub(super) fn new(source: &'s mut dyn DocumentSource, most_bytes: usize) -> Self {
        Self { source, most_bytes, pending: Vec::new(), ended: false }
    }

    fn check_alphabet(&self, bytes: &[u8], options: &CountOptions<'_>) -> Result<()> {
        let Some((byte, at)) = options.forbidden(bytes) else { return Ok(()) };
        let (path, start) = self.source.place();
        let offset = start.map(|start| start + at as u64);
        Err(Error::ForbiddenByte { byte, offset, path })
    }

    #[cold]
    fn too_long(&self, bytes: usize) -> Error {
        let (path, _) = self.source.place();
        let place = path.map_or(String::new(), |path| format!("{path}: "));
        Error::Memory(format!(
            "{place}a text of more than {bytes} bytes has no place where it can be cut and must be in \
             memory whole; give a larger memory budget, a pattern, or shorter documents"
        ))
    }
}

impl Feed for SourceFeed<'_> {
    type Block = ReadBlock;

    fn fill(&mut self, block: &mut ReadBlock, options: &CountOptions<'_>) -> Result<()> {
        block.bytes.clear();
        block.ends.clear();
        std::mem::swap(&mut block.bytes, &mut self.pending);
        let mut piece_start = 0;
        let mut try_at = BLOCK_BYTES; // the length of the open piece at which a cut is tried next
        while !self.ended {
            let before = block.bytes.len();
            let want = (try_at + piece_start).saturating_sub(before).max(1 << 16);
            let read = self.source.read(&mut block.bytes, want).map_err(Error::Source)?;
            self.check_alphabet(&block.bytes[before..], options)?;
            match read {
                Read::More => {
                    let open = block.bytes.len() - piece_start;
                    if open < try_at {
                        continue;
                    }
                    let cut = options.cut(&block.bytes[piece_start..]).map(|at| piece_start + at);
                    if cut.is_none() && piece_start == 0 {
                        try_at = 2 * open; // so that all tries together stay linear
                        if try_at > self.most_bytes {
                            return Err(self.too_long(open));
                        }
                        continue;
                    }
                    let cut = cut.unwrap_or(piece_start);
                    self.pending.extend_from_slice(&block.bytes[cut..]);
                    block.bytes.truncate(cut);
                    if cut > piece_start {
                        block.ends.push(cut);
                    }
                    return Ok(());
                }
                Read::DocumentEnd => {
                    piece_start = block.bytes.len();
                    block.ends.push(piece_start);
                    if piece_start >= BLOCK_BYTES || block.ends.len() >= BLOCK_PIECES {
                        return Ok(());
                    }
                }
                Read::CorpusEnd => {
                    self.ended = true;
                    if block.bytes.len() > piece_start {
                        block.ends.push(block.bytes.len());
                    }
                }
            }
        }
        Ok(())
    }
}

// ---------------------------------------------------------------------- from memory

/// Documents that stay where they are.
pub(super) struct MemoryFeed<'d, T> {
    documents: &'d [T],
    next: usize,
    /// Where in the next document the next piece starts.
    offset: usize,
}

impl Pieces for Vec<(&[u8], Range<usize>)> {
    fn pieces(&self) -> impl Iterator<Item = (&[u8], Range<usize>)> {
        self.iter().cloned()
    }
}

impl<'d, T: AsRef<[u8]> + Sync> MemoryFeed<'d, T> {
    pub(super) fn new(documents: &'d [T]) -> Self {
        Self { documents, next: 0, offset: 0 }
    }
}

impl<'d, T: AsRef<[u8]> + Sync> Feed for MemoryFeed<'d, T> {
    type Block = Vec<(&'d [u8], Range<usize>)>;

    fn fill(&mut self, block: &mut Self::Block, options: &CountOptions<'_>) -> Result<()> {
        block.clear();
        let mut taken = 0;
        while taken < BLOCK_BYTES && block.len() < BLOCK_PIECES {
            let Some(document) = self.documents.get(self.next) else { break };
            let document = document.as_ref();
            let start = self.offset;
            let end = start + first_piece(&document[start..], options);
            if let Some((byte, at)) = options.forbidden(&document[start..end]) {
                let offset = Some((start + at) as u64);
                return Err(Error::ForbiddenByte { byte, offset, path: None });
            }
            block.push((document, start..end));
            taken += end - start;
            (self.next, self.offset) =
                if end < document.len() { (self.next, end) } else { (self.next + 1, 0) };
        }
        Ok(())
    }
}

/// How much of a document to take at once: about a block, if it can be cut.
fn first_piece(document: &[u8], options: &CountOptions<'_>) -> usize {
    let mut try_at = BLOCK_BYTES;
    while try_at < document.len() {
        if let Some(cut) = options.cut(&document[..try_at]) {
            return cut;
        }
        try_at *= 2; // so that all tries together stay linear
    }
    document.len()
}
