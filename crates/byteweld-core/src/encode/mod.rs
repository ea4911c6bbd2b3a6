//! Text to ids.
//!
//! The way of a text: special tokens are found (`specials`), the rest is cut into pre-tokens (`pretoken`), a
//! pre-token that is a whole token is looked up (`whole`), any other is merged from its bytes
//! (`merge`), and the tokens go into a [`Sink`]. Three rank semantics share all of this: they differ only in
//! which pairs are in the table and which tokens may be looked up whole.

mod batch;
mod merge;
mod pairs;
mod recover;
mod sink;
mod unstable;
mod whole;

use std::ops::ControlFlow;

use crate::cut;
use crate::decode::Tokens;
use crate::error::{Error, Result};
use crate::pretoken::Pretokenizer;
use crate::specials::{Occurrence, Specials};
use merge::Scratch;
use pairs::{NONE, Pairs};

use whole::WholeTokens;

pub use recover::recover_merges;
pub use sink::{Counter, Sink, WithEnds};

/// How merges are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// By place in the merge list; a pre-token is always merged from its bytes.
    Merges,
    /// By place in the merge list, but a pre-token that is a token is taken whole (`ignore_merges`).
    MergesAfterLookup,
    /// By the id of the result, as in rank files; any two tokens that make a token may merge, and a
    /// pre-token that is a token is taken whole.
    Ids,
}

/// A vocabulary, as the engine takes it.
pub struct Vocabulary {
    /// Ordinary tokens, as (id, bytes).
    pub tokens: Vec<(u32, Vec<u8>)>,
    /// Merges in rank order: left, right, new. Empty with [`Ranking::Ids`].
    pub merges: Vec<(u32, u32, u32)>,
    /// How merges are ranked.
    pub ranking: Ranking,
    /// Special tokens, as (text, id).
    pub specials: Vec<(String, u32)>,
    /// The pattern, or none.
    pub pattern: Option<String>,
    /// The id for a character that is not in the alphabet.
    pub unk: Option<u32>,
}

/// A vocabulary made ready to encode and decode. Immutable: threads share it.
pub struct Encoder {
    pretokenizer: Pretokenizer,
    tokens: Tokens,
    /// The id of each byte's token, or [`NONE`].
    byte_ids: [u32; 256],
    /// Whether some byte has no token.
    has_gaps: bool,
    unk: Option<u32>,
    pairs: Pairs,
    /// Tokens that a pre-token equal to them becomes; the others can only be reached by merging.
    whole: WholeTokens,
    /// All ordinary ids in order of their bytes.
    by_bytes: Vec<u32>,
    specials: Vec<(String, u32)>,
    finder: Specials,
}

/// Which special tokens a call recognises.
pub enum Allowed<'a> {
    /// None: text is text.
    None,
    /// All of the vocabulary's.
    All,
    /// These, prepared by [`Encoder::choose`].
    Some(&'a Choice),
}

/// A choice of special tokens, to be recognised or to be refused.
pub struct Choice {
    finder: Specials,
    /// Text and id; [`NONE`] for a text that is none of the vocabulary's, which can only be refused.
    specials: Vec<(String, u32)>,
}

