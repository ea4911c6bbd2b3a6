//! The backtracking engine finds what fancy-regex finds, and both its work and compiling are limited.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::pretoken::tests::{KNOWN, OTHERS};
use crate::pretoken::{Bounds, Pretokenizer};

/// All matches that fancy-regex finds; `None` if it gives up or does not compile the pattern.
fn expected(pattern: &str, text: &str) -> Option<Vec<(usize, usize)>> {
    let regex = fancy_regex::RegexBuilder::new(pattern).backtrack_limit(20_000).build().ok()?;
    let mut list = Vec::new();
    let find = |position| regex.find_from_pos(text, position).ok();
    let mut position = 0;
    while position <= text.len() {
        let Some(found) = find(position)? else { break };
        list.push((found.start(), found.end()));
        position = found.end().max(position);
        if found.start() == found.end() {
            position += text[position..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(list)
}

/// All matches that the machine finds; `None` if it does not support the pattern or runs out of steps.
fn found(pattern: &str, text: &str) -> Option<Vec<(usize, usize)>> {
    let program = Program::new(pattern).ok()?;
    let mut machine = Machine::new(&program);
    let mut budget = Budget::new(Watch::default());
    budget.add(text.len());
    let (mut list, mut position) = (Vec::new(), 0);
    while position <= text.len() {
        let Some((start, end)) = machine.find(text, position, &mut budget).ok()? else { break };
        list.push((start, end));
        position = end.max(position);
        if start == end {
            position += text[position..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(list)
}

/// Patterns over a few letters, with every construct that a pattern may contain.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => "[abé ]{1,2}",
        2 => Just(".".to_owned()),
        2 => Just("[ab]".to_owned()),
        1 => Just("[^a]".to_owned()),
        1 => Just(r"\s".to_owned()),
        1 => Just(r"\w".to_owned()),
        1 => Just(r"\b".to_owned()),
        1 => Just(r"\B".to_owned()),
        1 => Just("^".to_owned()),
        1 => Just("$".to_owned()),
        1 => Just(r"(?m:$)".to_owned()),
        1 => Just(r"(?m:^)".to_owned()),
        1 => Just(r"\Z".to_owned()),
        1 => Just("(?i:aÉ)".to_owned()),
        1 => Just(r"\R".to_owned()),
        1 => Just(String::new()),
    ];
    let repeat = prop_oneof![
        3 => Just("*"), 3 => Just("+"), 3 => Just("?"), 1 => Just("{2}"), 1 => Just("{1,2}"), 1 => Just("{2,}"),
        1 => Just("*?"), 1 => Just("+?"), 1 => Just("??"), 1 => Just("*+"), 1 => Just("++"), 1 => Just("{1,3}?"),
    ];
    leaf.prop_recursive(5, 24, 4, move |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            4 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            3 => (inner.clone(), repeat.clone()).prop_map(|(part, repeat)| format!("(?:{part}){repeat}")),
            1 => inner.clone().prop_map(|part| format!("(?={part})")),
            1 => inner.clone().prop_map(|part| format!("(?!{part})")),
            1 => inner.clone().prop_map(|part| format!("(?>{part})")),
            1 => inner.clone().prop_map(|part| format!("({part})")),
            1 => "[ab]{1,2}".prop_map(|text| format!("(?<={text})")),
            1 => "[ab]{1,2}".prop_map(|text| format!("(?<!{text})")),
            1 => Just("(?<=a+b?)".to_owned()),
            1 => Just("(?<!ba*|é)".to_owned()),
        ]
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(3000))]

    #[test]
    fn the_machine_finds_what_fancy_regex_finds(pattern in pattern(), text in "[abé \n\r]{0,12}") {
        if let (Some(expected), Some(found)) = (expected(&pattern, &text), found(&pattern, &text)) {
            prop_assert_eq!(found, expected, "{:?} in {:?}", pattern, text);
        }
    }

    #[test]
    fn backreferences_match_what_they_match_in_fancy_regex(
        group in pattern(), between in pattern(), after in pattern(), text in "[abAé ]{0,12}"
    ) {
        for pattern in [
            format!("({group}){between}\\1{after}"),
            format!("(?=({group})){between}\\1{after}"),
            format!("(?:({group}){between}(?i:\\1))+{after}"),
        ] {
            if let (Some(expected), Some(found)) = (expected(&pattern, &text), found(&pattern, &text)) {
                prop_assert_eq!(found, expected, "{:?} in {:?}", pattern, text);
            }
        }
    }
}

#[test]
fn a_class_contains_the_characters_of_its_ranges() {
    for (pattern, text) in [
        (r"\p{L}+(?!x)", "aé中\u{20000}\u{1F600} x"),
        (r"[\u{FFFF}-\u{10001}]+(?!x)", "\u{FFFE}\u{FFFF}\u{10000}\u{10001}\u{10002}"),
        (r"(?<=\p{Lo}\p{So})\p{L}", "中\u{1F600}a\u{20000}"),
    ] {
        assert_eq!(found(pattern, text).unwrap(), expected(pattern, text).unwrap(), "{pattern}");
    }
}

fn outcome(pattern: &str, text: &str) -> Result<usize> {
    Ok(Pretokenizer::backtracking(pattern)?.ends(text.as_bytes())?.len())
}

#[test]
fn the_steps_of_a_text_are_limited_in_proportion_to_its_length() {
    for pattern in [
        r"(?:.(?!x))+y|.",
        r".*(?!x)y|.",
        r"(?=.*)a|b", // fine on short text: each match looks at the rest of it
        r"(?:(?=.*)a)+y|.",
        r"(?>.*)y|.",
        r"(?:a+(?!x))+y|.",
        r"(?<=a+)b|a",
        r"(?<!b.*)a",
        r"(a+)\1y|.",
        r"(a*)(?=\1b)|.",
        r"a(?=a{30000})y|.",
    ] {
        let start = Instant::now();
        let error = outcome(pattern, &"a".repeat(40_000)).expect_err(pattern).to_string();
        assert!(error.contains("too many"), "{pattern}: {error}");
        assert!(start.elapsed() < Duration::from_secs(20), "{pattern}");
    }
}

#[test]
fn ordinary_patterns_stay_far_below_the_limit() {
    let prose = "The quick brown fox, 1234 times: don't ask why!\n\n  Über 漢字かな交じり文。 "
        .repeat(2_000);
    let long = |text: &str| text.repeat(300_000 / text.len());
    let texts = ["a", "A", " ", "7", "漢", "\n", "!"].map(long);
    for pattern in KNOWN {
        for text in &texts {
            outcome(pattern, text).unwrap();
        }
    }
    for pattern in KNOWN.iter().chain(&OTHERS) {
        outcome(pattern, &prose).unwrap();
    }
}

#[test]
fn all_parts_of_a_text_share_a_budget() {
    let pretokenizer = Pretokenizer::backtracking(r"(?:a+(?!x))+y|.").unwrap();
    let (mut budget, mut bounds) = (Budget::new(Watch::default()), Bounds::default());
    let mut part =
        || pretokenizer.split(b"aaaaaaaaaaaaa", &mut budget, &mut bounds).unwrap().ends();
    part().unwrap();
    assert!((0..1_000).any(|_| matches!(part(), Err(Error::Pattern(_)))));
}

#[test]
fn patterns_that_are_too_large_are_rejected_at_once() {
    let alternation = (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>().join("|");
    let classes: String = (0..2_000)
        .map(|n| format!("(?!\\w{{900}}[{}])", (b'a' + (n % 26) as u8) as char))
        .collect();
    for pattern in [
        "((a{1000}){1000}){1000}",
        "(?!((a{1000}){1000}){1000})b",
        &alternation,
        &"(".repeat(100_000),
        &format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000)),
        &format!("{}a{}", "(?:".repeat(200), ")*".repeat(200)),
        &format!("{}a{}", "(?=".repeat(3_000), ")".repeat(3_000)),
        &classes,
    ] {
        let start = Instant::now();
        let error = Pretokenizer::new(Some(pattern)).err().expect("refused");
        assert!(matches!(&error, Error::Pattern(message) if message.len() < 5_000), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
