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
mod tests {
    use proptest::prelude::*;

    use super::super::merge::Scratch;
    use super::super::short::SHORT;
    use super::*;

    proptest! {
        #[test]
        fn words_that_take_turns_are_merged_as_alone(
            merges in prop::collection::vec((0u32..12, 0u32..12), 0..60),
            words in prop::collection::vec(prop::collection::vec(0u32..4, 0..=SHORT), 0..=TURNS),
            again in prop::collection::vec(prop::collection::vec(0u32..4, 0..=20), 0..=TURNS),
        ) {
            let made = |(&(left, right), rank): (&(u32, u32), u32)| (left, right, 4 + rank % 8);
            let merges: Vec<_> = merges.iter().zip(0..).map(made).collect();
            let pairs = Pairs::of_merges(&merges).unwrap();
            let (mut quick, mut plain) = (Turns::default(), Turns::default());
            for words in [&words, &again] {
                let mut alone = Scratch::default();
                let mut expected = Vec::new();
                for (number, word) in words.iter().enumerate() {
                    prop_assert_eq!(quick.add(word.iter().copied()), Some(number));
                    prop_assert_eq!(plain.add(word.iter().copied()), Some(number));
                    alone.ids.clone_from(word);
                    alone.merge_heap(&pairs, NONE);
                    expected.push(alone.ids.clone());
                }
                let mut found = [vec![Vec::new(); words.len()], vec![Vec::new(); words.len()]];
                let [by_quick, by_plain] = &mut found;
                quick.merge(&pairs, |number, word| word.ids(&mut by_quick[number]));
                let take = |number: usize, word: &Short| word.ids(&mut by_plain[number]);
                Merging { turns: &mut plain, pairs: &pairs, take }.run();
                prop_assert_eq!(&found[0], &expected);
                prop_assert_eq!(&found[1], &expected);
            }
        }
    }

    #[test]
    fn there_is_room_for_so_many_words() {
        let mut turns = Turns::default();
        for number in 0..TURNS {
            assert_eq!(turns.add([1, 2].into_iter()), Some(number));
        }
        assert_eq!(turns.add([1, 2].into_iter()), None);
        let mut count = 0;
        turns.merge(&Pairs::of_merges(&[]).unwrap(), |_, word| count += u32::from(!word.is(1)));
        assert_eq!(count as usize, TURNS);
        assert_eq!(turns.add([1].into_iter()), Some(0));
        turns.merge(&Pairs::of_merges(&[]).unwrap(), |_, word| assert!(word.is(1) && !word.is(2)));
    }
}
