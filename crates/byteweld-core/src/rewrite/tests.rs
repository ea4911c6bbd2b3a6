//! Normalizers against the crate applied to whole texts; origins; split behaviors; flags of added
//! tokens.

use std::ops::{ControlFlow, Range};

use proptest::prelude::*;
use unicode_normalization_alignments::UnicodeNormalization;

use super::*;
use crate::pretoken::Pretokenizer;
use crate::testing::cases;

fn limits() -> Limits {
    Limits::new(1 << 20, Watch::default())
}

fn normalizer(form: Form) -> Normalizer {
    Normalizer::new(vec![NormalizerStep::Form(form)])
}

fn whole(form: Form, text: &str) -> String {
    match form {
        Form::Nfc => text.nfc().map(|(c, _)| c).collect(),
        Form::Nfd => text.nfd().map(|(c, _)| c).collect(),
        Form::Nfkc => text.nfkc().map(|(c, _)| c).collect(),
        Form::Nfkd => text.nfkd().map(|(c, _)| c).collect(),
    }
}

const FORMS: [Form; 4] = [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd];

fn assert_normal(text: &str) {
    for form in FORMS {
        let normal = normalizer(form).apply(text.as_bytes(), true, &mut limits()).unwrap();
        assert_eq!(String::from_utf8_lossy(&normal.text), whole(form, text), "{form:?} {text:?}");
        let origins: Vec<usize> = (0..=normal.text.len()).map(|at| normal.origin(at)).collect();
        assert!(origins.is_sorted() && origins.last() == Some(&text.len()), "{form:?} {text:?}");
    }
}

#[test]
fn every_character_has_its_normal_form_in_several_contexts() {
    for c in ('\0'..=char::MAX).filter(|c| (*c as u32) < 0x3_0000 || (*c as u32) >= 0xE_0000) {
        for form in FORMS {
            for text in [format!("e{c}\u{301}"), format!("\u{1100}{c}\u{323}{c}")] {
                let normal = normalizer(form).apply(text.as_bytes(), false, &mut limits()).unwrap();
                assert_eq!(normal.text, whole(form, &text).as_bytes(), "{form:?} {text:?}");
            }
        }
    }
}

#[test]
fn a_long_run_of_marks_is_normalized_in_linear_time() {
    assert_normal(&format!("a{}", "\u{301}\u{323}".repeat(20_000)));
}

#[test]
fn bytes_that_are_not_utf8_stay_unchanged() {
    let normal = normalizer(Form::Nfc).apply(b"\xffe\xcc\x81\xfe", true, &mut limits()).unwrap();
    assert_eq!(normal.text, &b"\xff\xc3\xa9\xfe"[..]);
    assert_eq!((0..=4).map(|at| normal.origin(at)).collect::<Vec<_>>(), [0, 1, 1, 4, 5]);
}

