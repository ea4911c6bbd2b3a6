//! Text to ids.
//!
//! The definition is short: split text into pre-tokens with the pattern, and in each, merge the
//! pair of neighbors with the lowest rank, the leftmost among equals, until no pair has a rank. The
//! engine gives the same ids, with less work. In the order of a text, and of reading:
//!
//! 1. Special tokens are found (`specials.rs`). The text between them is encoded by itself.
//! 2. The pattern splits it into pre-tokens, a few hundred at a time (`pretoken/`).
//! 3. Such a batch goes through the next steps together (`lookup.rs`). Long pre-tokens of scripts
//!    without spaces are first split at offsets that no token spans (`split.rs`,
//!    `long/cut_points.rs`).
//! 4. Pre-tokens encoded before are in the cache (`cache/`). The keys of the batch are made and
//!    their slots prefetched, and then all are looked up. Most text goes no further.
//! 5. Misses that are whole tokens are looked up (`whole_tokens.rs`). The others are merged,
//!    several interleaved (`merge/short.rs`, `merge/interleaved.rs`), with ranks from a perfect
//!    hash (`merge/pairs.rs`). All are added to the cache.
//! 6. A miss too long for that is encoded alone (`one_pretoken.rs`): by longest matches that are
//!    compatible (`long/longest_match.rs`), or merged with a heap or in windows (`merge/heap.rs`,
//!    `merge/windows.rs`).
//! 7. Ids go to a [`Sink`], which keeps, counts or locates them (`sink.rs`).
//!
//! The three [rankings](Ranking) share all of it: they differ only in which pairs are in the table,
//! and which tokens are looked up whole. `build.rs` makes an [`Encoder`] from a [`Vocabulary`]. A
//! call borrows its buffers and its cache (`scratch.rs`) from a pool (`pool.rs`), where the next
//! call finds them.
//!
//! Around this: many texts on several threads (`texts.rs`), documents in bounded memory
//! (`stream.rs`), pre-tokens that were split elsewhere (`pretokens.rs`). Some vocabularies need
//! more: an alphabet that lacks bytes (`gaps.rs`), special tokens that share an id with another
//! token (`ambiguous_ids.rs`), a normalizer or a chain of splits (`rewritten.rs`). Questions about
//! text: how far its ids are certain, whatever follows (`certain.rs`), what its last tokens may
//! become (`unstable.rs`), how often plain longest matches would agree (`agreement.rs`).
//!
//! `docs/design/engine.md` says why each step is the way it is.

mod agreement;
mod ambiguous_ids;
mod build;
mod cache;
mod certain;
mod gaps;
mod long;
mod lookup;
mod merge;
mod one_pretoken;
mod pool;
mod pretokens;
mod rewritten;
mod scratch;
mod sink;
mod specials;
mod split;
#[cfg(feature = "stages")]
mod stages;
mod stream;
mod texts;
mod unstable;
mod vocabulary;
mod whole_tokens;

use std::ops::{ControlFlow, Range};

use crate::decode::TokenTable;
use crate::error::Result;
use crate::lazy::Lazy;
use crate::pretoken::Pretokenizer;
use crate::rewrite::Limits;
use crate::watch::Watch;
use ambiguous_ids::AmbiguousIds;
use long::{CutPoints, LazyMatcher, Trie};
use lookup::Lookup;
use merge::PairTable;
use pool::Pool;
use rewritten::Rewrites;
use scratch::Scratch;
use sink::{WithRanges, emit_one};
use specials::SpecialSet;
use whole_tokens::WholeTokens;

pub use agreement::Agreement;
pub use merge::{PairLayout, recover_merges};
pub(crate) use merge::{merges_are_proper, merges_of_ranks};
pub use sink::{Counter, Sink, Total, WithEnds};
pub use specials::{Allowed, Choice};
pub use stream::{EncodedBlock, StreamError, StreamOptions};
pub use texts::Ragged;
pub use vocabulary::{Gaps, Ranking, Vocabulary};

