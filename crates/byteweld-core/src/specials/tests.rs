use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::testing::cases;

/// Leftmost, then longest, by trying every special token at every offset.
fn naive(texts: &[Vec<u8>], text: &[u8], from: usize) -> Option<Occurrence> {
    (from..text.len()).find_map(|start| {
        let matching = (0..texts.len()).filter(|&index| text[start..].starts_with(&texts[index]));
        let index = matching.max_by_key(|&index| (texts[index].len(), usize::MAX - index))?;
        Some(Occurrence { index, start, end: start + texts[index].len() })
    })
}

fn word(letters: &'static [u8], longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(letters), 1..=longest)
}

fn sets() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let periodic = (word(b"ab", 3), 1..9usize).prop_map(|(period, times)| period.repeat(times));
    prop_oneof![
        prop::collection::vec(word(b"a", 9), 0..6),
        prop::collection::vec(word(b"ab", 9), 0..8),
        prop::collection::vec(word(b"abc", 4), 0..12),
        prop::collection::vec(periodic, 0..6),
    ]
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn both_finders_find_the_leftmost_and_longest(
        texts in sets(),
        text in word(b"abc", 60),
        step in prop::option::of(1..4usize),
    ) {
        for short in [0, MAX_SHORT_BYTES] {
            let set = Specials::with_short(&texts, short).unwrap();
            let mut search = set.search(&text);
            let mut from = 0;
            loop {
                let found = search.next(from);
                prop_assert_eq!(found, naive(&texts, &text, from));
                let Some(found) = found else { break };
                from = step.map_or(found.end, |step| found.start + step);
                if from > text.len() {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_special_token_lies_across_an_offset_if_any_occurrence_does(
        texts in sets(), text in word(b"abc", 30), offset in 0..30usize,
    ) {
        let offset = offset.min(text.len());
        let expected = texts.iter().any(|special| {
            (0..offset).any(|at| text[at..].starts_with(special) && at + special.len() > offset)
        });
        for short in [0, MAX_SHORT_BYTES] {
            let set = Specials::with_short(&texts, short).unwrap();
            prop_assert_eq!(set.lies_across(&text, offset), expected);
        }
    }
}

#[test]
fn matches_in_every_block_of_a_long_text_are_found() {
    let special = b"x".repeat(MAX_SHORT_BYTES + 1);
    let set = Specials::new(&[&special[..], b"ab"]).unwrap();
    let text = [b".".repeat(BLOCK - 1), b"ab".to_vec(), special, b"..ab".repeat(BLOCK)].concat();
    let mut search = set.search(&text);
    let (mut from, mut found) = (0, Vec::new());
    while let Some(one) = search.next(from) {
        found.push((one.index, one.start));
        from = one.end;
    }
    let tail = BLOCK + 1 + MAX_SHORT_BYTES + 1;
    let mut expected = vec![(1, BLOCK - 1), (0, BLOCK + 1)];
    expected.extend((0..BLOCK).map(|n| (1, tail + 4 * n + 2)));
    assert_eq!(found, expected);
}

/// A name, special tokens, and a text.
type Case = (&'static str, Vec<Vec<u8>>, Vec<u8>);

/// Sets that cost the square of their size with a naive automaton or a naive search, each with a
/// text.
fn hostile() -> Vec<Case> {
    let mut nested: Vec<Vec<u8>> = (1..2000).map(|n| b"a".repeat(n)).collect();
    nested.push([b"a".repeat(100_000), b"b".to_vec()].concat());
    let inside = [b"bc".to_vec(), [b"abc".repeat(30_000), b"x".to_vec()].concat()];
    let many = (0..200_000).map(|n| format!("<|reserved_{n}|>").into_bytes()).collect();
    let short = vec![b"a".to_vec(), [b"a".repeat(MAX_SHORT_BYTES - 1), b"b".to_vec()].concat()];
    vec![
        ("periodic", vec![b"ab".repeat(100_000)], b"ab".repeat(199_999)),
        (
            "a prefix",
            [&b"a"[..], &[b"a".repeat(99_999), b"b".to_vec()].concat()]
                .map(<[u8]>::to_vec)
                .to_vec(),
            b"a".repeat(400_000),
        ),
        ("nested", nested, b"a".repeat(400_000)),
        ("inside", inside.to_vec(), b"abc".repeat(130_000)),
        ("many", many, b"<|reserved_".repeat(40_000)),
        ("short", short, b"a".repeat(400_000)),
    ]
}

#[test]
fn every_set_is_built_and_searched_in_linear_time() {
    for (name, texts, text) in hostile() {
        let started = Instant::now();
        let set = Specials::new(&texts).unwrap();
        let mut search = set.search(&text);
        let mut from = 0;
        while let Some(found) = search.next(from) {
            from = found.end;
        }
        for offset in (0..text.len()).step_by(text.len() / 8) {
            set.lies_across(&text, offset);
        }
        // Linear: a few hundredths of a second, ten times that without optimization.
        assert!(started.elapsed() < Duration::from_secs(8), "{name}: {:?}", started.elapsed());
    }
}
