//! Recognizes a pattern: the atoms of its alternatives, if each alternative has a known shape (`spec.rs`).
//!
//! A shape is recognized from the parsed alternative, never from its spelling.

use regex_syntax::hir::{ClassUnicode, HirKind, Look};

use super::literals::{MAX_SEQUENCES, Sequence, expand_optional, expand_parts};
use super::normalize::Alternative;
use super::parts::Part::{self, Other, Repeat};
use super::parts::Parts;
use super::spec::{Atom, Cased, ClassId, Literals, Prefix, Run, Space, Spec, Step};
use crate::pretoken::characters::is_subset;

/// As many as a scanner can tell apart: a character's classes are the bits of a `u32`.
const MAX_CLASSES: usize = 32;

impl Spec {
    /// The atoms of a pattern's alternatives; `None` if one of them has no known shape.
    pub(crate) fn new(alternatives: &[Alternative]) -> Option<Self> {
        let list = alternatives.iter().flat_map(Parts::of).collect::<Option<Vec<_>>>()?;
        let mut spec = Self { atoms: Vec::new(), classes: Vec::new() };
        let mut rest = &list[..];
        while let [first, ..] = rest {
            let taken = spec.add_cased(rest).or_else(|| spec.add_space(rest));
            let taken = taken.or_else(|| spec.add_run(first)).or_else(|| spec.add_literals(first));
            rest = &rest[taken?..];
        }
        // A scanner remembers one run of whitespace, so that it does not walk a long one again at each offset.
        let spaces = spec.atoms.iter().filter(|atom| matches!(atom, Atom::Space(_))).count();
        (spaces <= 1 && spec.classes.len() <= MAX_CLASSES).then_some(spec)
    }

    /// The id of a class, which is added if it is new.
    fn class(&mut self, class: &ClassUnicode) -> ClassId {
        let known = self.classes.iter().position(|known| known == class);
        known.unwrap_or_else(|| {
            self.classes.push(class.clone());
            self.classes.len() - 1
        })
    }

    fn literals(&mut self, sequences: &[Sequence]) -> Literals {
        let ids = sequences.iter().map(|list| list.iter().map(|class| self.class(class)).collect());
        ids.collect()
    }

    /// Adds an [`Atom::Cased`] for the first two alternatives. Returns how many it took, as do the methods below.
    fn add_cased(&mut self, list: &[Parts]) -> Option<usize> {
        let [first, second, ..] = list else { return None };
        let (a, b) = (CasedParts::of(first)?, CasedParts::of(second)?);
        let same = a.prefix == b.prefix && a.upper == b.upper && a.lower == b.lower;
        if !same || (a.upper_min, a.lower_min, b.upper_min, b.lower_min) != (0, 1, 1, 0) {
            return None;
        }
        let suffix = expand_optional(a.suffix)?;
        if expand_optional(b.suffix)? != suffix {
            return None;
        }
        let cased = Cased {
            prefix: a.prefix.map(|class| self.class(class)),
            upper: self.class(a.upper),
            lower: self.class(a.lower),
            suffix: self.literals(&suffix),
        };
        self.atoms.push(Atom::Cased(cased));
        Some(2)
    }

    /// Adds an [`Atom::Space`], or a plain run, for the first alternatives that look at the same run.
    fn add_space(&mut self, list: &[Parts]) -> Option<usize> {
        let (class, _) = step_of(list.first()?)?;
        let steps = list.iter().map_while(step_of).take_while(|(other, _)| *other == class);
        let steps: Vec<_> = steps.map(|(_, step)| step).collect();
        let taken = steps.len();
        let steps = simplify(steps)?;
        let class = self.class(class);
        let run =
            |max| Run { prefix: Prefix::None, body: class, max, tail: None, suffix: Vec::new() };
        let atom = match steps[..] {
            [Step::All] => Atom::Run(run(None)),
            [Step::One] => Atom::Run(run(Some(1))),
            _ => {
                let steps = steps.iter().map(|step| match step {
                    Step::AtEnd => Step::AtEnd,
                    Step::ToLast(class) => Step::ToLast(self.class(class)),
                    Step::AllButOne => Step::AllButOne,
                    Step::All => Step::All,
                    Step::One => Step::One,
                });
                Atom::Space(Space { class, steps: steps.collect() })
            }
        };
        self.atoms.push(atom);
        Some(taken)
    }

