//! The pattern of ck's C runtime, the one that is over bytes instead of characters.
//!
//! Every byte that is not an ASCII letter, a digit, a space, a newline, a tab or a return is a mark, so all bytes of
//! a non-ASCII character are. The first byte of a pre-token, or its second, says which alternative matches, so one
//! pass without backtracking finds the end.

use std::ops::ControlFlow;

use super::scanner::Pieces;

/// The pattern's source. `(?-u)` is how regular expressions say that they match bytes; no other pattern may.
pub(super) const SOURCE: &str = r"(?-u)[^A-Za-z0-9 \n\t\r]?[A-Za-z]+|[0-9]| ?[^A-Za-z0-9 \n\t\r]+\n*| +\n+| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|(?s:.)";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    Newline,
    /// A tab or a return, which is always a pre-token by itself.
    Alone,
    Mark,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' => Class::Space,
            b'\n' => Class::Newline,
            b'\t' | b'\r' => Class::Alone,
            _ => Class::Mark,
        };
        byte += 1;
    }
    classes
};

fn class_at(text: &[u8], at: usize) -> Option<Class> {
    text.get(at).map(|&byte| CLASSES[usize::from(byte)])
}

/// Where the run of a class that goes on at `at` ends.
fn run_end(text: &[u8], at: usize, class: Class) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.iter().position(|&byte| CLASSES[usize::from(byte)] != class);
    length.map_or(text.len(), |length| at + length)
}

/// The end of the pre-token that starts at `at`, which is less than the length.
fn end(text: &[u8], at: usize) -> usize {
    let next = class_at(text, at + 1);
    match CLASSES[usize::from(text[at])] {
        Class::Letter => run_end(text, at + 1, Class::Letter),
        Class::Mark if next == Some(Class::Letter) => run_end(text, at + 2, Class::Letter),
        Class::Mark => marks_end(text, at + 1),
        Class::Newline => run_end(text, at + 1, Class::Newline),
        Class::Digit | Class::Alone => at + 1,
        Class::Space => match next {
            Some(Class::Mark) => marks_end(text, at + 2),
            Some(Class::Letter) => run_end(text, at + 2, Class::Letter),
            Some(Class::Digit) => at + 2,
            _ => spaces_end(text, at + 1),
        },
    }
}

/// The end of marks that go on at `at`, with the newlines after them.
fn marks_end(text: &[u8], at: usize) -> usize {
    run_end(text, run_end(text, at, Class::Mark), Class::Newline)
}

/// The end of spaces that go on at `at`: with the newlines after them, or without the last space if a word or a
/// digit follows, which takes it.
fn spaces_end(text: &[u8], at: usize) -> usize {
    let end = run_end(text, at, Class::Space);
    match class_at(text, end) {
        Some(Class::Newline) => run_end(text, end, Class::Newline),
        Some(Class::Letter | Class::Digit) => end - 1,
        _ => end,
    }
}

/// Gives all pre-tokens, in order; all are matches.
#[inline]
pub(super) fn for_each(text: &[u8], pieces: &mut impl Pieces) {
    let mut at = 0;
    while at < text.len() {
        let end = end(text, at);
        if let ControlFlow::Break(()) = pieces.piece(at, end, true) {
            return;
        }
        at = end;
    }
}

/// The last place, at most `limit`, where every text may be cut that has these bytes on both sides of it. `limit` is
/// less than the length.
pub(super) fn last_cut(text: &[u8], limit: usize) -> Option<usize> {
    (1..=limit)
        .rev()
        .find(|&p| is_cut(CLASSES[usize::from(text[p - 1])], CLASSES[usize::from(text[p])]))
}

/// Whether a pre-token ends between two bytes of these classes, whatever is before and after them.
fn is_cut(before: Class, after: Class) -> bool {
    match before {
        Class::Digit | Class::Alone => true,
        Class::Letter | Class::Newline => before != after,
        // A newline joins marks before it, and a single mark joins letters after it.
        Class::Mark => matches!(after, Class::Digit | Class::Space | Class::Alone),
        // A space joins nearly everything, and the last of several may join what follows it.
        Class::Space => after == Class::Alone,
    }
}

/// The end of the last pre-token that no further text can change; 0 if there is none.
pub(super) fn certain_end(text: &[u8]) -> usize {
    let (mut at, mut certain) = (0, 0);
    while at < text.len() {
        at = end(text, at);
        // Before the end, the byte that ended it was seen; nothing joins a digit, a tab or a return.
        if at < text.len()
            || matches!(CLASSES[usize::from(text[at - 1])], Class::Digit | Class::Alone)
        {
            certain = at;
        }
    }
    certain
}

#[cfg(test)]
mod tests;
