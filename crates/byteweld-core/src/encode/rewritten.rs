//! Encodes with a vocabulary that rewrites text: added tokens are found in the original text, the
//! text between them is normalized, more added tokens are found in the result, and the rest is
//! split into pre-tokens and merged.
//!
//! A token covers the original text from its own start to the start of the next token. The first
//! one starts at 0 and the last one ends at the end, so that tokens cover the text even where some
//! of it was dropped or inserted.

use std::ops::{ControlFlow, Range};

use super::Encoder;
use super::ambiguous_ids::AmbiguousIds;
use super::pretokens::pretokenize;
use super::scratch::Scratch;
use super::sink::{Sink, WithRanges, push_each};
use super::specials::Allowed;
use crate::decode::TokenTable;
use crate::error::{Error, Result};
use crate::pretoken::Pretokenizer;
use crate::rewrite::{
    AddedFinder, AddedToken, AddedTokens, Found, Limits, Normalizer, Permission, Rewritten,
    SplitChain, TextPart, check_steps,
};
use crate::watch::Watch;

/// How a vocabulary rewrites text.
pub(super) struct Rewrites {
    added: AddedTokens,
    normalizer: Normalizer,
    /// The steps that split text; the pattern does if there are none.
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

    /// Rejects a text that contains a special token only once it is normalized: any, or one of
    /// those to be found.
    pub(super) fn refuse(
        &self,
        text: &[u8],
        rejected: Option<&AddedFinder>,
        watch: &Watch,
    ) -> Result<()> {
        if self.normalizer.is_empty() {
            return Ok(());
        }
        let mut limits = Limits::new(text.len(), watch.clone());
        let normal = self.normalizer.apply(text, false, &mut limits)?;
        match self.added.first_normalized_special(&normal.text, rejected) {
            Some(token) => Err(Error::SpecialToken { token: token.text.clone(), offset: 0 }),
            None => Ok(()),
        }
    }

    /// Calls `each` with the pre-tokens of a text without added tokens.
    pub(super) fn pretokenize(
        &self,
        pretokenizer: &Pretokenizer,
        text: &[u8],
        watch: &Watch,
        each: &mut impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut limits = Limits::new(text.len(), watch.clone());
        let normal = self.normalizer.apply(text, false, &mut limits)?;
        if self.steps.is_empty() {
            return pretokenize(pretokenizer, &normal.text, &mut limits.budget, each);
        }
        let (split, pretokens) = self.steps.split(&normal.text, false, &mut limits)?;
        for pretoken in pretokens {
            if each(&split.text[pretoken])?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Receives tokens with their starts, and passes them on with the ranges that they cover.
struct Coverer<'s, S> {
    sink: &'s mut S,
    /// The last token and its start; its end is not known yet.
    open: Option<(u32, usize)>,
}

impl<S: Sink> Coverer<'_, S> {
    fn push_added(&mut self, id: u32, start: usize) -> Result<ControlFlow<()>> {
        self.sink.reserve(2)?; // one may be open
        Ok(self.push(id, start))
    }

    fn push(&mut self, id: u32, start: usize) -> ControlFlow<()> {
        if !S::USES_RANGES {
            return self.sink.push(id, start..start);
        }
        let Some((previous, previous_start)) = self.open else {
            self.open = Some((id, 0)); // the first one starts at 0
            return ControlFlow::Continue(());
        };
        let start = start.max(previous_start);
        self.open = Some((id, start));
        self.sink.push(previous, previous_start..start)
    }

    fn finish(self, length: usize) {
        if let Some((id, start)) = self.open {
            let _ = self.sink.push(id, start..length.max(start));
        }
    }
}

/// Receives the tokens of rewritten text.
struct RewrittenSink<'t, 's, 'o, S, O> {
    coverer: &'t mut Coverer<'s, S>,
    /// Maps an offset in the rewritten text to one in the original.
    origin: &'o O,
}

impl<S: Sink, O: Fn(usize) -> usize> Sink for RewrittenSink<'_, '_, '_, S, O> {
    const USES_RANGES: bool = S::USES_RANGES;

    fn reserve(&mut self, tokens: usize) -> Result<()> {
        self.coverer.sink.reserve(tokens + 1) // one may be open
    }

    fn push(&mut self, id: u32, range: Range<usize>) -> ControlFlow<()> {
        self.coverer.push(id, (self.origin)(range.start))
    }

    fn push_all(
        &mut self,
        ids: &[u32],
        range: Range<usize>,
        tokens: &TokenTable,
    ) -> ControlFlow<()> {
        if !S::USES_RANGES {
            return self.coverer.sink.push_all(ids, range, tokens);
        }
        push_each(self, ids, range, tokens)
    }
}

