//! Many texts at once, and long ones in parts, on as many threads as the caller allows.
//!
//! A text is cut where that changes no pre-token and no special token (`cut.rs`), so its parts are
//! encoded independently. Workers take shares of about equal size, in order. The ids of a share
//! are contiguous, and the results of all shares are joined at the end.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::scratch::Scratch;
use super::{Allowed, Encoder};
use crate::cut;
use crate::error::Result;
use crate::reserve::reserve;
use crate::threads::run_workers_watched;
use crate::watch::Watch;

/// Text per thread, at least: for less, starting a thread costs more than it saves.
const MIN_BYTES_PER_THREAD: usize = 64 << 10;

/// The size of a share, at least, and of the parts of a text.
const MIN_SHARE_BYTES: usize = 32 << 10;

/// More than one share per thread, so that all threads finish at about the same time.
const SHARES_PER_THREAD: usize = 8;

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
        let threads = threads.get().min(bytes / MIN_BYTES_PER_THREAD);
        if threads <= 1 {
            let mut all = Vec::new();
            reserve(&mut all, texts.len())?;
            all.extend(texts.iter().map(|text| Part { text: text.as_ref(), is_last: true }));
            return self.pool.with_scratch(|scratch| {
                scratch.watch = watch.clone();
                self.encode_share(&all, allowed, scratch)
            });
        }
        let size = (bytes / (threads * SHARES_PER_THREAD)).max(MIN_SHARE_BYTES);
        let mut parts: Vec<Part<'_>> = Vec::new();
        for text in texts {
            let more = self.parts(text.as_ref(), size, allowed);
            reserve(&mut parts, more.len())?;
            parts.extend(more);
        }
        let shares = shares(&parts, size);
        let next = AtomicUsize::new(0);
        // Runs one worker: takes the next share until none is left or one fails.
        let work_with = |scratch: &mut Scratch, watch: &Watch| {
            scratch.watch = watch.clone();
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(share) = shares.get(number) else { return done };
                let result = self.encode_share(share, allowed, scratch);
                if result.is_err() {
                    next.store(shares.len(), Ordering::Relaxed);
                }
                done.push((number, result));
            }
        };
        let (my_watch, watch) = watch.shared();
        let work = || self.pool.with_scratch(|scratch| work_with(scratch, &watch));
        let mine = || self.pool.with_scratch(|scratch| work_with(scratch, &my_watch));
        self.pool.warm_up(threads - 1);
        let done = run_workers_watched(threads, &work, mine, my_watch.clone());
        let mut done: Vec<_> = done.into_iter().flatten().collect();
        done.sort_unstable_by_key(|(number, _)| *number);
        join(done.into_iter().map(|(_, result)| result), texts.len())
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
        scratch: &mut Scratch,
    ) -> Result<Ragged> {
        let bytes: usize = parts.iter().map(|part| part.text.len()).sum();
        let mut ragged = Ragged::default();
        reserve(&mut ragged.ids, bytes / 4)?;
        for part in parts {
            self.encode_with(part.text, allowed, &mut ragged.ids, scratch)?;
            if part.is_last {
                reserve(&mut ragged.ends, 1)?;
                ragged.ends.push(ragged.ids.len());
            }
        }
        Ok(ragged)
    }
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

/// Joins the ids of shares.
fn join(shares: impl Iterator<Item = Result<Ragged>>, texts: usize) -> Result<Ragged> {
    let shares: Vec<Ragged> = shares.collect::<Result<_>>()?;
    let total = shares.iter().map(|share| share.ids.len()).sum();
    let mut all = Ragged::default();
    reserve(&mut all.ids, total)?;
    reserve(&mut all.ends, texts)?;
    for share in shares {
        let start = all.ids.len();
        all.ids.extend_from_slice(&share.ids);
        all.ends.extend(share.ends.iter().map(|end| start + end));
    }
    Ok(all)
}
