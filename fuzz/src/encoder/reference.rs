//! Encoding, written plainly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use byteweld_core::encode::{Gaps, Ranking};
use foldhash::{HashMap, HashMapExt};

use super::Ranges;
use crate::oracle::Oracle;

/// Up to this many tokens, all pairs are searched at every step; beyond it, a heap is used.
const SHORT: usize = 48;

/// Which special tokens are recognized.
#[derive(Debug)]
pub(super) enum Permitted<'a> {
    None,
    All,
    Some(&'a [&'a str]),
    Within(Ranges<'a>),
}

pub(super) struct Reference {
    byte_ids: [Option<u32>; 256],
    ids: HashMap<Vec<u8>, u32>,
    lengths: HashMap<u32, usize>,
    /// The rank of a pair, and the token that it becomes.
    ranks: HashMap<(u32, u32), (u32, u32)>,
    looks_up: bool,
    oracle: Option<Rc<Oracle>>,
    pub(super) specials: Vec<(String, u32)>,
    gaps: Option<Gaps>,
    unk: Option<u32>,
    pub(super) description: String,
}

impl Reference {
    pub(super) fn new(
        tokens: &[(u32, Vec<u8>)],
        merges: &[(u32, u32, u32)],
        ranking: Ranking,
        pattern: Option<&str>,
        specials: Vec<(String, u32)>,
        gaps: Option<Gaps>,
        unk: Option<u32>,
    ) -> Self {
        let mut byte_ids = [None; 256];
        for (id, token) in tokens {
            if let [byte] = token[..] {
                byte_ids[usize::from(byte)] = Some(*id);
            }
        }
        let ids: HashMap<Vec<u8>, u32> =
            tokens.iter().map(|(id, token)| (token.clone(), *id)).collect();
        let mut ranks = HashMap::new();
        if ranking == Ranking::Ids {
            for (new, token) in tokens {
                for middle in 1..token.len() {
                    let (left, right) = token.split_at(middle);
                    if let (Some(&left), Some(&right)) = (ids.get(left), ids.get(right)) {
                        ranks.insert((left, right), (*new, *new));
                    }
                }
            }
        } else {
            for (&(left, right, new), rank) in merges.iter().zip(0..) {
                ranks.insert((left, right), (rank, new));
            }
        }
        let lengths = tokens.iter().map(|(id, token)| (*id, token.len())).collect();
        let learned: Vec<_> = tokens.iter().filter(|(_, token)| token.len() > 1).collect();
        let description = format!(
            "{ranking:?}, gaps {gaps:?}, unk {unk:?}, pattern {pattern:?}, specials {specials:?}, merges {merges:?}, \
             tokens {learned:?}, text"
        );
        let looks_up = ranking != Ranking::Merges;
        let oracle = pattern.map(Oracle::shared);
        Self { byte_ids, ids, lengths, ranks, looks_up, oracle, specials, gaps, unk, description }
    }

    pub(super) fn has_pattern(&self) -> bool {
        self.oracle.is_some()
    }

    pub(super) fn has_gaps(&self) -> bool {
        self.gaps.is_some()
    }

    /// Whether the engine takes the way of pipelines that change text.
    fn is_rewritten(&self) -> bool {
        self.gaps == Some(Gaps::Bytes)
    }

    pub(super) fn drops_bytes(&self) -> bool {
        self.gaps == Some(Gaps::Bytes) && self.unk.is_none()
    }

    pub(super) fn is_special(&self, id: u32) -> bool {
        self.specials.iter().any(|(_, other)| *other == id)
    }

    /// The ids of a text, and where each ends; `None` if a character has no token.
    pub(super) fn encode(&self, text: &[u8], permitted: &Permitted) -> Option<Vec<(u32, usize)>> {
        let mut tokens = Vec::new();
        let mut from = 0;
        loop {
            let special = self.find(text, from, permitted);
            let end = special.map_or(text.len(), |(start, _, _)| start);
            self.encode_ordinary(text, from, end, &mut tokens)?;
            let Some((_, end, id)) = special else { return Some(tokens) };
            tokens.push((id, end));
            from = end;
        }
    }

    /// The first special token from a place on: start, end and id. Of those that start there, the longest.
    pub(super) fn find(
        &self,
        text: &[u8],
        from: usize,
        permitted: &Permitted,
    ) -> Option<(usize, usize, u32)> {
        if let Permitted::Within(ranges) = permitted {
            let inside = |range: &std::ops::Range<usize>| {
                let start = range.start.max(from);
                if start > range.end {
                    return None;
                }
                self.find(&text[..range.end], start, &Permitted::All)
            };
            return ranges.iter().find_map(inside);
        }
        if let Permitted::Some(chosen) = permitted
            && self.is_rewritten()
        {
            // As in Hugging Face: all are found, and one that is not permitted is text, with all in it.
            let (start, end, id) = self.find(text, from, &Permitted::All)?;
            let is_permitted =
                |(text, other): &(String, u32)| *other == id && chosen.contains(&&text[..]);
            return if self.specials.iter().any(is_permitted) {
                Some((start, end, id))
            } else {
                self.find(text, end, permitted)
            };
        }
        (from..text.len()).find_map(|start| {
            let starts_here = |(special, _): &&(String, u32)| {
                let is_permitted = match permitted {
                    Permitted::None | Permitted::Within(_) => false,
                    Permitted::All => true,
                    Permitted::Some(chosen) => chosen.contains(&special.as_str()),
                };
                is_permitted && text[start..].starts_with(special.as_bytes())
            };
            let longest =
                self.specials.iter().filter(starts_here).max_by_key(|(text, _)| text.len());
            longest.map(|(special, id)| (start, start + special.len(), *id))
        })
    }

