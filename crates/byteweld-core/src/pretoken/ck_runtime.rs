//! The scanner of ck's C runtime, whose pattern is the only one that matches bytes instead of characters.
//!
//! A byte is a mark unless it is an ASCII letter, digit, space, newline, tab or carriage return, so all bytes of
//! non-ASCII characters are marks. The first two bytes of a pre-token tell what kind it is, so one pass without
//! backtracking finds its end.

/// The pattern's source. `(?-u)` makes a regular expression match bytes; no other pattern may contain it.
pub(super) const SOURCE: &str = r"(?-u)[^A-Za-z0-9 \n\t\r]?[A-Za-z]+|[0-9]| ?[^A-Za-z0-9 \n\t\r]+\n*| +\n+| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|(?s:.)";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    Newline,
    /// A tab or carriage return, which is always a pre-token by itself.
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

/// The end of a run of a class that continues at offset `at`.
fn run_end(text: &[u8], at: usize, class: Class) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.iter().position(|&byte| CLASSES[usize::from(byte)] != class);
    length.map_or(text.len(), |length| at + length)
}

/// The end of the pre-token that starts at offset `at`, which is less than the length.
#[inline]
pub(super) fn end(text: &[u8], at: usize) -> usize {
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

/// The end of marks that continue at `at`, and of the newlines after them.
fn marks_end(text: &[u8], at: usize) -> usize {
    run_end(text, run_end(text, at, Class::Mark), Class::Newline)
}

/// The end of spaces that continue at `at`: after the newlines that follow them, or before the last space if a letter
/// or digit follows, since that space begins the next pre-token.
fn spaces_end(text: &[u8], at: usize) -> usize {
    let end = run_end(text, at, Class::Space);
    match class_at(text, end) {
        Some(Class::Newline) => run_end(text, end, Class::Newline),
        Some(Class::Letter | Class::Digit) => end - 1,
        _ => end,
    }
}

/// The last cut point, at most `limit`: between its two bytes, any text may be cut. `limit` is less than the length.
pub(super) fn last_cut(text: &[u8], limit: usize) -> Option<usize> {
    (1..=limit)
        .rev()
        .find(|&p| is_cut(CLASSES[usize::from(text[p - 1])], CLASSES[usize::from(text[p])]))
}

/// Whether a pre-token ends between two bytes of these classes, whatever surrounds them.
fn is_cut(before: Class, after: Class) -> bool {
    match before {
        Class::Digit | Class::Alone => true,
        Class::Letter | Class::Newline => before != after,
        // Newlines join the marks before them, and a single mark joins the letters after it.
        Class::Mark => matches!(after, Class::Digit | Class::Space | Class::Alone),
        // A space joins nearly everything after it, and so may the last of several.
        Class::Space => after == Class::Alone,
    }
}

/// The end of the last pre-token that no further text can change; 0 if there is none.
pub(super) fn certain_end(text: &[u8]) -> usize {
    let (mut at, mut certain) = (0, 0);
    while at < text.len() {
        at = end(text, at);
        // Either the byte after it has been seen, or it ends in a byte that nothing joins.
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