impl Encoder {
    /// Prepares a vocabulary.
    pub fn new(vocabulary: Vocabulary) -> Result<Self> {
        let Vocabulary { tokens, merges, ranking, specials, pattern, unk } = vocabulary;
        let pretokenizer = Pretokenizer::new(pattern.as_deref())?;
        let mut every: Vec<(u32, Vec<u8>)> = tokens.clone();
        let ordinary: std::collections::HashSet<u32> = tokens.iter().map(|(id, _)| *id).collect();
        every.extend(
            specials
                .iter()
                .filter(|(_, id)| !ordinary.contains(id))
                .map(|(text, id)| (*id, text.as_bytes().to_vec())),
        );
        let table = Tokens::new(&every)?;
        let mut byte_ids = [NONE; 256];
        for (id, token) in &tokens {
            if let [byte] = token[..] {
                byte_ids[byte as usize] = *id;
            }
        }
        let mut by_bytes: Vec<u32> = tokens.iter().map(|(id, _)| *id).collect();
        let bytes_of = |id: u32| table.get(id).unwrap_or_default();
        by_bytes.sort_unstable_by(|&a, &b| bytes_of(a).cmp(bytes_of(b)));
        let pairs = match ranking {
            Ranking::Ids => Pairs::of_ranks(&tokens),
            Ranking::Merges | Ranking::MergesAfterLookup => Pairs::of_merges(&merges)?,
        };
        let whole = WholeTokens::new(&by_bytes, &table);
        let finder = Specials::new(&specials.iter().map(|(text, _)| text).collect::<Vec<_>>())?;
        let mut encoder = Self {
            pretokenizer,
            tokens: table,
            has_gaps: byte_ids.contains(&NONE),
            byte_ids,
            unk,
            pairs,
            whole,
            by_bytes,
            specials,
            finder,
        };
        if ranking == Ranking::Merges {
            encoder.forget_unreachable();
        }
        Ok(encoder)
    }

    /// Looks up only tokens that merging their own bytes gives.
    fn forget_unreachable(&mut self) {
        let mut scratch = Scratch::default();
        let mut reachable = self.by_bytes.clone();
        reachable.retain(|&id| {
            let token = self.tokens.get(id).unwrap_or_default();
            token.iter().all(|&byte| self.byte_ids[byte as usize] != NONE)
                && self.merge_bytes(token, NONE, &mut scratch).is_ok()
                && scratch.ids == [id]
        });
        if reachable.len() < self.by_bytes.len() {
            self.whole = WholeTokens::new(&reachable, &self.tokens);
        }
    }

    // -------------------------------------------------------------------------------- encoding

    /// Encodes a text into a sink.
    pub fn encode(&self, text: &[u8], allowed: &Allowed<'_>, sink: &mut impl Sink) -> Result<()> {
        let mut scratch = Scratch::default();
        self.encode_with(text, allowed, sink, &mut scratch)
    }

    fn encode_with(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut position = 0;
        loop {
            let special = self.find_special(text, position, allowed);
            let end = special.map_or(text.len(), |(s, _)| s.start);
            if self.encode_plain(&text[position..end], position, sink, scratch)?.is_break() {
                return Ok(());
            }
            let Some((special, id)) = special else { return Ok(()) };
            if sink.push(id, special.end - special.start).is_break() {
                return Ok(());
            }
            position = special.end;
        }
    }

