//! A pattern as an ordered list of atoms that a scanner can run without a regular expression engine.
//!
//! Patterns of the field are alternatives of a few shapes, each over classes of characters. A shape is
//! recognised from the parsed alternative, never from its spelling, and each has its proof where it is
//! described. A pattern with any other alternative has no spec.

use regex_syntax::hir::{ClassUnicode, Hir, HirKind, Look};

use self::Part::{Other, Repeat};
use super::normalise::{Alternative, class_of};

/// Which class of [`Spec::classes`].
pub(super) type ClassId = usize;

/// Sequences of classes in order of preference: the first that the text goes on with is taken.
pub(super) type Literals = Vec<Vec<ClassId>>;

/// The atoms of a pattern in order of preference.
pub(super) struct Spec {
    pub(super) atoms: Vec<Atom>,
    pub(super) classes: Vec<ClassUnicode>,
}

pub(super) enum Atom {
    Literals(Literals),
    Run(Run),
    Cased(Cased),
    Space(Space),
}

/// `P?B{1,max}T*S?`, or `P` without its question mark; everything but `B` may be missing.
///
/// What follows `B` can match nothing, so `B` never gives back, and takes what it can get up to `max`. So the
/// match is: with `P` if a `B` follows it, else without; then all of `T`, then `S` if it is there.
pub(super) struct Run {
    pub(super) prefix: Prefix,
    pub(super) body: ClassId,
    pub(super) max: Option<u32>,
    pub(super) tail: Option<ClassId>,
    pub(super) suffix: Literals,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    Optional(ClassId),
    Required(ClassId),
}

/// `P?U*L+S?` and then `P?U+L*S?`, where `U` and `L` may overlap.
///
/// `U*L+` from a place: `U*` takes its run. If an `L` follows, `L+` goes on from there. Else `U*` gives back up
/// to the last `L` in its run; that one character is then `L+`, for those after it are not in `L`. Without an
/// `L` it fails. The order is: that after `P`, that without `P`, `U+L*` after `P`, `U+L*` without.
pub(super) struct Cased {
    pub(super) prefix: Option<ClassId>,
    pub(super) upper: ClassId,
    pub(super) lower: ClassId,
    pub(super) suffix: Literals,
}

/// Alternatives next to each other that all look at one run of a class.
pub(super) struct Space {
    pub(super) class: ClassId,
    pub(super) steps: Vec<Step>,
}

/// What an alternative takes of the run `X…X` that starts where it is tried; it fails if that is nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// `X+\z`: the run, if the text ends with it. (If `X+` gave back, an `X` would follow and not the end.)
    AtEnd,
    /// `X*Y+` or `X*Y` with `Y` inside `X`: up to the last `Y` of the run. (`X*` takes the run, after which no
    /// `Y` stands, and gives back down to the last `Y`; no second one follows it.)
    ToLast(ClassId),
    /// `X+X` with the last character given back: the run without its last character.
    AllButOne,
    /// `X+`: the run.
    All,
    /// `X`: its first character.
    One,
}

/// More sequences in one list of literals, or more characters in one, are no contractions.
const MAX_SEQUENCES: usize = 64;
const MAX_SEQUENCE: usize = 32;

impl Spec {
    /// The atoms of a pattern's alternatives, or `None` if one has no shape that is known here.
    pub(super) fn new(alternatives: &[Alternative]) -> Option<Self> {
        let shapes = alternatives.iter().flat_map(shapes_of).collect::<Option<Vec<_>>>()?;
        let mut builder = Builder { spec: Spec { atoms: Vec::new(), classes: Vec::new() } };
        let mut rest = &shapes[..];
        while let [shape, after @ ..] = rest {
            let taken = builder.cased(rest).or_else(|| builder.space(rest));
            rest = match taken {
                Some(taken) => &rest[taken..],
                None => {
                    builder.run(shape).or_else(|| builder.literals(shape))?;
                    after
                }
            };
        }
        let spec = builder.spec;
        // The scanner remembers one run of white space, so that none is walked again and again.
        let spaces = spec.atoms.iter().filter(|atom| matches!(atom, Atom::Space(_))).count();
        (spaces <= 1 && spec.classes.len() <= 32).then_some(spec)
    }
}

