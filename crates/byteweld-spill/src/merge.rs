//! Adding up sorted sections: the smallest pre-token of all comes out first, with the sum of its counts.
//!
//! So many sections are read at once as their buffers fit into memory. If there are more, some are merged
//! to one first. Parts have nothing in common, so each thread merges parts of its own.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::PARTS;
use crate::error::{Error, Result};
use crate::section::{LEAST_BUFFER, Reader, Section, Writer};
use crate::sorted::Sorted;
use crate::spool::{CHUNK_BYTES, Spool};

/// More than this makes nothing faster.
const MOST_BUFFER: usize = 256 << 10;
/// With fewer sections at once than this, another thread is not worth its memory.
const GOOD_FAN_IN: usize = 16;
/// Whether to stop is asked after so many pre-tokens.
const ASK_EVERY: u32 = 1 << 12;
/// What a reader takes besides its buffer.
const READER_BYTES: usize = 256;

/// How to merge.
#[derive(Clone, Copy)]
pub struct MergeOptions {
    /// How much memory the buffers may take.
    pub bytes: usize,
    /// How many threads there may be.
    pub threads: NonZeroUsize,
}

/// A section to be merged.
pub enum Source<'s> {
    /// Somebody else needs it, too.
    Lent(&'s Spool, &'s Section),
    /// It is in the spool that is merged into, and its chunks are free afterwards.
    Own(Section),
}

impl Source<'_> {
    fn section(&self) -> &Section {
        match self {
            Source::Lent(_, section) => section,
            Source::Own(section) => section,
        }
    }
}

/// What one thread has merged: part by part.
type Merged = Vec<(usize, Section)>;
/// Asks whether to go on.
type Ask<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Adds up, for each part, all its sources, into one spool. `keep_going` is asked on the caller's thread.
pub fn merge(
    sources: Vec<Vec<Source<'_>>>,
    spool: &Arc<Spool>,
    options: MergeOptions,
    keep_going: Ask<'_>,
) -> Result<Sorted> {
    let plan = Plan::new(&sources, options)?;
    let waiting: Vec<_> = sources.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let work = |ask: Ask<'_>| -> Result<Merged> {
        let mut done = Vec::new();
        loop {
            let part = next.fetch_add(1, Relaxed);
            let Some(sources) = waiting.get(part) else { return Ok(done) };
            let sources =
                std::mem::take(&mut *sources.lock().unwrap_or_else(PoisonError::into_inner));
            let merged = merge_part(sources.into(), spool, &plan, ask);
            if merged.is_err() {
                stop.store(true, Relaxed);
            }
            done.push((part, merged?));
        }
    };
    let stopped =
        || if stop.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..plan.threads)
            .map_while(|_| {
                let quietly = || work(&mut || stopped());
                std::thread::Builder::new().spawn_scoped(scope, quietly).ok()
            })
            .collect();
        let mut results = vec![work(&mut || match stopped() {
            ControlFlow::Continue(()) => keep_going(),
            stop => stop,
        })];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    let mut parts: Vec<Section> = (0..PARTS).map(|_| Section::default()).collect();
    for (part, section) in first_cause(results)?.into_iter().flatten() {
        parts[part] = section;
    }
    Ok(Sorted::new(Arc::clone(spool), parts))
}

/// All results; an error that caused the others to stop is preferred to their "interrupted".
fn first_cause(results: Vec<Result<Merged>>) -> Result<Vec<Merged>> {
    let is_cause = |result: &Result<Merged>| matches!(result, Err(error) if !matches!(error, Error::Interrupted));
    let (mut causes, rest): (Vec<_>, Vec<_>) = results.into_iter().partition(is_cause);
    match causes.pop() {
        Some(cause) => cause.map(|merged| vec![merged]),
        None => rest.into_iter().collect(),
    }
}

// ---------------------------------------------------------------------- how much at once

struct Plan {
    threads: usize,
    /// How many sections a thread reads at once.
    fan_in: usize,
    buffer_bytes: usize,
}

