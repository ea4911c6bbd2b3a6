//! Bytes are split as the backtracking engine splits them if each byte is a character.

use proptest::prelude::*;

use super::super::{Engine, Pretokenizer};
use super::*;
use crate::error::Error;

/// Splits bytes with the same alternatives over characters; U+00xx stands for byte xx.
fn expected(text: &[u8]) -> Vec<Vec<u8>> {
    thread_local! {
        static BY_CHARACTERS: Pretokenizer =
            Pretokenizer::backtracking(SOURCE.strip_prefix("(?-u)").unwrap()).unwrap();
    }
    let letters: String = text.iter().map(|&byte| char::from(byte)).collect();
    let (mut list, mut start) = (Vec::new(), 0);
    for (end, is_match) in BY_CHARACTERS.with(|p| p.ends(letters.as_bytes()).unwrap()) {
        assert!(is_match, "the pattern matches every byte");
        list.push(
            letters[start..end].chars().map(|letter| u8::try_from(letter).unwrap()).collect(),
        );
        start = end;
    }
    list
}

fn pretokenizer() -> Pretokenizer {
    Pretokenizer::new(Some(SOURCE)).unwrap()
}

fn found(text: &[u8]) -> Vec<&[u8]> {
    pretokenizer().pieces(text)
}

#[test]
fn it_runs_on_a_scanner_and_no_other_pattern_is_over_bytes() {
    assert_eq!(pretokenizer().engine(), Engine::Scanner);
    for pattern in ["(?-u)[a-z]+", "(?-u:.)", r"(?-u)\xff"] {
        assert!(matches!(Pretokenizer::new(Some(pattern)), Err(Error::Pattern(_))), "{pattern}");
    }
}

#[test]
fn all_short_texts_of_one_byte_of_each_class_are_split_and_cut_as_expected() {
    let bytes = b"a5 \n\t<\xc3";
    for length in 0..=6 {
        for number in 0..bytes.len().pow(length) {
            let text: Vec<u8> = (0..length)
                .map(|digit| bytes[number / bytes.len().pow(digit) % bytes.len()])
                .collect();
            let whole = expected(&text);
            assert_eq!(found(&text), whole, "{:?}", text.escape_ascii().to_string());
            for seen in 0..=text.len() {
                check_cuts(&text, seen, &whole);
            }
        }
    }
}

/// Checks that the cut points and the certain end of the first `seen` bytes hold for the whole text.
fn check_cuts(text: &[u8], seen: usize, whole: &[Vec<u8>]) {
    let pretokenizer = pretokenizer();
    let check = |cut: usize, what: &str| {
        let mut parts = found(&text[..cut]);
        parts.extend(found(&text[cut..]));
        assert_eq!(parts, whole, "{what} {cut} of {:?}", text.escape_ascii().to_string());
    };
    let mut limit = seen;
    while let Some(cut) = pretokenizer.last_cut(&text[..seen], limit) {
        assert!(0 < cut && cut <= limit && cut < seen);
        check(cut, "cut at");
        limit = cut - 1;
    }
    check(pretokenizer.certain_end(&text[..seen]), "certain up to");
}

#[test]
fn what_can_be_cut_is_cut() {
    let last = |text: &[u8]| pretokenizer().last_cut(text, text.len());
    assert_eq!(last(b"hello wor"), Some(5));
    assert_eq!(last(b"a  \tb"), Some(4));
    assert_eq!(last(b"<<<<<<"), None);
    assert_eq!(last("日本語".as_bytes()), None);
    let certain = |text: &[u8]| pretokenizer().certain_end(text);
    assert_eq!(certain(b"ab 12"), 5);
    assert_eq!(certain(b"ab  cd"), 3);
    assert_eq!(certain("a é".as_bytes()), 1);
    assert_eq!(certain(b""), 0);
}

#[test]
fn a_million_of_anything_is_quick() {
    for unit in [&b" "[..], b"\n", b"<", b"a", b" \n", b"\xff", b"  a", b"<a"] {
        let text = unit.repeat(1_000_000);
        assert_eq!(found(&text).concat(), text);
        assert!(pretokenizer().certain_end(&text) <= text.len());
    }
}

/// Bytes of all classes, in runs.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let atom = prop_oneof![
        4 => "[ \t\n\r]{1,4}",
        4 => "[a-cX-Z]{1,3}",
        2 => "[0-9]{1,3}",
        4 => "[<>=\"'/.\0\x7f]{1,3}",
        2 => "[é日😀\u{a0}\u{3000}]{1,2}",
    ];
    let atom = prop_oneof![
        8 => atom.prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(atom, 0..16).prop_map(|atoms| atoms.concat())
}

proptest! {
    #![proptest_config(crate::testing::cases(500))]

    #[test]
    fn any_text_is_split_and_cut_as_expected(text in text(), seen in any::<prop::sample::Index>()) {
        let whole = expected(&text);
        prop_assert_eq!(&found(&text), &whole);
        check_cuts(&text, seen.index(text.len() + 1), &whole);
    }

    #[test]
    fn any_bytes_are_split_as_expected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(found(&bytes), expected(&bytes));
    }
}
