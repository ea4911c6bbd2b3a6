//! All strings that a small expression matches, as sequences of classes in order of preference.
//!
//! Contractions are such expressions: `'(?i:[sdmt]|ll|ve|re)` has four sequences. An expression with too many or too
//! long sequences has none.

use regex_syntax::hir::{ClassUnicode, Hir, HirKind};

use super::parts::Part;
use crate::pretoken::characters::{class_of, class_of_char};

/// Far more than any contraction needs.
pub(super) const MAX_SEQUENCES: usize = 64;
const MAX_CHARACTERS: usize = 32;

pub(super) type Sequence = Vec<ClassUnicode>;

/// The sequences of an alternative's last parts, if those are absent or one optional part; an absent part has none.
pub(super) fn expand_optional(parts: &[Part]) -> Option<Vec<Sequence>> {
    match parts {
        [] => Some(Vec::new()),
        [Part::Repeat(class, 0, Some(1))] => Some(vec![vec![class.clone()]]),
        [Part::Other(hir)] => match hir.kind() {
            HirKind::Repetition(repeat) if repeat.min == 0 && repeat.max == Some(1) => {
                expand(&repeat.sub).filter(|sequences| !sequences.iter().any(Vec::is_empty))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The sequences of parts, one after the other.
pub(super) fn expand_parts(parts: &[Part]) -> Option<Vec<Sequence>> {
    let expanded = parts.iter().map(|part| match part {
        Part::Repeat(class, min, max) => repeat(&[vec![class.clone()]], *min, (*max)?),
        Part::Other(hir) => expand(hir),
    });
    concat(expanded)
}

/// The sequences of an expression. The recursion is bounded, because the parser bounds how deep expressions nest.
fn expand(hir: &Hir) -> Option<Vec<Sequence>> {
    if let Some(class) = class_of(hir) {
        return Some(vec![vec![class]]);
    }
    match hir.kind() {
        HirKind::Capture(capture) => expand(&capture.sub),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(vec![text.chars().map(class_of_char).collect()])
        }
        HirKind::Concat(parts) => concat(parts.iter().map(expand)),
        HirKind::Alternation(list) => {
            let all = list.iter().map(expand).collect::<Option<Vec<_>>>()?.concat();
            (all.len() <= MAX_SEQUENCES).then_some(all)
        }
        HirKind::Repetition(repetition) if repetition.greedy => {
            repeat(&expand(&repetition.sub)?, repetition.min, repetition.max?)
        }
        _ => None,
    }
}

/// `X{min,max}`, greedy: more repeats of `X` are preferred to fewer.
fn repeat(sequences: &[Sequence], min: u32, max: u32) -> Option<Vec<Sequence>> {
    if max as usize > MAX_CHARACTERS || sequences.iter().any(Vec::is_empty) {
        return None;
    }
    let mut all = vec![Vec::new()];
    for count in (0..max).rev() {
        all = join(sequences, &all)?;
        if count >= min {
            all.push(Vec::new());
        }
    }
    Some(all)
}

fn concat(mut parts: impl Iterator<Item = Option<Vec<Sequence>>>) -> Option<Vec<Sequence>> {
    parts.try_fold(vec![Vec::new()], |all, part| join(&all, &part?))
}

/// Each sequence of `first` followed by each of `second`.
fn join(first: &[Sequence], second: &[Sequence]) -> Option<Vec<Sequence>> {
    if first.len().saturating_mul(second.len()) > MAX_SEQUENCES {
        return None;
    }
    let mut all = Vec::new();
    for start in first {
        for end in second {
            if start.len() + end.len() > MAX_CHARACTERS {
                return None;
            }
            all.push([&start[..], end].concat());
        }
    }
    Some(all)
}
