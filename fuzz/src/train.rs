//! The trainer against a recount of everything at every step. One execution: one corpus, one set of options;
//! the engine trains once, and once more from known merges.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use byteweld_core::train::{KnownMerge, LearnedMerge, Options, Stop, TieBreak, Trained, train};

use crate::input::Input;
use crate::{magnitude, signature};

/// The plain trainer gets slow beyond this many bytes of distinct pre-tokens.
const MAX_BYTES: usize = 160;

pub fn run(input: &[u8]) -> u64 {
    let mut input = Input::new(input);
    let mut options = options(&mut input);
    let resumed = input.byte();
    let pretokens = pretokens(&mut input);
    let pretokens: Vec<(&[u8], u64)> =
        pretokens.iter().map(|(bytes, count)| (bytes.as_slice(), *count)).collect();
    let expected = recount(&pretokens, &options);
    let found = learn(&pretokens, &options);
    assert_eq!(found, expected, "{pretokens:?}, {options:?}");

    // From any of the merges on, the rest is learned again.
    let merges = &expected.merges;
    let done = usize::from(resumed) % (merges.len() + 1);
    if done > 0 && resumed >= 240 {
        options.known = merges[..done]
            .iter()
            .map(|&LearnedMerge { left, right, new, .. }| KnownMerge { left, right, new })
            .collect();
        let reserved = |id: u32| options.reserved.iter().any(|(_, other)| *other == id);
        let assigned = merges[..done].iter().filter(|merge| !reserved(merge.new)).count();
        options.first_id += assigned as u32;
        options.max_new_ids -= assigned;
        let rest = learn(&pretokens, &options);
        assert_eq!(rest.merges, merges[done..], "resumed at {done}: {pretokens:?}, {options:?}");
        assert_eq!(rest.stop, expected.stop, "resumed at {done}: {pretokens:?}, {options:?}");
    }
    let ties = merges.windows(2).filter(|pair| pair[0].count == pair[1].count).count();
    let runs = merges.iter().filter(|merge| merge.removed < merge.count).count();
    let shape = [magnitude(pretokens.len()), magnitude(merges.len()), expected.stop as usize];
    signature(&[shape[0], shape[1], shape[2], magnitude(ties), magnitude(runs), options.threads])
}

