//! Encoding with a vocabulary that changes text on the way: added tokens are found in the text as it came,
//! the rest is normalised, more added tokens are found, the rest of that is cut and merged.
//!
//! What a token covers is told by where it starts in the caller's text: it reaches to the start of the next,
//! the first starts at 0 and the last ends at the end, so tokens tile the text even where some of it was
//! dropped or made up.

use std::ops::{ControlFlow, Range};

use super::ambiguous::{Ambiguous, Covering};
use super::lookup::Lookup;
use super::merge::Scratch;
use super::sink::push_each;
use super::{Allowed, Encoder, Sink};
use crate::decode::TokenTable;
use crate::error::{Error, Result};
use crate::pretoken::Pretokenizer;
use crate::rewrite::{
    AddedFinder, AddedToken, AddedTokens, Found, Limits, Normalizer, Permission, Rewritten,
    SplitChain, TextPart, check_steps,
};
use crate::watch::Watch;

/// How text is changed on the way.
pub(super) struct Rewrites {
    added: AddedTokens,
    normalizer: Normalizer,
    /// Empty: the pattern cuts.
    pub(super) steps: SplitChain,
}

impl Rewrites {
    pub(super) fn new(
        added: Vec<AddedToken>,
        normalizer: Normalizer,
        steps: SplitChain,
    ) -> Result<Self> {
        check_steps(normalizer.len(), "normalizer")?;
        check_steps(steps.len(), "chain of splits")?;
        Ok(Self { added: AddedTokens::new(added, &normalizer)?, normalizer, steps })
    }

    /// Prepares to find the special tokens with these ids (ascending) in normalized text.
    pub(super) fn choose(&self, ids: &[u32]) -> Result<AddedFinder> {
        self.added.choose(&self.normalizer, ids)
    }

    /// Refuses a text that shows a special token only when it is normalised.
    pub(super) fn refuse(
        &self,
        text: &[u8],
        refused: Option<&AddedFinder>,
        watch: &Watch,
    ) -> Result<()> {
        if self.normalizer.is_empty() {
            return Ok(());
        }
        let mut limits = Limits::new(text.len(), watch.clone());
        let normal = self.normalizer.apply(text, false, &mut limits)?;
        match self.added.first_normalized_special(&normal.text, refused) {
            Some(token) => Err(Error::SpecialToken { token: token.text.clone(), offset: 0 }),
            None => Ok(()),
        }
    }

    pub(super) fn pretokenize(
        &self,
        pretokenizer: &Pretokenizer,
        text: &[u8],
        watch: &Watch,
        each: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut limits = Limits::new(text.len(), watch.clone());
        let normal = self.normalizer.apply(text, false, &mut limits)?;
        if self.steps.is_empty() {
            let mut each = |tile: &[u8], _| each(tile);
            return pretokenizer.for_each_tile_within(&normal.text, &mut limits.budget, &mut each);
        }
        let (cut, pieces) = self.steps.split(&normal.text, false, &mut limits)?;
        for piece in pieces {
            if each(&cut.text[piece]).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Takes tokens by where they start and gives them to a sink by how much they cover.
struct Tiler<'s, S> {
    sink: &'s mut S,
    /// A token that has started and not ended yet.
    open: Option<(u32, usize)>,
}

impl<S: Sink> Tiler<'_, S> {
    /// Starts an added token, if there is room.
    fn start_added(&mut self, id: u32, start: usize) -> Result<ControlFlow<()>> {
        self.sink.reserve(2)?; // one may be open
        Ok(self.start(id, start))
    }

    fn start(&mut self, id: u32, start: usize) -> ControlFlow<()> {
        if !S::COVERS {
            return self.sink.push(id, start..start);
        }
        match self.open.replace((id, 0)) {
            None => ControlFlow::Continue(()), // the first one starts at 0
            Some((before, its_start)) => {
                let start = start.max(its_start);
                self.open = Some((id, start));
                self.sink.push(before, its_start..start)
            }
        }
    }

    fn finish(self, length: usize) {
        if let Some((id, start)) = self.open {
            let _ = self.sink.push(id, start..length.max(start));
        }
    }
}

/// Takes the tokens of rewritten text.
struct RewrittenSink<'t, 's, 'o, S, O> {
    tiler: &'t mut Tiler<'s, S>,
    /// What a place in the rewritten text is in the caller's.
    origin: &'o O,
}

impl<S: Sink, O: Fn(usize) -> usize> Sink for RewrittenSink<'_, '_, '_, S, O> {
    const COVERS: bool = S::COVERS;

    fn reserve(&mut self, tokens: usize) -> Result<()> {
        self.tiler.sink.reserve(tokens + 1) // one may be open
    }

    fn push(&mut self, id: u32, range: Range<usize>) -> ControlFlow<()> {
        self.tiler.start(id, (self.origin)(range.start))
    }

    fn push_all(
        &mut self,
        ids: &[u32],
        range: Range<usize>,
        tokens: &TokenTable,
    ) -> ControlFlow<()> {
        if !S::COVERS {
            return self.tiler.sink.push_all(ids, range, tokens);
        }
        push_each(self, ids, range, tokens)
    }
}

