//! Words that are merged side by side.
//!
//! A merge waits for the ranks of its two new pairs. If several words take turns, each merges while the others
//! wait.

use super::pairs::{NONE, Pairs};
use super::short::Short;
use crate::pretoken::{Work, with_all_instructions};

/// How many words are merged at once.
pub(super) const TURNS: usize = 16;

/// Words that are merged; up to [`TURNS`] of them.
#[derive(Default)]
pub(super) struct Turns {
    words: Vec<Short>,
    count: usize,
}

impl Turns {
    /// Adds a word of at most [`super::short::SHORT`] bytes, and gives its number; none if there is no room.
    pub(super) fn add(&mut self, ids: impl Iterator<Item = u32>) -> Option<usize> {
        if self.words.is_empty() {
            self.words.resize_with(TURNS, Short::default);
        }
        let number = self.count;
        self.words.get_mut(number)?.begin(ids);
        self.count += 1;
        Some(number)
    }

    /// Merges all, and hands each to `take` with its number when it is done; then there is room again.
    pub(super) fn merge(&mut self, pairs: &Pairs, take: impl FnMut(usize, &Short)) {
        with_all_instructions(Merging { turns: self, pairs, take });
    }
}

/// What there is to do, with all instructions or with those that every processor has.
struct Merging<'t, F> {
    turns: &'t mut Turns,
    pairs: &'t Pairs,
    take: F,
}

impl<F: FnMut(usize, &Short)> Work for Merging<'_, F> {
    type Result = ();

    #[inline(always)]
    fn run(mut self) {
        let Turns { words, count } = self.turns;
        let mut numbers: [usize; TURNS] = std::array::from_fn(|number| number);
        let mut left = std::mem::take(count);
        for word in &mut words[..left] {
            word.rank_all(self.pairs);
        }
        while left > 0 {
            let mut turn = 0;
            while turn < left {
                let number = numbers[turn];
                let word = &mut words[number];
                if word.merge(self.pairs, NONE) {
                    turn += 1;
                } else {
                    (self.take)(number, word);
                    left -= 1;
                    numbers[turn] = numbers[left];
                }
            }
            for &number in &numbers[..left] {
                words[number].listen(self.pairs);
            }
        }
    }
}

#[cfg(test)]
mod tests;
