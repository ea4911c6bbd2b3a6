//! A recognized pattern: an ordered list of atoms, which a scanner runs without a regex engine.
//!
//! Each atom is a shape over character classes, and its comment proves what the alternatives of that shape match. The
//! first atom that matches at an offset gives the pre-token.

use regex_syntax::hir::ClassUnicode;

/// Index into [`Spec::classes`].
pub(crate) type ClassId = usize;

/// Sequences of classes in order of preference: the first that matches is taken.
pub(crate) type Literals = Vec<Vec<ClassId>>;

/// The atoms of a pattern in order of preference.
pub(crate) struct Spec {
    pub(crate) atoms: Vec<Atom>,
    pub(crate) classes: Vec<ClassUnicode>,
}

pub(crate) enum Atom {
    /// Contractions, for example: `'s|'t|'re`.
    Literals(Literals),
    Run(Run),
    Cased(Cased),
    Space(Space),
}

/// `P?B{1,max}T*S?`, or with `P` instead of `P?`. All but `B` may be absent.
///
/// Everything after `B` can match the empty string, so `B` takes as many characters as it can, up to `max`, and never
/// gives back. So the match starts with `P` if a `B` follows it, else without; then come all of `T`, and `S` if
/// it matches there.
pub(crate) struct Run {
    pub(crate) prefix: Prefix,
    pub(crate) body: ClassId,
    pub(crate) max: Option<u32>,
    pub(crate) tail: Option<ClassId>,
    pub(crate) suffix: Literals,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    None,
    Optional(ClassId),
    Required(ClassId),
}

/// `P?U*L+S?`, then `P?U+L*S?`, where `U` and `L` may overlap.
///
/// In `U*L+`, `U*` takes its run. If an `L` follows, `L+` continues from there. If not, `U*` gives back up to the last
/// `L` in its run, and `L+` is that one character, because those after it are not in `L`. Without an `L` it fails. The
/// order of preference is: `U*L+` after `P`, `U*L+` without `P`, `U+L*` after `P`, `U+L*` without `P`.
pub(crate) struct Cased {
    pub(crate) prefix: Option<ClassId>,
    pub(crate) upper: ClassId,
    pub(crate) lower: ClassId,
    pub(crate) suffix: Literals,
}

/// Consecutive alternatives that all start with a run of the same class.
pub(crate) struct Space {
    pub(crate) class: ClassId,
    pub(crate) steps: Vec<Step>,
}

/// The part of the run `X…X` that one alternative takes; it fails if that part is empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<Class = ClassId> {
    /// `X+\z`: the run, if it ends the text. If `X+` gave back, an `X` would follow instead of the end.
    AtEnd,
    /// `X*Y+` or `X*Y` with `Y` inside `X`: up to the last `Y` of the run. `X*` takes the run, which no `Y` follows,
    /// and gives back down to the last `Y`, which no second `Y` follows.
    ToLast(Class),
    /// `X+X` with the last character given back: the run without its last character.
    AllButOne,
    /// `X+`: the run.
    All,
    /// `X`: the first character.
    One,
}
