//! Documents to counts, on several threads, never with the whole corpus in memory.
//!
//! A feed is behind a lock. A worker takes it, fills a block with pieces of documents that end where a cut
//! changes no pre-token (a document's end, a special token, or a place that the pre-tokeniser proves), gives
//! it back and counts its block in a table of its own. In the end the tables are added up, each thread
//! adding a part of the pre-tokens. Which worker counted what does not matter: addition is commutative.

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use super::Counts;
use super::batch::Batch;
use super::feed::{DocumentSource, Feed, MemoryFeed, Pieces, SourceFeed};
use super::spill::Limit;
use super::table::{Table, table_bytes};
use crate::cut;
use crate::error::{Error, Result};
use crate::pretoken::Pretokenizer;
use crate::specials::Specials;
use crate::threads::together;

/// Less text than this is counted on the caller's thread: starting others would take longer.
const WORTH_A_THREAD_BYTES: usize = 64 << 10;
/// Tables are divided into at most so many parts: more threads than that count, but do not add up.
const MOST_PARTS: usize = 64;

/// How to count.
#[derive(Clone, Copy)]
pub struct CountOptions<'a> {
    /// Cuts documents into pre-tokens.
    pub pretokenizer: &'a Pretokenizer,
    /// Texts that are boundaries and are not counted themselves.
    pub boundaries: &'a Specials,
    /// Which bytes may occur; `None` allows all.
    pub alphabet: Option<&'a [bool; 256]>,
}

impl CountOptions<'_> {
    /// Counts the pre-tokens of a piece of `text` that starts and ends at true boundaries.
    fn count_piece(&self, text: &[u8], piece: Range<usize>, batch: &mut Batch<'_>) -> Result<()> {
        let mut position = piece.start;
        loop {
            let special = self.boundaries.find(&text[..piece.end], position);
            let end = special.map_or(piece.end, |s| s.start);
            let mut failure = None;
            // The whole text, so that a few bytes after a pre-token may be read with it.
            let from = &text[position..];
            self.pretokenizer.for_each_piece(
                &text[position..end],
                &mut |start, end, _| match batch.add(from, start, end) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        failure = Some(error);
                        ControlFlow::Break(())
                    }
                },
            )?;
            if let Some(error) = failure {
                return Err(error);
            }
            match special {
                Some(special) => position = special.end,
                None => return Ok(()),
            }
        }
    }

    /// The last place where a document's start, which is where a pre-token starts, may be cut from what follows.
    pub(super) fn cut(&self, text: &[u8]) -> Option<usize> {
        let boundaries = [self.boundaries];
        cut::last_cut(self.pretokenizer, &boundaries, text)
            .or_else(|| cut::last_special_end(self.boundaries, text))
            .or_else(|| Some(cut::certain_end(self.pretokenizer, &boundaries, text, 0)))
            .filter(|&place| place > 0)
    }

    /// The first byte that may not occur, and where it is.
    pub(super) fn forbidden(&self, bytes: &[u8]) -> Option<(u8, usize)> {
        let alphabet = self.alphabet?;
        let at = bytes.iter().position(|&byte| !alphabet[byte as usize])?;
        Some((bytes[at], at))
    }
}

/// Counts documents as they come. After an error it is not known what was counted: drop it then.
pub struct Counter {
    threads: NonZeroUsize,
    limit: Option<Limit>,
    /// One for each worker so far.
    counts: Vec<Counts>,
}

impl Counter {
    /// A counter that uses so many threads while it is at work.
    pub fn new(threads: NonZeroUsize) -> Self {
        Self { threads, limit: None, counts: Vec::new() }
    }

    /// A counter that keeps within a limit: what is too large for memory is spilled.
    pub fn within(limit: Limit, threads: NonZeroUsize) -> Self {
        Self { threads, limit: Some(limit), counts: Vec::new() }
    }

    /// Counts documents that are in memory.
    pub fn count_documents<T: AsRef<[u8]> + Sync>(
        &mut self,
        documents: &[T],
        options: &CountOptions<'_>,
    ) -> Result<()> {
        let bytes: usize = documents.iter().map(|document| document.as_ref().len()).sum();
        let useful = (bytes / WORTH_A_THREAD_BYTES).clamp(1, self.threads.get());
        let feed = MemoryFeed::new(documents);
        self.count(feed, useful, options, &mut || ControlFlow::Continue(()))
    }

    /// Counts all documents of a source. `progress` is called on the caller's thread after each of its
    /// blocks, and may stop the work.
    pub fn count_source(
        &mut self,
        source: &mut dyn DocumentSource,
        options: &CountOptions<'_>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let most = self.limit.as_ref().map_or(usize::MAX, |limit| limit.text_bytes);
        self.count(SourceFeed::new(source, most), self.threads.get(), options, progress)
    }

