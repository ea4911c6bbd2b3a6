//! Blocks: in every tier, whatever the text, they cut where the scanner does that goes character by character.

use super::scanner::{FIELD, scanner_of};
use crate::cpu::Tier;
use crate::pretoken::bits::MAX_ENDS;
use crate::pretoken::*;
use crate::testing::examples;

/// Variations of the field's patterns in what the bits depend on.
const VARIATIONS: [(&str, &str); 6] = [
    (
        "o200k, marks are no letters",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]*[\p{Ll}\p{Lm}\p{Lo}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]+[\p{Ll}\p{Lm}\p{Lo}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "o200k, marks are letters only",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'s|'t)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "tekken, only a space before a word",
        r" ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]*[\p{Ll}\p{Lm}\p{Lo}]+| ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]+[\p{Ll}\p{Lm}\p{Lo}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    ),
    (
        "o200k, only a space before a word, marks are both",
        r" ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+| ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    ),
    (
        "cl100k, five digits, no contractions",
        r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,5}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "gpt2, letters of a few scripts",
        r"'s| ?[a-zA-Zа-яА-Я一-龥]+| ?[0-9٠-٩]+| ?[^\sa-zA-Zа-яА-Я一-龥0-9٠-٩]+|\s+(?!\S)|\s+",
    ),
];

/// A pattern that runs by blocks.
struct Case {
    name: &'static str,
    scanner: Scanner,
    bits: Bits,
}

