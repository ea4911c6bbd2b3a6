//! Any regular expression, look-around and back references included, with a limit on its work.

use super::budget::Budget;
use super::machine::{GaveUp, Machine};
use super::program::Program;
use crate::error::{Error, Result};
use crate::watch::Watch;

pub(super) struct Backtracker {
    program: Program,
    pattern: String,
}

impl Backtracker {
    pub(super) fn new(pattern: &str) -> Result<Self> {
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
        let found = backtracker.search("").find(0, &mut Budget::new(Watch::default()))?;
        if found.is_some() {
            return Err(Error::Pattern(format!(
                "pattern {} matches the empty text; every alternative must take at least one character",
                quoted(pattern)
            )));
        }
        Ok(backtracker)
    }

    /// Starts to search a text.
    pub(super) fn search<'t>(&'t self, text: &'t str) -> Search<'t> {
        Search { machine: Machine::new(&self.program, text), pattern: &self.pattern }
    }
}

/// A search in one text.
pub(super) struct Search<'t> {
    machine: Machine<'t>,
    pattern: &'t str,
}

impl Search<'_> {
    /// The next match at or after `position`.
    pub(super) fn find(
        &mut self,
        position: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>> {
        let reason = match self.machine.find(position, budget) {
            Ok(found) => return Ok(found),
            Err(GaveUp::Failed(error)) => return Err(error),
            Err(GaveUp::TooManySteps) => "takes too many steps on this text",
            Err(GaveUp::TooManyOpen) => "has too many open alternatives on this text",
        };
        Err(Error::Pattern(format!(
            "pattern {} {reason} (at byte {position}); simplify it, or split the text first",
            quoted(self.pattern)
        )))
    }
}

/// The longest pattern that a message shows whole.
const SHOWN: usize = 1000;

/// A pattern as a message shows it.
fn quoted(pattern: &str) -> String {
    if pattern.len() <= SHOWN {
        return format!("{pattern:?}");
    }
    let start: String = pattern.chars().take(SHOWN / 10).collect();
    format!("{start:?}… of {} bytes", pattern.len())
}

/// `\G` (the end of the match before) or `\K` (forget what was matched), if the pattern holds one.
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