    fn count<F: Feed>(
        &mut self,
        feed: F,
        threads: usize,
        options: &CountOptions<'_>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let shared = Shared {
            feed: Mutex::new(feed),
            stop: AtomicBool::new(false),
            idle: Mutex::new(std::mem::take(&mut self.counts)),
        };
        let limit = self.limit.as_ref();
        let work = |progress: &mut dyn FnMut() -> ControlFlow<()>| {
            let worked = shared.work(options, limit, progress);
            if worked.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            worked
        };
        let quietly = || work(&mut || ControlFlow::Continue(()));
        let results = together(threads, &quietly, || work(progress));
        self.counts = shared.idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        first_cause(results)
    }

    /// The sum of all that was counted.
    pub fn finish(mut self) -> Result<Counts> {
        if self.counts.len() <= 1 {
            return Ok(self.counts.pop().unwrap_or_default());
        }
        add_up(&self.counts, self.threads.get())
    }

    /// The sum of all that was counted, if it takes at most so many bytes and can be made within the limit;
    /// else all of it is spilled.
    pub fn finish_within(mut self, bytes: usize) -> Result<Option<Counts>> {
        let Some(limit) = self.limit.take() else { return self.finish().map(Some) };
        let tables = || self.counts.iter().flat_map(|counts| &counts.tables);
        let entries = tables().map(|table| table.entries().len()).sum();
        let arena = tables().map(Table::arena_bytes).sum();
        let needed = table_bytes(entries, arena);
        let has: usize = tables().map(Table::memory).sum();
        let most = limit.table_bytes.saturating_mul(self.threads.get());
        if needed <= bytes && (self.counts.len() <= 1 || needed.saturating_add(has) <= most) {
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
        first_cause(together(self.threads.get(), &work, work))?;
        Ok(None)
    }
}

/// What the workers of one counting share.
struct Shared<F> {
    feed: Mutex<F>,
    stop: AtomicBool,
    /// Tables that no worker has taken.
    idle: Mutex<Vec<Counts>>,
}

impl<F: Feed> Shared<F> {
    /// One worker's life: blocks until there are none, an error, or the word to stop.
    fn work(
        &self,
        options: &CountOptions<'_>,
        limit: Option<&Limit>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let mut block = F::Block::default();
        if !self.fill(&mut block, options)? {
            return Ok(());
        }
        let mut counts = lock(&self.idle).pop().unwrap_or_default();
        let Counts { tables, hasher } = &mut counts;
        let mut batch = Batch::within(limit, &mut tables[0], hasher);
        loop {
            for (text, piece) in block.pieces() {
                options.count_piece(text, piece, &mut batch)?;
            }
            if progress().is_break() {
                return Err(Error::Interrupted);
            }
            if !self.fill(&mut block, options)? {
                break;
            }
        }
        batch.flush()?;
        lock(&self.idle).push(counts);
        Ok(())
    }

    /// Takes the next block; false if there is none.
    fn fill(&self, block: &mut F::Block, options: &CountOptions<'_>) -> Result<bool> {
        let mut feed = lock(&self.feed);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let filled = feed.fill(block, options);
        if filled.is_err() {
            // Before another worker reads on: the first error is the one to tell.
            self.stop.store(true, Ordering::Relaxed);
        }
        filled?;
        Ok(block.pieces().next().is_some())
    }
}

/// Adds tables up on several threads: each finds in all tables what belongs to its parts of the sum.
pub(super) fn add_up(all: &[Counts], threads: usize) -> Result<Counts> {
    let hasher = RandomState::default();
    let parts = threads.min(MOST_PARTS).next_power_of_two();
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
    for some in together(threads.min(parts), &work, work) {
        sums.extend(some?);
    }
    sums.sort_unstable_by_key(|&(part, _)| part);
    Ok(Counts { tables: sums.into_iter().map(|(_, table)| table).collect(), hasher })
}

/// One part of the sum of all tables.
fn add_part(all: &[Counts], part: usize, parts: usize, hasher: &RandomState) -> Result<Table> {
    let mut sum = Table::default();
    let mut batch = Batch::new(&mut sum, hasher);
    for table in all.iter().flat_map(|counts| &counts.tables) {
        batch.add_part(table, part, parts)?;
    }
    batch.flush()?;
    Ok(sum)
}

/// A poisoned lock means that another worker panicked; its panic is what the caller sees.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether all went well; an error that caused the others to stop is preferred to their "interrupted".
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
