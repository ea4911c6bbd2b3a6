//! What one merge finds to the left and to the right of the places it rewrites, added up per token
//! in plain arrays, so that the table of pairs is touched once per token and not once per place.

use super::births::Total;
use super::pairs::Pair;
use super::slots::Merge;
use super::tokens::{EDGE, Token};

/// The neighbours on one side.
#[derive(Default)]
pub(super) struct Side {
    /// By token; all zero between merges.
    pub(super) totals: Vec<Total>,
    /// The tokens found, `EDGE` among them, in the order of their first place.
    pub(super) tokens: Vec<Token>,
}

impl Side {
    fn add(&mut self, token: Token, count: u64) {
        let total = &mut self.totals[token as usize];
        if total.places == 0 {
            self.tokens.push(token);
        }
        total.add(count);
    }

    fn clear(&mut self) {
        for &token in &self.tokens {
            self.totals[token as usize] = Total::default();
        }
        self.tokens.clear();
    }
}

/// The neighbours on both sides.
#[derive(Default)]
pub(super) struct Neighbours {
    pub(super) before: Side,
    pub(super) after: Side,
    /// The two neighbours of each place in turn, as they are when the merge is done. A place
    /// directly followed by another has `EDGE` after it, since that pair is the second place's to
    /// tell.
    pub(super) around: Vec<(Token, Token)>,
}

impl Neighbours {
    /// Makes room for the numbers up to `token`.
    pub(super) fn make_room_for(&mut self, token: Token) {
        self.before.totals.resize(token as usize + 1, Total::default());
        self.after.totals.resize(token as usize + 1, Total::default());
    }

    pub(super) fn add(&mut self, before: Token, after: Token, count: u64) {
        self.before.add(before, count);
        self.after.add(after, count);
        self.around.push((before, after));
    }

    /// Takes back the last place's neighbour after it, which has become the left part of a new
    /// token. `after.totals` keeps it: that pair was broken all the same.
    pub(super) fn forget_last_after(&mut self) {
        if let Some(last) = self.around.last_mut() {
            last.1 = EDGE;
        }
    }

    /// Adds what was found in another part of the text.
    pub(super) fn absorb(&mut self, other: &Neighbours) {
        for (mine, theirs) in [(&mut self.before, &other.before), (&mut self.after, &other.after)] {
            for &token in &theirs.tokens {
                let total = &mut mine.totals[token as usize];
                if total.places == 0 {
                    mine.tokens.push(token);
                }
                total.count += theirs.totals[token as usize].count;
                total.places += theirs.totals[token as usize].places;
            }
        }
    }

    /// Takes over the births of a sum that this was a part of.
    pub(super) fn take_births(&mut self, sum: &Neighbours) {
        for (mine, sums) in [(&mut self.before, &sum.before), (&mut self.after, &sum.after)] {
            for &token in &mine.tokens {
                mine.totals[token as usize].birth = sums.totals[token as usize].birth;
            }
        }
    }

    /// How many of the places are those of a new pair, `(x, new)` or `(new, y)`.
    pub(super) fn places_of(&self, pair: Pair, merge: &Merge) -> usize {
        let before = &self.before.totals;
        if pair.right == merge.new {
            return before[pair.left as usize].places as usize;
        }
        let places = self.after.totals[pair.right as usize].places;
        // In runs, what followed is gone again: see `Trainer::settle`.
        let gone =
            if pair.right == merge.pair.left { before[merge.new as usize].places } else { 0 };
        (places - gone) as usize
    }

    /// The births of `(x, new)` and `(new, y)`.
    pub(super) fn births(&self, x: Token, y: Token) -> (u32, u32) {
        (self.before.totals[x as usize].birth, self.after.totals[y as usize].birth)
    }

    pub(super) fn clear(&mut self) {
        self.before.clear();
        self.after.clear();
        self.around.clear();
    }
}