/// A vocabulary made ready to encode and decode. Immutable: threads share it.
pub struct Encoder {
    pretokenizer: Pretokenizer,
    /// All tokens by id, special ones included.
    tokens: TokenTable,
    /// The id of each byte's token, or [`merge::NO_ID`].
    byte_ids: [u32; 256],
    /// Whether some byte has no token, and what such bytes become.
    has_gaps: bool,
    gaps: Gaps,
    unk: Option<u32>,
    pairs: PairTable,
    /// Tokens that a pre-token with their bytes becomes; others are only reached by merging.
    whole: WholeTokens,
    /// The ids of ordinary tokens, and the same sorted by bytes.
    ordinary: Vec<u32>,
    by_bytes: Lazy<Vec<u32>>,
    /// All ordinary tokens, for longest matches without regard to merges.
    trie: Lazy<Option<Trie>>,
    /// Special tokens, sorted by text.
    specials: SpecialSet,
    /// Their ids that ordinary text may also become; `None` for most vocabularies.
    ambiguous: Option<Box<AmbiguousIds>>,
    /// How text is changed before it is merged; `None` for most vocabularies.
    rewrites: Option<Box<Rewrites>>,
    cut_points: Lazy<CutPoints>,
    matcher: LazyMatcher,
    /// What calls leave for later calls. It never changes an id.
    pool: Pool,
}

impl Encoder {
    /// Encodes a text into a sink.
    pub fn encode(&self, text: &[u8], allowed: &Allowed<'_>, sink: &mut impl Sink) -> Result<()> {
        self.encode_watched(text, allowed, sink, &Watch::default())
    }

    /// The same, but stops when the watch says so.
    pub fn encode_watched(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        sink: &mut impl Sink,
        watch: &Watch,
    ) -> Result<()> {
        self.pool.with_scratch(|scratch| {
            scratch.watch = watch.clone();
            self.encode_with(text, allowed, sink, scratch)
        })
    }

    /// Encodes special tokens, and the text between them.
    fn encode_with(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<()> {
        scratch.limits = Limits::new(text.len(), scratch.watch.clone());
        if let Some(rewrites) = &self.rewrites {
            return self.encode_rewritten(rewrites, text, allowed, sink, scratch);
        }
        let ambiguous = self.ambiguous_for(allowed);
        let mut specials = self.specials.recognize(text, allowed);
        let mut position = 0;
        loop {
            let special = specials.next(position);
            let end = special.map_or(text.len(), |(s, _)| s.start);
            if self.encode_text(text, position..end, ambiguous, sink, scratch)?.is_break() {
                return Ok(());
            }
            let Some((special, id)) = special else { return Ok(()) };
            scratch.watch.worked(special.end - end)?;
            if emit_one(sink, id, special.start..special.end)?.is_break() {
                return Ok(());
            }
            position = special.end;
        }
    }

    /// Encodes a range of a text without special tokens; `ambiguous` ids, if any, are replaced by
    /// the parts of their tokens.
    fn encode_text(
        &self,
        text: &[u8],
        range: Range<usize>,
        ambiguous: Option<&AmbiguousIds>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let Some(ambiguous) = ambiguous else {
            return self.encode_plain(text, range, sink, scratch);
        };
        let mut found = WithRanges::default();
        let _ = self.encode_plain(text, range, &mut found, scratch)?; // it never breaks
        self.split_ambiguous(ambiguous, text, found, sink)
    }

    /// Encodes a range of a text without special tokens: splits it into pre-tokens, and looks them
    /// up batch by batch.
    fn encode_plain(
        &self,
        text: &[u8],
        range: Range<usize>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut budget = std::mem::take(&mut scratch.limits.budget);
        let mut bounds = scratch.bounds.take().unwrap_or_default();
        let split = self.pretokenizer.split(&text[range.clone()], &mut budget, &mut bounds);
        let flow = split.and_then(|split| {
            Lookup::new(self, text, sink, scratch).encode_all(range.start, split)
        });
        (scratch.limits.budget, scratch.bounds) = (budget, Some(bounds));
        flow
    }

    /// All tokens by id, special ones included.
    pub fn tokens(&self) -> &TokenTable {
        &self.tokens
    }

    /// Frees what earlier calls left for later ones: the next call starts as the first one did.
    pub fn clear_cache(&self) {
        self.pool.clear();
    }
}

#[cfg(test)]
mod tests;
