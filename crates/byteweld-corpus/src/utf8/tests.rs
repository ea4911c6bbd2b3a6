//! Checking and replacement of invalid UTF-8 across chunks.

use super::{Checker, append_replaced, replaced_length};

const BYTES: &[u8] = b"a\xe2\x82\xac\xff\xf0\x9f\x98\x80\xed\xa0\x80\xe2\x82";

#[test]
fn splitting_the_input_anywhere_gives_the_same_replacement() {
    let whole = String::from_utf8_lossy(BYTES).into_owned();
    for cut in 0..=BYTES.len() {
        let mut out = Vec::new();
        let left = append_replaced(&BYTES[..cut], false, &mut out).unwrap();
        let left = append_replaced(&BYTES[cut - left..], true, &mut out).unwrap();
        assert_eq!(replaced_length(BYTES), out.len());
        assert_eq!((left, String::from_utf8(out).unwrap()), (0, whole.clone()), "cut at {cut}");
    }
}

#[test]
fn the_first_invalid_byte_is_found_in_pieces_as_in_the_whole() {
    let good = "aé漢👍\u{10FFFF}z".as_bytes();
    let bad = [BYTES, b"\x80", b"a\xC3", b"\xF0\x9F\x91", b"\xED\xA0\x80", b"\xC0\x80", b"a\xFFb"];
    for text in bad.into_iter().chain([good, b""]) {
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut checker = Checker::default();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    checker.add(piece);
                }
                let whole = std::str::from_utf8(text).err();
                let expected = whole.map(|error| error.valid_up_to() as u64);
                let is_incomplete = whole.is_some_and(|error| error.error_len().is_none());
                assert_eq!(checker.invalid_at(), expected.filter(|_| !is_incomplete), "{text:?}");
                assert_eq!(checker.finish(), expected, "{text:?}");
                assert_eq!(checker.finish(), None, "a new text starts empty");
            }
        }
    }
}
