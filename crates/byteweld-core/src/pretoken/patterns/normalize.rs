//! Normalizes a pattern: a list of alternatives without look-around or possessive repeats.
//!
//! Three rewrites make this possible, each proved exact. A pattern that needs another one stays with the backtracking
//! engine.
//!
//! 1. `X++R` becomes `X+R` (likewise `*+`, `?+`, `{m,n}+`) if `R` can match the empty string, so the repeat never has
//!    to give back, or if no match of `R` starts with a character of `X`, so giving one back cannot help.
//! 2. `X+(?!Y)` where `Y` is any character becomes `X+\z`: the run must reach the end of the text.
//! 3. `X+(?!Y)` where `Y` is any character outside `X` matches the run if it reaches the end of the text, else all but
//!    its last character. It becomes two alternatives: `X+\z`, then `X+X` with the last character given back
//!    ([`Alternative::gives_back`]).

use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};

use crate::pretoken::characters::{class_of, class_of_char};

/// One alternative of a pattern.
pub(crate) struct Alternative {
    pub(crate) hir: Hir,
    /// The match ends one character before the match of `hir`.
    pub(crate) gives_back: bool,
}

/// The pattern's alternatives in order of preference; `None` if one cannot be rewritten exactly.
pub(crate) fn alternatives(pattern: &str) -> Option<Vec<Alternative>> {
    let mut list = Vec::new();
    for text in split_top_level(pattern)? {
        match text.find("(?!") {
            Some(at) => list.extend(look_ahead(&text[..at], text[at + 3..].strip_suffix(')')?)?),
            None => list.push(Alternative { hir: plain(text)?, gives_back: false }),
        }
    }
    Some(factored(pattern).unwrap_or(list))
}

/// The pattern as one alternative, if the parser factors its alternatives and nothing has to be rewritten.
///
/// The parser turns `XY|XZ` into `X(?:Y|Z)`. If `X` can match in several ways, this prefers `XZ` with a longer `X` to
/// `XY` with a shorter one; Perl does not. fancy-regex, and so tiktoken, gives such a pattern to this parser as a
/// whole, and we do the same.
fn factored(pattern: &str) -> Option<Vec<Alternative>> {
    let ast = parse(pattern)?;
    if contains_nested_repeat(&ast) {
        return None;
    }
    let hir = translate(pattern, &ast)?;
    let is_factored =
        matches!(hir.kind(), HirKind::Concat(_)) && matches!(ast, Ast::Alternation(_));
    is_factored.then(|| vec![Alternative { hir, gives_back: false }])
}

/// Splits a pattern at each `|` outside groups and classes.
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

/// Rewrites 2 and 3, for `head(?!forbidden)`.
fn look_ahead(head: &str, forbidden: &str) -> Option<Vec<Alternative>> {
    let ast = parse(head)?;
    let Ast::Repetition(outer) = &ast else { return None };
    let (repeat, is_possessive) = match &*outer.ast {
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
    let some = one_or_more(&one);
    let at_end = Hir::concat(vec![some.clone(), Hir::look(Look::End)]);
    let at_end = Alternative { hir: at_end, gives_back: false };
    if allowed.ranges().is_empty() {
        Some(vec![at_end])
    } else if forbidden == not_run && !is_possessive {
        Some(vec![at_end, Alternative { hir: Hir::concat(vec![some, one]), gives_back: true }])
    } else {
        None
    }
}

fn one_or_more(one: &Hir) -> Hir {
    Hir::repetition(Repetition { min: 1, max: None, greedy: true, sub: Box::new(one.clone()) })
}

/// An alternative without look-ahead, its possessive repeats made greedy by rewrite 1.
fn plain(text: &str) -> Option<Hir> {
    let hir = without_possessive(text, &parse(text)?)?;
    // The only assertion allowed is the end of the text. Others may look behind, and an automaton always starts in
    // the same state.
    let looks = hir.properties().look_set();
    let only_end = looks.remove(Look::End).is_empty();
    (only_end && hir.properties().minimum_len()? > 0).then_some(hir)
}

/// Applies rewrite 1 to the parts of a sequence, last part first. Possessive repeats inside groups are left to the
/// backtracking engine.
fn without_possessive(text: &str, ast: &Ast) -> Option<Hir> {
    let parts = match ast {
        Ast::Concat(concat) => &concat.asts[..],
        other => std::slice::from_ref(other),
    };
    let mut rest = Hir::empty();
    for part in parts.iter().rev() {
        let greedy = match possessive_repeat(part) {
            Some((repeat, body)) => {
                if contains_nested_repeat(body) || !never_gives_back(&translate(text, body)?, &rest)
                {
                    return None;
                }
                repeat
            }
            // Flags would apply to the parts after them, which are translated one by one.
            None if contains_nested_repeat(part) || matches!(part, Ast::Flags(_)) => return None,
            None => part,
        };
        rest = Hir::concat(vec![translate(text, greedy)?, rest]);
    }
    Some(rest)
}

/// The greedy repeat in a possessive one, and its body: `X+` and `X` of `X++`, which parses as a repeat of a repeat.
fn possessive_repeat(ast: &Ast) -> Option<(&Ast, &Ast)> {
    let Ast::Repetition(outer) = ast else { return None };
    let Ast::Repetition(inner) = &*outer.ast else { return None };
    let is_possessive = is_one_or_more(&outer.op) && outer.greedy && inner.greedy;
    is_possessive.then_some((&*outer.ast, &*inner.ast))
}

/// Whether there is a repeat of a repeat anywhere inside: a possessive one that was not rewritten.
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

/// Whether a greedy repeat of `body`, followed by `rest`, never gives back: the condition of rewrite 1.
fn never_gives_back(body: &Hir, rest: &Hir) -> bool {
    // `$` and other assertions match the empty string, but can fail.
    let rest_always_matches =
        rest.properties().minimum_len() == Some(0) && rest.properties().look_set().is_empty();
    if rest_always_matches {
        return true;
    }
    let (Some(mut body), Some(first)) = (class_of(body), first_class(rest)) else { return false };
    body.intersect(&first);
    body.ranges().is_empty()
}

/// The characters that a match of `hir` can start with; `None` if they are not easy to determine.
fn first_class(hir: &Hir) -> Option<ClassUnicode> {
    match hir.kind() {
        HirKind::Class(_) => class_of(hir),
        HirKind::Literal(literal) => {
            let first = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(class_of_char(first))
        }
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

fn is_one_or_more(op: &ast::RepetitionOp) -> bool {
    matches!(op.kind, ast::RepetitionKind::OneOrMore)
}

fn parse(text: &str) -> Option<Ast> {
    ast::parse::Parser::new().parse(text).ok()
}

fn translate(text: &str, ast: &Ast) -> Option<Hir> {
    Translator::new().translate(text, ast).ok()
}
