//! Every engine gives the same pre-tokens; cuts change none; nothing is lost.

mod blocks;
mod scanner;

use proptest::prelude::*;

use super::*;
use crate::error::Error;

const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const GPT2_NEW: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const CL100K_OURS: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CK: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(super) const KNOWN: [&str; 6] = [GPT2, GPT2_NEW, CL100K, CL100K_OURS, O200K, CK];
/// Patterns that leave characters out, and repeats that must stay possessive or look ahead otherwise.
pub(super) const OTHERS: [&str; 9] = [
    r"[a-z]+",
    r"[a-z]++[xyz]|.",
    r"\p{L}+(?!\d)|\s+",
    r"a+(?!b)|b",
    r"\s+(?=\S)|\S+",
    r"(a)(b)?\1|.",
    r"\bfoo\b|.",
    r"(?:ab)++a|.",
    r"[\s\S]{1,3}+",
];

#[test]
fn known_patterns_run_on_scanners_and_have_cuts() {
    for pattern in KNOWN {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        assert_eq!(pretokenizer.engine(), Engine::Scanner, "{pattern}");
        assert_eq!(pretokenizer.last_cut(b"hello wor", 9), Some(5), "{pattern}");
    }
    assert_eq!(Pretokenizer::new(Some(r"[a-z]++[xyz]|.")).unwrap().engine(), Engine::Backtracking);
    assert_eq!(Pretokenizer::new(Some(r"(a)\1|.")).unwrap().engine(), Engine::Backtracking);
}

#[test]
fn a_pattern_that_leaves_text_out_loses_nothing_and_has_no_cuts() {
    let pretokenizer = Pretokenizer::new(Some("[a-z]+")).unwrap();
    assert_eq!(pretokenizer.pieces(b"12ab  cd3"), [&b"12"[..], b"ab", b"  ", b"cd", b"3"]);
    assert_eq!(pretokenizer.last_cut(b"ab  cd", 6), None);
}

#[test]
fn wrong_patterns_are_refused() {
    for pattern in ["(", r"a*", r"\p{Nonsense}", "", r"\Ga|b", r"a\Kb"] {
        assert!(matches!(Pretokenizer::new(Some(pattern)), Err(Error::Pattern(_))), "{pattern:?}");
    }
}

#[test]
fn a_million_spaces_are_quick_for_known_patterns() {
    let mut text = vec![b' '; 1_000_000];
    text.push(b'x');
    for pattern in KNOWN {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        assert_eq!(pretokenizer.pieces(&text).len(), 2);
    }
}

#[test]
fn text_that_nothing_matches_is_quick_with_backtracking() {
    let pretokenizer = Pretokenizer::new(Some(r"a(?=b)|c")).unwrap();
    assert_eq!(pretokenizer.engine(), Engine::Backtracking);
    assert_eq!(pretokenizer.pieces(&vec![b'z'; 1_000_000]).len(), 1);
}

#[test]
fn a_pattern_that_reads_runs_again_and_again_is_refused_on_such_text() {
    let pretokenizer = Pretokenizer::new(Some(r"[a-z]+!|[a-z]")).unwrap();
    assert_eq!(pretokenizer.engine(), Engine::Automaton);
    assert_eq!(pretokenizer.pieces(b"abc! ab"), [&b"abc!"[..], b" ", b"a", b"b"]);
    assert!(matches!(pretokenizer.ends(&vec![b'a'; 1_000_000]), Err(Error::Pattern(_))));
}

#[test]
fn spellings_of_a_pattern_have_one_canonical_text_and_others_another() {
    let canonical = |pattern: &str| canonical_pattern(pattern).unwrap();
    let old_gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    assert_eq!(canonical(GPT2), canonical(GPT2_NEW));
    assert_eq!(canonical(GPT2), canonical(old_gpt2));
    assert_eq!(canonical(CL100K), canonical(CL100K_OURS));
    let different = [GPT2, CL100K, O200K, CK].map(canonical);
    assert!((1..4).all(|at| !different[..at].contains(&different[at])));
    // A spelling whose order matters keeps it.
    assert_ne!(canonical(r"ab|a|\p{L}+|\P{L}"), canonical(r"a|ab|\p{L}+|\P{L}"));
    assert_eq!(canonical_pattern(r"(a)\1|."), None);
}

#[test]
fn text_without_ascii_becomes_certain() {
    for pattern in KNOWN {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        let text = "漢字。かな。".as_bytes();
        assert_eq!(pretokenizer.certain_end(text), "漢字。かな".len(), "{pattern}");
        assert_eq!(pretokenizer.certain_end(&text[..10]), "漢字".len(), "{pattern}");
    }
}

#[test]
fn a_byte_that_is_not_utf8_is_a_character_of_no_class() {
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    assert_eq!(
        pretokenizer.pieces(b"a\xff\xfe! b\xe2\x82"),
        [&b"a"[..], b"\xff\xfe!", b" b", b"\xe2\x82"]
    );
}

/// Text that is rich in what the patterns tell apart.
fn text() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        4 => "[ \t\n\r]{1,4}",
        4 => "[a-cA-C]{1,3}",
        2 => "[0-9]{1,4}",
        2 => "['][sStTdmMlLvVrReEſ]{1,2}",
        2 => "[.,!/'<>|]{1,3}",
        1 => "[éßǅʰ中日\u{0301}\u{0308}ªⅫ²\u{a0}\u{2028}\u{3000}\u{85}\u{200b}\u{180e}]{1,3}",
        1 => "\\PC{0,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(atom, 0..12).prop_map(|atoms| atoms.concat())
}

