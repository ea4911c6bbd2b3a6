//! Lanes of byte classes.

use super::*;

fn table(is_in: impl Fn(u8) -> bool) -> [u32; 256] {
    std::array::from_fn(|byte| (byte < 128 && is_in(byte as u8)) as u32)
}

#[test]
fn runs_end_where_a_byte_is_not_in_the_class() {
    for (first, last) in [(b'a', b'z'), (b'0', b'9'), (0, 127), (b' ', b' '), (0, 3), (120, 127)] {
        let lanes = Lanes::new(&table(|b| (first..=last).contains(&b)), 1).unwrap();
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut bytes = [first; 8];
                bytes[place] = byte;
                let expected = if (first..=last).contains(&byte) { 8 } else { place };
                assert_eq!(lanes.run_len(bytes), expected, "{byte} at {place}");
            }
        }
    }
}

#[test]
fn letters_of_both_cases_are_one_range() {
    let lanes = Lanes::new(&table(|b| b.is_ascii_alphabetic()), 1).unwrap();
    assert_eq!(lanes.run_len(*b"heLLo, w"), 5);
    assert_eq!(lanes.run_len(*b"h\xC3\xA9llo, "), 1);
}

#[test]
fn other_classes_have_no_lanes() {
    assert!(Lanes::new(&table(|b| b.is_ascii_alphanumeric()), 1).is_none());
    assert!(Lanes::new(&table(|b| b.is_ascii_punctuation()), 1).is_none());
    assert!(Lanes::new(&table(|_| false), 1).is_none());
}