fn learn(pretokens: &[(&[u8], u64)], options: &Options) -> Trained {
    train(&pretokens, options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn options(input: &mut Input) -> Options {
    let order = input.byte();
    let start = [0, 5, 1000][usize::from(order) % 3];
    let mut base_ids = [None; 256];
    for (byte, slot) in (0u32..).zip(&mut base_ids) {
        *slot = Some(start + if order & 64 == 0 { byte } else { 255 - byte });
    }
    let mut reserved: Vec<(Vec<u8>, u32)> = Vec::new();
    for id in 1500..1500 + u32::from(input.byte()).saturating_sub(220) / 12 {
        let bytes = pretoken(input, b"ab");
        if bytes.len() > 1 && reserved.iter().all(|(other, _)| *other != bytes) {
            reserved.push((bytes, id));
        }
    }
    let forbidden: Vec<Vec<u8>> =
        (0..input.byte().saturating_sub(200) / 20).map(|_| pretoken(input, b"ab")).collect();
    let ties = [TieBreak::SmallestIds, TieBreak::GreatestBytes, TieBreak::SmallestBytes];
    // Threads cost more than such a training; few executions use them.
    let threads = if input.byte() == 255 { 3 } else { 1 };
    Options {
        base_ids,
        first_id: 2000,
        max_new_ids: input.pick(&[1, 2, 3, 7, 20, 40, 40]),
        reserved,
        forbidden,
        known: Vec::new(),
        tie_break: input.pick(&ties),
        min_frequency: input.pick(&[0, 0, 0, 1, 2, 3, 50, 1 << 33]),
        max_token_bytes: input.pick(&[
            None,
            None,
            None,
            Some(0),
            Some(2),
            Some(3),
            Some(5),
            Some(9),
        ]),
        threads,
    }
}

fn pretokens(input: &mut Input) -> Vec<(Vec<u8>, u64)> {
    let letters = &b"ab\xffc\0d"[..1 + input.below(6)];
    let weights = input.below(5);
    let mut pretokens = Vec::new();
    let mut bytes = 0;
    while !input.is_empty() && bytes < MAX_BYTES {
        let mut pretoken = pretoken(input, letters);
        pretoken.truncate(MAX_BYTES - bytes);
        bytes += pretoken.len().max(1);
        let byte = u64::from(input.byte());
        let count = match weights {
            0 => 1,
            1 => byte % 4,
            2 => byte,
            // Far apart, so that the floor starts high and sinks often.
            3 => 1 << (byte % 50),
            _ => (1 << 40) + byte % 3,
        };
        pretokens.push((pretoken, count));
    }
    pretokens
}

/// A pre-token of single letters, runs of letters, or a repeated short string.
fn pretoken(input: &mut Input, letters: &[u8]) -> Vec<u8> {
    let byte = input.byte();
    let (shape, length) = (byte % 4, usize::from(byte / 4) % 20);
    let mut bytes = Vec::new();
    while bytes.len() < length && !input.is_empty() {
        let letter = input.pick(letters);
        match shape {
            0 => bytes.push(letter),
            1 => bytes.extend(std::iter::repeat_n(letter, 1 + input.below(7))),
            2 => {
                let unit = [letter, input.pick(letters), input.pick(letters)];
                for _ in 0..1 + input.below(6) {
                    bytes.extend_from_slice(&unit[..1 + usize::from(byte) % 3]);
                }
            }
            _ => bytes.extend([letter, letter]),
        }
    }
    bytes.truncate(length.max(1) * 3);
    bytes
}

/// Training as it is specified: count all pairs, choose the best, rewrite all text, repeat.
fn recount(pretokens: &[(&[u8], u64)], options: &Options) -> Trained {
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
    let mut pairs: Vec<((u32, u32), u64)> = Vec::new();
    let stop = loop {
        if assigned == options.max_new_ids {
            break Stop::Size;
        }
        pairs.clear();
        for (ids, count) in &text {
            pairs.extend(ids.windows(2).map(|pair| ((pair[0], pair[1]), *count)));
        }
        pairs.sort_unstable();
        pairs.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        let length = |pair: &(u32, u32)| tokens[&pair.0].len() + tokens[&pair.1].len();
        pairs.retain(|(pair, _)| options.max_token_bytes.is_none_or(|max| length(pair) <= max));
        let spelled = |pair: &(u32, u32)| [&tokens[&pair.0][..], &tokens[&pair.1]].concat();
        pairs.retain(|(pair, _)| !options.forbidden.contains(&spelled(pair)));
        let bytes = |pair: &(u32, u32)| (&tokens[&pair.0], &tokens[&pair.1]);
        let most = pairs.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let best = pairs.iter().filter(|(_, count)| *count == most).map(|(pair, _)| pair);
        let best = match options.tie_break {
            TieBreak::SmallestIds => best.min(),
            TieBreak::GreatestBytes => best.max_by_key(|pair| bytes(pair)),
            TieBreak::SmallestBytes => best.max_by_key(|pair| Reverse(bytes(pair))),
        };
        let Some(&(left, right)) = best else { break Stop::NoPairs };
        if most < options.min_frequency {
            break Stop::MinFrequency;
        }
        let made = [tokens[&left].as_slice(), &tokens[&right]].concat();
        let new = match options.reserved.iter().find(|(bytes, _)| *bytes == made) {
            Some(&(_, id)) => id,
            None => {
                assigned += 1;
                options.first_id + assigned as u32 - 1
            }
        };
        tokens.insert(new, made);
        let mut removed = 0;
        for (ids, count) in &mut text {
            let before = ids.len();
            rewrite(ids, left, right, new);
            removed += (before - ids.len()) as u64 * *count;
        }
        merges.push(LearnedMerge { left, right, new, count: most, removed });
    };
    Trained { merges, stop, first_tokens }
}

fn rewrite(ids: &mut Vec<u32>, left: u32, right: u32, new: u32) {
    let (mut from, mut to) = (0, 0);
    while from < ids.len() {
        if ids[from] == left && ids.get(from + 1) == Some(&right) {
            ids[to] = new;
            from += 2;
        } else {
            ids[to] = ids[from];
            from += 1;
        }
        to += 1;
    }
    ids.truncate(to);
}
