//! Where tokens go as they are found: a list of ids, a count, a list with ends, a limit.

use std::ops::ControlFlow;

/// Takes tokens one by one, in order.
pub trait Sink {
    /// Whether it looks at how many bytes a token covers; where it does not, nobody needs to find out.
    const COVERS: bool = true;

    /// Takes a token and how many bytes of the text it covers; `Break` ends the encoding.
    fn push(&mut self, id: u32, covered: usize) -> ControlFlow<()>;
}

impl Sink for Vec<u32> {
    const COVERS: bool = false;

    fn push(&mut self, id: u32, _: usize) -> ControlFlow<()> {
        Vec::push(self, id);
        ControlFlow::Continue(())
    }
}

/// Ids with the byte offset where each one ends; the first starts at 0, so they tile the text.
#[derive(Default)]
pub struct WithEnds {
    /// The ids.
    pub ids: Vec<u32>,
    /// Where each ends.
    pub ends: Vec<usize>,
}

impl Sink for WithEnds {
    fn push(&mut self, id: u32, covered: usize) -> ControlFlow<()> {
        self.ids.push(id);
        self.ends.push(self.ends.last().unwrap_or(&0) + covered);
        ControlFlow::Continue(())
    }
}

/// Counts tokens, up to a limit, and the bytes that they cover.
pub struct Counter {
    /// Tokens taken; at most `limit`.
    pub tokens: usize,
    /// Bytes that they cover.
    pub bytes: usize,
    /// Stop before passing this many tokens.
    pub limit: usize,
    /// Whether there was a token more than the limit.
    pub passed: bool,
}

impl Counter {
    /// Counts to a limit.
    pub fn new(limit: usize) -> Self {
        Self { tokens: 0, bytes: 0, limit, passed: false }
    }
}

impl Sink for Counter {
    fn push(&mut self, _: u32, covered: usize) -> ControlFlow<()> {
        if self.tokens == self.limit {
            self.passed = true;
            return ControlFlow::Break(());
        }
        self.tokens += 1;
        self.bytes += covered;
        ControlFlow::Continue(())
    }
}
