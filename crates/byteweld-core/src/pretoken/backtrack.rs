//! Any regular expression, look-around and back references included, with a limit on its work.

use fancy_regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// Backtracking steps allowed for one match. A pattern that needs more on some text is refused there.
const BACKTRACK_LIMIT: usize = 10_000_000;

pub(super) struct Backtracker {
    regex: Regex,
}

impl Backtracker {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        if let Some(escape) = position_escape(pattern) {
            return Err(Error::Pattern(format!(
                "pattern {pattern:?} holds {escape}, which ties a match to the one before; a pattern must \
                 match by itself"
            )));
        }
        let regex =
            RegexBuilder::new(pattern).backtrack_limit(BACKTRACK_LIMIT).build().map_err(|e| {
                Error::Pattern(format!("pattern {pattern:?} does not compile: {}", chain(&e)))
            })?;
        if regex.is_match("").unwrap_or(false) {
            return Err(Error::Pattern(format!(
                "pattern {pattern:?} matches the empty text; every alternative must take at least one character"
            )));
        }
        Ok(Self { regex })
    }

    /// The next match at or after `position`.
    pub(super) fn find(&self, text: &str, position: usize) -> Result<Option<(usize, usize)>> {
        match self.regex.find_from_pos(text, position) {
            Ok(found) => Ok(found.map(|m| (m.start(), m.end()))),
            Err(e) => Err(Error::Pattern(format!(
                "pattern {:?} gave up at byte {position}: {e}; simplify it, or split the text first",
                self.regex.as_str()
            ))),
        }
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {}", error.to_string().replace('\n', " "));
        cause = error.source();
    }
    message
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