impl Encoder {
    /// Encodes a text that `rewrites` apply to.
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
            Allowed::Some(choice) => Permission::Ids(&choice.set.ids),
            Allowed::Within(ranges) => Permission::Within(ranges),
        };
        let ambiguous = self.ambiguous_for(allowed);
        let coverer = Coverer { sink, open: None };
        let mut call = Call { encoder: self, rewrites, permission, ambiguous, coverer, scratch };
        if call.encode(text)?.is_continue() {
            call.coverer.finish(text.len());
        }
        Ok(())
    }
}

/// One call of [`Encoder::encode_rewritten`].
struct Call<'c, S> {
    encoder: &'c Encoder,
    rewrites: &'c Rewrites,
    /// Where special tokens are recognized.
    permission: Permission<'c>,
    /// The ids that other text must not become.
    ambiguous: Option<&'c AmbiguousIds>,
    coverer: Coverer<'c, S>,
    scratch: &'c mut Scratch,
}

impl<S: Sink> Call<'_, S> {
    /// Finds added tokens in the original text.
    fn encode(&mut self, text: &[u8]) -> Result<ControlFlow<()>> {
        let (rewrites, permission) = (self.rewrites, self.permission);
        rewrites.added.for_each_raw(text, permission, &mut |TextPart { token, range }| {
            if let Found::Text = token {
                return self.encode_passage(&text[range.clone()], range.start);
            }
            self.push_added(text, token, range, &|at| at)
        })
    }

    /// Normalizes a passage between two added tokens, at an offset of the text, and finds more
    /// added tokens.
    fn encode_passage(&mut self, passage: &[u8], offset: usize) -> Result<ControlFlow<()>> {
        let rewrites = self.rewrites;
        let permission = self.permission.of_passage(offset..offset + passage.len());
        // Trusted ranges are ranges of the original text, so they need origins, too.
        let with_origins = S::USES_RANGES || matches!(permission, Permission::Within(_));
        let normal = rewrites.normalizer.apply(passage, with_origins, &mut self.scratch.limits)?;
        let text = &normal.text[..];
        let origin = |at: usize| offset + normal.origin(at);
        let mut each = |TextPart { token, range }: TextPart| {
            if let Found::Text = token {
                let origin = |at: usize| origin(range.start + at);
                return self.encode_normal(&text[range.clone()], &origin);
            }
            self.push_added(text, token, range, &origin)
        };
        rewrites.added.for_each_normalized(text, permission, &origin, &mut each)
    }

    /// Emits an added token, found at a range of a text.
    fn push_added(
        &mut self,
        text: &[u8],
        token: Found,
        range: Range<usize>,
        origin: &impl Fn(usize) -> usize,
    ) -> Result<ControlFlow<()>> {
        match (token, self.ambiguous) {
            (Found::Text, _) => Ok(ControlFlow::Continue(())),
            (Found::Other(id), Some(ambiguous)) => {
                let mut sink = RewrittenSink { coverer: &mut self.coverer, origin };
                self.encoder
                    .split_added(ambiguous, text, (id, range), &mut sink)
                    .map_err(|error| at_origin(error, origin))
            }
            (Found::Special(id) | Found::Other(id), _) => {
                self.coverer.push_added(id, origin(range.start))
            }
        }
    }

    /// Splits normalized text into pre-tokens and encodes them.
    fn encode_normal(
        &mut self,
        text: &[u8],
        origin: &impl Fn(usize) -> usize,
    ) -> Result<ControlFlow<()>> {
        let Self { encoder, rewrites, ambiguous, coverer, scratch, .. } = self;
        if rewrites.steps.is_empty() {
            let mut sink = RewrittenSink { coverer, origin };
            return encoder
                .encode_text(text, 0..text.len(), *ambiguous, &mut sink, scratch)
                .map_err(|error| at_origin(error, origin));
        }
        let with_origins = S::USES_RANGES || ambiguous.is_some();
        let (split, pretokens) = rewrites.steps.split(text, with_origins, &mut scratch.limits)?;
        let pretokens = pretokens.into_iter();
        let origin = |at: usize| origin(Rewritten::origin(&split, at));
        let mut sink = RewrittenSink { coverer, origin: &origin };
        let Some(ambiguous) = ambiguous else {
            return encoder.encode_pretokens(&split.text, pretokens, &mut sink, scratch);
        };
        let mut found = WithRanges::default();
        let _ = encoder.encode_pretokens(&split.text, pretokens, &mut found, scratch)?; // never breaks
        encoder
            .split_ambiguous(ambiguous, &split.text, found, &mut sink)
            .map_err(|error| at_origin(error, &origin))
    }
}

/// An error in rewritten text, with its offset mapped to the original.
fn at_origin(error: Error, origin: &impl Fn(usize) -> usize) -> Error {
    match error {
        Error::AmbiguousId { id, token, offset } => {
            Error::AmbiguousId { id, token, offset: origin(offset) }
        }
        other => other,
    }
}
