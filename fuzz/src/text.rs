//! Decodes an input to text that is rich in what patterns tell apart, and in bytes that are not text.

use crate::input::Input;

/// What the rules of the scanners are about, and what lies across the edges of their blocks.
#[rustfmt::skip]
const FRAGMENTS: [&str; 104] = [
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
    // White space, numbers, others, special tokens.
    "\u{A0}", "\u{3000}", "\u{85}", "\u{2028}", "\u{3000}\u{3000}", "٣", "٣٤٥٦", "²", "Ⅻ", "𝟘𝟙𝟚𝟛", "“", "”", "—", "…",
    "。", "、「", "😀", "👍🏽", "\u{FFFF}", "\u{200B}", "<|end|>",
];

/// Bytes that are not UTF-8, or not anymore.
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

const ASCII: &[u8; 40] = b" abcABCxyz019.'/\n\r\tdefDEFstSTrevlm<|>-_\0";

/// Decodes the rest of an input, up to about `max_bytes`.
pub(crate) fn text(input: &mut Input, max_bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut last = 0; // the start of the last piece
    while !input.is_empty() && text.len() < max_bytes {
        let start = text.len();
        let op = input.byte();
        match op {
            0..104 => text.extend_from_slice(FRAGMENTS[usize::from(op)].as_bytes()),
            104..120 => text.extend_from_slice(TORN[usize::from(op) - 104]),
            120..160 => text.push(ASCII[usize::from(op) - 120]),
            160..196 => text.push(input.byte()),
            196..226 => {
                let code_point = u32::from_le_bytes([input.byte(), input.byte(), input.byte(), 0]);
                let character = char::from_u32(code_point % 0x11_0000).unwrap_or('\u{FFFD}');
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            226..232 => {
                // Moves what follows to another place in its block.
                text.extend(std::iter::repeat_n(b'x', input.below(70)));
            }
            232..255 => {
                let byte = input.below(256);
                let times = if op < 253 { 1 + byte % 4 } else { byte % 90 };
                repeat(&mut text, last, times, max_bytes);
                continue;
            }
            255 => {
                let times = [1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 10, 40][input.below(12)];
                repeat(&mut text, 0, times, max_bytes);
                continue;
            }
        }
        last = start;
    }
    text
}

/// Repeats the end of a text.
fn repeat(text: &mut Vec<u8>, from: usize, times: usize, max_bytes: usize) {
    let end = text.len();
    for _ in 0..times {
        if text.len() + (end - from) <= max_bytes {
            text.extend_from_within(from..end);
        }
    }
}
