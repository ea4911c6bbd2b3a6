//! Texts on which a scanner must agree with the backtracking engine before it is used.
//!
//! They are made for the spec: characters are told apart by its classes only, so one of each kind (and some
//! that patterns are known to be wrong about) in all short sequences meets every case of every atom.

use super::classes::Classes;
use super::unicode;

/// Characters that have their own story: contractions, the long s, odd spaces, marks, titlecase, digits that are
/// not decimal, letters without case, Han that is no letter, a noncharacter.
const KNOWN: &str = "a Z1'slVre\n\r\t/.ſ\u{a0}\u{2028}\u{85}\u{301}ǅʰ中〇²é\u{FFFF}";

/// Sequences of three over more kinds than this would take too long; the others come in twos.
const IN_THREES: usize = 24;

/// One character or two of every kind that the classes tell apart.
fn kinds(classes: &Classes) -> Vec<char> {
    let starts = unicode::runs().map(|run| run.first);
    let edges = classes.patched().flat_map(|range| [range.start, range.end]);
    let candidates = (0..128).chain(starts).chain(edges).filter_map(char::from_u32);
    let mut kinds: Vec<char> = Vec::new();
    let mut seen = Vec::new();
    for c in KNOWN.chars().chain(candidates) {
        let kind = (classes.of(c), c.is_ascii());
        if !seen.contains(&kind) {
            seen.push(kind);
            kinds.push(c);
        }
    }
    kinds
}

/// The texts. Where a text ends matters, so there are many short ones.
pub(super) fn texts(classes: &Classes) -> Vec<String> {
    let kinds = kinds(classes);
    let mut texts = vec![in_threes(&kinds[..kinds.len().min(IN_THREES)])];
    let all: Vec<char> = kinds.iter().copied().chain(KNOWN.chars()).collect();
    texts.push(all.iter().flat_map(|&a| all.iter().flat_map(move |&b| [a, b, b])).collect());
    for &a in &kinds {
        texts.extend(["", "a", " ", "\n", "'", "  ", "\n "].map(|before| format!("{before}{a}")));
        texts.extend([" ", "  ", "\n ", " \n", "'s", "'LL"].map(|after| format!("{a}{after}")));
        texts.push((1..=9).map(|n| format!("{}b1 ", a.to_string().repeat(n))).collect());
    }
    texts.push((0..=64).map(block_edges).collect());
    texts
}

/// Runs that end `n` bytes on: scanners take eight bytes or more at a time.
fn block_edges(n: usize) -> String {
    let (lower, upper, digits) = ("x".repeat(n), "X".repeat(n), "7".repeat(n % 11));
    let (spaces, dots) = (" ".repeat(n), ".".repeat(n));
    format!(
        "{lower}'s {lower}é{upper}y'RE {upper}\u{301}{digits}a{lower}中{digits}{spaces}b{dots}\r\n{spaces}\n\
         {spaces}é{lower}\n"
    )
}

/// A text that holds every sequence of three of the characters once (a de Bruijn sequence: greedily the last
/// unused character after each pair).
fn in_threes(kinds: &[char]) -> String {
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
