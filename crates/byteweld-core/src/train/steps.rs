//! What a training does at each step, for people to look at: the top of the pair table before each
//! merge, an example of the merge, and the most frequent pre-tokens after it.
//!
//! None of it needs another pass over the text. The trainer tracks every pair, however rare, so its
//! table is the whole pair table. The shown pre-tokens are found while the text is laid out; from
//! then on, the merged positions tell how many parts each of them lost.

use std::cmp::Ordering;

use super::Trainer;
use super::queue::Entry;
use super::slots::{Slots, Symbol};
use super::tokens::{Token, Tokens};
use crate::error::Result;
use crate::reserve::{collect, push, reserve_exact};

/// How much of each step is recorded.
#[derive(Clone, Copy, Debug)]
pub struct StepLimits {
    /// The number of pairs.
    pub pairs: usize,
    /// The number of pre-tokens.
    pub pretokens: usize,
    /// The number of parts of each pre-token.
    pub parts: usize,
}

/// A pair of ids and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCount {
    /// The id of the left token.
    pub left: u32,
    /// The id of the right token.
    pub right: u32,
    /// How often the pair occurs.
    pub count: u64,
}

/// A pre-token during training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PretokenParts {
    /// The ids of its first parts.
    pub first: Vec<u32>,
    /// The number of all its parts.
    pub total: u64,
    /// How often the pre-token occurs.
    pub count: u64,
}

/// One step: the pairs before a merge, and the pre-tokens after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The pairs with the highest counts, in the order in which they would be merged. The first is
    /// the one that was.
    pub pairs: Vec<PairCount>,
    /// The number of distinct pairs that could merge.
    pub total_pairs: usize,
    /// How many other pairs have the count of the merged one.
    pub tied: usize,
    /// The merge in the most frequent pre-token where it happened.
    pub example: Example,
    /// The most frequent pre-tokens.
    pub pretokens: Vec<PretokenParts>,
}

/// A place where a pair was merged: the tokens around it, after the merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// The ids of the tokens, from the same pre-token.
    pub parts: Vec<u32>,
    /// Whether the first of them is the first of the pre-token.
    pub is_start: bool,
    /// Whether the last of them is the last of the pre-token.
    pub is_end: bool,
    /// How often the pre-token occurs.
    pub count: u64,
}

/// A training, step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The most frequent pre-tokens before the first merge; equal counts in order of their bytes.
    pub before: Vec<PretokenParts>,
    /// One step per learned merge.
    pub steps: Vec<Step>,
}

/// The most frequent pre-tokens while they are merged.
pub(super) struct ShownPretokens {
    limits: StepLimits,
    /// The highest count first; equal counts in order of their bytes.
    top: Vec<Shown>,
    /// The example of the last merge.
    pub(super) example: Example,
}

#[derive(Clone, Copy)]
struct Shown {
    count: u64,
    /// The number of parts now.
    parts: u64,
    length: usize,
    place: Place,
}

/// Where a pre-token is: a single byte has no slots.
#[derive(Clone, Copy)]
enum Place {
    Byte(u8),
    Slots(usize),
}

impl ShownPretokens {
    pub(super) fn new(limits: StepLimits) -> Self {
        ShownPretokens { limits, top: Vec::new(), example: Example::default() }
    }

    /// Takes note of a pre-token that was just laid out, at `start` unless it is a single byte.
    pub(super) fn add<S: Symbol>(
        &mut self,
        slots: &Slots<S>,
        pretoken: &[u8],
        count: u64,
        start: usize,
    ) -> Result<()> {
        let place = match *pretoken {
            [] => return Ok(()),
            [byte] => Place::Byte(byte),
            _ => Place::Slots(start),
        };
        let is_before = |other: &Shown| {
            count > other.count
                || (count == other.count && pretoken.iter().copied().lt(other.bytes(slots)))
        };
        let at = self.top.iter().rposition(|other| !is_before(other)).map_or(0, |at| at + 1);
        if at == self.limits.pretokens {
            return Ok(());
        }
        self.top.truncate(self.limits.pretokens - 1);
        let length = pretoken.len();
        push(&mut self.top, Shown { count, parts: length as u64, length, place })?;
        self.top[at..].rotate_right(1);
        Ok(())
    }

