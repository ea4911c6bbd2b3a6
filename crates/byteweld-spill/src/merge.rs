//! K-way merge of sorted sections, adding up the counts of equal pre-tokens.
//!
//! The fan-in is as large as the buffers allow; with more sections, several passes are needed.
//! Parts are independent, so each thread merges whole parts.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::PARTS;
use crate::error::{Error, Result, reserve};
use crate::section::{MIN_BUFFER_BYTES, Reader, Section, Writer};
use crate::sorted_counts::SortedCounts;
use crate::spool::{CHUNK_BYTES, Spool};

/// Larger buffers are not faster.
const MAX_BUFFER_BYTES: usize = 256 << 10;
/// Threads are reduced until each has at least this fan-in.
const MIN_FAN_IN_PER_THREAD: usize = 16;
/// The number of pre-tokens between two calls of `keep_going`.
const CHECK_INTERVAL: u32 = 1 << 12;
/// What a thread needs before its work starts; none is started without.
const THREAD_BYTES: usize = 33 << 20;
/// The memory of a reader besides its buffer.
const READER_BYTES: usize = 256;

/// The options of a merge.
#[derive(Clone, Copy)]
pub struct MergeOptions {
    /// The maximum memory of the buffers.
    pub bytes: usize,
    /// The maximum number of threads.
    pub threads: NonZeroUsize,
}

/// A section to be merged.
pub enum Source<'s> {
    /// A section that is kept.
    Borrowed(&'s Spool, &'s Section),
    /// A section of the target spool, whose chunks are released after the merge.
    Owned(Section),
}

impl Source<'_> {
    fn section(&self) -> &Section {
        match self {
            Source::Borrowed(_, section) => section,
            Source::Owned(section) => section,
        }
    }
}