impl Encoder {
    pub(super) fn encode_rewritten<S: Sink>(
        &self,
        rewrites: &Rewrites,
        text: &[u8],
        allowed: &Allowed<'_>,
        sink: &mut S,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let permission = match allowed {
            Allowed::None | Allowed::Within([]) => Permission::Nowhere,
            Allowed::All => Permission::Everywhere,
            Allowed::Some(choice) => Permission::Ids(&choice.ids),
            Allowed::Within(ranges) => Permission::Within(ranges),
        };
        let ambiguous = self.ambiguous_for(allowed);
        let mut tiler = Tiler { sink, open: None };
        let flow = rewrites.added.for_each_raw(text, permission, &mut |part| {
            let TextPart { token, range } = part;
            if let Found::Text = token {
                let passage = Passage { text: &text[range.clone()], offset: range.start };
                return self
                    .encode_passage(rewrites, passage, permission, ambiguous, &mut tiler, scratch);
            }
            self.push_added(text, token, range, ambiguous, &|at| at, &mut tiler)
        })?;
        if flow.is_continue() {
            tiler.finish(text.len());
        }
        Ok(())
    }

    /// Encodes a passage between added tokens of the text as it came.
    fn encode_passage<S: Sink>(
        &self,
        rewrites: &Rewrites,
        passage: Passage<'_>,
        permission: Permission<'_>,
        ambiguous: Option<&Ambiguous>,
        tiler: &mut Tiler<'_, S>,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        // Spans are ranges of the caller's text, so they need origins too.
        let with_origins = S::COVERS || matches!(permission, Permission::Within(_));
        let normal = rewrites.normalizer.apply(passage.text, with_origins, &mut scratch.limits)?;
        let origin = |at: usize| passage.offset + normal.origin(at);
        rewrites.added.for_each_normalized(&normal.text, permission, &origin, &mut |part| {
            let TextPart { token, range } = part;
            if let Found::Text = token {
                let text = &normal.text[range.clone()];
                let origin = |at: usize| origin(range.start + at);
                return self.encode_normal(rewrites, text, ambiguous, &origin, tiler, scratch);
            }
            self.push_added(&normal.text, token, range, ambiguous, &origin, tiler)
        })
    }

    /// Takes an added token, found at a range of a text.
    fn push_added<S: Sink>(
        &self,
        text: &[u8],
        token: Found,
        range: Range<usize>,
        ambiguous: Option<&Ambiguous>,
        origin: &impl Fn(usize) -> usize,
        tiler: &mut Tiler<'_, S>,
    ) -> Result<ControlFlow<()>> {
        match (token, ambiguous) {
            (Found::Text, _) => Ok(ControlFlow::Continue(())),
            (Found::Other(id), Some(ambiguous)) => {
                let mut sink = RewrittenSink { tiler, origin };
                self.split_added(ambiguous, text, (id, range), &mut sink)
                    .map_err(|error| at_origin(error, origin))
            }
            (Found::Special(id) | Found::Other(id), _) => {
                tiler.start_added(id, origin(range.start))
            }
        }
    }

    /// Cuts and merges normalised text.
    fn encode_normal<S: Sink>(
        &self,
        rewrites: &Rewrites,
        text: &[u8],
        ambiguous: Option<&Ambiguous>,
        origin: &impl Fn(usize) -> usize,
        tiler: &mut Tiler<'_, S>,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        if rewrites.steps.is_empty() {
            let mut sink = RewrittenSink { tiler, origin };
            return self
                .encode_text(text, 0..text.len(), ambiguous, &mut sink, scratch)
                .map_err(|error| at_origin(error, origin));
        }
        let with_origins = S::COVERS || ambiguous.is_some();
        let (cut, pieces) = rewrites.steps.split(text, with_origins, &mut scratch.limits)?;
        let origin = |at: usize| origin(Rewritten::origin(&cut, at));
        let mut sink = RewrittenSink { tiler, origin: &origin };
        let Some(ambiguous) = ambiguous else {
            return self.encode_pieces(&cut.text, pieces, &mut sink, scratch);
        };
        let mut found = Covering::default();
        let _ = self.encode_pieces(&cut.text, pieces, &mut found, scratch)?; // it never breaks
        self.split_ambiguous(ambiguous, &cut.text, found, &mut sink)
            .map_err(|error| at_origin(error, &origin))
    }

    /// Encodes the pre-tokens that ranges of a text are.
    fn encode_pieces(
        &self,
        text: &[u8],
        pieces: Vec<Range<usize>>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut lookup = Lookup::new(self, text, sink, scratch);
        let mut end = 0;
        for piece in pieces {
            // What was cut away is nobody's.
            if (piece.start != end && lookup.flush().is_break())
                || lookup.push(piece.start, piece.end).is_break()
            {
                break;
            }
            end = piece.end;
        }
        lookup.finish()
    }
}

/// A part of the caller's text, and where it starts.
struct Passage<'t> {
    text: &'t [u8],
    offset: usize,
}

/// An error in rewritten text, with its place in the caller's.
fn at_origin(error: Error, origin: &impl Fn(usize) -> usize) -> Error {
    match error {
        Error::AmbiguousId { id, token, offset } => {
            Error::AmbiguousId { id, token, offset: origin(offset) }
        }
        other => other,
    }
}