#[test]
fn text_that_is_normal_is_not_copied() {
    for text in ["plain", "déjà vu", "中文，日本語", "Привет"] {
        let normal = normalizer(Form::Nfc).apply(text.as_bytes(), true, &mut limits()).unwrap();
        assert!(matches!(normal.text, Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn lowercasing_and_replacing_record_origins() {
    let steps = vec![
        NormalizerStep::Replace {
            pattern: Pretokenizer::new(Some(r"\s+")).unwrap(),
            content: "_".to_owned(),
        },
        NormalizerStep::Lowercase,
    ];
    let normal = Normalizer::new(steps).apply("A \t İB".as_bytes(), true, &mut limits()).unwrap();
    assert_eq!(normal.text, "a_i\u{307}b".as_bytes());
    assert_eq!((0..=6).map(|at| normal.origin(at)).collect::<Vec<_>>(), [0, 1, 4, 4, 4, 6, 7]);
}

fn split(pattern: &str, behavior: SplitBehavior, invert: bool) -> SplitStep {
    SplitStep::Split { pattern: Pretokenizer::new(Some(pattern)).unwrap(), behavior, invert }
}

fn pieces(steps: Vec<SplitStep>, text: &str) -> Vec<String> {
    let steps = SplitChain::new(steps);
    let (rewritten, pieces) = steps.split(text.as_bytes(), true, &mut limits()).unwrap();
    pieces
        .into_iter()
        .map(|piece| String::from_utf8_lossy(&rewritten.text[piece]).into_owned())
        .collect()
}

#[test]
fn a_match_is_isolated_removed_merged_or_joined() {
    use SplitBehavior::{Contiguous, Isolated, MergedWithNext, MergedWithPrevious, Removed};
    let text = "-a--b-";
    for (behavior, invert, expected) in [
        (Isolated, false, vec!["-", "a", "-", "-", "b", "-"]),
        (Removed, false, vec!["a", "b"]),
        (Removed, true, vec!["-", "-", "-", "-"]),
        (Contiguous, false, vec!["-", "a", "--", "b", "-"]),
        (MergedWithPrevious, false, vec!["-", "a-", "-", "b-"]),
        (MergedWithNext, false, vec!["-a", "-", "-b", "-"]),
    ] {
        assert_eq!(pieces(vec![split("-", behavior, invert)], text), expected, "{behavior:?}");
    }
}

#[test]
fn each_piece_gets_a_prefix_space_and_letters_map_to_bytes() {
    let steps = || vec![split("-", SplitBehavior::Removed, false), SplitStep::PrefixSpace];
    assert_eq!(pieces(steps(), "a- b-c"), [" a", " b", " c"]);
    // 0xB2, the last byte of U+00B2, has the letter of the digit two, so it is split from the byte
    // before it.
    let steps = vec![SplitStep::ByteLetters, split(r"\p{N}", SplitBehavior::Isolated, false)];
    let steps = SplitChain::new(steps);
    let (_, ranges) = steps.split("x²y".as_bytes(), false, &mut limits()).unwrap();
    assert_eq!(ranges, [0..2, 2..3, 3..4]);
}

fn parts(
    list: Vec<AddedToken>,
    text: &str,
    permission: Permission<'_>,
) -> Vec<(Option<u32>, Range<usize>)> {
    let added = AddedTokens::new(list, &Normalizer::default()).unwrap();
    let mut parts = Vec::new();
    let flow: std::result::Result<_, ()> =
        added.for_each_raw(text.as_bytes(), permission, &mut |part| {
            let id = match part.token {
                Found::Text => None,
                Found::Special(id) | Found::Other(id) => Some(id),
            };
            parts.push((id, part.range));
            Ok(ControlFlow::Continue(()))
        });
    assert!(flow.unwrap().is_continue());
    parts
}

#[test]
fn flags_include_white_space_and_exclude_parts_of_words() {
    let token = |text: &str, id| AddedToken::special(text, id);
    let list = vec![
        AddedToken { lstrip: true, ..token("<l>", 1) },
        AddedToken { rstrip: true, ..token("<r>", 2) },
        AddedToken { single_word: true, ..token("w", 3) },
        AddedToken { special: false, ..token("<o>", 4) },
    ];
    let all = Permission::Everywhere;
    assert_eq!(parts(list.clone(), "a  <l> b", all), [(None, 0..1), (Some(1), 1..6), (None, 6..8)]);
    assert_eq!(parts(list.clone(), "<r> \n b", all), [(Some(2), 0..6), (None, 6..7)]);
    assert_eq!(
        parts(list.clone(), "w ww w", all),
        [(Some(3), 0..1), (None, 1..5), (Some(3), 5..6)]
    );
    // White space that a token includes is not matched again as a token.
    let newline = AddedToken { lstrip: true, rstrip: true, ..token("\n", 5) };
    let with_newline = [list.clone(), vec![newline]].concat();
    assert_eq!(parts(with_newline, "<r>\n b", all), [(Some(2), 0..5), (None, 5..6)]);
    let nowhere = Permission::Nowhere;
    assert_eq!(parts(list, "<l><o>", nowhere), [(None, 0..3), (Some(4), 3..6)]);
}

#[test]
fn a_token_of_white_space_takes_linear_time() {
    let blank = |lstrip, rstrip| AddedToken { lstrip, rstrip, ..AddedToken::special(" ", 1) };
    let text = " ".repeat(200_000);
    assert_eq!(parts(vec![blank(true, false)], &text, Permission::Everywhere).len(), 200_000);
    assert_eq!(parts(vec![blank(false, true)], &text, Permission::Everywhere).len(), 200_000);
}

#[test]
fn an_added_token_that_is_empty_when_normalized_is_rejected() {
    let pattern = Pretokenizer::new(Some("b")).unwrap();
    let normalizer =
        Normalizer::new(vec![NormalizerStep::Replace { pattern, content: String::new() }]);
    let list = vec![AddedToken { normalized: true, ..AddedToken::special("b", 1) }];
    assert!(AddedTokens::new(list, &normalizer).is_err());
}

#[test]
fn inside_a_range_a_special_is_found_even_if_a_longer_one_crosses_its_end() {
    let list = vec![AddedToken::special("<a>", 1), AddedToken::special("<a><b>", 2)];
    let ranges = [0..3usize, 8..9];
    assert_eq!(
        parts(list, "<a><b><a>", Permission::Within(&ranges)),
        [(Some(1), 0..3), (None, 3..9)]
    );
}

fn replace_all(pattern: &str, content: &str) -> NormalizerStep {
    let pattern = Pretokenizer::new(Some(pattern)).unwrap();
    NormalizerStep::Replace { pattern, content: content.to_owned() }
}

#[test]
fn text_that_grows_without_end_is_rejected_before_it_is_made() {
    let bomb = || (0..60).map(|_| replace_all("a", &"a".repeat(100))).collect();
    for with_origins in [false, true] {
        let mut limits = Limits::new(1, Watch::default());
        let outcome = Normalizer::new(bomb()).apply(b"a", with_origins, &mut limits);
        assert!(matches!(outcome, Err(Error::Vocabulary(_))));
    }
    // A token's text, too.
    let list = vec![AddedToken { normalized: true, ..AddedToken::special("a", 1) }];
    assert!(AddedTokens::new(list, &Normalizer::new(bomb())).is_err());
}

#[test]
fn several_texts_share_the_room() {
    let normalizer = Normalizer::new(vec![replace_all("a", &"b".repeat(1000))]);
    let mut limits = Limits::new(100, Watch::default());
    let grown = |limits: &mut Limits| normalizer.apply(b"a", false, limits).is_ok();
    assert_eq!(
        (0..1000).filter(|_| grown(&mut limits)).count(),
        (FREE_GROWTH + 100 * MAX_GROWTH) / 1000
    );
}

#[test]
fn a_character_of_any_normal_form_has_room() {
    for form in FORMS {
        for c in '\0'..=char::MAX {
            let text = String::from(c);
            let mut limits = Limits::of_token(text.len());
            normalizer(form).apply(text.as_bytes(), false, &mut limits).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_normal_form_of_stretches_is_the_normal_form_of_the_text(
        text in "[a-e\u{300}-\u{304}\u{323}\u{1100}-\u{1112}\u{1161}-\u{1165}\u{11a8}가각ſﬁ①éÅ\u{212b}中 ]{0,24}"
    ) {
        assert_normal(&text);
    }
}