/// An alternative as a sequence of parts.
struct Shape<'a> {
    parts: Vec<Part<'a>>,
    gives_back: bool,
}

enum Part<'a> {
    /// `C{min,max}`, greedy.
    Repeat(ClassUnicode, u32, Option<u32>),
    /// Anything else.
    Other(&'a Hir),
}

/// The alternatives that stand in one: those of a group around all of it are alternatives like any other.
fn shapes_of(alternative: &Alternative) -> Vec<Option<Shape<'_>>> {
    match strip(&alternative.hir).kind() {
        HirKind::Alternation(list) if !alternative.gives_back => {
            list.iter().map(|hir| shape_of(hir, false)).collect()
        }
        _ => vec![shape_of(&alternative.hir, alternative.gives_back)],
    }
}

fn shape_of(hir: &Hir, gives_back: bool) -> Option<Shape<'_>> {
    let hir = strip(hir);
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.iter().map(part_of).collect::<Option<_>>()?,
        _ => vec![part_of(hir)?],
    };
    Some(Shape { parts, gives_back })
}

/// Groups that capture say nothing about what matches.
fn strip(mut hir: &Hir) -> &Hir {
    while let HirKind::Capture(capture) = hir.kind() {
        hir = &capture.sub;
    }
    hir
}

fn part_of(hir: &Hir) -> Option<Part<'_>> {
    let hir = strip(hir);
    if let Some(class) = class_of(hir) {
        return (!class.ranges().is_empty()).then_some(Repeat(class, 1, Some(1)));
    }
    match hir.kind() {
        HirKind::Repetition(repeat) if !repeat.greedy => None,
        HirKind::Repetition(repeat) => match class_of(&repeat.sub) {
            Some(class) if class.ranges().is_empty() => None,
            Some(class) => Some(Repeat(class, repeat.min, repeat.max)),
            None => Some(Other(hir)),
        },
        _ => Some(Other(hir)),
    }
}

struct Builder {
    spec: Spec,
}

impl Builder {
    fn class(&mut self, class: &ClassUnicode) -> ClassId {
        let classes = &mut self.spec.classes;
        classes.iter().position(|known| known == class).unwrap_or_else(|| {
            classes.push(class.clone());
            classes.len() - 1
        })
    }

    /// Takes a pair of alternatives as [`Cased`]; says how many were taken.
    fn cased(&mut self, shapes: &[Shape]) -> Option<usize> {
        let [first, second, ..] = shapes else { return None };
        let (a, b) = (case_parts(first)?, case_parts(second)?);
        let same = a.prefix == b.prefix && a.upper == b.upper && a.lower == b.lower;
        if !same || (a.upper_min, a.lower_min, b.upper_min, b.lower_min) != (0, 1, 1, 0) {
            return None;
        }
        let suffix = optional_literals(a.suffix)?;
        if optional_literals(b.suffix)? != suffix {
            return None;
        }
        let cased = Cased {
            prefix: a.prefix.map(|class| self.class(class)),
            upper: self.class(a.upper),
            lower: self.class(a.lower),
            suffix: self.literal_ids(&suffix),
        };
        self.spec.atoms.push(Atom::Cased(cased));
        Some(2)
    }

    /// Takes the alternatives that look at the same run as [`Space`]; says how many were taken.
    fn space(&mut self, shapes: &[Shape]) -> Option<usize> {
        let (class, _) = step_of(shapes.first()?)?;
        let mut steps = Vec::new();
        for shape in shapes {
            match step_of(shape) {
                Some((other, step)) if other == class => steps.push(step),
                _ => break,
            }
        }
        let taken = steps.len();
        let steps = simplify(steps)?;
        let id = self.class(class);
        let run = |max| Run { prefix: Prefix::None, body: id, max, tail: None, suffix: Vec::new() };
        let atom = match steps[..] {
            [RunStep::All] => Atom::Run(run(None)),
            [RunStep::One] => Atom::Run(run(Some(1))),
            _ => {
                let steps = steps.iter().map(|step| match step {
                    RunStep::AtEnd => Step::AtEnd,
                    RunStep::ToLast(class) => Step::ToLast(self.class(class)),
                    RunStep::AllButOne => Step::AllButOne,
                    RunStep::All => Step::All,
                    RunStep::One => Step::One,
                });
                Atom::Space(Space { class: id, steps: steps.collect() })
            }
        };
        self.spec.atoms.push(atom);
        Some(taken)
    }

