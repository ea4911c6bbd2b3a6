//! Merges that are known before the training starts: those of a training that goes on, or of a tokenizer
//! that is extended.

use foldhash::{HashMap, HashMapExt};
use hashbrown::HashTable;

use super::Options;
use super::pairs::Pair;
use super::tokens::{Token, Tokens};
use crate::error::{Error, Result};

/// The known merges by rank, and their ranks by pair.
pub(super) struct Known {
    /// (pair, what it becomes), in the order in which they are made.
    merges: Vec<(Pair, Token)>,
    /// Indices of `merges`.
    ranks: HashTable<u32>,
}

impl Known {
    /// Makes the products of the known merges known to `tokens`. Each merge must be of tokens that are there.
    pub(super) fn new(options: &Options, tokens: &mut Tokens) -> Result<Self> {
        let mut known =
            Known { merges: Vec::new(), ranks: HashTable::with_capacity(options.known.len()) };
        let mut numbers: HashMap<u32, Token> = HashMap::with_capacity(options.known.len() + 256);
        numbers.extend(
            (0..).zip(&options.base_ids).filter_map(|(token, id)| id.map(|id| (id, token))),
        );
        for (rank, merge) in (0..).zip(&options.known) {
            let number = |id| {
                numbers.get(&id).copied().ok_or_else(|| {
                    Error::Train(format!(
                        "known merge {rank} is ({}, {}), but no token before it has the id {id}",
                        merge.left, merge.right
                    ))
                })
            };
            let pair = Pair::new(number(merge.left)?, number(merge.right)?);
            let token = tokens.push_known(merge.new, pair).ok_or_else(|| {
                Error::Train(format!(
                    "known merge {rank} makes a token of more than {} bytes",
                    u32::MAX
                ))
            })?;
            if numbers.insert(merge.new, token).is_some() {
                return Err(Error::Train(format!(
                    "known merge {rank} makes the id {}, which another token has",
                    merge.new
                )));
            }
            let merges = &known.merges;
            let is_it = |&other: &u32| merges[other as usize].0 == pair;
            if known.ranks.find(pair.hash(), is_it).is_some() {
                return Err(Error::Train(format!(
                    "known merge {rank}, ({}, {}), is there twice",
                    merge.left, merge.right
                )));
            }
            known.merges.push((pair, token));
            let merges = &known.merges;
            known.ranks.insert_unique(pair.hash(), rank, |&other| merges[other as usize].0.hash());
        }
        Ok(known)
    }

    /// The pairs and what they become, in the order in which they are made.
    pub(super) fn merges(&self) -> &[(Pair, Token)] {
        &self.merges
    }

    /// Whether a merge is of this pair.
    pub(super) fn has(&self, pair: Pair) -> bool {
        self.ranks.find(pair.hash(), |&rank| self.merges[rank as usize].0 == pair).is_some()
    }
}
