//! A vocabulary as the caller provides it; [`Encoder::new`](super::Encoder::new) prepares it.

use super::merge::PairLayout;
use crate::rewrite::{AddedToken, Normalizer, SplitChain};

/// How merges are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// By index in the merge list. Every pre-token is merged from its bytes.
    Merges,
    /// By index in the merge list, but a pre-token that is a token becomes that token
    /// (`ignore_merges`).
    MergesAfterLookup,
    /// By the id of the result, as in rank files: any two tokens that make a token may merge, and a
    /// pre-token that is a token becomes that token.
    Ids,
}

/// What bytes without a token become, in an alphabet that lacks some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// A character with such a byte is one unk token, or an error if there is none.
    Characters,
    /// Each such byte is one unk token, or is dropped if there is none.
    Bytes,
}

/// A vocabulary. The bytes of its tokens may be borrowed.
pub struct Vocabulary<B = Vec<u8>> {
    /// Ordinary tokens, as (id, bytes).
    pub tokens: Vec<(u32, B)>,
    /// Merges in rank order, as (left, right, new). Empty with [`Ranking::Ids`].
    pub merges: Vec<(u32, u32, u32)>,
    /// The layout of the merges' pairs, if it is known, which saves finding it.
    pub layout: Option<PairLayout>,
    /// How merges are ranked.
    pub ranking: Ranking,
    /// Added tokens, special and other.
    pub added: Vec<AddedToken>,
    /// The bytes of ids that only added tokens have, as (id, bytes).
    pub added_bytes: Vec<(u32, B)>,
    /// The pattern that splits text into pre-tokens, if any.
    pub pattern: Option<String>,
    /// The steps that split text, if it takes more than one pattern; `pattern` is then `None`.
    pub steps: SplitChain,
    /// What changes text before it is split.
    pub normalizer: Normalizer,
    /// What bytes without a token become.
    pub gaps: Gaps,
    /// The id of the unk token, for what is not in the alphabet.
    pub unk: Option<u32>,
}

impl<B> Vocabulary<B> {
    /// A vocabulary of tokens and merges alone.
    pub fn new(tokens: Vec<(u32, B)>, merges: Vec<(u32, u32, u32)>, ranking: Ranking) -> Self {
        Self {
            tokens,
            merges,
            layout: None,
            ranking,
            added: Vec::new(),
            added_bytes: Vec::new(),
            pattern: None,
            steps: SplitChain::default(),
            normalizer: Normalizer::default(),
            gaps: Gaps::Characters,
            unk: None,
        }
    }
}
