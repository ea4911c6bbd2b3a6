//! Operations on one class, as regex-syntax represents it: a sorted list of ranges of characters.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// The class that an expression matches one character of; `None` if it can match anything else.
pub(crate) fn class_of(hir: &Hir) -> Option<ClassUnicode> {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.clone()),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class(),
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0).ok()?.chars();
            let only = chars.next()?;
            chars.next().is_none().then(|| class_of_char(only))
        }
        HirKind::Capture(capture) => class_of(&capture.sub),
        _ => None,
    }
}

/// The class of one character.
pub(crate) fn class_of_char(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

pub(crate) fn contains(class: &ClassUnicode, c: char) -> bool {
    let ranges = class.ranges();
    let after = ranges.partition_point(|range| range.start() <= c);
    after > 0 && c <= ranges[after - 1].end()
}

pub(crate) fn is_subset(part: &ClassUnicode, whole: &ClassUnicode) -> bool {
    let mut outside = part.clone();
    outside.difference(whole);
    outside.ranges().is_empty()
}
