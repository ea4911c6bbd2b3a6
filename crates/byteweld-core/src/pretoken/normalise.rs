//! A pattern as a list of alternatives without look-around and possessive repeats, where that is exact.
//!
//! Three rewrites, each with its proof; a pattern that needs any other stays with the backtracking engine.
//!
//! 1. `X++R` to `X+R` (and `*+`, `?+`, `{m,n}+`): exact if `R` can match the empty text (then nothing ever
//!    forces the repeat to give back), or if no text that `R` matches starts with a character of `X` (then
//!    giving back one character of `X` can never help).
//! 2. `X+(?!Y)` where `Y` is any character: that is "the run reaches the end", `X+\z`.
//! 3. `X+(?!Y)` where `Y` is any character but those of `X`: the whole run if it reaches the end, else the
//!    run without its last character, if anything is left. That is `X+\z`, then `X+X` with the last
//!    character given back ([`Alternative::gives_back`]).

use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, translate::Translator};

/// One alternative of a pattern.
pub(super) struct Alternative {
    pub(super) hir: Hir,
    /// The match is one character shorter than what `hir` matches.
    pub(super) gives_back: bool,
}

/// The pattern's alternatives in order of preference, or `None` if one cannot be rewritten exactly.
pub(super) fn alternatives(pattern: &str) -> Option<Vec<Alternative>> {
    let mut list = Vec::new();
    for text in split_top_level(pattern)? {
        match text.find("(?!") {
            Some(at) => look_ahead(&text[..at], text[at + 3..].strip_suffix(')')?, &mut list)?,
            None => list.push(Alternative { hir: plain(text)?, gives_back: false }),
        }
    }
    Some(factored(pattern).unwrap_or(list))
}

/// A pattern without look-around and possessive repeats whose alternatives the parser joins into something else.
///
/// From `XY|XZ` it makes `X(?:Y|Z)`. If `X` can match in several ways, that prefers `XZ` with more of `X` to `XY`
/// with less, which Perl would not. The backtracking engine hands such a pattern to the same parser as a whole,
/// and tiktoken does so with it: we follow.
fn factored(pattern: &str) -> Option<Vec<Alternative>> {
    let ast = parse(pattern)?;
    if contains_nested_repeat(&ast) {
        return None;
    }
    let hir = translate(pattern, &ast)?;
    let is_joined = matches!(hir.kind(), HirKind::Concat(_)) && matches!(ast, Ast::Alternation(_));
    is_joined.then(|| vec![Alternative { hir, gives_back: false }])
}

