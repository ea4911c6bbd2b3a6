//! Many texts at once, and long ones in parts, on as many threads as the caller allows.
//!
//! A text is cut where that changes no pre-token and no special token (`cut.rs`), so its parts are
//! encoded independently. Workers take shares of about equal size, in order. Each encodes its share
//! to a buffer that it keeps, and adds it to the result when all shares before it are there: large
//! buffers for every share would have to get their pages from the system, call after call.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::scratch::Scratch;
use super::{Allowed, Encoder, Sink};
use crate::cut;
use crate::error::Result;
use crate::reserve::reserve;
use crate::threads::run_workers_watched;
use crate::watch::Watch;

/// Text per thread, at least: for less, starting a thread costs more than it saves.
const MIN_BYTES_PER_THREAD: usize = 64 << 10;

/// The size of a share, and of the parts of a text: its ids stay in L2, and all threads finish at
/// about the same time.
const MIN_SHARE_BYTES: usize = 32 << 10;
const MAX_SHARE_BYTES: usize = 256 << 10;

/// More than one share per thread, for the same reason.
const SHARES_PER_THREAD: usize = 8;

/// A text has about one token for this many bytes.
const BYTES_PER_TOKEN: usize = 4;

/// The ids of several texts, contiguous.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ragged {
    /// The ids.
    pub ids: Vec<u32>,
    /// Where the ids of each text end.
    pub ends: Vec<usize>,
}

impl Ragged {
    /// The ids of each text.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.ids[start..end])
    }

    /// Adds more texts.
    fn append(&mut self, other: &Self) -> Result<()> {
        let start = self.ids.len();
        reserve(&mut self.ids, other.ids.len())?;
        reserve(&mut self.ends, other.ends.len())?;
        self.ids.extend_from_slice(&other.ids);
        self.ends.extend(other.ends.iter().map(|end| start + end));
        Ok(())
    }
}

/// A text, or a part of one.
struct Part<'t> {
    text: &'t [u8],
    /// Whether the text ends with it.
    is_last: bool,
}

impl Encoder {
    /// Encodes texts; the result does not depend on the number of threads.
    pub fn encode_batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
        allowed: &Allowed<'_>,
        threads: NonZeroUsize,
        watch: &Watch,
    ) -> Result<Ragged> {
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let mut all = Ragged::default();
        Sink::reserve(&mut all.ids, bytes / BYTES_PER_TOKEN)?;
        reserve(&mut all.ends, texts.len())?;
        let threads = threads.get().min(bytes / MIN_BYTES_PER_THREAD);
        if threads <= 1 {
            return self.pool.with_scratch(|scratch| {
                scratch.watch = watch.clone();
                for text in texts {
                    self.encode_with(text.as_ref(), allowed, &mut all.ids, scratch)?;
                    all.ends.push(all.ids.len());
                }
                Ok(all)
            });
        }
        let size = bytes / (threads * SHARES_PER_THREAD);
        let size = size.clamp(MIN_SHARE_BYTES, MAX_SHARE_BYTES);
        let mut parts: Vec<Part<'_>> = Vec::new();
        for text in texts {
            let more = self.parts(text.as_ref(), size, allowed);
            reserve(&mut parts, more.len())?;
            parts.extend(more);
        }
        let shares = shares(&parts, size);
        let next = AtomicUsize::new(0);
        let joined = Mutex::new(Joined { all, ..Joined::default() });
        // Runs one worker: takes the next share until none is left or one fails.
        let work_with = |scratch: &mut Scratch, watch: &Watch| {
            scratch.watch = watch.clone();
            let mut ragged = Ragged::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(share) = shares.get(number) else { return Ok(()) };
                let result = self.encode_share(share, allowed, &mut ragged, scratch);
                if let Err(error) = result.and_then(|()| lock(&joined).add(number, &ragged)) {
                    next.store(shares.len(), Ordering::Relaxed);
                    return Err((number, error));
                }
            }
        };
        let (my_watch, watch) = watch.shared();
        let work = || self.pool.with_scratch(|scratch| work_with(scratch, &watch));
        let mine = || self.pool.with_scratch(|scratch| work_with(scratch, &my_watch));
        self.pool.warm_up(threads - 1);
        let done = run_workers_watched(threads, &work, mine, my_watch.clone());
        let failures = done.into_iter().filter_map(std::result::Result::err);
        if let Some((_, error)) = failures.min_by_key(|(number, _)| *number) {
            return Err(error);
        }
        Ok(joined.into_inner().unwrap_or_else(PoisonError::into_inner).all)
    }

    /// A text in parts of about `size` bytes, in order; in one if it has no cut point.
    fn parts<'t>(&self, mut text: &'t [u8], size: usize, allowed: &Allowed<'_>) -> Vec<Part<'t>> {
        let sets = match allowed {
            // Rewriting looks beyond the pattern, and trusted ranges are relative to the whole
            // text.
            _ if self.rewrites.is_some() => None,
            Allowed::Within(_) => None,
            Allowed::None => Some(vec![]),
            Allowed::All => Some(vec![&self.specials.finder]),
            Allowed::Some(choice) => Some(vec![&choice.set.finder]),
        };
        let mut parts = Vec::new();
        while let Some(sets) = sets.as_ref().filter(|_| text.len() > size + size / 2)
            && let Some(offset) = cut::last_cut(&self.pretokenizer, sets, &text[..size])
            && offset > 0
        {
            let (part, rest) = text.split_at(offset);
            parts.push(Part { text: part, is_last: false });
            text = rest;
        }
        parts.push(Part { text, is_last: true });
        parts
    }

    /// Encodes parts one after another; the ends are those of texts.
    fn encode_share(
        &self,
        parts: &[Part<'_>],
        allowed: &Allowed<'_>,
        ragged: &mut Ragged,
        scratch: &mut Scratch,
    ) -> Result<()> {
        ragged.ids.clear();
        ragged.ends.clear();
        for part in parts {
            self.encode_with(part.text, allowed, &mut ragged.ids, scratch)?;
            if part.is_last {
                reserve(&mut ragged.ends, 1)?;
                ragged.ends.push(ragged.ids.len());
            }
        }
        Ok(())
    }
}

/// The results of shares, joined in order.
#[derive(Default)]
struct Joined {
    all: Ragged,
    /// The number of shares in `all`.
    count: usize,
    /// Shares that are done before others that precede them, by number.
    early: BTreeMap<usize, Ragged>,
}

impl Joined {
    /// Adds the result of a share.
    fn add(&mut self, number: usize, share: &Ragged) -> Result<()> {
        if number > self.count {
            let mut early = Ragged::default();
            early.append(share)?;
            self.early.insert(number, early);
            return Ok(());
        }
        self.all.append(share)?;
        self.count += 1;
        while let Some(share) = self.early.remove(&self.count) {
            self.all.append(&share)?;
            self.count += 1;
        }
        Ok(())
    }
}

/// A worker that panics makes the whole call panic, so what it leaves is never used.
fn lock(joined: &Mutex<Joined>) -> MutexGuard<'_, Joined> {
    joined.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Groups parts into shares of about `size` bytes, in order.
fn shares<'p, 't>(parts: &'p [Part<'t>], size: usize) -> Vec<&'p [Part<'t>]> {
    let mut shares = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, part) in parts.iter().enumerate() {
        bytes += part.text.len();
        if bytes >= size {
            shares.push(&parts[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    shares.push(&parts[start..]);
    shares
}
