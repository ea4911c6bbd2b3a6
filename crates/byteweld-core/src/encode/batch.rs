//! Many texts at once, and long ones in pieces, on as many threads as the caller asks for.
//!
//! A text is cut where no pre-token changes and no special token is torn (`cut.rs`), so its pieces are encoded
//! each by itself. Workers take shares of about equal size, in order; each share's ids lie on end, and in the
//! end so do those of all shares.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::merge::Scratch;
use super::{Allowed, Encoder};
use crate::cut;
use crate::error::Result;
use crate::reserve::reserve;
use crate::threads::run_workers_watched;
use crate::watch::Watch;

/// Less text than this is done on the caller's thread: starting others would take longer.
const WORTH_A_THREAD: usize = 64 << 10;

/// A share is at least as large as this, and a text is not cut into smaller pieces.
const LEAST_SHARE: usize = 32 << 10;

/// So many shares for each thread, so that all end at about the same time.
const SHARES: usize = 8;

/// The ids of several texts on end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ragged {
    /// The ids.
    pub ids: Vec<u32>,
    /// Where each text's ids end.
    pub ends: Vec<usize>,
}

impl Ragged {
    /// The ids of each text.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.ids[start..end])
    }
}

/// A text, or a piece of one.
struct Piece<'t> {
    text: &'t [u8],
    is_last: bool,
}

impl Encoder {
    /// Encodes texts; the result does not depend on the threads.
    pub fn encode_batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
        allowed: &Allowed<'_>,
        threads: NonZeroUsize,
        watch: &Watch,
    ) -> Result<Ragged> {
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let threads = threads.get().min(bytes / WORTH_A_THREAD);
        if threads <= 1 {
            let mut all = Vec::new();
            reserve(&mut all, texts.len())?;
            all.extend(texts.iter().map(|text| Piece { text: text.as_ref(), is_last: true }));
            return self.with_scratch(|scratch| {
                scratch.watch = watch.clone();
                self.encode_share(&all, allowed, scratch)
            });
        }
        let size = (bytes / (threads * SHARES)).max(LEAST_SHARE);
        let mut pieces: Vec<Piece<'_>> = Vec::new();
        for text in texts {
            let more = self.pieces(text.as_ref(), size, allowed);
            reserve(&mut pieces, more.len())?;
            pieces.extend(more);
        }
        let shares = shares(&pieces, size);
        let next = AtomicUsize::new(0);
        let work_with = |scratch: &mut Scratch, watch: &Watch| {
            scratch.watch = watch.clone();
            let mut done = Vec::new();
            // One worker's life: the next share, until there are none or one fails.
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
        let work = || self.with_scratch(|scratch| work_with(scratch, &watch));
        let mine = || self.with_scratch(|scratch| work_with(scratch, &my_watch));
        let done = run_workers_watched(threads, &work, mine, my_watch.clone());
        let mut done: Vec<_> = done.into_iter().flatten().collect();
        done.sort_unstable_by_key(|(number, _)| *number);
        join(done.into_iter().map(|(_, result)| result), texts.len())
    }

    /// A text in pieces of about a size, in order; whole if it has no place to be cut.
    fn pieces<'t>(&self, mut text: &'t [u8], size: usize, allowed: &Allowed<'_>) -> Vec<Piece<'t>> {
        let sets = match allowed {
            // What changes text on the way looks beyond the pattern; trusted ranges are of the whole text.
            _ if self.rewrites.is_some() => None,
            Allowed::Within(_) => None,
            Allowed::None => Some(vec![]),
            Allowed::All => Some(vec![&self.finder]),
            Allowed::Some(choice) => Some(vec![&choice.finder]),
        };
        let mut pieces = Vec::new();
        while let Some(sets) = sets.as_ref().filter(|_| text.len() > size + size / 2)
            && let Some(place) = cut::last_cut(&self.pretokenizer, sets, &text[..size])
            && place > 0
        {
            let (piece, rest) = text.split_at(place);
            pieces.push(Piece { text: piece, is_last: false });
            text = rest;
        }
        pieces.push(Piece { text, is_last: true });
        pieces
    }

    /// Encodes pieces one after the other; the ends are those of texts.
    fn encode_share(
        &self,
        pieces: &[Piece<'_>],
        allowed: &Allowed<'_>,
        scratch: &mut Scratch,
    ) -> Result<Ragged> {
        let bytes: usize = pieces.iter().map(|piece| piece.text.len()).sum();
        let mut ragged = Ragged::default();
        reserve(&mut ragged.ids, bytes / 4)?;
        for piece in pieces {
            self.encode_with(piece.text, allowed, &mut ragged.ids, scratch)?;
            if piece.is_last {
                reserve(&mut ragged.ends, 1)?;
                ragged.ends.push(ragged.ids.len());
            }
        }
        Ok(ragged)
    }
}

/// Shares of about a size, in order.
fn shares<'p, 't>(pieces: &'p [Piece<'t>], size: usize) -> Vec<&'p [Piece<'t>]> {
    let mut shares = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, piece) in pieces.iter().enumerate() {
        bytes += piece.text.len();
        if bytes >= size {
            shares.push(&pieces[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    shares.push(&pieces[start..]);
    shares
}

/// Puts the ids of shares on end.
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