/// The parts that one thread has merged.
type Merged = Vec<(usize, Section)>;
/// Stops the merge by returning `Break`.
type KeepGoing<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Merges all sources of each part into a spool. `keep_going` is called on the caller's thread.
pub fn merge(
    sources: Vec<Vec<Source<'_>>>,
    spool: &Arc<Spool>,
    options: MergeOptions,
    keep_going: KeepGoing<'_>,
) -> Result<SortedCounts> {
    let plan = MergePlan::new(&sources, options)?;
    let waiting: Vec<_> = sources.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let work = |keep_going: KeepGoing<'_>| -> Result<Merged> {
        let mut done = Vec::new();
        loop {
            let part = next.fetch_add(1, Relaxed);
            let Some(sources) = waiting.get(part) else { return Ok(done) };
            let sources =
                std::mem::take(&mut *sources.lock().unwrap_or_else(PoisonError::into_inner));
            let merged = merge_part(sources.into(), spool, &plan, keep_going);
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
            .take_while(|_| {
                let mut memory = Vec::new();
                reserve::<u8>(&mut memory, std::hint::black_box(THREAD_BYTES)).is_ok()
                    && std::hint::black_box(&memory).is_empty()
            })
            .map_while(|_| {
                let without_callback = || work(&mut || stopped());
                std::thread::Builder::new().spawn_scoped(scope, without_callback).ok()
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
    Ok(SortedCounts::new(Arc::clone(spool), parts))
}

/// All results, or the first error; the one that made the other threads stop takes precedence over
/// `Interrupted`.
fn first_cause(results: Vec<Result<Merged>>) -> Result<Vec<Merged>> {
    let is_cause = |result: &Result<Merged>| !matches!(result, Ok(_) | Err(Error::Interrupted));
    let (mut causes, rest): (Vec<_>, Vec<_>) = results.into_iter().partition(is_cause);
    match causes.pop() {
        Some(cause) => cause.map(|merged| vec![merged]),
        None => rest.into_iter().collect(),
    }
}

// ---------------------------------------------------------------------- fan-in

struct MergePlan {
    threads: usize,
    /// The number of sections that a thread reads at once.
    fan_in: usize,
    buffer_bytes: usize,
}

impl MergePlan {
    /// Uses as many threads as possible with a sufficient fan-in each.
    fn new(sources: &[Vec<Source<'_>>], options: MergeOptions) -> Result<Self> {
        let widest = sources.iter().map(Vec::len).max().unwrap_or(0).max(2);
        let longest = sources.iter().flatten().map(|source| source.section().longest()).max();
        let longest = longest.unwrap_or(0);
        // The output needs a copy of the current pre-token and a chunk.
        let output_bytes = CHUNK_BYTES + longest;
        let min_input_bytes = MIN_BUFFER_BYTES.max(longest) + READER_BYTES;
        let fan_in = |threads: usize| {
            (options.bytes / threads).saturating_sub(output_bytes) / min_input_bytes
        };
        if fan_in(1) < 2 {
            return Err(Error::Memory(format!(
                "pre-tokens of up to {longest} bytes are too long to be merged in {} bytes of \
                 memory; use a larger memory budget, or a pattern that makes shorter pre-tokens",
                options.bytes
            )));
        }
        let mut threads = options.threads.get().min(PARTS);
        while threads > 1 && fan_in(threads) < widest.min(MIN_FAN_IN_PER_THREAD) {
            threads -= 1;
        }
        let fan_in = fan_in(threads).min(widest);
        let input_bytes = (options.bytes / threads).saturating_sub(output_bytes) / fan_in;
        let buffer_bytes =
            input_bytes.saturating_sub(READER_BYTES).min(MAX_BUFFER_BYTES.max(longest));
        Ok(Self { threads, fan_in, buffer_bytes })
    }
}

/// Merges the sources of one part, in several passes if needed.
fn merge_part(
    mut sources: VecDeque<Source<'_>>,
    spool: &Arc<Spool>,
    plan: &MergePlan,
    keep_going: KeepGoing<'_>,
) -> Result<Section> {
    sources.retain(|source| source.section().distinct() > 0);
    while sources.len() > plan.fan_in {
        let some = sources.drain(..plan.fan_in).collect();
        sources.push_back(Source::Owned(merge_some(some, spool, plan, keep_going)?));
    }
    match sources.pop_front() {
        Some(Source::Owned(section)) if sources.is_empty() => Ok(section),
        first => merge_some(first.into_iter().chain(sources).collect(), spool, plan, keep_going),
    }
}

fn merge_some(
    sources: Vec<Source<'_>>,
    spool: &Arc<Spool>,
    plan: &MergePlan,
    keep_going: KeepGoing<'_>,
) -> Result<Section> {
    let mut writer = Writer::new(Arc::clone(spool));
    let sections = sources.iter().map(|source| match source {
        Source::Borrowed(spool, section) => (*spool, *section),
        Source::Owned(section) => (&**spool, section),
    });
    let mut cursor = MergeCursor::new(sections, plan.buffer_bytes)?;
    let mut written = 0_u32;
    while let Some((key, count)) = cursor.next()? {
        writer.push(key, count)?;
        written = written.wrapping_add(1);
        if written.is_multiple_of(CHECK_INTERVAL) && keep_going().is_break() {
            return Err(Error::Interrupted);
        }
    }
    for source in sources {
        if let Source::Owned(section) = source {
            section.release(spool);
        }
    }
    writer.finish()
}

// ---------------------------------------------------------------------- cursor

/// Iterates over several sections in sorted order, adding up the counts of equal pre-tokens.
pub struct MergeCursor<'s> {
    readers: Vec<Reader<'s>>,
    /// A min-heap, by pre-token, of the readers that have a record.
    heap: Vec<usize>,
    key: Vec<u8>,
}

impl<'s> MergeCursor<'s> {
    /// A cursor before the smallest pre-token.
    pub fn new(
        sections: impl Iterator<Item = (&'s Spool, &'s Section)>,
        buffer_bytes: usize,
    ) -> Result<Self> {
        let mut readers = Vec::new();
        let mut heap = Vec::new();
        for (spool, section) in sections {
            let mut reader = Reader::new(spool, section, 0, buffer_bytes);
            if reader.next()? {
                reserve(&mut heap, 1)?;
                reserve(&mut readers, 1)?;
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
    #[expect(clippy::should_implement_trait, reason = "the pre-token is borrowed from the cursor")]
    pub fn next(&mut self) -> Result<Option<(&[u8], u64)>> {
        let Some(&first) = self.heap.first() else { return Ok(None) };
        let reader = &self.readers[first];
        self.key.clear();
        reserve(&mut self.key, reader.key().len())?;
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

    /// Advances the first reader.
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
        "the count of pre-token {:?} exceeds 2^64 - 1",
        String::from_utf8_lossy(pretoken)
    ))
}
