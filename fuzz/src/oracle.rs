//! What a pattern means, by fancy-regex alone: matches, and the text between them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fancy_regex::{Regex, RegexBuilder};

/// A byte that is not part of valid UTF-8 stands for this character.
const STAND_IN: &str = "\u{FFFF}";

pub(crate) struct Oracle {
    regex: Regex,
    /// It gets a character for each byte.
    is_over_bytes: bool,
}

impl Oracle {
    pub(crate) fn new(pattern: &str) -> Self {
        let over_bytes = pattern.strip_prefix("(?-u)");
        let source = over_bytes.unwrap_or(pattern);
        let regex = RegexBuilder::new(source).backtrack_limit(50_000_000).build().unwrap();
        Self { regex, is_over_bytes: over_bytes.is_some() }
    }

    /// The same, compiled once in each thread; for few patterns.
    pub(crate) fn shared(pattern: &str) -> Rc<Self> {
        thread_local!(static ALL: RefCell<HashMap<String, Rc<Oracle>>> = RefCell::default());
        ALL.with_borrow_mut(|all| {
            let made = all.entry(pattern.to_owned()).or_insert_with(|| Rc::new(Self::new(pattern)));
            Rc::clone(made)
        })
    }

    /// The pre-tokens of a text: where each ends, and whether it is a match. `None` if the regex engine
    /// gives up.
    pub(crate) fn spans(&self, text: &[u8]) -> Option<Vec<(usize, bool)>> {
        if self.is_over_bytes {
            let letters: String = text.iter().map(|&byte| char::from(byte)).collect();
            let spans = self.spans_of(&letters)?.into_iter();
            return Some(spans.map(|(end, it)| (letters[..end].chars().count(), it)).collect());
        }
        match std::str::from_utf8(text) {
            Ok(valid) => self.spans_of(valid),
            Err(_) => {
                let (valid, raw) = with_stand_ins(text);
                let spans = self.spans_of(&valid)?;
                Some(spans.into_iter().map(|(end, is_match)| (raw[end], is_match)).collect())
            }
        }
    }

    fn spans_of(&self, text: &str) -> Option<Vec<(usize, bool)>> {
        let mut spans = Vec::new();
        let (mut from, mut covered) = (0, 0);
        while from < text.len() {
            let Some(found) = self.regex.find_from_pos(text, from).ok()? else { break };
            if found.start() == found.end() {
                // An empty match is not a pre-token.
                from = found.end() + text[found.end()..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            if found.start() > covered {
                spans.push((found.start(), false));
            }
            spans.push((found.end(), true));
            (from, covered) = (found.end(), found.end());
        }
        if covered < text.len() {
            spans.push((text.len(), false));
        }
        Some(spans)
    }
}

/// The text with a character for each byte that is not UTF-8, and the place of each of its bytes in the
/// original (and of its end).
fn with_stand_ins(text: &[u8]) -> (String, Vec<usize>) {
    let mut valid = String::new();
    let mut raw = Vec::new();
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        valid.push_str(chunk.valid());
        raw.extend(at..at + chunk.valid().len());
        at += chunk.valid().len();
        for _ in chunk.invalid() {
            valid.push_str(STAND_IN);
            raw.extend([at; STAND_IN.len()]);
            at += 1;
        }
    }
    raw.push(at);
    (valid, raw)
}