    /// Lowers the numbers of parts after a merge; each list of positions ascends.
    pub(super) fn merged<'p>(&mut self, positions: impl Iterator<Item = &'p [u32]>) {
        for list in positions {
            let before = |slot: usize| list.partition_point(|&position| (position as usize) < slot);
            for shown in &mut self.top {
                if let Place::Slots(start) = shown.place {
                    shown.parts -= (before(start + shown.length) - before(start)) as u64;
                }
            }
        }
    }

    /// Finds the example of a merge, given its positions.
    pub(super) fn find_example<'p, S: Symbol>(
        &mut self,
        slots: &Slots<S>,
        tokens: &Tokens,
        positions: impl Iterator<Item = &'p [u32]>,
    ) -> Result<()> {
        let limit = self.limits.parts;
        let forward = |at: usize| slots.tokens_from(tokens, at).take(limit);
        let backward = |at: usize| slots.tokens_before(tokens, at).take(limit);
        // The largest counts come first. Among equal counts, the order of the pre-tokens is not
        // always the same, so the example is chosen by its tokens.
        let mut best: Option<usize> = None;
        for at in positions.flatten().map(|&position| position as usize) {
            let is_better = match best {
                None => true,
                Some(best) if slots.count_at(at) < slots.count_at(best) => break,
                Some(best) => {
                    let order = forward(at).cmp(forward(best));
                    order.then_with(|| backward(at).cmp(backward(best))) == Ordering::Less
                }
            };
            if is_better {
                best = Some(at);
            }
        }
        let Some(at) = best else { return Ok(()) };
        let mut parts = Vec::new();
        reserve_exact(&mut parts, limit)?;
        let mut before = slots.tokens_before(tokens, at);
        parts.extend(before.by_ref().take(limit / 2).map(|token| tokens.id(token)));
        parts.reverse();
        let mut after = slots.tokens_from(tokens, at);
        let space = limit - parts.len();
        parts.extend(after.by_ref().take(space).map(|token| tokens.id(token)));
        self.example = Example {
            parts,
            is_start: before.next().is_none(),
            is_end: after.next().is_none(),
            count: slots.count_at(at),
        };
        Ok(())
    }

    /// The pre-tokens as they are now.
    pub(super) fn rows<S: Symbol>(
        &self,
        slots: &Slots<S>,
        tokens: &Tokens,
    ) -> Result<Vec<PretokenParts>> {
        let mut rows = Vec::new();
        reserve_exact(&mut rows, self.top.len())?;
        for shown in &self.top {
            let mut first = Vec::new();
            reserve_exact(&mut first, self.limits.parts.min(shown.length))?;
            match shown.place {
                Place::Byte(byte) => first.push(tokens.id(Token::from(byte))),
                Place::Slots(start) => first.extend(
                    slots
                        .tokens_from(tokens, start)
                        .take(self.limits.parts)
                        .map(|token| tokens.id(token)),
                ),
            }
            rows.push(PretokenParts { first, total: shown.parts, count: shown.count });
        }
        Ok(rows)
    }
}

impl Shown {
    /// The bytes, before the first merge.
    fn bytes<S: Symbol>(&self, slots: &Slots<S>) -> impl Iterator<Item = u8> {
        let (single, range) = match self.place {
            Place::Byte(byte) => (Some(byte), 0..0),
            Place::Slots(start) => (None, start..start + self.length),
        };
        single.into_iter().chain(slots.bytes(range))
    }
}

impl<S: Symbol> Trainer<S> {
    /// The most frequent pre-tokens as they are now.
    pub(super) fn shown_pretokens(&self) -> Result<Vec<PretokenParts>> {
        let shown = self.shown.as_ref();
        shown.map_or(Ok(Vec::new()), |shown| shown.rows(&self.slots, &self.tokens))
    }

    /// The example of the last merge.
    pub(super) fn take_example(&mut self) -> Example {
        self.shown.as_mut().map(|shown| std::mem::take(&mut shown.example)).unwrap_or_default()
    }

    /// The top of the pair table, its size, and how many other pairs have the highest count. All
    /// pairs must be tracked.
    pub(super) fn pair_table(&self, rows: usize) -> Result<(Vec<PairCount>, usize, usize)> {
        let mut top: Vec<Entry> = Vec::new();
        reserve_exact(&mut top, rows.saturating_add(1).min(self.pairs.len()))?;
        let (mut highest, mut having_it) = (0, 0);
        for (pair, count) in self.pairs.iter() {
            if count > highest {
                (highest, having_it) = (count, 0);
            }
            having_it += usize::from(count == highest);
            let entry = Entry { count, pair };
            let is_before = |other: &Entry| self.queue.is_before(&entry, other, &self.tokens);
            let at = top.iter().rposition(|other| !is_before(other)).map_or(0, |at| at + 1);
            if at < rows {
                top.truncate(rows - 1);
                top.insert(at, entry);
            }
        }
        let count_of = |entry: &Entry| {
            let (left, right) = self.tokens.ids(entry.pair);
            PairCount { left, right, count: entry.count }
        };
        Ok((collect(top.iter().map(count_of))?, self.pairs.len(), having_it.saturating_sub(1)))
    }
}