    /// Adds an [`Atom::Run`].
    fn add_run(&mut self, alternative: &Parts) -> Option<usize> {
        if alternative.gives_back {
            return None;
        }
        let mut parts = &alternative.list[..];
        let (mut prefix, mut is_required) = (None, false);
        match parts {
            [Repeat(class, 0, Some(1)), rest @ ..] => (prefix, parts) = (Some(class.clone()), rest),
            [Repeat(class, 1, Some(1)), Repeat(_, 1, max), ..] if *max != Some(1) => {
                (prefix, parts, is_required) = (Some(class.clone()), &parts[1..], true);
            }
            _ => {}
        }
        let [Repeat(body, 1, max), rest @ ..] = parts else { return None };
        let (tail, rest) = match rest {
            [Repeat(class, 0, None), rest @ ..] => (Some(class), rest),
            _ => (None, rest),
        };
        let suffix = expand_optional(rest)?;
        // If the body has no limit, an optional prefix from the body's class is the run's first character either way,
        // so the prefix needs only the other characters.
        if let (Some(class), false, None) = (&mut prefix, is_required, max) {
            class.difference(body);
        }
        let prefix = match prefix.filter(|class| !class.ranges().is_empty()) {
            Some(class) if is_required => Prefix::Required(self.class(&class)),
            Some(class) => Prefix::Optional(self.class(&class)),
            None => Prefix::None,
        };
        let run = Run {
            prefix,
            body: self.class(body),
            max: *max,
            tail: tail.map(|class| self.class(class)),
            suffix: self.literals(&suffix),
        };
        self.atoms.push(Atom::Run(run));
        Some(1)
    }

    /// Adds to an [`Atom::Literals`], which consecutive alternatives share.
    fn add_literals(&mut self, alternative: &Parts) -> Option<usize> {
        if alternative.gives_back {
            return None;
        }
        let sequences = expand_parts(&alternative.list)?;
        if sequences.iter().any(Vec::is_empty) {
            return None;
        }
        let mut literals = self.literals(&sequences);
        match self.atoms.last_mut() {
            Some(Atom::Literals(list)) if list.len() + literals.len() > MAX_SEQUENCES => {
                return None;
            }
            Some(Atom::Literals(list)) => list.append(&mut literals),
            _ => self.atoms.push(Atom::Literals(literals)),
        }
        Some(1)
    }
}

/// The parts of one alternative of [`Cased`].
struct CasedParts<'a, 'h> {
    prefix: Option<&'a ClassUnicode>,
    upper: &'a ClassUnicode,
    upper_min: u32,
    lower: &'a ClassUnicode,
    lower_min: u32,
    suffix: &'a [Part<'h>],
}

impl<'a, 'h> CasedParts<'a, 'h> {
    fn of(alternative: &'a Parts<'h>) -> Option<Self> {
        let (prefix, parts) = match &alternative.list[..] {
            [Repeat(class, 0, Some(1)), rest @ ..] => (Some(class), rest),
            parts => (None, parts),
        };
        let &[
            Repeat(ref upper, upper_min, None),
            Repeat(ref lower, lower_min, None),
            ref suffix @ ..,
        ] = parts
        else {
            return None;
        };
        let parts = Self { prefix, upper, upper_min, lower, lower_min, suffix };
        (!alternative.gives_back).then_some(parts)
    }
}

/// The class of the run at the start of an alternative, and the part of the run that the alternative takes.
fn step_of<'a>(alternative: &'a Parts) -> Option<(&'a ClassUnicode, Step<&'a ClassUnicode>)> {
    let step = match &alternative.list[..] {
        [Repeat(run, 1, None), Repeat(one, 1, Some(1))] if alternative.gives_back && run == one => {
            (run, Step::AllButOne)
        }
        _ if alternative.gives_back => return None,
        [Repeat(run, 1, None), Other(look)] if *look.kind() == HirKind::Look(Look::End) => {
            (run, Step::AtEnd)
        }
        [Repeat(run, 0, None), Repeat(last, 1, None | Some(1))] if is_subset(last, run) => {
            (run, Step::ToLast(last))
        }
        [Repeat(run, 1, None)] => (run, Step::All),
        [Repeat(run, 1, Some(1))] => (run, Step::One),
        _ => return None,
    };
    Some(step)
}

/// Removes the steps that never match, because an earlier one matches first or takes the same.
fn simplify(steps: Vec<Step<&ClassUnicode>>) -> Option<Vec<Step<&ClassUnicode>>> {
    let mut kept: Vec<Step<&ClassUnicode>> = Vec::new();
    let (mut at_end, mut to_last, mut all_but_one) = (false, None, false);
    for step in steps {
        match step {
            Step::AtEnd if at_end => continue,
            Step::AtEnd => at_end = true,
            Step::ToLast(class) => match to_last {
                Some(earlier) if is_subset(class, earlier) => continue,
                Some(_) => return None, // a scanner looks for the last of one class only
                None => to_last = Some(class),
            },
            Step::AllButOne if all_but_one => continue,
            Step::AllButOne => all_but_one = true,
            // A run that gets past `AllButOne` has one character.
            Step::One if all_but_one => {
                kept.push(Step::All);
                break;
            }
            Step::All | Step::One => {
                kept.push(step);
                break; // one of these always matches
            }
        }
        kept.push(step);
    }
    if let [.., Step::AtEnd, Step::All] = kept[..] {
        kept.remove(kept.len() - 2); // both take the run
    }
    Some(kept)
}
