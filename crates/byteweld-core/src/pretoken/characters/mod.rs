//! Which classes a character is in.
//!
//! A pattern names character classes: `\p{L}`, `\s`, `[^\r\n]`. `unicode.rs` divides all code points into cells, and
//! `classes.rs` builds on them: one lookup gives a character's bits, one for each class of the pattern. `sets.rs` has
//! the operations on a single class.

mod classes;
mod sets;
pub(super) mod unicode;
mod unicode_runs;

pub(super) use classes::{Classes, STAND_IN};
pub(super) use sets::{class_of, class_of_char, contains, is_subset};