    /// Encodes text without special tokens; `offset` is where it stands in the caller's text.
    fn encode_plain(
        &self,
        text: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut at = offset;
        let mut outcome: Result<ControlFlow<()>> = Ok(ControlFlow::Continue(()));
        self.pretokenizer.for_each(text, &mut |pretoken| {
            outcome = self.encode_pretoken(pretoken, at, sink, scratch);
            at += pretoken.len();
            match outcome {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })?;
        outcome
    }

    fn encode_pretoken(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        if let Some(id) = self.whole.get(pretoken, &self.tokens) {
            return Ok(sink.push(id, pretoken.len()));
        }
        self.merge_pretoken(pretoken, offset, sink, scratch)
    }

    fn merge_pretoken(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        if self.has_gaps {
            return self.merge_with_gaps(pretoken, offset, sink, scratch);
        }
        self.merge_run(pretoken, sink, scratch)
    }

    fn merge_run(
        &self,
        run: &[u8],
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        self.merge_bytes(run, NONE, scratch)?;
        for &id in &scratch.ids {
            let covered = self.tokens.get(id).map_or(0, <[u8]>::len);
            if sink.push(id, covered).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A pre-token of an alphabet that lacks some bytes: a character outside is one unk.
    fn merge_with_gaps(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut at = 0;
        while at < pretoken.len() {
            let is_known = |byte: &u8| self.byte_ids[*byte as usize] != NONE;
            let known = pretoken[at..].iter().take_while(|byte| is_known(byte)).count();
            if known > 0 {
                if self.merge_run(&pretoken[at..at + known], sink, scratch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                at += known;
                continue;
            }
            let length = character_length(&pretoken[at..]);
            let Some(unk) = self.unk else {
                let character = match std::str::from_utf8(&pretoken[at..at + length]) {
                    Ok(character) => character.to_owned(),
                    Err(_) => format!("\\x{:02x}", pretoken[at]),
                };
                return Err(Error::OutsideAlphabet { character, offset: offset + at });
            };
            if sink.push(unk, length).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            at += length;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Puts into `scratch.ids` what `bytes` merge to. Every byte must have a token.
    fn merge_bytes(&self, bytes: &[u8], limit: u32, scratch: &mut Scratch) -> Result<()> {
        if bytes.len() >= NONE as usize {
            return Err(Error::Pattern(format!(
                "a pre-token of {} bytes is too long; at most 2^32 - 2 can be merged",
                bytes.len()
            )));
        }
        scratch.ids.clear();
        scratch.ids.extend(bytes.iter().map(|&byte| self.byte_ids[byte as usize]));
        scratch.merge(&self.pairs, limit);
        Ok(())
    }

    // -------------------------------------------------------------------------------- specials

    /// The first special token at or after `from` that a call recognises, with its id.
    fn find_special(
        &self,
        text: &[u8],
        from: usize,
        allowed: &Allowed<'_>,
    ) -> Option<(Occurrence, u32)> {
        match allowed {
            Allowed::None => None,
            Allowed::All => self.finder.find(text, from).map(|s| (s, self.specials[s.index].1)),
            Allowed::Some(choice) => choice
                .finder
                .find(text, from)
                .map(|s| (s, choice.specials[s.index].1))
                .filter(|(_, id)| *id != NONE),
        }
    }

    /// Prepares a choice of special tokens.
    pub fn choose<T: AsRef<str>>(&self, texts: &[T]) -> Result<Choice> {
        let id_of =
            |text: &str| self.specials.iter().find(|(s, _)| s == text).map_or(NONE, |s| s.1);
        let specials: Vec<(String, u32)> =
            texts.iter().map(|text| (text.as_ref().to_owned(), id_of(text.as_ref()))).collect();
        let finder = Specials::new(&specials.iter().map(|(text, _)| text).collect::<Vec<_>>())?;
        Ok(Choice { finder, specials })
    }

    /// Refuses a text that holds any special token of the choice, or of the vocabulary.
    pub fn refuse(&self, text: &[u8], choice: Option<&Choice>) -> Result<()> {
        let (finder, specials) = match choice {
            Some(choice) => (&choice.finder, &choice.specials),
            None => (&self.finder, &self.specials),
        };
        match finder.find(text, 0) {
            None => Ok(()),
            Some(found) => Err(Error::SpecialToken {
                token: specials[found.index].0.clone(),
                offset: found.start,
            }),
        }
    }

    // -------------------------------------------------------------------------------- the rest

    /// The pre-tokeniser.
    pub fn pretokenizer(&self) -> &Pretokenizer {
        &self.pretokenizer
    }

    /// All tokens by id, special ones included.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The last place where a text that goes on may be cut without changing an id or tearing a text that
    /// is to be refused, if one can be proved.
    pub fn last_cut(&self, text: &[u8], refused: Option<&Choice>) -> Option<usize> {
        match refused {
            None => cut::last_cut(&self.pretokenizer, &[&self.finder], text),
            Some(refused) => {
                cut::last_cut(&self.pretokenizer, &[&self.finder, &refused.finder], text)
            }
        }
    }
}

/// The length of the first character, or 1 if it is none.
fn character_length(bytes: &[u8]) -> usize {
    let window = &bytes[..bytes.len().min(4)];
    match window.utf8_chunks().next() {
        Some(chunk) => chunk.valid().chars().next().map_or(1, char::len_utf8),
        None => 1,
    }
}

#[cfg(test)]
mod tests;
