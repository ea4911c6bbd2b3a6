//! How often greedy longest match, which is not BPE, gives the same tokens as merging.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::merge::Scratch;
use super::pairs::NONE;
use super::trie::Trie;
use super::{Allowed, Encoder, Gaps, WithEnds, character_length};
use crate::error::Result;
use crate::watch::Watch;

/// The search for longest matches may read this many bytes per byte of text. It reads a byte again if a long token
/// almost matched; a vocabulary made for that could make it quadratic.
const MAX_STEPS: usize = 512;

/// Pre-tokens, and those on which longest match and merging agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The number of pre-tokens.
    pub pretokens: u64,
    /// The number of those that longest match cuts into the same tokens.
    pub agreeing: u64,
}

impl Encoder {
    /// Compares longest match with merging on every pre-token of a text; `None` if the vocabulary would take too
    /// many steps.
    pub fn longest_match_agreement(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        watch: &Watch,
    ) -> Result<Option<Agreement>> {
        let trie = self.all_tokens();
        let Some(trie) = &*trie else { return Ok(None) };
        self.with_scratch(|scratch| {
            scratch.watch = watch.clone();
            let steps = text.len().saturating_mul(MAX_STEPS);
            let sink = WithEnds::default();
            let found = Agreement::default();
            let mut comparison = Comparison { encoder: self, trie, scratch, sink, steps, found };
            let mut start = 0;
            let mut specials = self.recognize(text, allowed);
            loop {
                let special = specials.next(start).map(|(special, _)| special);
                let end = special.as_ref().map_or(text.len(), |special| special.start);
                if !comparison.add(&text[start..end], watch)? {
                    return Ok(None);
                }
                match special {
                    Some(special) => start = special.end,
                    None => return Ok(Some(comparison.found)),
                }
            }
        })
    }

    /// All ordinary tokens; `None` if they are too many.
    fn all_tokens(&self) -> Arc<Option<Trie>> {
        self.trie.get_or_make(|| {
            let ids = self.ids_by_bytes();
            let mut tokens: Vec<(&[u8], u32)> =
                ids.iter().map(|&id| (self.tokens.get(id).unwrap_or_default(), id)).collect();
            tokens.dedup_by_key(|(bytes, _)| *bytes);
            Trie::new(&tokens, |_, _| ())
        })
    }
}

struct Comparison<'e> {
    encoder: &'e Encoder,
    trie: &'e Trie,
    scratch: &'e mut Scratch,
    sink: WithEnds,
    /// Steps left for the text.
    steps: usize,
    found: Agreement,
}

impl Comparison<'_> {
    /// Compares on all pre-tokens of a text without special tokens; false if that takes too many steps.
    fn add(&mut self, text: &[u8], watch: &Watch) -> Result<bool> {
        let mut outcome = Ok(true);
        self.encoder.pretokenize(text, watch, &mut |pretoken| {
            outcome = self.compare(pretoken);
            if matches!(outcome, Ok(true)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        outcome
    }

    fn compare(&mut self, pretoken: &[u8]) -> Result<bool> {
        let encoder = self.encoder;
        self.found.pretokens += 1;
        // If a pre-token is looked up whole, it is its own longest match, too.
        if encoder.whole.get(pretoken, &encoder.tokens).is_some() {
            self.found.agreeing += 1;
            return Ok(true);
        }
        self.sink.ids.clear();
        self.sink.ends.clear();
        let all = 0..pretoken.len();
        let _ = encoder.encode_pretoken(pretoken, all, &mut self.sink, self.scratch)?;
        let same = self.is_longest_match(pretoken);
        self.found.agreeing += u64::from(same == Some(true));
        Ok(same.is_some())
    }

    /// Whether longest match ends tokens where merging does; `None` if that takes too many steps.
    fn is_longest_match(&mut self, pretoken: &[u8]) -> Option<bool> {
        let mut at = self.dropped(pretoken);
        for &end in &self.sink.ends {
            let rest = pretoken.get(at..).filter(|rest| !rest.is_empty());
            let Some(rest) = rest else { return Some(false) };
            let (longest, read) = self.trie.longest(rest);
            self.steps = self.steps.checked_sub(read)?;
            at += match longest {
                Some((_, length)) => length,
                None if self.encoder.byte_ids[usize::from(rest[0])] != NONE => 1,
                None if self.encoder.gaps == Gaps::Characters => character_length(rest),
                None => 1,
            };
            at += self.dropped(&pretoken[at..]);
            if at != end {
                return Some(false);
            }
        }
        Some(at == pretoken.len())
    }

    /// The number of bytes at the start that encoding drops.
    fn dropped(&self, bytes: &[u8]) -> usize {
        let encoder = self.encoder;
        if !encoder.has_gaps || encoder.gaps == Gaps::Characters || encoder.unk.is_some() {
            return 0;
        }
        bytes.iter().take_while(|&&byte| encoder.byte_ids[usize::from(byte)] == NONE).count()
    }
}

#[cfg(test)]
mod tests;