impl Case {
    fn new((name, pattern): (&'static str, &str)) -> Option<Self> {
        let scanner = scanner_of(pattern);
        bits_of(pattern).map(|bits| Self { name, scanner, bits })
    }

    fn all() -> Vec<Self> {
        FIELD.into_iter().chain(VARIATIONS).filter_map(Self::new).collect()
    }

    /// One for each shape that has its own code, and one that has not.
    fn few() -> Vec<Self> {
        let names = ["gpt2", "cl100k", "o200k", "tekken", "tekken, only a space before a word"];
        let few: Vec<_> =
            Self::all().into_iter().filter(|case| names.contains(&case.name)).collect();
        assert_eq!(few.len(), names.len());
        few
    }

    fn check(&self, text: &[u8]) {
        let (mut expected, mut last_run) = (Vec::new(), LastRun::default());
        while let at = expected.last().map_or(0, |end| *end)
            && at < text.len()
        {
            let (end, is_match) = self.scanner.next(text, at, &mut last_run);
            assert!(is_match);
            expected.push(end);
        }
        for tier in Tier::available() {
            let found = tier.force(|| self.ends(text));
            if let Some(at) = found.iter().zip(&expected).position(|(a, b)| a != b) {
                let from = at.checked_sub(1).map_or(0, |before| expected[before]);
                let shown = |to: usize| String::from_utf8_lossy(&text[from..to]).into_owned();
                let before = String::from_utf8_lossy(&text[from.saturating_sub(90)..from]);
                let (found, expected) = (shown(found[at]), shown(expected[at]));
                panic!(
                    "{}, {tier:?}, at {from} of {}: {found:?} and not {expected:?} after {before:?}",
                    self.name,
                    text.len()
                );
            }
            assert_eq!(found.len(), expected.len(), "{}, {tier:?}", self.name);
        }
    }

    /// The ends that blocks give.
    fn ends(&self, text: &[u8]) -> Vec<usize> {
        let mut scan = Scan::new(&self.bits, &self.scanner, text);
        let (mut found, mut ends) = (Vec::new(), [0; MAX_ENDS]);
        loop {
            let start = scan.start();
            match scan.fill(&mut ends).unwrap() {
                0 => return found,
                count => found.extend(ends[..count].iter().map(|&end| start + end as usize)),
            }
        }
    }
}

fn bits_of(pattern: &str) -> Option<Bits> {
    let alternatives = normalize::alternatives(pattern)?;
    Bits::new(&Spec::new(&alternatives)?, &scanner_of(pattern))
}

#[test]
fn patterns_of_the_family_run_by_blocks() {
    let names: Vec<&str> = Case::all().iter().map(|case| case.name).collect();
    let field = [
        "gpt2",
        "gpt2, new",
        "cl100k",
        "cl100k, old; llama3",
        "qwen2",
        "qwen3.5",
        "o200k",
        "tekken",
        "nanochat",
        "ck",
    ];
    assert_eq!(names, [&field[..], &VARIATIONS.map(|(name, _)| name)].concat());
}

#[test]
fn patterns_with_a_character_that_no_rule_is_for_do_not() {
    for (what, pattern) in [
        (
            "a mark is both where there are no cases",
            r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        ),
        (
            "a contraction ends a word of two cases",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        ("a letter is none", r" ?[a-zA-Zé]+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
        (
            "a dash may not stand before a word",
            r"[^\r\n\p{L}\p{N}—]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ] {
        assert!(bits_of(pattern).is_none(), "{what}");
    }
}

/// Numbers that look random and are the same every time.
fn random(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

/// What the rules of blocks are about, and what lies across their edges.
#[rustfmt::skip]
const FRAGMENTS: [&str; 103] = [
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", " \t ", "a", "hello", "World", "fooBar", "ABC",
    "1", "12", "123", "1234567", "!", "!!", "/", "//", "/\n", "'", "'s", "'S", "'ll", "'LL", "'re", "'x", "''",
    "don't", "I'Ve", "'\u{17F}",
    // Letters of two bytes, three and four; of one case, of the other, of both.
    "é", "É", "Ünï", "й", "Й", "Привет", "МИР", "Ωμέγα", "ΑΒΓ", "ǅ", "ʰ", "ſ", "ẞ", "Ａｂ", "𝐀", "𝐚", "𐐀𐐨", "日本語",
    "中", "中A", "中Ab", "aA中", "ABC中", "中文ABC", "한국어", "ไทย", "हिन्दी", "العربية", "𠀀", "ー",
    // Marks, and others before them.
    "\u{301}", "\u{301}\u{308}", "e\u{301}", "E\u{301}A", ".\u{301}", "..\u{301}", " .\u{301}", "\u{FE0F}", "❤\u{FE0F}",
    "1\u{FE0F}\u{20E3}", "/\u{301}", "\n/.\u{301}", "\n/\u{301}", "\u{301}/\n", "\u{301}\n/", "'\u{301}", "\u{301}'s",
    "\u{E0100}",
    // White space, numbers, others.
    "\u{A0}", "\u{3000}", "\u{85}", "\u{2028}", "\u{3000}\u{3000}", "٣", "٣٤٥٦", "²", "Ⅻ", "𝟘𝟙𝟚𝟛", "“", "”", "—", "…",
    "。", "、「", "😀", "👍🏽", "\u{FFFF}", "\u{200B}",
];

/// Bytes that are no text, or no more.
const TORN: [&[u8]; 16] = [
    b"\x80",
    b"\xBF\xBF",
    b"\xC0\x80",
    b"\xC1\xBF",
    b"\xC3",
    b"\xE0\x9F\xBF",
    b"\xE4\xB8",
    b"\xE4",
    b"\xED\xA0\x80",
    b"\xEF\xBF",
    b"\xF0\x8F\xBF\xBF",
    b"\xF0\x9F\x98",
    b"\xF0\x9F",
    b"\xF4\x90\x80\x80",
    b"\xF8\x88\x80\x80\x80",
    b"\xFF",
];

/// Fragments in any order; `all` of them, or fewer.
fn soup(random: &mut impl FnMut(usize) -> usize, all: &[&str]) -> Vec<u8> {
    // A few kinds of fragment at a time, so that runs and edges of all kinds come about.
    let few: Vec<&str> = (0..1 + random(12)).map(|_| all[random(all.len())]).collect();
    let length = if random(8) == 0 { 5000 } else { 1 + random(800) };
    let repeat = random(4) == 0;
    let torn = if random(3) == 0 { 30 } else { 1000 };
    let mut text = Vec::new();
    while text.len() < length {
        let fragment = few[random(few.len())].as_bytes();
        let times = if repeat && random(6) == 0 { random(90) } else { 1 };
        for _ in 0..times {
            text.extend_from_slice(fragment);
        }
        if random(torn) == 0 {
            text.extend_from_slice(TORN[random(TORN.len())]);
        }
        if random(40) == 0 {
            text.extend(std::iter::repeat_n(b'x', random(70)));
        }
    }
    if random(2) == 0 {
        text.pop(); // may leave a torn character
    }
    text
}

#[test]
fn mixed_text_is_cut_as_the_scanner_does() {
    let mut random = random(0x9E37_79B9_7F4A_7C15);
    for case in Case::all() {
        for _ in 0..examples(300) {
            case.check(&soup(&mut random, &FRAGMENTS));
        }
    }
}

#[test]
fn mixed_ascii_is_cut_as_the_scanner_does() {
    let ascii: Vec<&str> = FRAGMENTS.into_iter().filter(|fragment| fragment.is_ascii()).collect();
    let mut random = random(0x5851_F42D_4C95_7F2D);
    for case in Case::all() {
        for _ in 0..examples(500) {
            let mut text = soup(&mut random, &ascii);
            text.retain(u8::is_ascii);
            case.check(&text);
        }
    }
}

#[test]
fn long_numbers_are_cut_as_the_scanner_does() {
    let mut random = random(0x1405_7B7E_F767_814F);
    for case in Case::all() {
        for round in 0..examples(60) {
            let mut text = String::new();
            while text.len() < 200 + random(9000) {
                let digit = if round % 4 == 0 { ["7", "٣", "𝟘", "²"][random(4)] } else { "7" };
                let times = [1, 2, 3, 4, 6, 64, 192, 5000][random(8)];
                text += &digit.repeat(times + random(4));
                text += ["", "", " ", "a", ".", " x", "\n", "'s"][random(8)];
            }
            case.check(text.as_bytes());
        }
    }
}

#[test]
fn every_code_point_is_cut_as_the_scanner_does() {
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    // Private and unassigned ones are all alike: of most of them, one in 61 will do.
    let assigned = |c: char| (c as u32) < 0x3_2000 || (0xE_0000..0xE_0200).contains(&(c as u32));
    let texts: Vec<String> = all
        .chunks(1 << 10)
        .map(|chunk| {
            let chosen = chunk.iter().filter(|&&c| assigned(c) || (c as u32).is_multiple_of(61));
            chosen.map(|c| format!("{c} a{c}B.{c}'s 1{c}\n{c}")).collect()
        })
        .collect();
    for case in Case::few() {
        for text in &texts {
            case.check(text.as_bytes());
        }
    }
}

#[test]
fn every_offset_in_a_block_is_cut_as_the_scanner_does() {
    let cases = Case::few();
    let fragments = FRAGMENTS.iter().map(|fragment| fragment.as_bytes()).chain(TORN);
    for fragment in fragments {
        for before in ["x", "X", " ", "中"] {
            for offset in 0..64 {
                let mut text = before.repeat(offset / before.len()).into_bytes();
                text.resize(offset, b'x');
                for behind in ["x", "Xy", ".\u{301}", "\u{301}A ", " ", "\n", "'sA"] {
                    text.extend_from_slice(fragment);
                    text.extend_from_slice(behind.as_bytes());
                    text.resize(text.len().next_multiple_of(64) + offset, b'-');
                }
                cases.iter().for_each(|case| case.check(&text));
            }
        }
    }
}

#[test]
fn bytes_in_any_order_are_cut_as_the_scanner_does() {
    let bytes =
        [b'a', b'A', b' ', b'.', 0x80, 0xBF, 0xC3, 0xCC, 0xE0, 0xE4, 0xED, 0xF0, 0xF4, 0xFF];
    let mut random = random(0x2545_F491_4F6C_DD1D);
    let cases = Case::all();
    for _ in 0..examples(800) {
        let text: Vec<u8> = (0..130 + random(80)).map(|_| bytes[random(bytes.len())]).collect();
        cases.iter().for_each(|case| case.check(&text));
    }
}

#[test]
fn long_mixed_text_is_cut_as_the_backtracking_engine_does() {
    let mut random = random(0xDA94_2042_E4DD_58B5);
    for (name, pattern) in FIELD.into_iter().chain(VARIATIONS) {
        let Some(bits) = bits_of(pattern) else { continue };
        let case = Case { name, scanner: scanner_of(pattern), bits };
        let backtracker = Backtracker::new(pattern).unwrap();
        for _ in 0..60 {
            let text = String::from_utf8_lossy(&soup(&mut random, &FRAGMENTS)).into_owned();
            assert!(agree_on(&text, &case.scanner, &backtracker), "{name}: {text:?}");
            case.check(text.as_bytes());
        }
    }
}
