//! A [`Vocabulary`] becomes an [`Encoder`]: its tables are built here, except those that few calls
//! need, which are made on first use.

use std::sync::Arc;

use super::Encoder;
use super::long::{CutPoints, LazyMatcher};
use super::merge::{Interleaved, LANES, MAX_SHORT_IDS, NO_ID, NO_RANK, PairTable};
use super::pool::Pool;
use super::rewritten::Rewrites;
use super::scratch::Scratch;
use super::specials::SpecialSet;
use super::vocabulary::{Gaps, Ranking, Vocabulary};
use super::whole_tokens::WholeTokens;
use crate::decode::TokenTable;
use crate::error::Result;
use crate::lazy::Lazy;
use crate::pretoken::Pretokenizer;
use crate::reserve::check_memory_for;
use crate::rewrite::AddedTokens;

/// What all tables of a vocabulary take while they are built, at most.
fn tables_bytes<B: AsRef<[u8]>>(
    tokens: &[(u32, B)],
    added: &[(u32, B)],
    merges: usize,
    ranking: Ranking,
) -> usize {
    let bytes_of = |tokens: &[(u32, B)]| -> usize {
        tokens.iter().map(|(_, token)| token.as_ref().len()).sum()
    };
    let bytes = bytes_of(tokens);
    // Special tokens are found by automata.
    let finders = 64 * bytes_of(added);
    let tables = 128 * (tokens.len() + added.len()) + 64 * merges + 4 * bytes + finders;
    match ranking {
        Ranking::Merges | Ranking::MergesAfterLookup => tables,
        // All prefixes and suffixes that are tokens.
        Ranking::Ids => tables + 256 * tokens.len() + 32 * bytes,
    }
}

impl Encoder {
    /// Prepares a vocabulary.
    pub fn new(vocabulary: Vocabulary<impl AsRef<[u8]>>) -> Result<Self> {
        let Vocabulary { tokens, merges, layout, ranking, added, added_bytes, pattern, .. } =
            vocabulary;
        check_memory_for(tables_bytes(&tokens, &added_bytes, merges.len(), ranking))?;
        let pretokenizer = Pretokenizer::new(pattern.as_deref())?;
        let num_ordinary = tokens.len();
        let mut all = tokens;
        all.extend(added_bytes);
        let table = TokenTable::new(&all)?;
        let tokens = &all[..num_ordinary];
        let mut byte_ids = [NO_ID; 256];
        for (id, token) in tokens {
            if let [byte] = token.as_ref() {
                byte_ids[*byte as usize] = *id;
            }
        }
        let ordinary: Vec<u32> = tokens.iter().map(|(id, _)| *id).collect();
        let pairs = match ranking {
            Ranking::Ids => PairTable::from_ranks(tokens),
            Ranking::Merges | Ranking::MergesAfterLookup => {
                PairTable::from_merges(&merges, layout)?
            }
        };
        let whole = WholeTokens::new(&ordinary, &table);
        let mut specials: Vec<(String, u32)> = added
            .iter()
            .filter(|token| token.special)
            .map(|token| (token.text.clone(), token.id))
            .collect();
        specials.sort_unstable();
        let has_gaps = byte_ids.contains(&NO_ID);
        let is_plain = AddedTokens::are_plain(&added)
            && vocabulary.steps.is_empty()
            && vocabulary.normalizer.is_empty()
            && !(has_gaps && vocabulary.gaps == Gaps::Bytes);
        let mut encoder = Self {
            pretokenizer,
            tokens: table,
            has_gaps,
            gaps: vocabulary.gaps,
            byte_ids,
            unk: vocabulary.unk,
            pairs,
            whole,
            ordinary,
            by_bytes: Lazy::new(),
            trie: Lazy::new(),
            specials: SpecialSet::new(specials)?,
            ambiguous: None,
            rewrites: None,
            cut_points: Lazy::new(),
            matcher: LazyMatcher::default(),
            pool: Pool::default(),
        };
        if ranking == Ranking::Merges {
            encoder.forget_unreachable()?;
        }
        encoder.ambiguous = encoder.find_ambiguous(&added, &merges, ranking)?;
        if !is_plain {
            let rewrites = Rewrites::new(added, vocabulary.normalizer, vocabulary.steps)?;
            encoder.rewrites = Some(Box::new(rewrites));
        }
        Ok(encoder)
    }

    /// Keeps only the whole tokens that their own bytes merge to.
    fn forget_unreachable(&mut self) -> Result<()> {
        let (mut interleaved, mut scratch) = (Interleaved::default(), Scratch::default());
        let mut reachable = Vec::with_capacity(self.ordinary.len());
        for ids in self.ordinary.chunks(LANES) {
            let mut merging = [NO_ID; LANES];
            for &id in ids {
                let token = self.tokens.get(id).unwrap_or_default();
                let mut bytes = token.iter().map(|&byte| self.byte_ids[byte as usize]);
                if bytes.clone().any(|id| id == NO_ID) {
                    continue;
                }
                if token.len() > MAX_SHORT_IDS {
                    self.merge_below(NO_RANK, token, &mut scratch)?;
                    reachable.extend((scratch.ids == [id]).then_some(id));
                } else if let Some(lane) = interleaved.add(&mut bytes) {
                    merging[lane] = id;
                }
            }
            interleaved.merge(&self.pairs, |lane, merged| {
                reachable.extend(merged.is_one(merging[lane]).then_some(merging[lane]));
            });
        }
        if reachable.len() < self.ordinary.len() {
            self.whole = WholeTokens::new(&reachable, &self.tokens);
        }
        Ok(())
    }

    /// The cut points of the vocabulary, made on first use.
    pub(super) fn cut_points(&self) -> Arc<CutPoints> {
        self.cut_points.get_or_make(|| CutPoints::new(&self.tokens))
    }
}