    /// Takes an alternative as [`Run`].
    fn run(&mut self, shape: &Shape) -> Option<()> {
        if shape.gives_back {
            return None;
        }
        let mut parts = &shape.parts[..];
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
        let suffix = optional_literals(rest)?;
        // With no limit on the body, a prefix that is itself a body character is the run's first character
        // either way: the extent is the same, so such characters need not be in the prefix.
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
            suffix: self.literal_ids(&suffix),
        };
        self.spec.atoms.push(Atom::Run(run));
        Some(())
    }

    /// Takes an alternative as [`Literals`], together with those before it.
    fn literals(&mut self, shape: &Shape) -> Option<()> {
        if shape.gives_back {
            return None;
        }
        let sequences = expand_parts(&shape.parts)?;
        if sequences.iter().any(Vec::is_empty) {
            return None;
        }
        let mut ids = self.literal_ids(&sequences);
        match self.spec.atoms.last_mut() {
            Some(Atom::Literals(list)) if list.len() + ids.len() > MAX_SEQUENCES => return None,
            Some(Atom::Literals(list)) => list.append(&mut ids),
            _ => self.spec.atoms.push(Atom::Literals(ids)),
        }
        Some(())
    }

    fn literal_ids(&mut self, sequences: &[Vec<ClassUnicode>]) -> Literals {
        let ids = sequences.iter().map(|list| list.iter().map(|class| self.class(class)).collect());
        ids.collect()
    }
}

/// The parts of one alternative of [`Cased`].
struct CaseParts<'a, 'h> {
    prefix: Option<&'a ClassUnicode>,
    upper: &'a ClassUnicode,
    upper_min: u32,
    lower: &'a ClassUnicode,
    lower_min: u32,
    suffix: &'a [Part<'h>],
}

fn case_parts<'a, 'h>(shape: &'a Shape<'h>) -> Option<CaseParts<'a, 'h>> {
    let (prefix, parts) = match &shape.parts[..] {
        [Repeat(class, 0, Some(1)), rest @ ..] => (Some(class), rest),
        parts => (None, parts),
    };
    let [Repeat(upper, upper_min, None), Repeat(lower, lower_min, None), suffix @ ..] = parts
    else {
        return None;
    };
    let (upper_min, lower_min) = (*upper_min, *lower_min);
    (!shape.gives_back).then_some(CaseParts { prefix, upper, upper_min, lower, lower_min, suffix })
}

/// [`Step`] before its class has a number.
#[derive(Clone, Copy)]
enum RunStep<'a> {
    AtEnd,
    ToLast(&'a ClassUnicode),
    AllButOne,
    All,
    One,
}

/// The run that an alternative looks at, and what it takes of it.
fn step_of<'a>(shape: &'a Shape) -> Option<(&'a ClassUnicode, RunStep<'a>)> {
    let (class, step) = match &shape.parts[..] {
        [Repeat(run, 1, None), Repeat(one, 1, Some(1))] if shape.gives_back && run == one => {
            return Some((run, RunStep::AllButOne));
        }
        _ if shape.gives_back => return None,
        [Repeat(run, 1, None), Other(look)] if *look.kind() == HirKind::Look(Look::End) => {
            (run, RunStep::AtEnd)
        }
        [Repeat(run, 0, None), Repeat(last, 1, None | Some(1))] if is_inside(last, run) => {
            (run, RunStep::ToLast(last))
        }
        [Repeat(run, 1, None)] => (run, RunStep::All),
        [Repeat(run, 1, Some(1))] => (run, RunStep::One),
        _ => return None,
    };
    Some((class, step))
}

fn is_inside(part: &ClassUnicode, whole: &ClassUnicode) -> bool {
    let mut outside = part.clone();
    outside.difference(whole);
    outside.ranges().is_empty()
}

