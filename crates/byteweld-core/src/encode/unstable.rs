//! What the last tokens of a text may become when more text follows, as in tiktoken.
//!
//! The tokens of the last pre-token, and of white space before it, are not certain: they may merge
//! with what follows. The certain ids are returned separately, with every sequence of tokens that
//! the uncertain bytes could start. All rules and shortcuts are those of tiktoken 0.14, so that
//! results are equal.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Encoder;
use super::scratch::Scratch;
use super::specials::Allowed;
use crate::error::{Error, Result};
use crate::reserve::check_memory_for;

/// What a token takes if the text could start it: its sequence of ids, twice.
const POSSIBILITY_BYTES: usize = 256;

impl Encoder {
    /// The certain ids, and the sequences that the rest of the text could start, ascending.
    pub fn encode_with_unstable(
        &self,
        text: &str,
        allowed: &Allowed<'_>,
    ) -> Result<(Vec<u32>, Vec<Vec<u32>>)> {
        if self.rewrites.is_some() {
            return Err(Error::Vocabulary(
                "encode_with_unstable is defined for one pattern and plain special tokens only, and this \
                 vocabulary changes text on the way"
                    .to_owned(),
            ));
        }
        if self.pretokenizer.is_over_bytes() {
            return Err(Error::Vocabulary(
                "encode_with_unstable follows tiktoken, whose patterns match characters, and the pattern of \
                 this vocabulary matches bytes"
                    .to_owned(),
            ));
        }
        check_memory_for(POSSIBILITY_BYTES * self.ordinary.len())?;
        let (mut ids, mut stable) = self.last_pretoken(text.as_bytes(), allowed)?;
        if stable == ids.len() {
            return Ok((ids, Vec::new()));
        }
        // A run of white space may be split differently.
        if self.is_blank(ids[stable]) {
            while stable > 0 && self.is_blank(ids[stable - 1]) {
                stable -= 1;
            }
        }
        let mut unstable = Vec::new();
        self.tokens.decode_into(&ids[stable..], &mut unstable)?;
        ids.truncate(stable);

        let mut completions = BTreeSet::new();
        completions.extend(self.tokens_with_prefix(&unstable).into_iter().map(|id| vec![id]));
        for at in 1..unstable.len() {
            for id in self.tokens_with_prefix(&unstable[at..]) {
                let mut possibility = unstable[..at].to_vec();
                possibility.extend_from_slice(self.tokens.get(id).unwrap_or_default());
                let mut encoded = Vec::new();
                if std::str::from_utf8(&possibility).is_ok() {
                    self.encode(&possibility, &Allowed::None, &mut encoded)?;
                } else {
                    encoded = self.merge_as_one(&possibility)?;
                }
                completions.insert(self.first_covering(encoded, unstable.len()));
            }
        }
        // The last space of a run may be split off if a letter follows.
        if let Some(last) = last_space(&unstable).filter(|&last| last > 0) {
            let mut split = self.merge_as_one(&unstable[..last])?;
            split.extend(self.merge_as_one(&unstable[last..])?);
            completions.insert(split);
        }
        Ok((ids, completions.into_iter().collect()))
    }

    /// All ids, and the index of the first one of the last pre-token. After a special token,
    /// everything is certain.
    fn last_pretoken(&self, text: &[u8], allowed: &Allowed<'_>) -> Result<(Vec<u32>, usize)> {
        let mut plain_start = 0;
        let mut specials = self.specials.recognize(text, allowed);
        while let Some((special, _)) = specials.next(plain_start) {
            plain_start = special.end;
        }
        let mut ids = Vec::new();
        self.encode(&text[..plain_start], allowed, &mut ids)?;
        let mut stable = ids.len();
        let mut start = plain_start;
        let mut scratch = Scratch::default();
        // In one pass: a pre-token may depend on the text after it.
        for (end, _) in self.pretokenizer.ends(&text[plain_start..])? {
            stable = ids.len();
            let pretoken = start..plain_start + end;
            start = pretoken.end;
            let _ = self.encode_pretoken(text, pretoken, &mut ids, &mut scratch)?; // never breaks
        }
        Ok((ids, stable))
    }

    fn is_blank(&self, id: u32) -> bool {
        if self.specials.ids.binary_search(&id).is_ok() {
            return false; // as in tiktoken: only ordinary tokens are white space
        }
        let token = self.tokens.get(id).unwrap_or_default();
        token.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\t'))
    }

    /// The ordinary ids whose tokens start with `prefix`.
    fn tokens_with_prefix(&self, prefix: &[u8]) -> Vec<u32> {
        let bytes_of = |id: u32| self.tokens.get(id).unwrap_or_default();
        let ids = self.ids_by_bytes();
        let first = ids.partition_point(|&id| bytes_of(id) < prefix);
        let count = ids[first..].partition_point(|&id| bytes_of(id).starts_with(prefix));
        ids[first..first + count].to_vec()
    }

    /// All ordinary ids, sorted by their bytes.
    pub(super) fn ids_by_bytes(&self) -> Arc<Vec<u32>> {
        let bytes_of = |id: u32| self.tokens.get(id).unwrap_or_default();
        self.by_bytes.get_or_make(|| {
            let mut ids = self.ordinary.clone();
            ids.sort_unstable_by(|&a, &b| bytes_of(a).cmp(bytes_of(b)));
            ids
        })
    }

    /// Merges bytes as one pre-token.
    fn merge_as_one(&self, bytes: &[u8]) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let _ = self.merge_pretoken(bytes, 0, &mut ids, &mut Scratch::default())?;
        Ok(ids)
    }

    /// The first ids, as many as it takes to cover `length` bytes.
    fn first_covering(&self, mut ids: Vec<u32>, length: usize) -> Vec<u32> {
        let mut covered = 0;
        let mut taken = 0;
        for &id in &ids {
            taken += 1;
            covered += self.tokens.len_of(id);
            if covered >= length {
                break;
            }
        }
        ids.truncate(taken);
        ids
    }
}

/// The offset of the last character, if it is white space.
fn last_space(bytes: &[u8]) -> Option<usize> {
    let chunk = bytes.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty())?;
    let last = chunk.valid().chars().next_back().filter(|character| character.is_whitespace())?;
    Some(bytes.len() - last.len_utf8())
}
