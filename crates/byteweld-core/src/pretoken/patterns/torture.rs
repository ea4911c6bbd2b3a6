//! Text on which a scanner must agree with the backtracking engine before it is used.
//!
//! It is generated from the pattern's classes. To a scanner, a character is the set of classes that contain it. So all
//! short sequences of one character per set, and of characters that patterns often get wrong, cover every case of
//! every atom.

use crate::pretoken::characters::{Classes, unicode};

/// Special cases: contractions, the long s, unusual spaces, marks, title case, non-decimal digits, letters without
/// case, a Han character that is not a letter, a noncharacter.
const SPECIAL: &str = "a Z1'slVre\n\r\t/.ſ\u{a0}\u{2028}\u{85}\u{301}ǅʰ中〇²é\u{FFFF}";

/// Number of kinds that appear in all sequences of three; with more, this would take too long. All kinds appear in all
/// sequences of two.
const MAX_TRIPLE_KINDS: usize = 24;

/// One character of each kind. Two characters are of the same kind if they have the same classes and are both ASCII or
/// both not.
fn kinds(classes: &Classes) -> Vec<char> {
    let starts = unicode::runs().map(|run| run.first);
    let edges = classes.patched().flat_map(|range| [range.start, range.end]);
    let candidates = (0..128).chain(starts).chain(edges).filter_map(char::from_u32);
    let mut kinds: Vec<char> = Vec::new();
    let mut seen = Vec::new();
    for c in SPECIAL.chars().chain(candidates) {
        let kind = (classes.of(c), c.is_ascii());
        if !seen.contains(&kind) {
            seen.push(kind);
            kinds.push(c);
        }
    }
    kinds
}

/// The strings to compare on. Many are short, because the end of the text matters.
pub(crate) fn texts(classes: &Classes) -> Vec<String> {
    let kinds = kinds(classes);
    let mut texts = vec![all_triples(&kinds[..kinds.len().min(MAX_TRIPLE_KINDS)])];
    let all: Vec<char> = kinds.iter().copied().chain(SPECIAL.chars()).collect();
    texts.push(all.iter().flat_map(|&a| all.iter().flat_map(move |&b| [a, b, b])).collect());
    for &a in &kinds {
        texts.extend(["", "a", " ", "\n", "'", "  ", "\n "].map(|before| format!("{before}{a}")));
        texts.extend([" ", "  ", "\n ", " \n", "'s", "'LL"].map(|after| format!("{a}{after}")));
        texts.push((1..=9).map(|n| format!("{}b1 ", a.to_string().repeat(n))).collect());
    }
    texts.push((0..=64).map(block_edges).collect());
    texts
}

/// Runs of `n` bytes: scanners process eight bytes or more at a time.
fn block_edges(n: usize) -> String {
    let (lower, upper, digits) = ("x".repeat(n), "X".repeat(n), "7".repeat(n % 11));
    let (spaces, dots) = (" ".repeat(n), ".".repeat(n));
    format!(
        "{lower}'s {lower}é{upper}y'RE {upper}\u{301}{digits}a{lower}中{digits}{spaces}b{dots}\r\n{spaces}\n\
         {spaces}é{lower}\n"
    )
}

/// A string that contains each sequence of three of the characters once: a de Bruijn sequence, built greedily by
/// appending the last character that has not followed the current pair yet.
fn all_triples(kinds: &[char]) -> String {
    let count = kinds.len();
    let mut unused = vec![count; count * count];
    let (mut before, mut last) = (0, 0);
    let mut text: String = kinds.iter().take(1).cycle().take(2).collect();
    while let Some(left) = unused.get_mut(before * count + last).filter(|left| **left > 0) {
        *left -= 1;
        (before, last) = (last, *left);
        text.push(kinds[last]);
    }
    text
}

#[cfg(test)]
mod tests;
