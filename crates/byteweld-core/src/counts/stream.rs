//! Documents to counts, on several threads, never with the whole corpus in memory.
//!
//! The source is behind a lock. A worker takes it, reads a block that ends at a place where a cut changes
//! no pre-token (a document's end, a special token, or a place that the pre-tokeniser proves), gives it
//! back and counts its block in a table of its own. The tables are added up in the end. Which worker
//! counted what does not matter: addition is commutative.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Counts;
use crate::cut;
use crate::error::{Error, Result};
use crate::pretoken::Pretokenizer;
use crate::specials::Specials;

/// About how many bytes a worker takes at once.
const BLOCK_BYTES: usize = 1 << 20;
/// Less text than this is counted on the caller's thread: starting others would take longer.
const WORTH_A_THREAD_BYTES: usize = 64 << 10;
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

/// How to count.
pub struct CountOptions<'a> {
    /// Cuts documents into pre-tokens.
    pub pretokenizer: &'a Pretokenizer,
    /// Texts that are boundaries and are not counted themselves.
    pub boundaries: &'a Specials,
    /// Which bytes may occur; `None` allows all.
    pub alphabet: Option<&'a [bool; 256]>,
    /// How many threads to use.
    pub threads: NonZeroUsize,
}

impl CountOptions<'_> {
    /// Counts the pre-tokens of a text that starts and ends at true boundaries.
    fn count_text(&self, text: &[u8], counts: &mut Counts) -> Result<()> {
        let mut position = 0;
        loop {
            let special = self.boundaries.find(text, position);
            let end = special.map_or(text.len(), |s| s.start);
            let mut failure = Ok(());
            self.pretokenizer.for_each(&text[position..end], &mut |pretoken| {
                failure = counts.add(pretoken, 1);
                if failure.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            failure?;
            match special {
                Some(special) => position = special.end,
                None => return Ok(()),
            }
        }
    }

    /// The last place where a document's start may be cut from what follows it.
    fn cut(&self, text: &[u8]) -> Option<usize> {
        cut::last_cut(self.pretokenizer, &[self.boundaries], text)
            .or_else(|| cut::last_special_end(self.boundaries, text))
    }
}

/// Whole pieces of documents: each starts and ends at a place where a cut changes nothing.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// Where the pieces end in `bytes`.
    ends: Vec<usize>,
}

/// The source, with the start of a document that no worker could take yet.
struct Feed<'s> {
    source: &'s mut dyn DocumentSource,
    pending: Vec<u8>,
    ended: bool,
}

impl Feed<'_> {
    /// Fills `block`; it stays empty when the corpus has ended.
    fn fill(&mut self, block: &mut Block, options: &CountOptions<'_>) -> Result<()> {
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

    fn check_alphabet(&self, bytes: &[u8], options: &CountOptions<'_>) -> Result<()> {
        let Some(alphabet) = options.alphabet else { return Ok(()) };
        match bytes.iter().position(|&byte| !alphabet[byte as usize]) {
            None => Ok(()),
            Some(at) => {
                let (path, start) = self.source.place();
                let offset = start.map(|start| start + at as u64);
                Err(Error::ForbiddenByte { byte: bytes[at], offset, path })
            }
        }
    }
}

/// Counts all documents of a source. `progress` is called on the caller's thread after each of its blocks,
/// and may stop the work.
pub fn count_source(
    source: &mut dyn DocumentSource,
    options: &CountOptions<'_>,
    progress: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Counts> {
    let feed = Mutex::new(Feed { source, pending: Vec::new(), ended: false });
    let stop = AtomicBool::new(false);
    // One worker's life: blocks until there are none, an error, or the word to stop.
    let work = |report: &mut dyn FnMut() -> ControlFlow<()>| -> Result<Counts> {
        let mut counts = Counts::new();
        let mut block = Block::default();
        loop {
            {
                // A poisoned lock means that another worker panicked; its panic is what the caller sees.
                let mut feed = feed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                if let Err(error) = feed.fill(&mut block, options) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            if block.ends.is_empty() {
                return Ok(counts);
            }
            let mut start = 0;
            for &end in &block.ends {
                let counted = options.count_text(&block.bytes[start..end], &mut counts);
                if counted.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    counted?;
                }
                start = end;
            }
            if report().is_break() {
                stop.store(true, Ordering::Relaxed);
                return Err(Error::Interrupted);
            }
        }
    };
    let results: Vec<Result<Counts>> = std::thread::scope(|scope| {
        // A thread that cannot be started leaves its work to the others.
        let others: Vec<_> = (1..options.threads.get())
            .map_while(|_| {
                let start = || work(&mut || ControlFlow::Continue(()));
                std::thread::Builder::new().spawn_scoped(scope, start).ok()
            })
            .collect();
        let mine = work(progress);
        let mut results = vec![mine];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    add_up(results)
}

/// Adds tables up; an error that caused the others to stop is preferred to their "interrupted".
fn add_up(results: Vec<Result<Counts>>) -> Result<Counts> {
    let mut interrupted = false;
    let mut all: Option<Counts> = None;
    for result in results {
        match (result, &mut all) {
            (Ok(counts), Some(all)) => all.merge(&counts)?,
            (Ok(counts), none) => *none = Some(counts),
            (Err(Error::Interrupted), _) => interrupted = true,
            (Err(error), _) => return Err(error),
        }
    }
    if interrupted { Err(Error::Interrupted) } else { Ok(all.unwrap_or_default()) }
}

/// Counts documents that are in memory.
pub fn count_documents<T: AsRef<[u8]> + Sync>(
    documents: &[T],
    options: &CountOptions<'_>,
) -> Result<Counts> {
    struct InMemory<'d, T> {
        documents: &'d [T],
        next: usize,
        offset: usize,
        /// Where in its document the piece given last starts.
        start: usize,
    }
    impl<T: AsRef<[u8]> + Sync> DocumentSource for InMemory<'_, T> {
        fn read(
            &mut self,
            buffer: &mut Vec<u8>,
            want: usize,
        ) -> std::result::Result<Read, Box<dyn std::error::Error + Send + Sync>> {
            let Some(document) = self.documents.get(self.next) else { return Ok(Read::CorpusEnd) };
            self.start = self.offset;
            let rest = &document.as_ref()[self.offset..];
            let taken = rest.len().min(want);
            buffer.extend_from_slice(&rest[..taken]);
            self.offset += taken;
            if taken < rest.len() {
                return Ok(Read::More);
            }
            self.next += 1;
            self.offset = 0;
            Ok(Read::DocumentEnd)
        }

        fn place(&self) -> (Option<String>, Option<u64>) {
            (None, Some(self.start as u64))
        }
    }
    let bytes: usize = documents.iter().map(|document| document.as_ref().len()).sum();
    let useful = NonZeroUsize::new(bytes / WORTH_A_THREAD_BYTES).unwrap_or(NonZeroUsize::MIN);
    let options = CountOptions { threads: options.threads.min(useful), ..*options };
    let mut source = InMemory { documents, next: 0, offset: 0, start: 0 };
    count_source(&mut source, &options, &mut || ControlFlow::Continue(()))
}
