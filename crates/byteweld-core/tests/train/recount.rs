//! The specification of training: count all pairs, choose the best, rewrite all text, repeat.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use byteweld_core::train::{
    Example, LearnedMerge, Options, PairCount, PretokenParts, Step, StepLimits, Steps, Stop,
    TieBreak, Trained,
};

/// Trains by recounting everything at every step.
pub(crate) fn recount(pretokens: &[(&[u8], u64)], options: &Options) -> Trained {
    let limits = StepLimits { pairs: 0, pretokens: 0, parts: 0 };
    recount_step_by_step(pretokens, options, limits).0
}

/// The same, with a record of every step. The pre-tokens must be distinct for the record.
pub(crate) fn recount_step_by_step(
    pretokens: &[(&[u8], u64)],
    options: &Options,
    limits: StepLimits,
) -> (Trained, Steps) {
    let id = |byte: &u8| options.base_ids[usize::from(*byte)].unwrap();
    let mut tokens: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut text: Vec<(Vec<u32>, u64)> = Vec::new();
    let mut pretokens = pretokens.to_vec();
    pretokens.sort_by_key(|&(pretoken, count)| (Reverse(count), pretoken));
    for &(pretoken, count) in pretokens.iter().filter(|(_, count)| *count > 0) {
        text.push((pretoken.iter().map(id).collect(), count));
        tokens.extend(pretoken.iter().map(|byte| (id(byte), vec![*byte])));
    }
    let first_tokens = text.iter().map(|(ids, count)| ids.len() as u64 * count).sum();
    let mut merges = Vec::new();
    let mut steps = Steps { before: shown(&text, limits), steps: Vec::new() };
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
        let mut table: Vec<((u32, u32), u64)> = counts.into_iter().collect();
        match options.tie_break {
            TieBreak::SmallestIds => table.sort_by_key(|&(pair, n)| (Reverse(n), pair)),
            TieBreak::GreatestBytes => {
                table.sort_by_key(|(pair, n)| (Reverse(*n), Reverse(bytes(pair))));
            }
            TieBreak::SmallestBytes => table.sort_by_key(|(pair, n)| (Reverse(*n), bytes(pair))),
        }
        let Some(&((left, right), count)) = table.first() else { break Stop::NoPairs };
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
        let rows = table.iter().take(limits.pairs);
        steps.steps.push(Step {
            pairs: rows.map(|&((left, right), count)| PairCount { left, right, count }).collect(),
            total_pairs: table.len(),
            tied: table.iter().filter(|(_, other)| *other == count).count() - 1,
            example: example(&text, new, limits),
            pretokens: shown(&text, limits),
        });
    };
    (Trained { merges, stop, first_tokens }, steps)
}

/// The place of a new token in the most frequent pre-token that has it; of several, the one whose
/// tokens from there to the right, then to the left, are the smallest.
fn example(text: &[(Vec<u32>, u64)], new: u32, limits: StepLimits) -> Example {
    let mut places = Vec::new();
    for (ids, count) in text {
        for at in (0..ids.len()).filter(|&at| ids[at] == new) {
            let right: Vec<u32> = ids[at..].iter().take(limits.parts).copied().collect();
            let left: Vec<u32> = ids[..at].iter().rev().take(limits.parts).copied().collect();
            places.push(((Reverse(*count), right, left), ids, at, *count));
        }
    }
    let Some((_, ids, at, count)) = places.into_iter().min_by_key(|place| place.0.clone()) else {
        return Example::default();
    };
    let start = at.saturating_sub(limits.parts / 2);
    let end = ids.len().min(start + limits.parts);
    let parts = ids[start..end].to_vec();
    Example { parts, is_start: start == 0, is_end: end == ids.len(), count }
}

/// The first pre-tokens, which are the most frequent ones.
fn shown(text: &[(Vec<u32>, u64)], limits: StepLimits) -> Vec<PretokenParts> {
    let row = |(ids, count): &(Vec<u32>, u64)| PretokenParts {
        first: ids.iter().take(limits.parts).copied().collect(),
        total: ids.len() as u64,
        count: *count,
    };
    text.iter().take(limits.pretokens).map(row).collect()
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
