//! Merging a short sequence, a step at a time.
//!
//! For each merge all pairs are looked through: quadratic, and fastest for the short sequences that pre-tokens
//! are. What a step does depends on the word only where the merging ends: a jump that the processor guesses wrong
//! would cost as much as the step. A merge makes two new pairs, and their ranks take time to come from memory. So
//! a step ends where they are asked for, and the next one begins with them: several words can take turns, and
//! wait together (`lookup.rs`).

use super::pairs::{Asked, NONE, Pairs, Ranks};

/// Places: as many as a word has bits.
const PLACES: usize = 64;

/// The longest sequence that is merged so: there is a place on each side of it.
pub(super) const SHORT: usize = PLACES - 2;

/// Pairs are looked through by so many at once.
const ROW: usize = 16;

/// The rank of a pair and, below it, its place: the lowest is the pair to merge, of equal ranks the leftmost. It is
/// a number of a kind of which all processors compare several at once, and exact: between 2^52 and 2^53.
type Ranked = f64;

#[inline(always)]
const fn ranked(rank: u32, place: usize) -> Ranked {
    f64::from_bits((52 + 1023) << 52 | (rank as u64) << 6 | place as u64)
}

#[inline(always)]
fn rank_and_place(ranked: Ranked) -> (u32, usize) {
    ((ranked.to_bits() >> 6) as u32, ranked.to_bits() as usize % PLACES)
}

const UNRANKED: [Ranked; PLACES] = {
    let mut unranked = [0.0; PLACES];
    let mut place = 0;
    while place < PLACES {
        unranked[place] = ranked(NONE, place);
        place += 1;
    }
    unranked
};

/// A sequence that is being merged. Ids stay in their places; of two that merge, the right one is no longer there.
/// On each side is a place with no id, so that every id has neighbours.
pub(super) struct Short {
    ids: [u32; PLACES],
    /// By place: the pair that starts there.
    pairs: [Ranked; PLACES],
    /// So many ids it began with.
    length: usize,
    /// Bit by bit: the places that are there.
    there: u64,
    /// The new pairs of the last merge, and where they start.
    asked: [(u32, Asked); 2],
}

impl Default for Short {
    fn default() -> Self {
        Self {
            ids: [NONE; PLACES],
            pairs: UNRANKED,
            length: 0,
            there: 0,
            asked: [(0, Asked::NOTHING); 2],
        }
    }
}

impl Short {
    /// Begins with at most [`SHORT`] ids.
    #[inline]
    pub(super) fn begin(&mut self, ids: impl Iterator<Item = u32>) {
        let mut length = 0;
        for (room, id) in self.ids[1..=SHORT].iter_mut().zip(ids) {
            *room = id;
            length += 1;
        }
        self.length = length;
        self.there = (4u64 << length).wrapping_sub(1);
        self.ids[length + 1] = NONE;
    }

    /// Looks up the ranks of all pairs.
    #[inline(always)]
    pub(super) fn rank_all(&mut self, pairs: &Pairs) {
        let rows = self.rows();
        let unranked = &UNRANKED.as_chunks::<ROW>().0[..rows];
        for (row, unranked) in self.pairs.as_chunks_mut::<ROW>().0.iter_mut().zip(unranked) {
            *row = *unranked;
        }
        let (mut place, mut left) = (1, self.ids[1]);
        for &right in &self.ids[2..=self.length.max(1)] {
            self.pairs[place % PLACES] = ranked(pairs.rank(left, right), place);
            (place, left) = (place + 1, right);
        }
    }

    /// How many rows of pairs there are.
    #[inline(always)]
    fn rows(&self) -> usize {
        (self.length + 2).div_ceil(ROW)
    }

    /// Takes the ranks that the last merge asked for. (If words take turns, all do so before the next one merges:
    /// what was just written piece by piece is slow to be read in one.)
    #[inline(always)]
    pub(super) fn listen(&mut self, pairs: &Pairs) {
        for (place, asked) in self.asked {
            let place = place as usize % PLACES;
            self.pairs[place] = ranked(pairs.answer(asked), place);
        }
    }

    /// Merges the pair of the lowest rank below `limit`, of equal ones the leftmost. Says whether there was one.
    #[inline(always)]
    pub(super) fn merge(&mut self, pairs: &Pairs, limit: u32) -> bool {
        // At place 0 is no pair to merge.
        let (rank, at) = rank_and_place(self.lowest(ranked(limit, 0)));
        if at == 0 {
            return false;
        }
        let behind = self.there & u64::MAX << 1 << at;
        let right = behind.trailing_zeros() as usize % PLACES;
        let next = (behind & behind.wrapping_sub(1)).trailing_zeros() as usize % PLACES;
        let before = (self.there & ((1 << at) - 1) | 1).ilog2() as usize;
        let id = pairs.made(rank);
        self.ids[at] = id;
        self.there &= !(1 << right);
        self.pairs[right] = UNRANKED[right];
        let (with_next, with_before) =
            (pairs.ask(id, self.ids[next]), pairs.ask(self.ids[before], id));
        self.asked = [(at as u32, with_next), (before as u32, with_before)];
        true
    }

    /// The lowest of `limit` and all pairs.
    #[inline(always)]
    fn lowest(&self, limit: Ranked) -> Ranked {
        let lower = |a: Ranked, b: Ranked| if a < b { a } else { b };
        let mut lowest = [limit; 4];
        for row in &self.pairs.as_chunks::<ROW>().0[..self.rows()] {
            for four in row.as_chunks::<4>().0 {
                for (lowest, pair) in lowest.iter_mut().zip(four) {
                    *lowest = lower(*pair, *lowest);
                }
            }
        }
        let [a, b, c, d] = lowest;
        lower(lower(a, b), lower(c, d))
    }

    /// Whether only this id is there.
    pub(super) fn is(&self, id: u32) -> bool {
        self.there.count_ones() == 3 && self.ids[1] == id
    }

    /// Puts the ids that are there into `into`, and nothing else.
    #[inline(always)]
    pub(super) fn ids(&self, into: &mut Vec<u32>) {
        into.clear();
        let mut left = self.there & self.there.wrapping_sub(1); // without the first place
        while left & left.wrapping_sub(1) != 0 {
            into.push(self.ids[left.trailing_zeros() as usize % PLACES]);
            left &= left - 1;
        }
    }
}
