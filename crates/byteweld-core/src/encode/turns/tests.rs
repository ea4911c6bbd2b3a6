//! Interleaved merging against merging one by one.

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
                alone.merge_heap(&pairs, NONE).unwrap();
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
