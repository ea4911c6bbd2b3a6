//! A vocabulary that passed the checks of Python's `Vocabulary`, ready to encode.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use byteweld_core::encode::{Encoder, Gaps, Ranking, Vocabulary};
use byteweld_core::rewrite::{AddedToken, Normalizer};
use byteweld_core::table::VocabTable;
use byteweld_core::table::hugging_face::Alphabet;

use crate::Result;
use crate::pipeline::{Splitting, compile_splitting};

/// An open vocabulary.
pub(crate) struct Opened {
    pub(crate) encoder: Encoder,
    /// All tokens, added ones included, and the merges.
    pub(crate) table: VocabTable,
    pub(crate) splitting: Splitting,
    /// Ascending, as the next.
    pub(crate) special_ids: Vec<u32>,
    /// Ids that only added tokens have, and twins: they are not built from parts.
    pub(crate) other_ids: Vec<u32>,
    pub(crate) is_ranked_by_id: bool,
}

/// What a reader has found in a file.
pub(crate) struct Parts {
    /// With the tokens of `added`.
    pub(crate) table: VocabTable,
    pub(crate) added: Vec<AddedToken>,
    pub(crate) splitting: Splitting,
    pub(crate) normalizer: Normalizer,
    /// Whether merges are ranked by the id of their result; the table then has none.
    pub(crate) is_ranked_by_id: bool,
    /// Whether pre-tokens are looked up whole before they are merged.
    pub(crate) ignore_merges: bool,
    pub(crate) alphabet: Alphabet,
    /// What becomes of text outside the alphabet, unless it is dropped or refused.
    pub(crate) unk: Option<u32>,
}

impl Opened {
    /// Checks a vocabulary and prepares it.
    pub(crate) fn new(parts: Parts) -> Result<Self> {
        let Parts { table, mut added, splitting, normalizer, .. } = parts;
        added.sort_by(|a, b| (a.id, &a.text).cmp(&(b.id, &b.text)));
        let only_added = only_added(&table, &added, parts.is_ranked_by_id);
        let twins = twins(&table, &only_added);
        let other_ids: Vec<u32> = only_added.union(&twins).copied().collect();
        check_added(&table, &added, &only_added)?;
        check_tokens(&table, &other_ids, parts.alphabet)?;
        let ranking = if parts.is_ranked_by_id {
            Ranking::Ids
        } else if parts.ignore_merges || table.makes_every_token(&other_ids) {
            Ranking::MergesAfterLookup // it never changes an id in the second case
        } else {
            Ranking::Merges
        };
        let gaps = match parts.alphabet {
            Alphabet::Partial => Gaps::Bytes,
            Alphabet::Bytes | Alphabet::Ascii => Gaps::Characters,
        };
        let (pattern, chain) = compile_splitting(&splitting)?;
        let is_other = |id: u32| other_ids.binary_search(&id).is_ok();
        let (others, ordinary): (Vec<_>, Vec<_>) =
            table.tokens().partition(|(id, _)| is_other(*id));
        let mut special_ids: Vec<u32> =
            added.iter().filter(|token| token.special).map(|token| token.id).collect();
        special_ids.dedup(); // `added` is in order of id
        let encoder = Encoder::new(Vocabulary {
            added,
            added_bytes: others,
            pattern,
            steps: chain,
            normalizer,
            gaps,
            unk: parts.unk,
            ..Vocabulary::new(ordinary, table.merges().to_vec(), ranking)
        })
        .map_err(|error| error.to_string())?;
        let is_ranked_by_id = parts.is_ranked_by_id;
        Ok(Self { encoder, table, splitting, special_ids, other_ids, is_ranked_by_id })
    }
}

/// Ids that only added tokens have: no merge makes them, and they are not those of bytes.
fn only_added(table: &VocabTable, added: &[AddedToken], is_ranked_by_id: bool) -> BTreeSet<u32> {
    let mut texts: BTreeMap<u32, Vec<&[u8]>> = BTreeMap::new();
    for token in added {
        texts.entry(token.id).or_default().push(token.text.as_bytes());
    }
    let ids: Vec<u32> = texts.keys().copied().collect();
    let made = table.made_among(&ids);
    let byte_ids = table.byte_ids(&ids);
    let is_alone = |token: &[u8]| match token {
        [byte] => is_ranked_by_id || byte_ids[usize::from(*byte)] != u32::MAX,
        _ => true,
    };
    let is_own = |id: u32, own: &[&[u8]]| {
        table.get(id).is_some_and(|token| own.contains(&token) && is_alone(token))
    };
    texts
        .iter()
        .filter(|(id, own)| made.binary_search(id).is_err() && is_own(**id, own))
        .map(|(id, _)| *id)
        .collect()
}

/// Ids that encoding never produces: a merge makes another token with the same bytes.
fn twins(table: &VocabTable, only_added: &BTreeSet<u32>) -> BTreeSet<u32> {
    if !table.has_repeats() {
        return BTreeSet::new();
    }
    let made: HashSet<u32> = table.merges().iter().map(|merge| merge.2).collect();
    let made_bytes: HashSet<&[u8]> =
        table.merges().iter().filter_map(|merge| table.get(merge.2)).collect();
    let is_twin = |id: &u32, token: &[u8]| {
        token.len() > 1
            && !made.contains(id)
            && !only_added.contains(id)
            && made_bytes.contains(token)
    };
    table.tokens().filter(|(id, token)| is_twin(id, token)).map(|(id, _)| id).collect()
}

/// An added token without flags has the bytes of its text, unless it has its id for itself.
fn check_added(table: &VocabTable, added: &[AddedToken], only_added: &BTreeSet<u32>) -> Result<()> {
    for token in added {
        let is_plain = token.special
            && !(token.single_word || token.lstrip || token.rstrip || token.normalized);
        let own = token.text.as_bytes();
        let is_wrong = match table.get(token.id) {
            None => true,
            Some(bytes) => is_plain && !only_added.contains(&token.id) && bytes != own,
        };
        if is_wrong {
            let AddedToken { text, id, .. } = token;
            return Err(format!("added token {text:?} has id {id}, which is another token's"));
        }
    }
    Ok(())
}

/// Every byte of the alphabet has a token, every token one id, and every merge joins two tokens to a
/// third.
fn check_tokens(table: &VocabTable, other_ids: &[u32], alphabet: Alphabet) -> Result<()> {
    let byte_ids = table.byte_ids(other_ids);
    let missing = byte_ids.iter().filter(|&&id| id == u32::MAX).count();
    if missing > 0 && alphabet == Alphabet::Bytes {
        return Err(format!("{missing} of 256 bytes have no token; a rank file needs all"));
    }
    if table.has_repeats() {
        let mut seen: HashSet<&[u8]> = HashSet::with_capacity(table.len());
        for (id, token) in table.tokens() {
            if other_ids.binary_search(&id).is_err() && !seen.insert(token) {
                return Err(format!("id {id} has the bytes of another token; each has one id"));
            }
        }
    }
    if !table.has_sound_merges(other_ids) {
        return Err("a merge does not join two tokens to a third, or is listed twice".to_owned());
    }
    Ok(())
}
