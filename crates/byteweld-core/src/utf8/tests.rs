//! Every tier equals a plain loop over `char`s.

use std::fmt::Debug;

use super::*;
use crate::cpu::Tier;
use crate::testing::{Random, examples};

/// What each tier must give.
fn plain<U: Unit>(units: &[U]) -> Vec<u8> {
    let wide = units.iter().flat_map(|&unit| {
        let mut pair = [unit.into() as u16, 0]; // a surrogate
        let length = char::from_u32(unit.into()).map_or(1, |c| c.encode_utf16(&mut pair).len());
        pair.into_iter().take(length)
    });
    let characters = char::decode_utf16(wide);
    characters.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>().into_bytes()
}

#[track_caller]
fn check<U: Unit + Debug>(units: &[U]) {
    let expected = plain(units);
    for tier in Tier::available() {
        let found = tier.force(|| from_units(units)).unwrap();
        // Also where there is space for all, for a part, and for nothing.
        for space in [0, SCRATCH, 4 * units.len() + 2 * SPACE] {
            let mut again = Vec::with_capacity(space);
            again.push(b'x');
            tier.force(|| write_units(units, &mut again)).unwrap();
            assert_eq!(again, found);
        }
        assert!(found == expected, "{}: {units:X?} became {found:X?}", tier.name());
    }
}

/// Checks the units in all the forms that can hold them.
#[track_caller]
fn check_forms(units: &[u32]) {
    check(units);
    if let Some(narrow) = narrow::<u16>(units) {
        check(&narrow);
    }
    if let Some(narrow) = narrow::<u8>(units) {
        check(&narrow);
    }
}

fn narrow<U: TryFrom<u32>>(units: &[u32]) -> Option<Vec<U>> {
    units.iter().map(|&unit| U::try_from(unit).ok()).collect()
}

fn all_characters() -> Vec<u32> {
    (0..=0x10_FFFF).filter(|&unit| char::from_u32(unit).is_some()).collect()
}

/// First and last character of each length in UTF-8.
const LENGTHS: [(u32, u32); 4] = [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x1_0000, 0x10_FFFF)];

/// A random character of one of these lengths; often the first or the last one.
fn character(random: &mut Random, lengths: &[usize]) -> u32 {
    let (first, last) = LENGTHS[random.pick(lengths) - 1];
    let inside = first + random.below((last - first + 1) as usize) as u32;
    match random.below(8) {
        0 => first,
        1 => last,
        _ if char::from_u32(inside).is_none() => 0x2019,
        _ => inside,
    }
}

fn text(random: &mut Random, lengths: &[usize], count: usize) -> Vec<u32> {
    (0..count).map(|_| character(random, lengths)).collect()
}

/// Lengths that occur together; one length twice makes it more frequent.
const MIXTURES: [&[usize]; 12] = [
    &[1],
    &[2],
    &[3],
    &[4],
    &[1, 2],
    &[1, 1, 1, 1, 1, 1, 1, 1, 1, 2],
    &[1, 3],
    &[1, 1, 1, 1, 1, 1, 1, 1, 1, 3],
    &[2, 3],
    &[1, 2, 3],
    &[1, 2, 3, 4],
    &[3, 3, 3, 3, 3, 3, 3, 3, 3, 4],
];

#[test]
fn all_code_points() {
    let characters = all_characters();
    check(&characters);
    check_forms(&characters[..0xF800]); // all of 16 bits
    check_forms(&characters[..0x100]);
}

#[test]
fn all_code_points_in_other_neighborhoods() {
    let characters = all_characters();
    // Steps that are coprime to the number of characters visit each of them once.
    for step in [7919, 0x1_0001] {
        let count = characters.len();
        check(&(0..count).map(|index| characters[index * step % count]).collect::<Vec<_>>());
        let count = 0xF800;
        check_forms(&(0..count).map(|index| characters[index * step % count]).collect::<Vec<_>>());
    }
}

#[test]
fn each_length_at_each_alignment() {
    let mut random = Random(1);
    for length in 0..=200 {
        for start in 0..64 {
            let mixture = random.pick(&MIXTURES);
            let units = text(&mut random, mixture, start + length);
            check(&units[start..]);
            if let Some(narrow) = narrow::<u16>(&units) {
                check(&narrow[start..]);
            }
            let units: Vec<u8> = units.iter().map(|&unit| unit as u8).collect();
            check(&units[start..]);
        }
    }
}

