//! From a pattern's source to what an engine runs.
//!
//! A pattern comes in as the source of a regular expression. It is *normalized* into a list of alternatives without
//! look-around or possessive repeats (`normalize.rs`), which an automaton can run. If every alternative has one of a
//! few shapes, the pattern is *recognized* (`parts.rs`, `literals.rs`, `recognize.rs`) and becomes a [`Spec`]
//! (`spec.rs`), which a scanner runs. A pattern that cannot be normalized goes to the backtracking engine as it is.
//!
//! A spec does not depend on how its pattern is spelled; `canonical.rs` writes it as a string. A scanner is used only
//! after it agrees with the backtracking engine on text designed to expose differences (`torture.rs`).

pub(super) mod canonical;
mod literals;
pub(super) mod normalize;
mod parts;
mod recognize;
pub(super) mod spec;
pub(super) mod torture;

pub(super) use normalize::Alternative;
pub(super) use spec::Spec;
