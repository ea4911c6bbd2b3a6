//! How often greedy longest match, which is not BPE, gives the same tokens as merging.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::Encoder;
use super::gaps::character_length;
use super::long::Trie;
use super::scratch::Scratch;
use super::sink::WithEnds;
use super::specials::Allowed;
use super::vocabulary::Gaps;
use crate::error::Result;
use crate::reserve::check_memory_for;
use crate::watch::Watch;

/// Bytes that the search may read per byte of text. It reads a byte again if a long token almost
/// matches; a vocabulary built for that could make it quadratic.
const MAX_READS_PER_BYTE: usize = 512;

/// What the trie takes for a token while it is built, at most.
const TRIE_BYTES: usize = 128;

/// Pre-tokens, and those on which longest match and merging agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The number of pre-tokens.
    pub pretokens: u64,
    /// The number of those that longest match splits into the same tokens.
    pub agreeing: u64,
}

impl Encoder {
    /// Compares longest match with merging on every pre-token of a text; `None` if that would take
    /// too long.
    pub fn longest_match_agreement(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        watch: &Watch,
    ) -> Result<Option<Agreement>> {
        check_memory_for(TRIE_BYTES * self.ordinary.len())?;
        let trie = self.all_tokens();
        let Some(trie) = &*trie else { return Ok(None) };
        self.pool.with_scratch(|scratch| {
            scratch.watch = watch.clone();
            let mut comparison = Comparison {
                encoder: self,
                trie,
                scratch,
                merged: WithEnds::default(),
                reads_left: text.len().saturating_mul(MAX_READS_PER_BYTE),
                agreement: Agreement::default(),
            };
            let mut start = 0;
            let mut specials = self.specials.recognize(text, allowed);
            loop {
                let special = specials.next(start).map(|(special, _)| special);
                let end = special.as_ref().map_or(text.len(), |special| special.start);
                if !comparison.add(&text[start..end], watch)? {
                    return Ok(None);
                }
                match special {
                    Some(special) => start = special.end,
                    None => return Ok(Some(comparison.agreement)),
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
    /// The tokens that merging gives for the current pre-token.
    merged: WithEnds,
    /// Number of bytes that the search may still read.
    reads_left: usize,
    agreement: Agreement,
}

impl Comparison<'_> {
    /// Compares all pre-tokens of a text without special tokens; false if that takes too long.
    fn add(&mut self, text: &[u8], watch: &Watch) -> Result<bool> {
        let mut is_within = true;
        self.encoder.pretokenize(text, watch, &mut |pretoken| {
            is_within = self.compare(pretoken)?;
            Ok(if is_within { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(is_within)
    }

    fn compare(&mut self, pretoken: &[u8]) -> Result<bool> {
        let encoder = self.encoder;
        self.agreement.pretokens += 1;
        // A pre-token that is looked up whole is its own longest match, too.
        if encoder.whole.get(pretoken, &encoder.tokens).is_some() {
            self.agreement.agreeing += 1;
            return Ok(true);
        }
        self.merged.ids.clear();
        self.merged.ends.clear();
        let all = 0..pretoken.len();
        let _ = encoder.encode_pretoken(pretoken, all, &mut self.merged, self.scratch)?;
        let same = self.is_longest_match(pretoken);
        self.agreement.agreeing += u64::from(same == Some(true));
        Ok(same.is_some())
    }

    /// Whether longest match ends its tokens where merging does; `None` if that takes too long.
    fn is_longest_match(&mut self, pretoken: &[u8]) -> Option<bool> {
        let mut at = self.dropped(pretoken);
        for &end in &self.merged.ends {
            let rest = pretoken.get(at..).filter(|rest| !rest.is_empty());
            let Some(rest) = rest else { return Some(false) };
            let (longest, read) = self.trie.longest(rest);
            self.reads_left = self.reads_left.checked_sub(read)?;
            at += match longest {
                Some((_, length)) => length,
                None if self.encoder.is_known(rest[0]) => 1,
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
        bytes.iter().take_while(|&&byte| !encoder.is_known(byte)).count()
    }
}

#[cfg(test)]
mod tests;
