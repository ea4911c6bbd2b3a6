//! Encoding with a vocabulary that changes text on the way: added tokens are found in the text as it came,
//! the rest is normalised, more added tokens are found, the rest of that is cut and merged.
//!
//! What a token covers is told by where it starts in the caller's text: it reaches to the start of the next,
//! the first starts at 0 and the last ends at the end, so tokens tile the text even where some of it was
//! dropped or made up.

use std::ops::{ControlFlow, Range};

use super::lookup::Lookup;
use super::merge::Scratch;
use super::sink::push_each;
use super::{Allowed, Encoder, Sink};
use crate::decode::TokenTable;
use crate::error::{Error, Result};
use crate::pretoken::Pretokenizer;
use crate::rewrite::{
    AddedToken, AddedTokens, Limits, Normalizer, Permission, Rewritten, SplitChain, TextPart,
    check_steps,
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

    /// Refuses a text that shows a special token only when it is normalised.
    pub(super) fn refuse(&self, text: &[u8], refused: Option<&[u32]>, watch: &Watch) -> Result<()> {
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
            Allowed::None => Permission::Nowhere,
            Allowed::All => Permission::Everywhere,
            Allowed::Some(choice) => Permission::Ids(&choice.ids),
            Allowed::Within(ranges) => Permission::Within(ranges),
        };
        let mut tiler = Tiler { sink, open: None };
        let flow = rewrites.added.for_each_raw(text, permission, &mut |part| match part {
            TextPart { id: Some(id), range } => tiler.start_added(id, range.start),
            TextPart { id: None, range } => self.encode_passage(
                rewrites,
                &text[range.clone()],
                range.start,
                permission,
                &mut tiler,
                scratch,
            ),
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
        passage: &[u8],
        offset: usize,
        permission: Permission<'_>,
        tiler: &mut Tiler<'_, S>,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        // Spans are ranges of the caller's text, so they need origins too.
        let with_origins = S::COVERS || matches!(permission, Permission::Within(_));
        let normal = rewrites.normalizer.apply(passage, with_origins, &mut scratch.limits)?;
        let origin = |at: usize| offset + normal.origin(at);
        rewrites.added.for_each_normalized(
            &normal.text,
            permission,
            &origin,
            &mut |part| match part {
                TextPart { id: Some(id), range } => tiler.start_added(id, origin(range.start)),
                TextPart { id: None, range } => {
                    let text = &normal.text[range.clone()];
                    let origin = |at: usize| origin(range.start + at);
                    self.encode_normal(rewrites, text, &origin, tiler, scratch)
                }
            },
        )
    }

    /// Cuts and merges normalised text.
    fn encode_normal<S: Sink>(
        &self,
        rewrites: &Rewrites,
        text: &[u8],
        origin: &impl Fn(usize) -> usize,
        tiler: &mut Tiler<'_, S>,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        if rewrites.steps.is_empty() {
            let mut sink = RewrittenSink { tiler, origin };
            return self.encode_plain(text, 0..text.len(), &mut sink, scratch);
        }
        let (cut, pieces) = rewrites.steps.split(text, S::COVERS, &mut scratch.limits)?;
        let origin = |at: usize| origin(Rewritten::origin(&cut, at));
        let mut sink = RewrittenSink { tiler, origin: &origin };
        let mut lookup = Lookup::new(self, &cut.text, &mut sink, scratch);
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
