//! Counts in, merges out: the byte-pair-encoding trainer.
//!
//! `train` takes pretokens with their counts and gives the merges in the order they were learned.
//! It knows nothing of patterns, documents, special tokens or files, and is a pure function of the
//! multiset of pretokens and the options.
//!
//! # How
//!
//! The plain algorithm recounts all pairs at every step. This one does work only where text
//! changes:
//!
//! 1. The pretokens lie one after another in a flat array, their counts beside it (`slots.rs`).
//! 2. Each pair knows its count and the places where it stands (`pairs.rs`).
//! 3. The best pair comes from a heap (`queue.rs`).
//! 4. Merging it walks its places, rewrites them, and adds up the tokens found to the left and to
//!    the right (`neighbours.rs`). The sums say by how much old pairs fall and which new pairs are
//!    born (`births.rs`). Long lists of places are divided among threads (`crew.rs`).
//!
//! Two facts make this exact and small. A pair `(x, y)` can only appear in the step that makes the
//! newer of `x` and `y`: afterwards both tokens only ever disappear. So the list of its places is
//! born complete and never grows, and its count only falls. Hence a heap entry that is out of date
//! is always too high, never too low, and it is enough to correct it when it reaches the top.
//!
//! And a pair whose count is below the *floor*, or that is too long, need not be known at all until
//! everything above the floor is merged. The floor starts at a guess of the last merge's count.
//! When the heap is empty and the floor is above the minimum frequency, it is lowered and the text
//! is searched for pairs again. Most pairs of a text are rare and will never be merged: this way
//! they cost neither memory nor time.
//!
//! Between two searches, lists hold at most three places per token of the text (one at the start,
//! two per rewritten place, and each of those removes a token), so time is linear in the text, plus
//! the heap.

mod births;
mod crew;
mod ids;
mod known;
mod layout;
mod neighbours;
mod pairs;
mod queue;
mod slots;
#[cfg(test)]
mod tests;
mod tokens;
mod watch;
mod words;

use std::ops::ControlFlow;

use crate::error::Result;
use births::{Birth, Total, UNKEPT};
use crew::{Crew, Merged};
use ids::Ids;
use known::Known;
use layout::Layout;
use neighbours::Neighbours;
use pairs::{Pair, Pairs};
use queue::{Entry, Queue};
use slots::{Merge, Slots, Symbol};
use tokens::{EDGE, Token, Tokens};
use watch::Watch;
pub use words::Words;

/// The first floor is the count that a pair would have if this many pairs per id to be given out,
/// all of the same count, filled the text. In English text the last merge came out at a twentieth
/// to a hundredth of the bytes per id; a floor that turns out too high costs one more look at the
/// text.
const FLOOR_SHARE: u64 = 100;

/// By how much the floor sinks when no pair above it is left.
const FLOOR_STEP: u64 = 8;

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

/// What to train, apart from the text.
#[derive(Clone, Debug)]
pub struct Options {
    /// The id of each byte's token; `None` if the byte is not in the alphabet.
    pub base_ids: [Option<u32>; 256],
    /// The id of the first learned token; the next ones count up from it.
    pub first_id: u32,
    /// Training stops with [`Stop::Size`] when it has given out so many new ids.
    pub max_new_ids: usize,
    /// Byte strings that have an id already. A learned token with exactly these bytes takes that id
    /// and uses up no new one; its merge is recorded like any other.
    pub reserved: Vec<(Vec<u8>, u32)>,
    /// Merges that are made before the training starts, in order: every pretoken is as they leave it. Their
    /// tokens are given, like the base tokens; learned ids must not be among theirs.
    pub known: Vec<KnownMerge>,
    /// The order of pairs with equal counts.
    pub tie_break: TieBreak,
    /// Pairs with a smaller count are not merged; 0 and 1 mean the same.
    pub min_frequency: u64,
    /// The greatest length of a learned token. Pairs that would be longer are passed over.
    pub max_token_bytes: Option<usize>,
    /// How many threads may work; what is learned does not depend on it.
    pub threads: usize,
}

