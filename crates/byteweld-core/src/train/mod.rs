//! Counts in, merges out: the byte-pair-encoding trainer.
//!
//! `train` takes pre-tokens with their counts and returns the merges in the order they were
//! learned. It does not know about patterns, documents, special tokens or files, and is a pure
//! function of the multiset of pre-tokens and the options.
//!
//! # Algorithm
//!
//! The plain algorithm recounts all pairs at every step. This one touches only the text that
//! changes:
//!
//! 1. The pre-tokens lie one after another in a flat array, with their counts beside it
//!    (`slots.rs`).
//! 2. Each pair has its count and the list of its positions (`pairs.rs`).
//! 3. The best pair comes from a lazily updated heap (`queue.rs`).
//! 4. Merging a pair walks its positions, rewrites them, and sums the tokens found to the left and
//!    right (`neighbors.rs`). The sums say by how much the counts of old pairs fall and which new
//!    pairs appear (`new_pairs.rs`). Long position lists are divided among threads (`workers.rs`).
//!
//! Two facts make this exact and small. First, a pair `(x, y)` can only appear in the step that
//! makes the newer of `x` and `y`; from then on both tokens only disappear. So its position list is
//! complete when it is created, and its count only falls. A stale heap entry is therefore always
//! too high, never too low, and it is enough to correct it when it reaches the top.
//!
//! Second, a pair that is too long or forbidden, or whose count is below the *floor*, does not need to be
//! tracked until everything above the floor is merged. The floor starts at an estimate of the last
//! merge's count. When the heap is empty and the floor is above the minimum frequency, the floor is
//! lowered and the text is scanned for pairs again. Most pairs are rare and never merged, so they
//! cost neither memory nor time.
//!
//! Between two scans, the lists hold at most three positions per token of the text (one at the
//! start, two per rewritten position, and each of those removes a token), so the time is linear in
//! the text, plus the heap.

mod forbidden;
mod ids;
mod known;
mod layout;
mod neighbors;
mod new_pairs;
mod pairs;
mod pretokens;
mod progress;
mod queue;
mod slots;
mod steps;
#[cfg(test)]
mod tests;
mod tokens;
mod workers;

use std::ops::ControlFlow;

use crate::error::Result;
use crate::reserve::{check_memory, collect, filled, push};
use forbidden::Forbidden;
use ids::Ids;
use known::KnownMerges;
use layout::Layout;
use neighbors::Neighbors;
use new_pairs::{NOT_KEPT, NewPair, PairTotal};
use pairs::{Pair, PairTable};
pub use pretokens::PretokenCounts;
use progress::ProgressReporter;
use queue::{Entry, Queue};
use slots::{Merge, Slots, Symbol};
use steps::ShownPretokens;
pub use steps::{Example, PairCount, PretokenParts, Step, StepLimits, Steps};
use tokens::{EDGE, Token, Tokens};
use workers::{Merged, Workers};

/// The first floor is the count each pair would have if the text consisted of this many equally
/// frequent pairs per new id. In English text the count of the last merge was a twentieth to a
/// hundredth of the bytes per id. A floor that turns out too high costs one more scan of the text.
const FLOOR_SHARE: u64 = 100;

/// The floor is divided by this when no pair above it remains.
const FLOOR_DIVISOR: u64 = 8;

/// Which of several pairs with the same count is merged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The smallest left id, then the smallest right id.
    SmallestIds,
    /// The greatest left bytes, then the greatest right bytes, as Python compares `(bytes, bytes)`.
    GreatestBytes,
    /// The smallest left bytes, then the smallest right bytes.
    SmallestBytes,
}

/// The options of a training.
#[derive(Clone, Debug)]
pub struct Options {
    /// The id of each byte's token; `None` if the byte is not in the alphabet.
    pub base_ids: [Option<u32>; 256],
    /// The id of the first learned token; later ones count up from it.
    pub first_id: u32,
    /// Training stops with [`Stop::Size`] after assigning this many new ids.
    pub max_new_ids: usize,
    /// Byte strings that already have an id. A learned token with exactly these bytes takes that id
    /// instead of a new one; its merge is recorded like any other.
    pub reserved: Vec<(Vec<u8>, u32)>,
    /// Byte strings that are never learned: a pair that spells one of them is not merged.
    pub forbidden: Vec<Vec<u8>>,
    /// Merges applied to every pre-token, in order, before training starts. Their ids must not
    /// overlap with the learned ones.
    pub known: Vec<KnownMerge>,
    /// The order among pairs with equal counts.
    pub tie_break: TieBreak,
    /// Pairs with a smaller count are not merged; 0 means the same as 1.
    pub min_frequency: u64,
    /// The maximum length of a learned token; pairs that would be longer are skipped.
    pub max_token_bytes: Option<usize>,
    /// The maximum number of threads; the result does not depend on it.
    pub threads: usize,
}

