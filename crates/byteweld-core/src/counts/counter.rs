//! Counts the pre-tokens of documents on several threads, without holding the corpus in memory.
//!
//! Workers take turns with a block reader. Each worker fills a block with pieces of documents
//! that end at cut points (a document's end, a special token, or an offset that the pre-tokenizer
//! proves), releases the reader, and counts the block in its own table. At the end the tables are
//! added up in parallel, partitioned by hash. Addition is commutative, so it does not matter which
//! worker counted which block.

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use super::Counts;
use super::batch::Batch;
use super::spill::MemoryLimit;
use super::table::{CountTable, table_bytes};
use crate::cut;
use crate::documents::{
    BlockReader, Cutter, DocumentSource, MAX_TEXT_BYTES, MemoryReader, Pieces, SharedReader,
    SourceReader,
};
use crate::error::{Error, Result};
use crate::pretoken::{Bounds, Budget, Pretokenizer};
use crate::reserve::check_memory;
use crate::specials::Specials;
use crate::threads::run_workers;
use crate::watch::Watch;

/// Starting a thread takes longer than counting this much text.
const MIN_BYTES_PER_THREAD: usize = 64 << 10;
/// The maximum number of parts of a sum, and so of threads that add up tables.
const MAX_PARTS: usize = 64;

/// The options of counting.
#[derive(Clone, Copy)]
pub struct CountOptions<'a> {
    /// Splits documents into pre-tokens.
    pub pretokenizer: &'a Pretokenizer,
    /// Special tokens that separate text and are not counted.
    pub boundaries: &'a Specials,
    /// The allowed bytes; `None` allows all.
    pub alphabet: Option<&'a [bool; 256]>,
}

impl CountOptions<'_> {
    /// Whether documents can be cut at all, so that parts of one may be counted one by one.
    pub fn has_cuts(&self) -> bool {
        self.pretokenizer.has_cuts()
    }

    /// The first offset at or after `from` where a document may be cut without changing the counts,
    /// whatever is before and after `text`, a part of it. `is_end` says that nothing follows.
    /// Before `from`, `text` has at least [`CountOptions::context_bytes`], or it is the start of the
    /// document; `None` if it has no cut point, or too few bytes after `from` to tell.
    pub fn first_cut(&self, text: &[u8], from: usize, is_end: bool) -> Option<usize> {
        cut::first_cut(self.pretokenizer, self.boundaries, text, from, is_end)
    }

    /// The number of bytes on either side of an offset that decide whether it is a cut point.
    pub fn context_bytes(&self) -> usize {
        self.boundaries.longest().max(4)
    }

    /// Counts the pre-tokens of a piece of `text` that starts and ends at cut points.
    fn count_piece(&self, text: &[u8], piece: Range<usize>, batch: &mut Batch<'_>) -> Result<()> {
        let mut position = piece.start;
        let mut boundaries = self.boundaries.search(&text[..piece.end]);
        let mut budget = Budget::new(Watch::default());
        let mut bounds = Bounds::default();
        loop {
            let special = boundaries.next(position);
            let end = special.map_or(piece.end, |s| s.start);
            // Not cut off at `end`, so that a few bytes after a pre-token can be loaded with it.
            let from = &text[position..];
            let span = &text[position..end];
            let mut split = self.pretokenizer.split(span, &mut budget, &mut bounds)?;
            while let Some((base, bounds)) = split.next_batch()? {
                for bounds in bounds.windows(2) {
                    batch.add(from, base + bounds[0] as usize, base + bounds[1] as usize)?;
                }
            }
            match special {
                Some(special) => position = special.end,
                None => return Ok(()),
            }
        }
    }
}

impl Cutter for CountOptions<'_> {
    fn cut(&self, text: &[u8]) -> Option<usize> {
        let boundaries = [self.boundaries];
        cut::last_cut(self.pretokenizer, &boundaries, text)
            .or_else(|| cut::last_special_end(self.boundaries, text))
            .or_else(|| Some(cut::certain_end(self.pretokenizer, &boundaries, text, 0)))
            .filter(|&offset| offset > 0)
    }

    fn forbidden(&self, bytes: &[u8]) -> Option<(u8, usize)> {
        let alphabet = self.alphabet?;
        let at = bytes.iter().position(|&byte| !alphabet[byte as usize])?;
        Some((bytes[at], at))
    }
}

/// Counts documents incrementally. After an error its state is unspecified: drop it.
pub struct Counter {
    threads: NonZeroUsize,
    limit: Option<MemoryLimit>,
    /// One per worker so far.
    counts: Vec<Counts>,
}

impl Counter {
    /// A counter that uses up to `threads` threads.
    pub fn new(threads: NonZeroUsize) -> Self {
        Self { threads, limit: None, counts: Vec::new() }
    }

    /// A counter that stays within a memory limit by spilling full tables.
    pub fn with_limit(limit: MemoryLimit, threads: NonZeroUsize) -> Self {
        Self { threads, limit: Some(limit), counts: Vec::new() }
    }

    /// Counts documents in memory.
    pub fn count_documents<T: AsRef<[u8]> + Sync>(
        &mut self,
        documents: &[T],
        options: &CountOptions<'_>,
    ) -> Result<()> {
        let bytes: usize = documents.iter().map(|document| document.as_ref().len()).sum();
        let useful = (bytes / MIN_BYTES_PER_THREAD).clamp(1, self.threads.get());
        let reader = MemoryReader::new(documents);
        self.count(reader, useful, options, &mut || ControlFlow::Continue(()))
    }

