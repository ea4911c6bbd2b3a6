//! Ambiguous ids: those that a special token shares with a token that text may become (a learned
//! token, a byte, or an added token that is not special).
//!
//! Untrusted text must not become one of them. There, such a token is replaced by the two parts of
//! its merge, and these by their parts as long as they are ambiguous, too. A token without parts is
//! an error.

use std::ops::{ControlFlow, Range};

use foldhash::{HashMap, HashMapExt};

use super::Encoder;
use super::scratch::Scratch;
use super::sink::{Sink, WithRanges, emit_one};
use super::specials::Allowed;
use super::vocabulary::Ranking;
use crate::error::{Error, Result};
use crate::rewrite::AddedToken;

/// Ambiguous ids, with the two parts of each; `None` for one without parts.
pub(super) struct AmbiguousIds {
    parts: HashMap<u32, Option<(u32, u32)>>,
}

impl Encoder {
    /// The ambiguous ids of a vocabulary; `None` if there are none, as in most.
    pub(super) fn find_ambiguous(
        &self,
        added: &[AddedToken],
        merges: &[(u32, u32, u32)],
        ranking: Ranking,
    ) -> Result<Option<Box<AmbiguousIds>>> {
        let is_special = |id: &&u32| self.specials.ids.binary_search(id).is_ok();
        let others = added.iter().filter(|token| !token.special).map(|token| &token.id);
        let mut ambiguous = self.ordinary.iter().chain(others).filter(is_special).peekable();
        if ambiguous.peek().is_none() {
            return Ok(None);
        }
        let mut parts = HashMap::new();
        let mut scratch = Scratch::default();
        for &id in ambiguous {
            let found = match ranking {
                Ranking::Ids => self.parts_by_rank(id, &mut scratch)?,
                Ranking::Merges | Ranking::MergesAfterLookup => None, // below
            };
            parts.insert(id, found);
        }
        for &(left, right, new) in merges {
            if let Some(parts) = parts.get_mut(&new) {
                parts.get_or_insert((left, right));
            }
        }
        Ok(Some(Box::new(AmbiguousIds { parts })))
    }

    /// The two tokens that the bytes of a token merge to just before they become the token, whose
    /// rank is its id.
    fn parts_by_rank(&self, id: u32, scratch: &mut Scratch) -> Result<Option<(u32, u32)>> {
        let token = self.tokens.get(id).unwrap_or_default();
        if !token.iter().all(|&byte| self.is_known(byte)) {
            return Ok(None);
        }
        self.merge_below(id, token, scratch)?;
        Ok(match scratch.ids[..] {
            [left, right] => Some((left, right)),
            _ => None,
        })
    }

    /// The ids that text must not become in this call, except where a special token is recognized.
    pub(super) fn ambiguous_for(&self, allowed: &Allowed<'_>) -> Option<&AmbiguousIds> {
        match allowed {
            Allowed::Within(_) => self.ambiguous.as_deref(),
            Allowed::None | Allowed::All | Allowed::Some(_) => None,
        }
    }

    /// Emits tokens of a text, with those that are ambiguous replaced by their parts.
    pub(super) fn split_ambiguous(
        &self,
        ambiguous: &AmbiguousIds,
        text: &[u8],
        found: WithRanges,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>> {
        let mut stack = Vec::new();
        for (id, range) in found.0 {
            if self.is_unknown(id, &text[range.clone()]) {
                if emit_one(sink, id, range)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            stack.push(id);
            let mut start = range.start;
            while let Some(id) = stack.pop() {
                match ambiguous.parts.get(&id) {
                    Some(Some((left, right))) => stack.extend([*right, *left]),
                    Some(None) => return Err(self.ambiguous_error(id, start)),
                    None => {
                        let is_last = stack.is_empty();
                        let end = start + self.tokens.len_of(id);
                        let end = if is_last { range.end } else { range.end.min(end) };
                        if emit_one(sink, id, start..end)?.is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                        start = end;
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The same for an added token that is not special, found at a range of a text.
    pub(super) fn split_added(
        &self,
        ambiguous: &AmbiguousIds,
        text: &[u8],
        (id, range): (u32, Range<usize>),
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>> {
        // The parts are those of the learned token with this id, whose bytes may be different.
        let is_ambiguous = ambiguous.parts.contains_key(&id);
        if is_ambiguous && self.tokens.get(id) != Some(&text[range.clone()]) {
            return Err(self.ambiguous_error(id, range.start));
        }
        self.split_ambiguous(ambiguous, text, WithRanges(vec![(id, range)]), sink)
    }

    /// Whether an id stands for what is not in the alphabet. The unk token may be special, too.
    fn is_unknown(&self, id: u32, covered: &[u8]) -> bool {
        self.has_gaps && self.unk == Some(id) && self.tokens.get(id) != Some(covered)
    }

    fn ambiguous_error(&self, id: u32, offset: usize) -> Error {
        let special = self.specials.tokens.iter().find(|(_, other)| *other == id);
        let token = special.map_or_else(String::new, |(text, _)| text.clone());
        Error::AmbiguousId { id, token, offset }
    }
}