/// A merge learned earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownMerge {
    /// The id of the left token.
    pub left: u32,
    /// The id of the right token.
    pub right: u32,
    /// The id of the token they become.
    pub new: u32,
}

/// One learned merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedMerge {
    /// The id of the left token.
    pub left: u32,
    /// The id of the right token.
    pub right: u32,
    /// The id of the token they become.
    pub new: u32,
    /// The count of the pair when it was chosen.
    pub count: u64,
    /// The number of tokens removed from the text: the count, or less if the pair overlapped
    /// itself.
    pub removed: u64,
}

/// Why the training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All requested ids were assigned.
    Size,
    /// No pair remains that may be merged.
    NoPairs,
    /// Pairs remain, but the best count is below the minimum frequency.
    MinFrequency,
}

/// The result of a training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trained {
    /// The merges in the order they were learned.
    pub merges: Vec<LearnedMerge>,
    /// Why training ended.
    pub stop: Stop,
    /// The number of tokens in the text before the first learned merge.
    pub first_tokens: u64,
}

/// Learns merges from pre-tokens and their counts.
///
/// `progress` receives all merges learned so far, after every hundredth merge and at short
/// intervals in between; it stops the training by returning `Break`.
///
/// # Errors
///
/// [`Error::Train`](crate::Error::Train) if the options contradict each other, a byte of the text
/// has no id, or the text is too large for the trainer's positions or counts;
/// [`Error::Interrupted`](crate::Error::Interrupted) if `progress` returns `Break`; and any error
/// of `pretokens`.
pub fn train(
    pretokens: &dyn PretokenCounts,
    options: &Options,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<Trained> {
    choose_symbol(pretokens, options, None, progress)
}

/// The same, with a record of every step. It takes more memory than [`train`], because every pair is
/// tracked, and every step reads the whole pair table.
///
/// # Errors
///
/// Those of [`train`].
pub fn train_step_by_step(
    pretokens: &dyn PretokenCounts,
    options: &Options,
    limits: StepLimits,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<(Trained, Steps)> {
    let mut steps = Steps::default();
    let trained = choose_symbol(pretokens, options, Some((limits, &mut steps)), progress)?;
    Ok((trained, steps))
}

fn choose_symbol(
    pretokens: &dyn PretokenCounts,
    options: &Options,
    steps: Option<(StepLimits, &mut Steps)>,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<Trained> {
    check_memory()?;
    // A learned token with a reserved id does not use up a new id, but still needs a number.
    let tokens = (EDGE as usize + 1)
        .saturating_add(options.known.len())
        .saturating_add(options.reserved.len())
        .saturating_add(options.max_new_ids);
    // The largest value is the tombstone.
    if tokens < usize::from(u16::MAX) {
        run::<u16>(pretokens, options, steps, progress)
    } else {
        run::<u32>(pretokens, options, steps, progress)
    }
}

fn run<S: Symbol>(
    pretokens: &dyn PretokenCounts,
    options: &Options,
    mut steps: Option<(StepLimits, &mut Steps)>,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<Trained> {
    let mut ids = Ids::new(options)?;
    let mut merges = Vec::new();
    let mut reporter = ProgressReporter::new(progress);
    let layout = Layout::scan(pretokens, &mut || reporter.check(&merges))?;
    layout.check_bytes(&options.base_ids)?;
    let bytes = layout.bytes;
    reporter.check(&merges)?;
    let mut shown = steps.as_ref().map(|(limits, _)| ShownPretokens::new(*limits));
    let slots = layout.lay_out::<S>(pretokens, shown.as_mut(), &mut || reporter.check(&merges))?;
    let mut trainer = Trainer::new(slots, bytes, shown, options)?;
    reporter.check(&merges)?;
    trainer.replay(options, &mut || reporter.check(&merges))?;
    let first_tokens = trainer.tokens_left;
    trainer.find_pairs(&mut || reporter.check(&merges))?;
    if let Some((_, steps)) = &mut steps {
        steps.before = trainer.shown_pretokens()?;
    }
    let stop = loop {
        reporter.check(&merges)?;
        if ids.assigned() == options.max_new_ids {
            break Stop::Size;
        }
        let mut check_interrupt = || reporter.check(&merges);
        let Some(best) = trainer.pop_best(&mut check_interrupt)? else {
            break trainer.stop_without_pairs();
        };
        if best.count < options.min_frequency {
            break Stop::MinFrequency; // tracked only to be shown
        }
        let Some((limits, steps)) = &mut steps else {
            let merge = trainer.merge(best, &mut ids, &mut check_interrupt)?;
            push(&mut merges, merge)?;
            continue;
        };
        let (pairs, total_pairs, tied) = trainer.pair_table(limits.pairs)?;
        let merge = trainer.merge(best, &mut ids, &mut check_interrupt)?;
        push(&mut merges, merge)?;
        let (pretokens, example) = (trainer.shown_pretokens()?, trainer.take_example());
        push(&mut steps.steps, Step { pairs, total_pairs, tied, example, pretokens })?;
    };
    Ok(Trained { merges, stop, first_tokens })
}

/// The state of a training between two merges.
struct Trainer<S> {
    slots: Slots<S>,
    tokens: Tokens,
    /// The number of tokens in the text, weighted by the counts of their pre-tokens.
    tokens_left: u64,
    /// All pairs that are short enough and occur at least `floor` times.
    pairs: PairTable,
    queue: Queue,
    floor: u64,
    /// Set while known merges are replayed, when only their pairs are tracked.
    known: Option<KnownMerges>,
    /// The lowest floor: the minimum frequency, at least 1.
    min_count: u64,
    max_token_bytes: u64,
    forbidden: Forbidden,
    workers: Workers,
    /// Empty between merges.
    new_pairs: Vec<NewPair>,
    /// If every step is recorded. Then all pairs are tracked.
    shown: Option<ShownPretokens>,
}

impl<S: Symbol> Trainer<S> {
    /// `bytes` is the length of the text, weighted by the counts of its pre-tokens.
    fn new(
        slots: Slots<S>,
        bytes: u64,
        shown: Option<ShownPretokens>,
        options: &Options,
    ) -> Result<Self> {
        let reads_bytes = options.tie_break != TieBreak::SmallestIds
            || !options.reserved.is_empty()
            || !options.forbidden.is_empty();
        let text = if reads_bytes { slots.text()? } else { Vec::new() };
        let min_count = if shown.is_some() { 1 } else { options.min_frequency.max(1) };
        Ok(Trainer {
            slots,
            tokens: Tokens::new(&options.base_ids, text),
            tokens_left: bytes,
            pairs: PairTable::default(),
            queue: Queue::new(options.tie_break),
            floor: min_count,
            known: None,
            min_count,
            max_token_bytes: options.max_token_bytes.map_or(u64::MAX, |bytes| bytes as u64),
            forbidden: Forbidden::new(&options.forbidden),
            workers: Workers::new(options.threads),
            new_pairs: Vec::new(),
            shown,
        })
    }

    /// Applies the known merges to the whole text in order, as the training that learned them did.
    /// Afterwards no pair is tracked, and the floor is set for learning.
    fn replay(
        &mut self,
        options: &Options,
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if !options.known.is_empty() {
            let known = KnownMerges::new(options, &mut self.tokens)?;
            let merges = collect(known.merges().iter().copied())?;
            self.known = Some(known);
            self.floor = 1;
            self.find_pairs(check_interrupt)?;
            for (pair, new) in merges {
                check_interrupt()?;
                let mut positions = self.pairs.take(pair);
                if !positions.is_empty() {
                    let merge = self.merge_of(pair, new);
                    let mut workers = std::mem::take(&mut self.workers);
                    let merged =
                        workers.merge(&mut self.slots, &merge, &mut positions, check_interrupt)?;
                    self.finish(workers, &merge, &merged, &positions, check_interrupt)?;
                }
            }
            self.known = None;
        }
        let expected = self.tokens_left / FLOOR_SHARE / (options.max_new_ids as u64).max(1);
        self.floor = if self.shown.is_some() { 1 } else { expected.max(self.min_count) };
        Ok(())
    }

    /// Starts tracking all pairs of the text; none must be tracked yet.
    fn find_pairs(&mut self, check_interrupt: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut parts = self.workers.count_pairs(&self.slots, &self.tokens, check_interrupt)?;
        let (first, others) = parts.split_at_mut(1);
        let sum = &mut first[0];
        let of_first: Vec<PairTotal> = collect(sum.totals.iter().map(|(_, total)| *total))?;
        others.iter().try_for_each(|part| sum.absorb(part))?;
        for (pair, total) in &mut sum.totals {
            total.new_pair = self.add_new_pair(*pair, *total)?;
        }
        for (pair, total) in others.iter_mut().flat_map(|part| &mut part.totals) {
            total.new_pair = sum.total(*pair)?.new_pair;
        }
        // Restore the first part's own totals. Pairs of other parts stay in it with zero
        // occurrences, because its hash table still refers to them.
        let own = of_first.into_iter().chain(std::iter::repeat(PairTotal::default()));
        for ((_, total), own) in sum.totals.iter_mut().zip(own) {
            *total = PairTotal { new_pair: total.new_pair, ..own };
        }
        self.workers.write_pairs(
            &self.slots,
            &self.tokens,
            parts,
            &mut self.new_pairs,
            check_interrupt,
        )?;
        self.register_new_pairs()
    }

    /// Removes the next pair to merge from the queue, lowering the floor as needed.
    fn pop_best(
        &mut self,
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Entry>> {
        loop {
            let best = self.pop_tracked();
            if best.is_some() || self.floor == self.min_count {
                return Ok(best);
            }
            self.floor = (self.floor / FLOOR_DIVISOR).max(self.min_count);
            self.find_pairs(check_interrupt)?;
        }
    }

    /// Removes the best tracked pair from the queue.
    fn pop_tracked(&mut self) -> Option<Entry> {
        loop {
            let first = *self.queue.first()?;
            let count = self.pairs.count(first.pair);
            if count > 0 && count < first.count {
                self.queue.lower_first(count, &self.tokens);
                continue;
            }
            self.queue.remove_first(&self.tokens);
            if count > 0 {
                return Some(first);
            }
        }
    }

    /// Merges the best pair everywhere and updates all counts.
    fn merge(
        &mut self,
        best: Entry,
        ids: &mut Ids,
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<LearnedMerge> {
        let mut positions = self.pairs.take(best.pair);
        let merge = self.merge_of(best.pair, self.tokens.next());
        let mut workers = std::mem::take(&mut self.workers);
        let merged = workers.merge(&mut self.slots, &merge, &mut positions, check_interrupt)?;

        // The count was positive, so there is a first position, and it holds the token's bytes.
        let start = merged.positions(&positions).flatten().next().copied().unwrap_or(0);
        let length = merge.left_length + merge.right_length;
        let new = ids.assign(self.tokens.text_at(start, length))?;
        self.tokens.push(new, start, length)?;
        if let Some(shown) = &mut self.shown {
            shown.merged(merged.positions(&positions));
            shown.find_example(&self.slots, &self.tokens, merged.positions(&positions))?;
        }

        let removed = self.finish(workers, &merge, &merged, &positions, check_interrupt)?;
        let (left, right) = self.tokens.ids(best.pair);
        Ok(LearnedMerge { left, right, new, count: best.count, removed })
    }

    fn merge_of(&self, pair: Pair, new: Token) -> Merge {
        let (left_length, right_length) =
            (self.tokens.length(pair.left), self.tokens.length(pair.right));
        Merge { pair, new, left_length, right_length }
    }

    /// Updates all counts after a merge and starts tracking the new pairs. Returns the number of
    /// tokens removed from the text.
    fn finish(
        &mut self,
        mut workers: Workers,
        merge: &Merge,
        merged: &Merged,
        positions: &[u32],
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<u64> {
        let removed = self.update_counts(merge, workers.sum(merged, merge.new)?)?;
        self.tokens_left -= removed;
        workers.finish(
            merge,
            merged,
            positions,
            &self.tokens,
            &mut self.new_pairs,
            check_interrupt,
        )?;
        self.workers = workers;
        self.register_new_pairs()?;
        Ok(removed)
    }

    /// Lowers the counts of the pairs that the merge broke and adds the pairs that it made. Returns
    /// the sum of the counts at the merged positions.
    ///
    /// Every rewritten position had a token `x` before it and a token `y` after it: `x left right
    /// y` became `x new y`. So the counts of `(x, left)` and `(right, y)` fall, and `(x, new)` and
    /// `(new, y)` appear.
    ///
    /// In a run, `left right left right`, the scan from the left first sees `y = left`, then
    /// `x = new`: the pair `(new, left)` is gone again, replaced by `(new, new)`. Two pairs are
    /// lowered needlessly, which has no effect because neither is tracked: `(new, left)` not yet,
    /// and the merged pair itself (if `left = right`) no longer.
    fn update_counts(&mut self, merge: &Merge, neighbors: &mut Neighbors) -> Result<u64> {
        let Pair { left, right } = merge.pair;
        let new = merge.new;
        let Neighbors { before, after, .. } = neighbors;
        let in_runs = before.totals[new as usize];
        let removed = before.tokens.iter().map(|&x| before.totals[x as usize].count).sum();
        for &x in before.tokens.iter().filter(|&&x| x != EDGE) {
            let total = &mut before.totals[x as usize];
            let broken = Pair::new(x, left);
            self.pairs.lower(broken, total.count, self.floor);
            total.new_pair = self.add_new_pair(Pair::new(x, new), *total)?;
        }
        for &y in after.tokens.iter().filter(|&&y| y != EDGE) {
            let total = &mut after.totals[y as usize];
            let broken = Pair::new(right, y);
            self.pairs.lower(broken, total.count, self.floor);
            let mut made = *total;
            if y == left {
                made.count -= in_runs.count;
                made.occurrences -= in_runs.occurrences;
            }
            total.new_pair = self.add_new_pair(Pair::new(new, y), made)?;
        }
        Ok(removed)
    }

    /// Allocates a new pair and returns its index; `NOT_KEPT` if it is rare or must not be
    /// merged, or if known merges are being replayed and it is not one of theirs.
    fn add_new_pair(&mut self, pair: Pair, total: PairTotal) -> Result<u32> {
        let is_kept = match &self.known {
            Some(known) => known.contains(pair),
            None => self.may_merge(pair),
        };
        if total.count < self.floor || !is_kept {
            return Ok(NOT_KEPT);
        }
        let positions = filled(0, total.occurrences as usize)?; // overwritten by the workers
        push(&mut self.new_pairs, NewPair { pair, count: total.count, positions })?;
        Ok((self.new_pairs.len() - 1) as u32)
    }

    /// Whether the token made from the pair is within the maximum length and not forbidden.
    fn may_merge(&self, pair: Pair) -> bool {
        let length = |token| u64::from(self.tokens.length(token));
        let length = length(pair.left) + length(pair.right);
        let bytes = |token| self.tokens.bytes(token);
        length <= self.max_token_bytes
            && !(self.forbidden.has_length(length)
                && self.forbidden.contains(bytes(pair.left), bytes(pair.right)))
    }

    /// Starts tracking the new pairs.
    fn register_new_pairs(&mut self) -> Result<()> {
        for new_pair in self.new_pairs.drain(..) {
            let NewPair { pair, count, .. } = new_pair;
            if self.known.is_none() {
                self.queue.push(Entry { count, pair }, &self.tokens)?;
            }
            self.pairs.insert(pair, count, new_pair.positions)?;
        }
        Ok(())
    }

    /// Why there is no pair to merge. Pairs below the minimum frequency are not tracked, so the
    /// text is searched for them.
    fn stop_without_pairs(&self) -> Stop {
        let mut pairs = self.slots.pairs(&self.tokens, 0..self.slots.len());
        if pairs.any(|(pair, _, _)| self.may_merge(pair)) {
            Stop::MinFrequency
        } else {
            Stop::NoPairs
        }
    }
}
