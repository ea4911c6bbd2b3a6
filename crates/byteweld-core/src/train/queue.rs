//! A heap of pairs, ordered by count and then by the tie-break.
//!
//! `std::collections::BinaryHeap` does not fit: comparing two entries may need the bytes of their
//! tokens, so every entry would have to carry a copy of them.

use std::cmp::Ordering;

use super::TieBreak;
use super::pairs::Pair;
use super::tokens::Tokens;
use crate::error::Result;
use crate::reserve::push;

/// Children per entry. Four fill a cache line and make the heap half as deep as two would.
const ARITY: usize = 4;

/// A pair waiting to be merged.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The pair's count when the entry was written, an upper bound of its current count.
    pub(super) count: u64,
    pub(super) pair: Pair,
}

/// The heap: no entry comes before its parent, `(index - 1) / ARITY`.
pub(super) struct Queue {
    entries: Vec<Entry>,
    tie_break: TieBreak,
}

impl Queue {
    pub(super) fn new(tie_break: TieBreak) -> Self {
        Queue { entries: Vec::new(), tie_break }
    }

    pub(super) fn push(&mut self, entry: Entry, tokens: &Tokens) -> Result<()> {
        let mut hole = self.entries.len();
        push(&mut self.entries, entry)?;
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if !self.is_before(&entry, &self.entries[parent], tokens) {
                break;
            }
            self.entries[hole] = self.entries[parent];
            hole = parent;
        }
        self.entries[hole] = entry;
        Ok(())
    }

    /// The entry that comes first.
    pub(super) fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// Removes the first entry.
    pub(super) fn remove_first(&mut self, tokens: &Tokens) {
        match self.entries.pop() {
            Some(last) if !self.entries.is_empty() => self.sift_down(last, tokens),
            _ => {}
        }
    }

    /// Lowers the count of the first entry and restores the heap order.
    pub(super) fn lower_first(&mut self, count: u64, tokens: &Tokens) {
        if let Some(first) = self.entries.first() {
            self.sift_down(Entry { count, ..*first }, tokens);
        }
    }

    /// Inserts `entry` from the root, which is free.
    fn sift_down(&mut self, entry: Entry, tokens: &Tokens) {
        let mut hole = 0;
        loop {
            let children = (hole * ARITY + 1)..self.entries.len().min(hole * ARITY + 1 + ARITY);
            let best = children.reduce(|best, child| {
                if self.is_before(&self.entries[child], &self.entries[best], tokens) {
                    child
                } else {
                    best
                }
            });
            match best {
                Some(best) if self.is_before(&self.entries[best], &entry, tokens) => {
                    self.entries[hole] = self.entries[best];
                    hole = best;
                }
                _ => break,
            }
        }
        self.entries[hole] = entry;
    }

    /// Whether `a` is merged before `b`: the larger count first, then the tie-break.
    pub(super) fn is_before(&self, a: &Entry, b: &Entry, tokens: &Tokens) -> bool {
        if a.count != b.count {
            return a.count > b.count;
        }
        let (a, b) = (a.pair, b.pair);
        let by_bytes =
            || tokens.compare(a.left, b.left).then_with(|| tokens.compare(a.right, b.right));
        match self.tie_break {
            TieBreak::SmallestIds => tokens.ids(a) < tokens.ids(b),
            TieBreak::GreatestBytes => by_bytes() == Ordering::Greater,
            TieBreak::SmallestBytes => by_bytes() == Ordering::Less,
        }
    }
}
