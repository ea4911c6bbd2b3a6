//! The specification of training: count all pairs, choose the best, rewrite all text, repeat.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use byteweld_core::train::{LearnedMerge, Options, Stop, TieBreak, Trained};

/// Trains by recounting everything at every step.
pub(crate) fn recount(pretokens: &[(&[u8], u64)], options: &Options) -> Trained {
    let id = |byte: &u8| options.base_ids[usize::from(*byte)].unwrap();
    let mut tokens: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut text: Vec<(Vec<u32>, u64)> = Vec::new();
    for &(pretoken, count) in pretokens.iter().filter(|(_, count)| *count > 0) {
        text.push((pretoken.iter().map(id).collect(), count));
        tokens.extend(pretoken.iter().map(|byte| (id(byte), vec![*byte])));
    }
    let first_tokens = text.iter().map(|(ids, count)| ids.len() as u64 * count).sum();
    let mut merges = Vec::new();
    let mut assigned = 0;
    let stop = loop {
        if assigned == options.max_new_ids {
            break Stop::Size;
        }
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (ids, count) in &text {
            for pair in ids.windows(2) {
                *counts.entry((pair[0], pair[1])).or_default() += count;
            }
        }
        let length = |pair: &(u32, u32)| tokens[&pair.0].len() + tokens[&pair.1].len();
        counts.retain(|pair, _| options.max_token_bytes.is_none_or(|max| length(pair) <= max));
        let is_forbidden = |pair: &(u32, u32)| {
            options.forbidden.contains(&[tokens[&pair.0].as_slice(), &tokens[&pair.1]].concat())
        };
        counts.retain(|pair, _| !is_forbidden(pair));
        let bytes = |pair: &(u32, u32)| (&tokens[&pair.0], &tokens[&pair.1]);
        let best = match options.tie_break {
            TieBreak::SmallestIds => counts.iter().max_by_key(|(pair, n)| (**n, Reverse(**pair))),
            TieBreak::GreatestBytes => counts.iter().max_by_key(|(pair, n)| (**n, bytes(pair))),
            TieBreak::SmallestBytes => {
                counts.iter().max_by_key(|(pair, n)| (**n, Reverse(bytes(pair))))
            }
        };
        let Some((&(left, right), &count)) = best else { break Stop::NoPairs };
        if count < options.min_frequency {
            break Stop::MinFrequency;
        }
        let made = [tokens[&left].as_slice(), &tokens[&right]].concat();
        let new = match options.reserved.iter().find(|(bytes, _)| *bytes == made) {
            Some(&(_, id)) => id,
            None => {
                assigned += 1;
                options.first_id + u32::try_from(assigned).unwrap() - 1
            }
        };
        tokens.insert(new, made);
        let mut removed = 0;
        for (ids, count) in &mut text {
            let before = ids.len();
            *ids = rewrite(ids, left, right, new);
            removed += (before - ids.len()) as u64 * *count;
        }
        merges.push(LearnedMerge { left, right, new, count, removed });
    };
    Trained { merges, stop, first_tokens }
}

fn rewrite(ids: &[u32], left: u32, right: u32, new: u32) -> Vec<u32> {
    let mut rewritten = Vec::with_capacity(ids.len());
    let mut rest = ids;
    while let [first, after @ ..] = rest {
        if *first == left && after.first() == Some(&right) {
            rewritten.push(new);
            rest = &after[1..];
        } else {
            rewritten.push(*first);
            rest = after;
        }
    }
    rewritten
}