    fn encode_ordinary(
        &self,
        text: &[u8],
        from: usize,
        to: usize,
        tokens: &mut Vec<(u32, usize)>,
    ) -> Option<()> {
        let part = &text[from..to];
        let ends: Vec<usize> = match &self.oracle {
            Some(oracle) => oracle.spans(part).unwrap().into_iter().map(|(end, _)| end).collect(),
            None if part.is_empty() => Vec::new(),
            None => vec![part.len()],
        };
        let mut start = from;
        for end in ends {
            self.encode_pretoken(&text[start..from + end], start, tokens)?;
            start = from + end;
        }
        Some(())
    }

    fn encode_pretoken(
        &self,
        pretoken: &[u8],
        start: usize,
        tokens: &mut Vec<(u32, usize)>,
    ) -> Option<()> {
        if self.looks_up
            && let Some(&id) = self.ids.get(pretoken)
        {
            tokens.push((id, start + pretoken.len()));
            return Some(());
        }
        if self.drops_bytes() {
            let kept: Vec<u8> = pretoken
                .iter()
                .copied()
                .filter(|&byte| self.byte_ids[usize::from(byte)].is_some())
                .collect();
            self.merge_bytes(&kept, start, tokens); // the ends are not those of the text
            return Some(());
        }
        let is_known = |byte: &u8| self.byte_ids[usize::from(*byte)].is_some();
        let mut at = 0;
        while at < pretoken.len() {
            let known = pretoken[at..].iter().take_while(|byte| is_known(byte)).count();
            if known > 0 {
                self.merge_bytes(&pretoken[at..at + known], start + at, tokens);
                at += known;
                continue;
            }
            let length = match self.gaps {
                Some(Gaps::Characters) => character_length(&pretoken[at..]),
                _ => 1,
            };
            at += length;
            tokens.push((self.unk?, start + at));
        }
        Some(())
    }

    fn merge_bytes(&self, bytes: &[u8], start: usize, tokens: &mut Vec<(u32, usize)>) {
        let mut ids: Vec<u32> =
            bytes.iter().filter_map(|&byte| self.byte_ids[usize::from(byte)]).collect();
        if ids.len() <= SHORT {
            self.merge(&mut ids);
        } else {
            ids = self.merge_with_heap(ids);
        }
        let mut end = start;
        for id in ids {
            end += self.lengths[&id];
            tokens.push((id, end));
        }
    }

    /// The lowest rank first, and of equal ranks the leftmost.
    fn merge(&self, ids: &mut Vec<u32>) {
        loop {
            let ranks = ids.windows(2).enumerate();
            let best = ranks
                .filter_map(|(at, pair)| Some((self.ranks.get(&(pair[0], pair[1]))?, at)))
                .min();
            let Some((&(_, new), at)) = best else { return };
            ids[at] = new;
            ids.remove(at + 1);
        }
    }

    /// The same with a heap of pairs, and a list of the tokens that are left.
    fn merge_with_heap(&self, mut ids: Vec<u32>) -> Vec<u32> {
        const NONE: usize = usize::MAX;
        let length = ids.len();
        let mut next: Vec<usize> = (1..=length).collect();
        let mut previous: Vec<usize> = std::iter::once(NONE).chain(0..length - 1).collect();
        let mut is_gone = vec![false; length];
        let rank = |left: u32, right: u32| self.ranks.get(&(left, right)).map(|(rank, _)| *rank);
        let mut heap = BinaryHeap::new();
        let entries = ids.windows(2).enumerate();
        heap.extend(entries.filter_map(|(at, pair)| Some(Reverse((rank(pair[0], pair[1])?, at)))));
        while let Some(Reverse((popped, at))) = heap.pop() {
            let after = next[at];
            // An entry is stale if its pair is gone or another one is in its place.
            if is_gone[at] || after == length || rank(ids[at], ids[after]) != Some(popped) {
                continue;
            }
            ids[at] = self.ranks[&(ids[at], ids[after])].1;
            is_gone[after] = true;
            next[at] = next[after];
            if next[at] < length {
                previous[next[at]] = at;
                heap.extend(rank(ids[at], ids[next[at]]).map(|rank| Reverse((rank, at))));
            }
            if previous[at] != NONE {
                let before = previous[at];
                heap.extend(rank(ids[before], ids[at]).map(|rank| Reverse((rank, before))));
            }
        }
        ids.iter().zip(is_gone).filter(|(_, is_gone)| !is_gone).map(|(id, _)| *id).collect()
    }
}

/// The length of the character at the start, or 1 if there is none.
fn character_length(bytes: &[u8]) -> usize {
    (1..=4)
        .find(|&length| bytes.get(..length).is_some_and(|start| std::str::from_utf8(start).is_ok()))
        .unwrap_or(1)
}
