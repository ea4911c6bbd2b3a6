//! The backtracking engine: runs any pattern, with look-around and backreferences, within a budget of steps.
//!
//! `compile.rs` turns a pattern into a program (`program.rs`), which `machine.rs` runs. The engine finds what
//! fancy-regex finds. It defines which patterns are valid and what they match; the other engines must agree with it.

mod compile;
mod machine;
mod program;

use crate::error::{Error, Result};
use crate::pretoken::budget::Budget;
use crate::watch::Watch;
use machine::{GaveUp, Machine};
use program::Program;

/// A pattern, compiled for this engine.
pub(crate) struct Backtracker {
    program: Program,
    pattern: String,
}

impl Backtracker {
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        if let Some(escape) = position_escape(pattern) {
            return Err(Error::Pattern(format!(
                "pattern {} holds {escape}, which ties a match to the one before; a pattern must \
                 match by itself",
                quoted(pattern)
            )));
        }
        let program = Program::new(pattern)
            .map_err(|problem| Error::Pattern(format!("pattern {} {problem}", quoted(pattern))))?;
        let backtracker = Self { program, pattern: pattern.to_owned() };
        let found = backtracker.search().find("", 0, &mut Budget::new(Watch::default()))?;
        if found.is_some() {
            return Err(Error::Pattern(format!(
                "pattern {} matches the empty text; every alternative must take at least one character",
                quoted(pattern)
            )));
        }
        Ok(backtracker)
    }

    /// Starts a search.
    pub(crate) fn search(&self) -> Search<'_> {
        Search { machine: Machine::new(&self.program), pattern: &self.pattern }
    }
}

/// A search of one text.
pub(crate) struct Search<'p> {
    machine: Machine<'p>,
    pattern: &'p str,
}

impl Search<'_> {
    /// The next match at or after `position`.
    pub(crate) fn find(
        &mut self,
        text: &str,
        position: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>> {
        let reason = match self.machine.find(text, position, budget) {
            Ok(found) => return Ok(found),
            Err(GaveUp::Failed(error)) => return Err(error),
            Err(GaveUp::TooManySteps) => "takes too many steps on this text",
            Err(GaveUp::TooManyFrames) => "has too many open alternatives on this text",
        };
        Err(Error::Pattern(format!(
            "pattern {} {reason} (at byte {position}); simplify it, or split the text first",
            quoted(self.pattern)
        )))
    }
}

/// Longest pattern that an error message quotes in full.
const MAX_QUOTED_BYTES: usize = 1000;

/// A pattern for an error message.
fn quoted(pattern: &str) -> String {
    if pattern.len() <= MAX_QUOTED_BYTES {
        return format!("{pattern:?}");
    }
    let start: String = pattern.chars().take(MAX_QUOTED_BYTES / 10).collect();
    format!("{start:?}… of {} bytes", pattern.len())
}

/// `\G` (the end of the previous match) or `\K` (forget what was matched), if the pattern contains one.
fn position_escape(pattern: &str) -> Option<&'static str> {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            match chars.next() {
                Some('G') => return Some("\\G"),
                Some('K') => return Some("\\K"),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