impl Plan {
    /// As many threads as leave each enough sections at once.
    fn new(sources: &[Vec<Source<'_>>], options: MergeOptions) -> Result<Self> {
        let most = sources.iter().map(Vec::len).max().unwrap_or(0).max(2);
        let longest = sources.iter().flatten().map(|source| source.section().longest()).max();
        let longest = longest.unwrap_or(0);
        // The pre-token that goes out is copied, and the chunk that it goes to is in memory, too.
        let out = CHUNK_BYTES + longest;
        let least = LEAST_BUFFER.max(longest) + READER_BYTES;
        let fan_in = |threads: usize| (options.bytes / threads).saturating_sub(out) / least;
        if fan_in(1) < 2 {
            return Err(Error::Memory(format!(
                "pre-tokens of up to {longest} bytes are too long to be sorted in {} bytes of memory; give a \
                 larger memory budget, or a pattern that makes shorter ones",
                options.bytes
            )));
        }
        let mut threads = options.threads.get().min(PARTS);
        while threads > 1 && fan_in(threads) < most.min(GOOD_FAN_IN) {
            threads -= 1;
        }
        let fan_in = fan_in(threads).min(most);
        let room = (options.bytes / threads).saturating_sub(out) / fan_in;
        let buffer_bytes = room.saturating_sub(READER_BYTES).min(MOST_BUFFER.max(longest));
        Ok(Self { threads, fan_in, buffer_bytes })
    }
}

/// Adds up the sources of one part.
fn merge_part(
    mut sources: VecDeque<Source<'_>>,
    spool: &Arc<Spool>,
    plan: &Plan,
    ask: Ask<'_>,
) -> Result<Section> {
    sources.retain(|source| source.section().distinct() > 0);
    while sources.len() > plan.fan_in {
        let some = sources.drain(..plan.fan_in).collect();
        sources.push_back(Source::Own(merge_some(some, spool, plan, ask)?));
    }
    match sources.pop_front() {
        Some(Source::Own(section)) if sources.is_empty() => Ok(section),
        first => merge_some(first.into_iter().chain(sources).collect(), spool, plan, ask),
    }
}

fn merge_some(
    sources: Vec<Source<'_>>,
    spool: &Arc<Spool>,
    plan: &Plan,
    ask: Ask<'_>,
) -> Result<Section> {
    let mut writer = Writer::new(Arc::clone(spool));
    let places = sources.iter().map(|source| match source {
        Source::Lent(spool, section) => (*spool, *section),
        Source::Own(section) => (&**spool, section),
    });
    let mut cursor = Cursor::new(places, plan.buffer_bytes)?;
    let mut written = 0_u32;
    while let Some((key, count)) = cursor.next()? {
        writer.push(key, count)?;
        written = written.wrapping_add(1);
        if written.is_multiple_of(ASK_EVERY) && ask().is_break() {
            return Err(Error::Interrupted);
        }
    }
    for source in sources {
        if let Source::Own(section) = source {
            section.give_back(spool);
        }
    }
    writer.finish()
}

// ---------------------------------------------------------------------- the smallest of many

/// Walks through several sections at once, in order of the bytes.
pub struct Cursor<'s> {
    readers: Vec<Reader<'s>>,
    /// Readers that have a record, as a heap: the one with the smallest pre-token is first.
    heap: Vec<usize>,
    key: Vec<u8>,
}

impl<'s> Cursor<'s> {
    /// Starts at the smallest pre-token.
    pub fn new(
        sections: impl Iterator<Item = (&'s Spool, &'s Section)>,
        buffer_bytes: usize,
    ) -> Result<Self> {
        let mut readers = Vec::new();
        let mut heap = Vec::new();
        for (spool, section) in sections {
            let mut reader = Reader::new(spool, section, 0, buffer_bytes);
            if reader.next()? {
                heap.push(readers.len());
                readers.push(reader);
            }
        }
        let mut cursor = Self { readers, heap, key: Vec::new() };
        for at in (0..cursor.heap.len() / 2).rev() {
            cursor.sift_down(at);
        }
        Ok(cursor)
    }

    /// The next pre-token and the sum of its counts.
    #[expect(clippy::should_implement_trait, reason = "the pre-token is lent, not given")]
    pub fn next(&mut self) -> Result<Option<(&[u8], u64)>> {
        let Some(&first) = self.heap.first() else { return Ok(None) };
        let reader = &self.readers[first];
        self.key.clear();
        self.key.extend_from_slice(reader.key());
        let mut sum = reader.count();
        self.advance()?;
        while let Some(&same) = self.heap.first() {
            let reader = &self.readers[same];
            if reader.key() != self.key {
                break;
            }
            sum = sum.checked_add(reader.count()).ok_or_else(|| overflow(&self.key))?;
            self.advance()?;
        }
        Ok(Some((&self.key, sum)))
    }

    /// Moves the first reader on.
    fn advance(&mut self) -> Result<()> {
        if !self.readers[self.heap[0]].next()? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut smallest = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.compare(child, smallest) == Ordering::Less {
                    smallest = child;
                }
            }
            if smallest == at {
                return;
            }
            self.heap.swap(at, smallest);
            at = smallest;
        }
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.readers[self.heap[a]].key().cmp(self.readers[self.heap[b]].key())
    }
}

#[cold]
fn overflow(pretoken: &[u8]) -> Error {
    Error::Overflow(format!(
        "the count of pre-token {:?} passes 2^64 - 1",
        String::from_utf8_lossy(pretoken)
    ))
}