    /// Counts all documents of a source. `progress` is called on the caller's thread after each of
    /// its blocks, and may stop the counting.
    pub fn count_source(
        &mut self,
        source: &mut dyn DocumentSource,
        options: &CountOptions<'_>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let max_bytes = self.limit.as_ref().map_or(MAX_TEXT_BYTES, |limit| limit.text_bytes);
        self.count(SourceReader::new(source, max_bytes), self.threads.get(), options, progress)
    }

    fn count<F: BlockReader>(
        &mut self,
        reader: F,
        threads: usize,
        options: &CountOptions<'_>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        check_memory()?;
        let shared = Shared {
            reader: SharedReader::new(reader, u64::MAX),
            idle: Mutex::new(std::mem::take(&mut self.counts)),
        };
        let limit = self.limit.as_ref();
        let work = |progress: &mut dyn FnMut() -> ControlFlow<()>| {
            let worked = shared.work(options, limit, progress);
            if worked.is_err() {
                shared.reader.stop();
            }
            worked
        };
        let without_progress = || work(&mut || ControlFlow::Continue(()));
        let results = run_workers(threads, &without_progress, || work(progress));
        self.counts = shared.idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        first_cause(results)
    }

    /// The sum of all counts.
    pub fn finish(mut self) -> Result<Counts> {
        if self.counts.len() <= 1 {
            return Ok(self.counts.pop().unwrap_or_default());
        }
        add_up(&self.counts, self.threads.get())
    }

    /// The sum of all counts, if it takes at most `bytes` bytes and can be computed within the
    /// limit; otherwise spills everything and returns `None`.
    pub fn finish_within(mut self, bytes: usize) -> Result<Option<Counts>> {
        let Some(limit) = self.limit.take() else { return self.finish().map(Some) };
        let tables = || self.counts.iter().flat_map(|counts| &counts.tables);
        let entries = tables().map(|table| table.entries().len()).sum();
        let arena = tables().map(CountTable::arena_bytes).sum();
        let needed = table_bytes(entries, arena);
        let used: usize = tables().map(CountTable::memory).sum();
        let allowed = limit.table_bytes.saturating_mul(self.threads.get());
        if needed <= bytes && (self.counts.len() <= 1 || needed.saturating_add(used) <= allowed) {
            return self.finish().map(Some);
        }
        let waiting = Mutex::new(self.counts);
        let work = || {
            loop {
                let Some(mut counts) = lock(&waiting).pop() else { return Ok(()) };
                for table in counts.tables.iter_mut().filter(|table| !table.entries().is_empty()) {
                    table.spill(&*limit.spill)?;
                }
            }
        };
        first_cause(run_workers(self.threads.get(), &work, work))?;
        Ok(None)
    }
}

/// The state that workers share.
struct Shared<F> {
    reader: SharedReader<F>,
    /// Counts that no worker is using.
    idle: Mutex<Vec<Counts>>,
}

impl<F: BlockReader> Shared<F> {
    /// Runs one worker: counts blocks until the end of the corpus, an error, or a stop.
    fn work(
        &self,
        options: &CountOptions<'_>,
        limit: Option<&MemoryLimit>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let mut block = F::Block::default();
        if !self.reader.fill(&mut block, options, progress).1? {
            return Ok(());
        }
        let mut counts = lock(&self.idle).pop().unwrap_or_default();
        let Counts { tables, hasher } = &mut counts;
        let mut batch = Batch::with_limit(limit, &mut tables[0], hasher);
        loop {
            for (text, piece) in block.pieces() {
                options.count_piece(text, piece, &mut batch)?;
            }
            if progress().is_break() {
                return Err(Error::Interrupted);
            }
            if !self.reader.fill(&mut block, options, progress).1? {
                break;
            }
        }
        batch.flush()?;
        lock(&self.idle).push(counts);
        Ok(())
    }
}

/// Adds up tables on several threads; each takes the entries of its parts from all tables.
pub(super) fn add_up(all: &[Counts], threads: usize) -> Result<Counts> {
    let hasher = RandomState::default();
    let parts = threads.min(MAX_PARTS).next_power_of_two();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut sums = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return Ok(sums);
            }
            sums.push((part, add_part(all, part, parts, &hasher)?));
        }
    };
    let mut sums = Vec::with_capacity(parts);
    for some in run_workers(threads.min(parts), &work, work) {
        sums.extend(some?);
    }
    sums.sort_unstable_by_key(|&(part, _)| part);
    Ok(Counts { tables: sums.into_iter().map(|(_, table)| table).collect(), hasher })
}

/// One part of the sum of all tables.
fn add_part(all: &[Counts], part: usize, parts: usize, hasher: &RandomState) -> Result<CountTable> {
    let mut sum = CountTable::default();
    let mut batch = Batch::new(&mut sum, hasher);
    for table in all.iter().flat_map(|counts| &counts.tables) {
        batch.add_part(table, part, parts)?;
    }
    batch.flush()?;
    Ok(sum)
}

/// Ignores poisoning: if another worker panicked, its panic propagates to the caller anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first error; the one that made the other workers stop takes precedence over `Interrupted`.
fn first_cause(results: Vec<Result<()>>) -> Result<()> {
    let mut interrupted = Ok(());
    for result in results {
        match result {
            Err(Error::Interrupted) => interrupted = result,
            result => result?,
        }
    }
    interrupted
}
