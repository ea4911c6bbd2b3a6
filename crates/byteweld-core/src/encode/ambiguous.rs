//! Ids that a special token shares with a token that text may become: a learned token, a byte, or an added token
//! that is not special.
//!
//! Untrusted text must not become one of them. There, such a token is replaced by the two parts that merge to it,
//! and those by theirs, as long as they are shared, too. A token without parts is an error.

use std::ops::{ControlFlow, Range};

use foldhash::{HashMap, HashMapExt};

use super::merge::Scratch;
use super::pairs::NONE;
use super::sink::give_one;
use super::{Encoder, Ranking, Sink};
use crate::error::{Error, Result};
use crate::reserve::reserve;
use crate::rewrite::AddedToken;

/// Shared ids, with the two parts of each; `None` if it has none.
pub(super) struct Ambiguous {
    parts: HashMap<u32, Option<(u32, u32)>>,
}

impl Ambiguous {
    pub(super) fn contains(&self, id: u32) -> bool {
        self.parts.contains_key(&id)
    }
}

/// A sink that keeps tokens and what they cover.
#[derive(Default)]
pub(super) struct Covering(Vec<(u32, Range<usize>)>);

impl Sink for Covering {
    fn reserve(&mut self, tokens: usize) -> Result<()> {
        reserve(&mut self.0, tokens)
    }

    fn push(&mut self, id: u32, range: Range<usize>) -> ControlFlow<()> {
        self.0.push((id, range));
        ControlFlow::Continue(())
    }
}

impl Encoder {
    /// The shared ids; `None` if there are none, as in most vocabularies.
    pub(super) fn find_ambiguous(
        &self,
        added: &[AddedToken],
        merges: &[(u32, u32, u32)],
        ranking: Ranking,
    ) -> Result<Option<Box<Ambiguous>>> {
        let is_special = |id: &&u32| self.special_ids.binary_search(id).is_ok();
        let ids_of_others = added.iter().filter(|token| !token.special).map(|token| &token.id);
        let mut shared = self.ordinary.iter().chain(ids_of_others).filter(is_special).peekable();
        if shared.peek().is_none() {
            return Ok(None);
        }
        let mut parts = HashMap::new();
        let mut scratch = Scratch::default();
        for &id in shared {
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
        Ok(Some(Box::new(Ambiguous { parts })))
    }

    /// The two tokens that a token's bytes merge to before they merge to the token, whose rank is its id.
    fn parts_by_rank(&self, id: u32, scratch: &mut Scratch) -> Result<Option<(u32, u32)>> {
        let token = self.tokens.get(id).unwrap_or_default();
        if token.iter().any(|&byte| self.byte_ids[usize::from(byte)] == NONE) {
            return Ok(None);
        }
        self.merge_below(id, token, scratch)?;
        Ok(match scratch.ids[..] {
            [left, right] => Some((left, right)),
            _ => None,
        })
    }

    /// Gives a sink what another encoding found in a text, without shared ids.
    pub(super) fn split_ambiguous(
        &self,
        ambiguous: &Ambiguous,
        text: &[u8],
        found: Covering,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>> {
        let mut waiting = Vec::new();
        for (id, range) in found.0 {
            if self.is_unknown(id, &text[range.clone()]) {
                if give_one(sink, id, range)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            waiting.push(id);
            let mut start = range.start;
            while let Some(id) = waiting.pop() {
                match ambiguous.parts.get(&id) {
                    Some(Some((left, right))) => waiting.extend([*right, *left]),
                    Some(None) => return Err(self.ambiguous_error(id, start)),
                    None => {
                        let length = self.tokens.get(id).map_or(0, <[u8]>::len);
                        let is_last = waiting.is_empty();
                        let end = if is_last { range.end } else { range.end.min(start + length) };
                        if give_one(sink, id, start..end)?.is_break() {
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
        ambiguous: &Ambiguous,
        text: &[u8],
        (id, range): (u32, Range<usize>),
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>> {
        // The parts are those of the learned token that has the id, which may have other bytes.
        if ambiguous.contains(id) && self.tokens.get(id) != Some(&text[range.clone()]) {
            return Err(self.ambiguous_error(id, range.start));
        }
        self.split_ambiguous(ambiguous, text, Covering(vec![(id, range)]), sink)
    }

    /// Whether an id stands for what is not in the alphabet. The unk token may be a special token, too.
    fn is_unknown(&self, id: u32, covered: &[u8]) -> bool {
        self.has_gaps && self.unk == Some(id) && self.tokens.get(id) != Some(covered)
    }

    fn ambiguous_error(&self, id: u32, offset: usize) -> Error {
        let special = self.specials.iter().find(|(_, other)| *other == id);
        let token = special.map_or_else(String::new, |(text, _)| text.clone());
        Error::AmbiguousId { id, token, offset }
    }
}
