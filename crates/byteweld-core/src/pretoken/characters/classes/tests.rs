//! Character classes agree with the regex engine.

use super::*;
use crate::pretoken::characters::class_of;

fn class(pattern: &str) -> ClassUnicode {
    class_of(&regex_syntax::parse(pattern).unwrap()).unwrap()
}

#[test]
fn bits_are_those_of_the_classes_for_every_character() {
    let list = [
        r"\p{L}",
        r"\p{N}",
        r"\s",
        r"[^\s\p{L}\p{N}]",
        r"[^\r\n\p{L}\p{N}]",
        r"\p{M}",
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
        "(?i)[sdmt]",
        "(?i)k",
        r"[\p{P}\p{S}]",
        "[一-龥぀-ゟ゠-ヿ]",
        "[一-龥ࠀ-一가-퟿]",
        r"[^é]",
        r"[\p{L}--ʰ]",
        r"\p{Greek}",
        r"[\p{Cyrillic}\p{Emoji}]",
        r"[α-ω\p{Thai}]",
        r"\x{FFFF}",
    ]
    .map(class);
    let classes = Classes::new(&list).unwrap();
    for c in '\0'..=char::MAX {
        let mut buffer = [0; 4];
        let text = c.encode_utf8(&mut buffer).as_bytes();
        let (bits, len) = classes.at(text, 0).unwrap();
        assert_eq!(len, text.len());
        for (number, class) in list.iter().enumerate() {
            assert_eq!(bits >> number & 1 == 1, contains(class, c), "{c:?} class {number}");
        }
    }
}

#[test]
fn each_byte_outside_a_character_is_a_stand_in() {
    let classes = Classes::new(&[class(r"\x{FFFF}"), class(r"[^\x{FFFF}]")]).unwrap();
    for text in [
        &b"\x80"[..],
        b"\xC0\x80",
        b"\xC1\xBF",
        b"\xC2",
        b"\xC2A",
        b"\xE0\x9F\xBF",
        b"\xE2\x82",
        b"\xED\xA0\x80",
        b"\xF0\x8F\xBF\xBF",
        b"\xF0\x90\x80",
        b"\xF4\x90\x80\x80",
        b"\xF5\x80\x80\x80",
        b"\xFF",
    ] {
        assert_eq!(classes.at(text, 0), Some((1, 1)), "{text:?}");
    }
    assert_eq!(classes.at("é".as_bytes(), 0), Some((2, 2)));
    assert_eq!(classes.at(b"", 0), None);
}

#[test]
fn a_class_of_very_many_ranges_is_rejected() {
    let comb: String = (0..600).map(|i| char::from_u32(0x4E00 + 2 * i).unwrap()).collect();
    assert!(Classes::new(&[class(&format!("[{comb}]"))]).is_none());
}