/// The same steps without those that can never be the first to take something.
fn simplify(steps: Vec<RunStep<'_>>) -> Option<Vec<RunStep<'_>>> {
    let mut kept: Vec<RunStep> = Vec::new();
    let (mut at_end, mut to_last, mut all_but_one) = (false, None, false);
    for step in steps {
        match step {
            RunStep::AtEnd if at_end => continue,
            RunStep::AtEnd => at_end = true,
            RunStep::ToLast(class) => match to_last {
                Some(earlier) if is_inside(class, earlier) => continue,
                Some(_) => return None, // the scanner looks for the last of one class
                None => to_last = Some(class),
            },
            RunStep::AllButOne if all_but_one => continue,
            RunStep::AllButOne => all_but_one = true,
            RunStep::All | RunStep::One => {}
        }
        match step {
            // Whatever comes here has one character, or is not reached.
            RunStep::One if all_but_one => kept.push(RunStep::All),
            other => kept.push(other),
        }
        if matches!(step, RunStep::All | RunStep::One) {
            break; // nothing is left for those after it
        }
    }
    while let [.., RunStep::AtEnd, RunStep::All] = kept[..] {
        kept.remove(kept.len() - 2); // both take the run
    }
    Some(kept)
}

/// What may be left at the end of an alternative: nothing, or literals that may be missing.
fn optional_literals(parts: &[Part]) -> Option<Vec<Vec<ClassUnicode>>> {
    match parts {
        [] => Some(Vec::new()),
        [Repeat(class, 0, Some(1))] => Some(vec![vec![class.clone()]]),
        [Other(hir)] => match hir.kind() {
            HirKind::Repetition(repeat) if repeat.min == 0 && repeat.max == Some(1) => {
                let sequences = expand(&repeat.sub)?;
                (!sequences.iter().any(Vec::is_empty)).then_some(sequences)
            }
            _ => None,
        },
        _ => None,
    }
}

fn expand_parts(parts: &[Part]) -> Option<Vec<Vec<ClassUnicode>>> {
    let mut all = vec![Vec::new()];
    for part in parts {
        let next = match part {
            Repeat(class, min, max) => repeated(&[vec![class.clone()]], *min, (*max)?)?,
            Other(hir) => expand(hir)?,
        };
        all = join(&all, &next)?;
    }
    Some(all)
}

/// All sequences that an expression matches, in order of preference, if they are few and short. The parser
/// bounds how deep an expression is.
fn expand(hir: &Hir) -> Option<Vec<Vec<ClassUnicode>>> {
    if let Some(class) = class_of(hir) {
        return Some(vec![vec![class]]);
    }
    match hir.kind() {
        HirKind::Capture(capture) => expand(&capture.sub),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let range = |c| regex_syntax::hir::ClassUnicodeRange::new(c, c);
            Some(vec![text.chars().map(|c| ClassUnicode::new([range(c)])).collect()])
        }
        HirKind::Concat(parts) => {
            let mut all = vec![Vec::new()];
            for part in parts {
                all = join(&all, &expand(part)?)?;
            }
            Some(all)
        }
        HirKind::Alternation(list) => {
            let mut all = Vec::new();
            for hir in list {
                all.append(&mut expand(hir)?);
            }
            (all.len() <= MAX_SEQUENCES).then_some(all)
        }
        HirKind::Repetition(repeat) if repeat.greedy => {
            repeated(&expand(&repeat.sub)?, repeat.min, repeat.max?)
        }
        _ => None,
    }
}

/// `X{min,max}`, greedy: more of `X` is preferred to less.
fn repeated(sequences: &[Vec<ClassUnicode>], min: u32, max: u32) -> Option<Vec<Vec<ClassUnicode>>> {
    if max as usize > MAX_SEQUENCE || sequences.iter().any(Vec::is_empty) {
        return None;
    }
    let mut all = vec![Vec::new()];
    for taken in (0..max).rev() {
        all = join(sequences, &all)?;
        if taken >= min {
            all.push(Vec::new());
        }
    }
    Some(all)
}

/// Each of `first` followed by each of `second`.
fn join(
    first: &[Vec<ClassUnicode>],
    second: &[Vec<ClassUnicode>],
) -> Option<Vec<Vec<ClassUnicode>>> {
    if first.len().saturating_mul(second.len()) > MAX_SEQUENCES {
        return None;
    }
    let mut all = Vec::new();
    for start in first {
        for end in second {
            if start.len() + end.len() > MAX_SEQUENCE {
                return None;
            }
            all.push([&start[..], end].concat());
        }
    }
    Some(all)
}
