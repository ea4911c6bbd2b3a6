//! The tokens that one merge finds to the left and right of the positions it rewrites, summed per
//! token in plain arrays, so that the pair table is updated once per token, not once per position.

use super::new_pairs::PairTotal;
use super::pairs::Pair;
use super::slots::Merge;
use super::tokens::{EDGE, Token};
use crate::error::Result;
use crate::reserve::{push, reserve};

/// The neighbors on one side.
#[derive(Default)]
pub(super) struct Side {
    /// By token; all zero between merges.
    pub(super) totals: Vec<PairTotal>,
    /// The tokens found, including `EDGE`, in order of their first position.
    pub(super) tokens: Vec<Token>,
}

impl Side {
    /// Grows to hold the totals of tokens up to `token`, found at up to `positions` positions.
    fn reserve(&mut self, token: Token, positions: usize) -> Result<()> {
        let length = token as usize + 1;
        let more = length.saturating_sub(self.totals.len());
        reserve(&mut self.totals, more)?;
        self.totals.resize(length, PairTotal::default());
        reserve(&mut self.tokens, positions.min(length))
    }

    fn add(&mut self, token: Token, count: u64) {
        let total = &mut self.totals[token as usize];
        if total.occurrences == 0 {
            self.tokens.push(token);
        }
        total.add(count);
    }

    fn clear(&mut self) {
        for &token in &self.tokens {
            self.totals[token as usize] = PairTotal::default();
        }
        self.tokens.clear();
    }
}

/// The neighbors on both sides.
#[derive(Default)]
pub(super) struct Neighbors {
    pub(super) before: Side,
    pub(super) after: Side,
    /// The two neighbors of each position after the merge. A position directly followed by another
    /// has `EDGE` after it, because the second position accounts for that pair.
    pub(super) around: Vec<(Token, Token)>,
}

impl Neighbors {
    /// Grows the arrays to hold totals for tokens up to `token`, and up to `positions` positions, so
    /// that [`Neighbors::add`] does not allocate.
    pub(super) fn reserve(&mut self, token: Token, positions: usize) -> Result<()> {
        self.before.reserve(token, positions)?;
        self.after.reserve(token, positions)?;
        reserve(&mut self.around, positions)
    }

    pub(super) fn add(&mut self, before: Token, after: Token, count: u64) {
        self.before.add(before, count);
        self.after.add(after, count);
        self.around.push((before, after));
    }

    /// Removes the neighbor after the last position, which has become the left part of a new token.
    /// `after.totals` keeps it, because the merge did break that pair.
    pub(super) fn forget_last_after(&mut self) {
        if let Some(last) = self.around.last_mut() {
            last.1 = EDGE;
        }
    }

    /// Adds the neighbors found in another part of the text.
    pub(super) fn absorb(&mut self, other: &Neighbors) -> Result<()> {
        for (mine, theirs) in [(&mut self.before, &other.before), (&mut self.after, &other.after)] {
            for &token in &theirs.tokens {
                let total = &mut mine.totals[token as usize];
                if total.occurrences == 0 {
                    push(&mut mine.tokens, token)?;
                }
                total.count += theirs.totals[token as usize].count;
                total.occurrences += theirs.totals[token as usize].occurrences;
            }
        }
        Ok(())
    }

    /// Copies the indices of the new pairs from the sum that this is a part of.
    pub(super) fn copy_new_pairs(&mut self, sum: &Neighbors) {
        for (mine, sums) in [(&mut self.before, &sum.before), (&mut self.after, &sum.after)] {
            for &token in &mine.tokens {
                mine.totals[token as usize].new_pair = sums.totals[token as usize].new_pair;
            }
        }
    }

    /// The number of positions of a new pair, `(x, new)` or `(new, y)`.
    pub(super) fn places_of(&self, pair: Pair, merge: &Merge) -> usize {
        let before = &self.before.totals;
        if pair.right == merge.new {
            return before[pair.left as usize].occurrences as usize;
        }
        let positions = self.after.totals[pair.right as usize].occurrences;
        // In runs, the token after is gone again: see `Trainer::update_counts`.
        let gone =
            if pair.right == merge.pair.left { before[merge.new as usize].occurrences } else { 0 };
        (positions - gone) as usize
    }

    /// The indices of the new pairs `(x, new)` and `(new, y)`.
    pub(super) fn new_pairs(&self, x: Token, y: Token) -> (u32, u32) {
        (self.before.totals[x as usize].new_pair, self.after.totals[y as usize].new_pair)
    }

    pub(super) fn clear(&mut self) {
        self.before.clear();
        self.after.clear();
        self.around.clear();
    }
}
