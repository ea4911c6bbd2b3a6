//! Pre-tokens without the usual loop: splitting text without encoding it, and encoding pre-tokens
//! that were split elsewhere.

use std::ops::{ControlFlow, Range};

use super::Encoder;
use super::cache::MAX_BATCH;
use super::lookup::Lookup;
use super::scratch::Scratch;
use super::sink::Sink;
use crate::error::Result;
use crate::pretoken::{Bounds, Budget, MAX_BATCH_BYTES, MAX_BOUND, Pretokenizer, too_long};
use crate::reserve::push;
use crate::watch::Watch;

impl Encoder {
    /// Calls `each` with the pre-tokens of a text without special tokens, as they are encoded,
    /// until it breaks or fails.
    pub fn pretokenize(
        &self,
        text: &[u8],
        watch: &Watch,
        each: &mut impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match &self.rewrites {
            None => pretokenize(&self.pretokenizer, text, &mut Budget::new(watch.clone()), each),
            Some(rewrites) => rewrites.pretokenize(&self.pretokenizer, text, watch, each),
        }
    }

    /// The names of the engines that run the patterns, in order.
    pub fn engines(&self) -> Vec<&'static str> {
        match &self.rewrites {
            Some(rewrites) if !rewrites.steps.is_empty() => rewrites.steps.engines().collect(),
            _ => vec![self.pretokenizer.engine().name()],
        }
    }

    /// Encodes one pre-token, a range of a text.
    pub(super) fn encode_pretoken(
        &self,
        text: &[u8],
        range: Range<usize>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        self.encode_pretokens(text, std::iter::once(range), sink, scratch)
    }

    /// Encodes pre-tokens, ascending ranges of a text. Text between them is skipped.
    pub(super) fn encode_pretokens(
        &self,
        text: &[u8],
        ranges: impl Iterator<Item = Range<usize>>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut lookup = Lookup::new(self, text, sink, scratch);
        let (mut base, mut bounds) = (0, vec![0]);
        for range in ranges.filter(|range| !range.is_empty()) {
            let last = bounds.last().map_or(0, |&last| base + last as usize);
            // A batch ends where text is skipped, and when it is full.
            if range.start != last || bounds.len() > MAX_BATCH || last - base > MAX_BATCH_BYTES {
                if bounds.len() > 1 && lookup.encode(base, &bounds)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                bounds.truncate(1);
                base = range.start;
            }
            let end = u32::try_from(range.end - base).ok().filter(|&end| end <= MAX_BOUND);
            push(&mut bounds, end.ok_or_else(too_long)?)?;
        }
        if bounds.len() > 1 { lookup.encode(base, &bounds) } else { Ok(ControlFlow::Continue(())) }
    }
}

/// Calls `each` with the pre-tokens of one pattern.
pub(super) fn pretokenize(
    pretokenizer: &Pretokenizer,
    text: &[u8],
    budget: &mut Budget,
    each: &mut impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut bounds = Bounds::default();
    let mut split = pretokenizer.split(text, budget, &mut bounds)?;
    while let Some((range, _)) = split.next()?
        && each(&text[range])?.is_continue()
    {}
    Ok(())
}
