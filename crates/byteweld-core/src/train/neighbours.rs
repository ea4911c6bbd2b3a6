//! What one merge finds to the left and to the right of the places it rewrites, added up per token
//! in plain arrays, so that the table of pairs is touched once per token and not once per place.

use super::births::Total;
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