/// Checks that no cut in `start`, `junk` and `end` together changes a pre-token.
fn check_cuts(start: &str, junk: &[u8], end: &str) {
    thread_local! {
        static ALL: Vec<Pretokenizer> = KNOWN
            .iter()
            .chain(&OTHERS)
            .map(|p| Pretokenizer::new(Some(p)).unwrap())
            .collect();
    }
    let whole = [start.as_bytes(), junk, end.as_bytes()].concat();
    ALL.with(|all| {
        for pretokenizer in all {
            // What is seen of the text may end anywhere, inside a character too.
            for unseen in [0, 1, 2, 3, end.len() / 2] {
                let seen = &whole[..whole.len().saturating_sub(unseen)];
                let mut limit = seen.len();
                while let Some(cut) = pretokenizer.last_cut(seen, limit) {
                    let mut parts = pretokenizer.pieces(&whole[..cut]);
                    parts.extend(pretokenizer.pieces(&whole[cut..]));
                    assert_eq!(parts, pretokenizer.pieces(&whole), "cut at {cut}");
                    limit = cut - 1;
                }
            }
        }
    });
}

#[test]
fn a_cut_between_a_tab_and_a_return_changes_no_pretoken() {
    check_cuts("\t\rAA", &[], "");
}

proptest! {
    #![proptest_config(crate::testing::cases(200))]

    #[test]
    fn the_automaton_gives_what_backtracking_gives(text in text()) {
        thread_local! {
            static PAIRS: Vec<(Pretokenizer, Pretokenizer)> = KNOWN
                .iter()
                .chain(&OTHERS)
                .map(|p| (Pretokenizer::new(Some(p)).unwrap(), Pretokenizer::backtracking(p).unwrap()))
                .collect();
        }
        PAIRS.with(|pairs| {
            for (chosen, backtracking) in pairs {
                assert_eq!(chosen.pieces(text.as_bytes()), backtracking.pieces(text.as_bytes()));
            }
        });
    }

    #[test]
    fn spellings_of_one_pattern_agree(text in text()) {
        thread_local! {
            static ALL: Vec<Pretokenizer> =
                KNOWN[..4].iter().map(|p| Pretokenizer::new(Some(p)).unwrap()).collect();
        }
        ALL.with(|all| {
            assert_eq!(all[0].pieces(text.as_bytes()), all[1].pieces(text.as_bytes()));
            assert_eq!(all[2].pieces(text.as_bytes()), all[3].pieces(text.as_bytes()));
        });
    }

    #[test]
    fn a_cut_changes_no_pretoken(start in text(), junk in prop::collection::vec(any::<u8>(), 0..3), end in text()) {
        check_cuts(&start, &junk, &end);
    }

    #[test]
    fn what_is_certain_stays_whatever_follows(
        start in text(),
        junk in prop::collection::vec(any::<u8>(), 0..3),
        end in text(),
    ) {
        thread_local! {
            static ALL: Vec<Pretokenizer> = KNOWN
                .iter()
                .chain(&OTHERS)
                .map(|p| Pretokenizer::new(Some(p)).unwrap())
                .collect();
        }
        let head = [start.as_bytes(), &junk].concat();
        let whole = [&head, end.as_bytes()].concat();
        ALL.with(|all| {
            for pretokenizer in all {
                let certain = pretokenizer.certain_end(&head);
                let mut parts = pretokenizer.pieces(&whole[..certain]);
                parts.extend(pretokenizer.pieces(&whole[certain..]));
                assert_eq!(parts, pretokenizer.pieces(&whole), "certain up to {certain}");
            }
        });
    }

    #[test]
    fn pieces_tile_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        thread_local! {
            static ALL: Vec<Pretokenizer> =
                KNOWN.iter().map(|p| Pretokenizer::new(Some(p)).unwrap()).collect();
        }
        ALL.with(|all| {
            for pretokenizer in all {
                assert_eq!(pretokenizer.pieces(&bytes).concat(), bytes);
            }
        });
    }
}

#[test]
fn a_text_that_ends_inside_a_character_is_not_cut_before_it() {
    let text = "Wechselt auf die nächste Folie, naïve 日本語のテキスト x\u{301}y 😀😀 a1é2 don’t über\n\n ünter  日 end";
    for pattern in [
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"[a-zäü]+|[^a-zäü]+",
    ] {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        let ends = pretokenizer.ends(text.as_bytes()).unwrap();
        for end in 0..=text.len() {
            if let Some(cut) = pretokenizer.last_cut(&text.as_bytes()[..end], end) {
                assert!(ends.contains(&(cut, true)), "{pattern}: {end} {cut}");
            }
        }
    }
}

#[test]
fn patterns_whose_table_would_take_seconds_to_fill_go_to_the_backtracking_engine() {
    for pattern in [
        r"a{2}|(\p{L}+?|\w{0,40}b+|\s+?|\w+\d*?){2}\p{M}[ab]|[\r\n]{2}",
        r"(\p{L}{1,40}|\w{3,50})+\d",
        r"(\w{50}){50}y",
        r"[ab]*a[ab]{20}|.",
    ] {
        let compiled = Pretokenizer::new(Some(pattern)).unwrap();
        assert_eq!(compiled.engine(), Engine::Backtracking, "{pattern}");
    }
}

#[test]
fn the_limits_of_automata_leave_room_for_known_patterns_and_their_variations() {
    for pattern in KNOWN {
        for variation in
            [pattern.to_owned(), format!("{pattern}|x{{1,9}}y|[ab]{{2}}c+|\\p{{Lu}}{{1,9}}")]
        {
            let alternatives = normalize::alternatives(&variation).unwrap();
            assert!(Automaton::new(&alternatives).is_some(), "{variation}");
        }
    }
}
