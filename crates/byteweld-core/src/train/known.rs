//! Merges that are known before training starts: those of a resumed training or of an extended
//! tokenizer.

use foldhash::{HashMap, HashMapExt};
use hashbrown::HashTable;

use super::Options;
use super::pairs::Pair;
use super::tokens::{Token, Tokens};
use crate::error::{Error, Result};
use crate::reserve::{failed, reserve_exact};

/// The known merges by rank, and their ranks by pair.
pub(super) struct KnownMerges {
    /// Pairs and the tokens they become, in rank order.
    merges: Vec<(Pair, Token)>,
    /// Indices into `merges`, by pair.
    ranks: HashTable<u32>,
}

impl KnownMerges {
    /// Adds the tokens that the known merges make to `tokens`. Each merge must join existing
    /// tokens.
    pub(super) fn new(options: &Options, tokens: &mut Tokens) -> Result<Self> {
        let mut known = KnownMerges { merges: Vec::new(), ranks: HashTable::new() };
        let mut numbers: HashMap<u32, Token> = HashMap::new();
        let length = options.known.len();
        reserve_exact(&mut known.merges, length)?;
        known.ranks.try_reserve(length, |_| 0).map_err(|_| failed::<u32>(length))?;
        numbers.try_reserve(length + 256).map_err(|_| failed::<(u32, Token)>(length))?;
        numbers.extend(
            (0..).zip(&options.base_ids).filter_map(|(token, id)| id.map(|id| (id, token))),
        );
        for (rank, merge) in (0..).zip(&options.known) {
            let number = |id| {
                numbers.get(&id).copied().ok_or_else(|| {
                    Error::Train(format!(
                        "known merge {rank} is ({}, {}), but no earlier token has the id {id}",
                        merge.left, merge.right
                    ))
                })
            };
            let pair = Pair::new(number(merge.left)?, number(merge.right)?);
            let token = tokens.push_known(merge.new, pair)?.ok_or_else(|| {
                Error::Train(format!(
                    "known merge {rank} makes a token of more than {} bytes",
                    u32::MAX
                ))
            })?;
            if numbers.insert(merge.new, token).is_some() {
                return Err(Error::Train(format!(
                    "known merge {rank} makes the id {}, which already belongs to another token",
                    merge.new
                )));
            }
            let merges = &known.merges;
            let is_same = |&other: &u32| merges[other as usize].0 == pair;
            if known.ranks.find(pair.hash(), is_same).is_some() {
                return Err(Error::Train(format!(
                    "known merge {rank}, ({}, {}), is a duplicate",
                    merge.left, merge.right
                )));
            }
            known.merges.push((pair, token));
            let merges = &known.merges;
            known.ranks.insert_unique(pair.hash(), rank, |&other| merges[other as usize].0.hash());
        }
        Ok(known)
    }

    /// Pairs and the tokens they become, in rank order.
    pub(super) fn merges(&self) -> &[(Pair, Token)] {
        &self.merges
    }

    /// Whether a known merge joins this pair.
    pub(super) fn contains(&self, pair: Pair) -> bool {
        self.ranks.find(pair.hash(), |&rank| self.merges[rank as usize].0 == pair).is_some()
    }
}