#[test]
fn each_length_at_each_position_of_a_block() {
    for (other, _) in LENGTHS {
        for (first, last) in LENGTHS {
            for at in 0..3 * BLOCK {
                for unit in [first, last] {
                    let mut units = vec![other; 3 * BLOCK];
                    units[at] = unit;
                    check_forms(&units);
                    check_forms(&units[..=at]);
                }
            }
        }
    }
}

#[test]
fn random_mixtures_of_any_length() {
    let mut random = Random(2);
    for _ in 0..examples(300) {
        let mut units = Vec::new();
        for _ in 0..random.below(6) {
            let mixture = random.pick(&MIXTURES);
            let count = random.below(3 * SCRATCH);
            units.extend(text(&mut random, mixture, count));
        }
        check_forms(&units);
    }
}

#[test]
fn surrogates_at_each_position_of_a_block() {
    let inserted: [&[u32]; 9] = [
        &[0xD800],
        &[0xDFFF],
        &[0xD800, 0xDC00],
        &[0xDBFF, 0xDFFF],
        &[0xDC00, 0xD800],
        &[0xD83D, 0xD83D, 0xDE00],
        &[0xD83D, 0xDE00, 0xDE00],
        &[0xD83D, 0x1_F600],
        &[0x1_F600, 0xDE00],
    ];
    for other in ['a', 'я', '語', '\u{1F600}'] {
        for surrogates in inserted {
            for at in 0..=2 * BLOCK {
                let mut units = vec![u32::from(other); 2 * BLOCK];
                units.splice(at..at, surrogates.iter().copied());
                check_forms(&units);
                for cut in at..at + surrogates.len() {
                    check_forms(&units[..=cut]);
                }
            }
        }
    }
}

#[test]
fn many_surrogates() {
    let mut random = Random(3);
    for _ in 0..examples(300) {
        let units: Vec<u32> = (0..random.below(2 * SCRATCH))
            .map(|_| match random.below(4) {
                0 => 0xD800 + random.below(0x400) as u32,
                1 => 0xDC00 + random.below(0x400) as u32,
                _ => character(&mut random, &[1, 2, 3, 4]),
            })
            .collect();
        check(&units);
        check(&units.iter().map(|&unit| unit as u16).collect::<Vec<_>>());
    }
}

#[test]
fn pairs_across_the_end_of_the_scratch() {
    for first in 0..2 * BLOCK {
        let mut units = vec![u16::from(b'a'); first];
        units.extend([0xD83D, 0xDE00].repeat(SCRATCH));
        check(&units);
    }
}

#[test]
fn texts_that_end_with_the_scratch() {
    for (first, last) in LENGTHS {
        let length = length(last) as usize;
        for count in (SCRATCH - 2 * SPACE) / length..(SCRATCH + SPACE) / length {
            check_forms(&vec![first; count]);
        }
    }
}

#[test]
fn texts_that_do_not_go_on_as_they_begin() {
    for first in ['a', 'я', '語', '\u{1F600}'] {
        for second in ['a', 'я', '語', '\u{1F600}'] {
            let units: Vec<u32> =
                [first, second].iter().flat_map(|&c| [u32::from(c)].repeat(20_000)).collect();
            check_forms(&units);
        }
    }
}

#[test]
fn what_is_not_a_code_point_is_replaced() {
    for unit in [0x11_0000, 0x11_D800, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
        for other in ['a', 'я', '語', '\u{1F600}'] {
            for at in 0..2 * BLOCK {
                let mut units = vec![u32::from(other); 2 * BLOCK];
                units[at] = unit;
                let mut expected = String::from(other).repeat(at);
                expected.push(char::REPLACEMENT_CHARACTER);
                expected.push_str(&String::from(other).repeat(2 * BLOCK - at - 1));
                for tier in Tier::available() {
                    let found = tier.force(|| from_units(&units)).unwrap();
                    assert_eq!(found, expected.as_bytes(), "{} {unit:X}", tier.name());
                }
            }
        }
    }
}

#[test]
fn memory_is_in_proportion_to_the_text() {
    let mut random = Random(4);
    for mixture in MIXTURES {
        let short = text(&mut random, mixture, 900);
        let long = text(&mut random, mixture, 100_000);
        for tier in Tier::available() {
            let found = tier.force(|| from_units(&short)).unwrap();
            assert!(found.capacity() < found.len() + SPACE);
            let found = tier.force(|| from_units(&long)).unwrap();
            assert!(found.capacity() < found.len() / 4 * 5);
        }
    }
}