/// A merge that was learned before: ids of the left, the right and the new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownMerge {
    /// The id of the left token.
    pub left: u32,
    /// The id of the right token.
    pub right: u32,
    /// The id of the token they become.
    pub new: u32,
}

/// One step of the training.
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
    /// By how many tokens the text became shorter: the count, or less if the pair overlapped itself.
    pub removed: u64,
}

/// Why the training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All the new ids asked for were given out.
    Size,
    /// No pair is left that may be merged.
    NoPairs,
    /// Pairs are left, but the best count is below the minimum frequency.
    MinFrequency,
}

/// What the training learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trained {
    /// The merges in the order they were learned.
    pub merges: Vec<LearnedMerge>,
    /// Why there are no more.
    pub stop: Stop,
    /// How many tokens the text had before the first of the merges.
    pub first_tokens: u64,
}

/// Learns merges from pretokens and how often each occurs.
///
/// `progress` gets all merges learned so far: after every hundredth, and every now and then in between, so
/// that it can also be used to stop the training, with `Break`.
///
/// # Errors
///
/// [`Error::Train`](crate::Error::Train) if the options contradict themselves, if a byte of the text has no id, or if
/// the text is too large for the trainer's positions or counts; [`Error::Interrupted`](crate::Error::Interrupted) if
/// `progress` says `Break`; and what `words` fails with.
pub fn train(
    words: &dyn Words,
    options: &Options,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<Trained> {
    // A learned token that takes a reserved id uses up no new one, but has a number like any other.
    let tokens = (EDGE as usize + 1)
        .saturating_add(options.known.len())
        .saturating_add(options.reserved.len())
        .saturating_add(options.max_new_ids);
    // The greatest number is not a token's.
    if tokens < usize::from(u16::MAX) {
        run::<u16>(words, options, progress)
    } else {
        run::<u32>(words, options, progress)
    }
}

fn run<S: Symbol>(
    words: &dyn Words,
    options: &Options,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<Trained> {
    let mut ids = Ids::new(options)?;
    let mut merges = Vec::new();
    let mut watch = Watch::new(progress);
    let layout = Layout::of(words, &mut || watch.look(&merges))?;
    layout.check_bytes(&options.base_ids)?;
    let bytes = layout.bytes;
    watch.look(&merges)?;
    let slots = layout.lay_out::<S>(words, &mut || watch.look(&merges))?;
    let mut trainer = Trainer::new(slots, bytes, options);
    watch.look(&merges)?;
    trainer.replay(options, &mut || watch.look(&merges))?;
    let first_tokens = trainer.tokens_left;
    trainer.find_pairs(&mut || watch.look(&merges))?;
    let stop = loop {
        watch.look(&merges)?;
        if ids.given() == options.max_new_ids {
            break Stop::Size;
        }
        let mut goes_on = || watch.look(&merges);
        let Some(best) = trainer.pop_best(&mut goes_on)? else {
            break trainer.stop_without_pairs();
        };
        let merge = trainer.merge(best, &mut ids, &mut goes_on)?;
        merges.push(merge);
    };
    Ok(Trained { merges, stop, first_tokens })
}

/// The state of a training between two merges.
struct Trainer<S> {
    slots: Slots<S>,
    tokens: Tokens,
    /// How many tokens the text has, each as often as its pretoken occurs.
    tokens_left: u64,
    /// All pairs that are short enough and whose count is at least `floor`.
    pairs: Pairs,
    queue: Queue,
    floor: u64,
    /// While known merges are made: only their pairs are kept then.
    known: Option<Known>,
    /// The minimum frequency, at least 1.
    min_count: u64,
    max_token_bytes: u64,
    crew: Crew,
    /// Empty between merges.
    births: Vec<Birth>,
}

impl<S: Symbol> Trainer<S> {
    /// `bytes` is how many the text has, each pretoken as often as it occurs.
    fn new(slots: Slots<S>, bytes: u64, options: &Options) -> Self {
        let reads_bytes =
            options.tie_break != TieBreak::SmallestIds || !options.reserved.is_empty();
        let text = if reads_bytes { slots.text() } else { Vec::new() };
        let min_count = options.min_frequency.max(1);
        Trainer {
            slots,
            tokens: Tokens::new(&options.base_ids, text),
            tokens_left: bytes,
            pairs: Pairs::default(),
            queue: Queue::new(options.tie_break),
            floor: min_count,
            known: None,
            min_count,
            max_token_bytes: options.max_token_bytes.map_or(u64::MAX, |bytes| bytes as u64),
            crew: Crew::new(options.threads),
            births: Vec::new(),
        }
    }

    /// Makes the known merges, one after another, each everywhere: that is how they were made where they
    /// were learned. No pair is known afterwards, and the floor is where learning starts.
    fn replay(&mut self, options: &Options, goes_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if !options.known.is_empty() {
            let known = Known::new(options, &mut self.tokens)?;
            let merges = known.merges().to_vec();
            self.known = Some(known);
            self.floor = 1;
            self.find_pairs(goes_on)?;
            for (pair, new) in merges {
                goes_on()?;
                let mut places = self.pairs.take(pair);
                if !places.is_empty() {
                    let merge = self.merge_of(pair, new);
                    let mut crew = std::mem::take(&mut self.crew);
                    let merged = crew.merge(&mut self.slots, &merge, &mut places, goes_on)?;
                    self.finish(crew, &merge, &merged, &places, goes_on)?;
                }
            }
            self.known = None;
        }
        let expected = self.tokens_left / FLOOR_SHARE / (options.max_new_ids as u64).max(1);
        self.floor = expected.max(self.min_count);
        Ok(())
    }

    /// Makes all pairs of the text known, with their places; none is known before.
    fn find_pairs(&mut self, goes_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut parts = self.crew.count_pairs(&self.slots, &self.tokens, goes_on)?;
        let (first, others) = parts.split_at_mut(1);
        let sum = &mut first[0];
        let of_first: Vec<Total> = sum.totals.iter().map(|(_, total)| *total).collect();
        others.iter().for_each(|part| sum.absorb(part));
        for (pair, total) in &mut sum.totals {
            total.birth = self.bear(*pair, *total);
        }
        for (pair, total) in others.iter_mut().flat_map(|part| &mut part.totals) {
            total.birth = sum.total(*pair).birth;
        }
        // The first part is itself again, but for the births. Pairs of the others stay in it, with no place:
        // its index would lead to nowhere without them.
        let own = of_first.into_iter().chain(std::iter::repeat(Total::default()));
        for ((_, total), own) in sum.totals.iter_mut().zip(own) {
            *total = Total { birth: total.birth, ..own };
        }
        self.crew.write_pairs(&self.slots, &self.tokens, parts, &mut self.births, goes_on)?;
        self.register_births();
        Ok(())
    }

    /// Takes the pair to merge next out of the queue, if there is one.
    fn pop_best(&mut self, goes_on: &mut dyn FnMut() -> Result<()>) -> Result<Option<Entry>> {
        loop {
            let best = self.pop_known();
            if best.is_some() || self.floor == self.min_count {
                return Ok(best);
            }
            self.floor = (self.floor / FLOOR_STEP).max(self.min_count);
            self.find_pairs(goes_on)?;
        }
    }

    /// Takes the best known pair out of the queue.
    fn pop_known(&mut self) -> Option<Entry> {
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

    /// Merges the best pair everywhere and brings all counts up to date.
    fn merge(
        &mut self,
        best: Entry,
        ids: &mut Ids,
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<LearnedMerge> {
        let mut places = self.pairs.take(best.pair);
        let merge = self.merge_of(best.pair, self.tokens.next());
        let mut crew = std::mem::take(&mut self.crew);
        let merged = crew.merge(&mut self.slots, &merge, &mut places, goes_on)?;

        // The count was positive, so there is a first place, and there the token's bytes stand.
        let start = merged.places(&places).flatten().next().copied().unwrap_or(0);
        let length = merge.left_length + merge.right_length;
        let new = ids.give(self.tokens.text_at(start, length))?;
        self.tokens.push(new, start, length);

        let removed = self.finish(crew, &merge, &merged, &places, goes_on)?;
        let (left, right) = self.tokens.ids(best.pair);
        Ok(LearnedMerge { left, right, new, count: best.count, removed })
    }

    fn merge_of(&self, pair: Pair, new: Token) -> Merge {
        let (left_length, right_length) =
            (self.tokens.length(pair.left), self.tokens.length(pair.right));
        Merge { pair, new, left_length, right_length }
    }

    /// Brings all counts up to date after a merge, and makes the new pairs known. Gives by how many tokens
    /// the text became shorter.
    fn finish(
        &mut self,
        mut crew: Crew,
        merge: &Merge,
        merged: &Merged,
        places: &[u32],
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<u64> {
        let removed = self.settle(merge, crew.sum(merged, merge.new));
        self.tokens_left -= removed;
        crew.finish(merge, merged, places, &self.tokens, &mut self.births, goes_on)?;
        self.crew = crew;
        self.register_births();
        Ok(removed)
    }

    /// Lowers the counts of the pairs that the merge broke and bears the pairs that it made. Gives the sum of
    /// the places' counts.
    ///
    /// Every rewritten place had a token `x` before it and a token `y` after it: `x left right y`
    /// became `x new y`. So `(x, left)` and `(right, y)` fall, `(x, new)` and `(new, y)` are born.
    ///
    /// In a run, `left right left right`, the walk from the left first meets `y = left`, then
    /// `x = new`: the pair `(new, left)` it made is gone again, and `(new, new)` stands there.
    /// Two pairs that are lowered needlessly are not known, so nothing happens: `(new, left)` not
    /// yet, and the merged pair itself (if `left = right`) no longer.
    fn settle(&mut self, merge: &Merge, neighbours: &mut Neighbours) -> u64 {
        let Pair { left, right } = merge.pair;
        let new = merge.new;
        let Neighbours { before, after, .. } = neighbours;
        let in_runs = before.totals[new as usize];
        let removed = before.tokens.iter().map(|&x| before.totals[x as usize].count).sum();
        for &x in before.tokens.iter().filter(|&&x| x != EDGE) {
            let total = &mut before.totals[x as usize];
            let broken = Pair::new(x, left);
            self.pairs.lower(broken, total.count, self.floor);
            total.birth = self.bear(Pair::new(x, new), *total);
        }
        for &y in after.tokens.iter().filter(|&&y| y != EDGE) {
            let total = &mut after.totals[y as usize];
            let broken = Pair::new(right, y);
            self.pairs.lower(broken, total.count, self.floor);
            let mut made = *total;
            if y == left {
                made.count -= in_runs.count;
                made.places -= in_runs.places;
            }
            total.birth = self.bear(Pair::new(new, y), made);
        }
        removed
    }

    /// Makes room for a new pair and gives its number, or `UNKEPT` if it is rare or too long, or if known
    /// merges are made and it is none of theirs.
    fn bear(&mut self, pair: Pair, total: Total) -> u32 {
        let is_kept = match &self.known {
            Some(known) => known.has(pair),
            None => self.is_short(pair),
        };
        if total.count < self.floor || !is_kept {
            return UNKEPT;
        }
        let places = vec![0; total.places as usize]; // written by the crew
        self.births.push(Birth { pair, count: total.count, places });
        (self.births.len() - 1) as u32
    }

    /// Whether the token made of the pair is no longer than it may be.
    fn is_short(&self, pair: Pair) -> bool {
        let length = |token| u64::from(self.tokens.length(token));
        length(pair.left) + length(pair.right) <= self.max_token_bytes
    }

    /// Makes the new pairs known.
    fn register_births(&mut self) {
        for birth in self.births.drain(..) {
            let Birth { pair, count, .. } = birth;
            if self.known.is_none() {
                self.queue.push(Entry { count, pair }, &self.tokens);
            }
            self.pairs.insert(pair, count, birth.places);
        }
    }

    /// Says why there is no pair to merge: those below the minimum frequency are not known.
    fn stop_without_pairs(&self) -> Stop {
        let mut pairs = self.slots.pairs(&self.tokens, 0..self.slots.len());
        if pairs.any(|(pair, _, _)| self.is_short(pair)) {
            Stop::MinFrequency
        } else {
            Stop::NoPairs
        }
    }
}