/// Cuts a pattern at the `|` that stand outside of groups and classes.
fn split_top_level(pattern: &str) -> Option<Vec<&str>> {
    let (mut groups, mut classes) = (0usize, 0usize);
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut chars = pattern.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            '[' => classes += 1,
            ']' => classes = classes.checked_sub(1)?,
            '(' if classes == 0 => groups += 1,
            ')' if classes == 0 => groups = groups.checked_sub(1)?,
            '|' if classes == 0 && groups == 0 => {
                parts.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    (groups == 0 && classes == 0).then_some(parts)
}

/// Rewrites 2 and 3.
fn look_ahead(head: &str, forbidden: &str, list: &mut Vec<Alternative>) -> Option<()> {
    let ast = parse(head)?;
    let Ast::Repetition(outer) = &ast else { return None };
    let (repeat, possessive) = match &*outer.ast {
        Ast::Repetition(inner) if is_one_or_more(&outer.op) => (inner, true),
        _ => (outer, false),
    };
    if !is_one_or_more(&repeat.op) || !repeat.greedy {
        return None;
    }
    let run = class_of(&translate(head, &repeat.ast)?)?;
    let forbidden = class_of(&plain(forbidden)?)?;
    let mut not_run = run.clone();
    not_run.negate();
    let mut allowed = forbidden.clone();
    allowed.negate();

    let one = Hir::class(Class::Unicode(run));
    let some = plain_repeat(&one);
    let to_the_end = Hir::concat(vec![some.clone(), Hir::look(Look::End)]);
    if allowed.ranges().is_empty() {
        list.push(Alternative { hir: to_the_end, gives_back: false });
    } else if forbidden == not_run && !possessive {
        list.push(Alternative { hir: to_the_end, gives_back: false });
        list.push(Alternative { hir: Hir::concat(vec![some, one]), gives_back: true });
    } else {
        return None;
    }
    Some(())
}

fn plain_repeat(one: &Hir) -> Hir {
    Hir::repetition(regex_syntax::hir::Repetition {
        min: 1,
        max: None,
        greedy: true,
        sub: Box::new(one.clone()),
    })
}

/// An alternative without look-around, its possessive repeats made plain where rewrite 1 holds.
fn plain(text: &str) -> Option<Hir> {
    let hir = without_possessive(text, &parse(text)?)?;
    // Only "end of text" can be asked of what surrounds a match; anything else looks behind.
    let looks = hir.properties().look_set();
    let only_end = looks.remove(Look::End).is_empty();
    (only_end && hir.properties().minimum_len()? > 0).then_some(hir)
}

/// Applies rewrite 1 to the parts of a sequence, from its end; possessive repeats further inside are left
/// to the backtracking engine.
fn without_possessive(text: &str, ast: &Ast) -> Option<Hir> {
    let parts = match ast {
        Ast::Concat(concat) => &concat.asts[..],
        other => std::slice::from_ref(other),
    };
    let mut rest = Hir::empty();
    for part in parts.iter().rev() {
        let hir = match part {
            Ast::Flags(_) => return None, // would change the parts after it, which are taken one by one
            Ast::Repetition(outer) => match &*outer.ast {
                // `X++` parses as a repeat of a repeat.
                Ast::Repetition(inner)
                    if is_one_or_more(&outer.op) && outer.greedy && inner.greedy =>
                {
                    let plain_inside = !contains_nested_repeat(&inner.ast);
                    if !plain_inside || !may_drop_possession(&translate(text, &inner.ast)?, &rest) {
                        return None;
                    }
                    translate(text, &outer.ast)?
                }
                _ if contains_nested_repeat(part) => return None,
                _ => translate(text, part)?,
            },
            _ if contains_nested_repeat(part) => return None,
            _ => translate(text, part)?,
        };
        rest = Hir::concat(vec![hir, rest]);
    }
    Some(rest)
}

/// Whether a repeat stands directly on a repeat anywhere inside (a possessive one that we do not rewrite).
fn contains_nested_repeat(ast: &Ast) -> bool {
    match ast {
        Ast::Repetition(outer) => {
            matches!(*outer.ast, Ast::Repetition(_)) || contains_nested_repeat(&outer.ast)
        }
        Ast::Group(group) => contains_nested_repeat(&group.ast),
        Ast::Concat(concat) => concat.asts.iter().any(contains_nested_repeat),
        Ast::Alternation(alternation) => alternation.asts.iter().any(contains_nested_repeat),
        _ => false,
    }
}

fn may_drop_possession(body: &Hir, rest: &Hir) -> bool {
    // `$` and the like match nothing by themselves, but they can fail.
    let rest_always_matches =
        rest.properties().minimum_len() == Some(0) && rest.properties().look_set().is_empty();
    if rest_always_matches {
        return true;
    }
    let (Some(mut body), Some(first)) = (class_of(body), first_class(rest)) else { return false };
    body.intersect(&first);
    body.ranges().is_empty()
}

/// The characters that a match of `hir` can start with; `None` if that is not plain to see.
fn first_class(hir: &Hir) -> Option<ClassUnicode> {
    match hir.kind() {
        HirKind::Class(_) | HirKind::Literal(_) => class_of(hir).or_else(|| first_of_literal(hir)),
        HirKind::Capture(capture) => first_class(&capture.sub),
        HirKind::Repetition(repeat) if repeat.min > 0 => first_class(&repeat.sub),
        HirKind::Look(Look::End) => Some(ClassUnicode::empty()),
        HirKind::Concat(parts) => {
            let mut all = ClassUnicode::empty();
            for part in parts {
                let first = match part.kind() {
                    HirKind::Repetition(repeat) => first_class(&repeat.sub)?,
                    _ => first_class(part)?,
                };
                all.union(&first);
                if part.properties().minimum_len()? > 0
                    || matches!(part.kind(), HirKind::Look(Look::End))
                {
                    return Some(all);
                }
            }
            None
        }
        _ => None,
    }
}

fn first_of_literal(hir: &Hir) -> Option<ClassUnicode> {
    let HirKind::Literal(literal) = hir.kind() else { return None };
    let first = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
    Some(ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new(first, first)]))
}

/// The class that a one-character expression is.
pub(super) fn class_of(hir: &Hir) -> Option<ClassUnicode> {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.clone()),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class(),
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0).ok()?.chars();
            let only = chars.next()?;
            let range = regex_syntax::hir::ClassUnicodeRange::new(only, only);
            chars.next().is_none().then(|| ClassUnicode::new([range]))
        }
        HirKind::Capture(capture) => class_of(&capture.sub),
        _ => None,
    }
}

fn is_one_or_more(op: &ast::RepetitionOp) -> bool {
    matches!(op.kind, ast::RepetitionKind::OneOrMore)
}

fn parse(text: &str) -> Option<Ast> {
    ast::parse::Parser::new().parse(text).ok()
}

fn translate(text: &str, ast: &Ast) -> Option<Hir> {
    Translator::new().translate(text, ast).ok()
}
