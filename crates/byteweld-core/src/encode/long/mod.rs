//! Long pre-tokens, which would be slow to merge.
//!
//! Most are encoded by longest matches that are compatible, without merging ([`longest_match`]).
//! In scripts without spaces, where a whole sentence is one pre-token that never recurs, pre-tokens
//! are first split at offsets that no token spans ([`cut_points`]); the segments do recur.

mod cut_points;
mod longest_match;
mod trie;

pub(crate) use cut_points::{CutPoints, should_be_cut};
pub(crate) use longest_match::{LazyMatcher, MAX_MERGED_BYTES, MatchScratch, Matcher, MergeTables};
pub(crate) use trie::Trie;
