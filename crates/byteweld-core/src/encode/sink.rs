//! Where tokens go as they are found: a list of ids, a list with offsets, a count.

use std::ops::{ControlFlow, Range};

use crate::cpu::advise_huge_pages;
use crate::decode::TokenTable;
use crate::error::Result;
use crate::reserve::reserve;

/// Space for this many ids is asked for in huge pages: getting small ones from the system, one by one,
/// takes up to a quarter of the time.
const MANY_TOKENS: usize = 1 << 20;

/// Receives tokens in order.
pub trait Sink {
    /// Whether it uses the ranges of tokens. If not, they may be wrong, which saves finding them.
    const USES_RANGES: bool = true;

    /// Reserves space for more tokens, or fails. Called before tokens are pushed.
    fn reserve(&mut self, _tokens: usize) -> Result<()> {
        Ok(())
    }

    /// Receives a token and the range of the text that it covers. `Break` ends the encoding.
    fn push(&mut self, id: u32, range: Range<usize>) -> ControlFlow<()>;

    /// Receives tokens whose bytes are a range of the text.
    fn push_all(
        &mut self,
        ids: &[u32],
        range: Range<usize>,
        tokens: &TokenTable,
    ) -> ControlFlow<()> {
        push_each(self, ids, range, tokens)
    }
}

/// Reserves space in a sink and pushes tokens whose bytes are a range of the text.
#[inline]
pub(super) fn emit<S: Sink>(
    sink: &mut S,
    ids: &[u32],
    range: Range<usize>,
    tokens: &TokenTable,
) -> Result<ControlFlow<()>> {
    sink.reserve(ids.len())?;
    Ok(sink.push_all(ids, range, tokens))
}

/// Reserves space in a sink and pushes one token.
#[inline]
pub(super) fn emit_one<S: Sink>(
    sink: &mut S,
    id: u32,
    range: Range<usize>,
) -> Result<ControlFlow<()>> {
    sink.reserve(1)?;
    Ok(sink.push(id, range))
}

/// Pushes tokens, whose bytes are a range of the text, one by one.
pub(super) fn push_each<S: Sink + ?Sized>(
    sink: &mut S,
    ids: &[u32],
    range: Range<usize>,
    tokens: &TokenTable,
) -> ControlFlow<()> {
    let mut start = range.start;
    for &id in ids {
        let end = start + tokens.len_of(id);
        sink.push(id, start..end)?;
        start = end;
    }
    ControlFlow::Continue(())
}

impl Sink for Vec<u32> {
    const USES_RANGES: bool = false;

    #[inline]
    fn reserve(&mut self, tokens: usize) -> Result<()> {
        reserve(self, tokens)?;
        if tokens >= MANY_TOKENS {
            advise_huge_pages(self.spare_capacity_mut());
        }
        Ok(())
    }

    fn push(&mut self, id: u32, _: Range<usize>) -> ControlFlow<()> {
        Vec::push(self, id);
        ControlFlow::Continue(())
    }

    #[inline]
    fn push_all(&mut self, ids: &[u32], _: Range<usize>, _: &TokenTable) -> ControlFlow<()> {
        self.extend_from_slice(ids);
        ControlFlow::Continue(())
    }
}

/// Ids with the range of the text that each covers.
#[derive(Default)]
pub(super) struct WithRanges(pub(super) Vec<(u32, Range<usize>)>);

impl Sink for WithRanges {
    fn reserve(&mut self, tokens: usize) -> Result<()> {
        reserve(&mut self.0, tokens)
    }

    fn push(&mut self, id: u32, range: Range<usize>) -> ControlFlow<()> {
        self.0.push((id, range));
        ControlFlow::Continue(())
    }
}

/// Ids with the byte offset where each ends. The first starts at 0, so they cover the text.
#[derive(Default)]
pub struct WithEnds {
    /// The ids.
    pub ids: Vec<u32>,
    /// Where each ends.
    pub ends: Vec<usize>,
}

impl Sink for WithEnds {
    fn reserve(&mut self, tokens: usize) -> Result<()> {
        reserve(&mut self.ids, tokens)?;
        reserve(&mut self.ends, tokens)
    }

    fn push(&mut self, id: u32, range: Range<usize>) -> ControlFlow<()> {
        self.ids.push(id);
        self.ends.push(range.end);
        ControlFlow::Continue(())
    }
}

/// Counts tokens.
#[derive(Default)]
pub struct Total {
    /// Number of tokens.
    pub tokens: usize,
}

impl Sink for Total {
    const USES_RANGES: bool = false;

    #[inline]
    fn push(&mut self, _: u32, _: Range<usize>) -> ControlFlow<()> {
        self.tokens += 1;
        ControlFlow::Continue(())
    }

    #[inline]
    fn push_all(&mut self, ids: &[u32], _: Range<usize>, _: &TokenTable) -> ControlFlow<()> {
        self.tokens += ids.len();
        ControlFlow::Continue(())
    }
}

/// Counts tokens, up to a limit, and the bytes that they cover.
pub struct Counter {
    /// Number of tokens; at most `limit`.
    pub tokens: usize,
    /// Number of bytes that they cover.
    pub bytes: usize,
    /// Encoding stops before it exceeds this many tokens.
    pub limit: usize,
    /// Whether there are more tokens than the limit.
    pub passed: bool,
}

impl Counter {
    /// Counts to a limit.
    pub fn new(limit: usize) -> Self {
        Self { tokens: 0, bytes: 0, limit, passed: false }
    }
}

impl Sink for Counter {
    fn push(&mut self, _: u32, range: Range<usize>) -> ControlFlow<()> {
        if self.tokens == self.limit {
            self.passed = true;
            return ControlFlow::Break(());
        }
        self.tokens += 1;
        self.bytes += range.len();
        ControlFlow::Continue(())
    }

    #[inline]
    fn push_all(
        &mut self,
        ids: &[u32],
        range: Range<usize>,
        tokens: &TokenTable,
    ) -> ControlFlow<()> {
        if ids.len() <= self.limit - self.tokens {
            self.tokens += ids.len();
            self.bytes += range.len();
            return ControlFlow::Continue(());
        }
        push_each(self, ids, range, tokens) // stops at the limit
    }
}
