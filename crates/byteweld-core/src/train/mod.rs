//! Counts in, merges out: the byte-pair-encoding trainer.
//!
//! `train` takes pretokens with their counts and gives the merges in the order they were learned. It
//! knows nothing of patterns, documents, special tokens or files; it uses one thread and is a pure
//! function of the multiset of pretokens and the options.
//!
//! # How
//!
//! The plain algorithm recounts all pairs at every step. This one does work only where text changes:
//!
//! 1. The text lies in one flat array ([`slots`]), identical pretokens once, with their count beside it.
//! 2. Each pair knows its count and the places where it stands ([`pairs`]).
//! 3. The best pair comes from a heap ([`queue`]).
//! 4. Merging it walks its places, rewrites them, and adds up the tokens found to the left and right
//!    ([`neighbours`]). The sums say by how much old pairs fall and which new pairs are born.
//!
//! Two facts make this exact and small. A pair `(x, y)` can only appear in the step that makes the
//! newer of `x` and `y`: afterwards both tokens only ever disappear. So the list of its places is born
//! complete and never grows, and its count only falls. Hence a heap entry that is out of date is always
//! too high, never too low, and it is enough to correct it when it reaches the top. And a pair born
//! below the minimum frequency, or too long, can never be merged, so it is not kept at all.
//!
//! All lists ever made hold at most three places per byte of text (one at the start, two per rewritten
//! place, and each rewriting removes a token), so time is linear in the text, plus the heap.

mod births;
mod ids;
mod neighbours;
mod pairs;
mod queue;
mod slots;
mod tokens;

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use births::{Birth, Total, UNKEPT};
use ids::Ids;
use neighbours::Neighbours;
use pairs::{Pair, Pairs};
use queue::{Entry, Queue};
use slots::{Merge, Slots};
use tokens::{EDGE, Tokens};

/// How many merges lie between two calls of `progress`.
const PROGRESS_EVERY: usize = 100;

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
    /// The order of pairs with equal counts.
    pub tie_break: TieBreak,
    /// Pairs with a smaller count are not merged; 0 and 1 mean the same.
    pub min_frequency: u64,
    /// The greatest length of a learned token. Pairs that would be longer are passed over.
    pub max_token_bytes: Option<usize>,
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
}

/// Learns merges from `words`: pretokens and how often each occurs, in any order.
///
/// A pretoken that is listed twice counts as often as both entries say; one with count 0 is ignored.
/// `progress` gets the number of merges learned, after every hundredth; `Break` ends the training.
///
/// # Errors
///
/// [`Error::Train`] if the options contradict themselves, if a byte of the text has no id, or if the
/// text is too large for the trainer's positions or counts; [`Error::Interrupted`] if `progress` says
/// `Break`.
pub fn train(
    words: &[(&[u8], u64)],
    options: &Options,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Trained> {
    let mut ids = Ids::new(options)?;
    let mut trainer = Trainer::new(Slots::new(words, &options.base_ids)?, options);
    let mut merges = Vec::new();
    let stop = loop {
        if ids.given() == options.max_new_ids {
            break Stop::Size;
        }
        let Some(best) = trainer.pop_best() else {
            break trainer.stop_without_pairs();
        };
        merges.push(trainer.merge(best, &mut ids)?);
        if merges.len() % PROGRESS_EVERY == 0 && progress(merges.len()).is_break() {
            return Err(Error::Interrupted);
        }
    };
    Ok(Trained { merges, stop })
}

/// The state of a training between two merges.
struct Trainer {
    slots: Slots,
    tokens: Tokens,
    pairs: Pairs,
    queue: Queue,
    min_count: u64,
    max_token_bytes: u64,
    // Empty between merges; kept for their memory.
    neighbours: Neighbours,
    births: Vec<Birth>,
}

impl Trainer {
    fn new(slots: Slots, options: &Options) -> Self {
        let reads_bytes =
            options.tie_break != TieBreak::SmallestIds || !options.reserved.is_empty();
        let text = if reads_bytes { slots.text() } else { Vec::new() };
        let min_count = options.min_frequency.max(1);
        let mut trainer = Trainer {
            slots,
            tokens: Tokens::new(&options.base_ids, text),
            pairs: Pairs::new(min_count),
            queue: Queue::new(options.tie_break),
            min_count,
            max_token_bytes: options.max_token_bytes.map_or(u64::MAX, |bytes| bytes as u64),
            neighbours: Neighbours::default(),
            births: Vec::new(),
        };
        trainer.find_first_pairs();
        trainer
    }

    /// Finds the pairs of single bytes, counted in a table with a cell for each of the 65,536.
    fn find_first_pairs(&mut self) {
        let cell = |pair: Pair| (pair.left as usize) << 8 | pair.right as usize;
        let mut totals = vec![Total::default(); 256 * 256];
        self.slots.for_each_byte_pair(|pair, _, count| totals[cell(pair)].add(count));
        for left in 0..256 {
            for right in 0..256 {
                let pair = Pair { left, right };
                let total = &mut totals[cell(pair)];
                total.birth = self.bear(pair, *total);
            }
        }
        self.slots.for_each_byte_pair(|pair, place, _| {
            add_place(&mut self.births, totals[cell(pair)].birth, place);
        });
        self.register_births();
    }

    /// Takes the pair to merge next out of the queue.
    fn pop_best(&mut self) -> Option<Entry> {
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
    fn merge(&mut self, best: Entry, ids: &mut Ids) -> Result<LearnedMerge> {
        let mut places = self.pairs.take(best.pair);
        let merge = Merge {
            pair: best.pair,
            new: self.tokens.next(),
            left_length: self.tokens.length(best.pair.left),
            right_length: self.tokens.length(best.pair.right),
        };
        let mut neighbours = std::mem::take(&mut self.neighbours);
        neighbours.make_room_for(merge.new);
        self.slots.merge(&merge, &mut places, &mut neighbours);

        // The count was positive, so there is a first place, and there the token's bytes stand.
        let start = places.first().copied().unwrap_or(0);
        let length = merge.left_length + merge.right_length;
        let new = ids.give(self.tokens.text_at(start, length))?;
        self.tokens.push(new, start, length);

        self.settle(&merge, &mut neighbours);
        self.write_places(&places, &neighbours);
        self.register_births();
        neighbours.clear();
        self.neighbours = neighbours;
        let (left, right) = self.tokens.ids(best.pair);
        Ok(LearnedMerge { left, right, new, count: best.count })
    }

    /// Lowers the counts of the pairs that the merge broke and bears the pairs that it made.
    ///
    /// Every rewritten place had a token `x` before it and a token `y` after it: `x left right y`
    /// became `x new y`. So `(x, left)` and `(right, y)` fall, `(x, new)` and `(new, y)` are born.
    ///
    /// In a run, `left right left right`, the walk from the left first meets `y = left`, then
    /// `x = new`: the pair `(new, left)` it made is gone again, and `(new, new)` stands there instead.
    /// The merged pair itself is no longer known, so lowering it (if `left = right`) does nothing.
    fn settle(&mut self, merge: &Merge, neighbours: &mut Neighbours) {
        let Merge { pair: Pair { left, right }, new, .. } = *merge;
        let Neighbours { before, after, .. } = neighbours;
        let in_runs = before.totals[new as usize];
        for &x in before.tokens.iter().filter(|&&x| x != EDGE) {
            let total = &mut before.totals[x as usize];
            if x != new {
                self.pairs.lower(Pair { left: x, right: left }, total.count);
            }
            total.birth = self.bear(Pair { left: x, right: new }, *total);
        }
        for &y in after.tokens.iter().filter(|&&y| y != EDGE) {
            let total = &mut after.totals[y as usize];
            self.pairs.lower(Pair { left: right, right: y }, total.count);
            if y == left {
                total.count -= in_runs.count;
                total.places -= in_runs.places;
            }
            total.birth = self.bear(Pair { left: new, right: y }, *total);
        }
    }

    /// Makes room for a new pair and gives its number, or `UNKEPT` if it can never be merged.
    fn bear(&mut self, pair: Pair, total: Total) -> u32 {
        if total.count < self.min_count || !self.is_short(pair) {
            return UNKEPT;
        }
        let places = Vec::with_capacity(total.places as usize);
        self.births.push(Birth { pair, count: total.count, places });
        (self.births.len() - 1) as u32
    }

    /// Whether the token made of the pair is no longer than it may be.
    fn is_short(&self, pair: Pair) -> bool {
        let length = |token| u64::from(self.tokens.length(token));
        length(pair.left) + length(pair.right) <= self.max_token_bytes
    }

    /// Writes down where the new pairs stand. `places` ascend, hence so does each list.
    fn write_places(&mut self, places: &[u32], neighbours: &Neighbours) {
        let Neighbours { before, after, around } = neighbours;
        for (&place, &(x, y)) in places.iter().zip(around) {
            let start_of_x = place - self.tokens.length(x);
            add_place(&mut self.births, before.totals[x as usize].birth, start_of_x);
            add_place(&mut self.births, after.totals[y as usize].birth, place);
        }
    }

    /// Makes the new pairs known.
    fn register_births(&mut self) {
        for Birth { pair, count, places } in self.births.drain(..) {
            self.queue.push(Entry { count, pair }, &self.tokens);
            self.pairs.insert(pair, count, places);
        }
    }

    /// Says why there is no best pair: those below the minimum frequency are not known.
    fn stop_without_pairs(&self) -> Stop {
        let is_left =
            self.slots.has_pair(|token| self.tokens.length(token), |pair| self.is_short(pair));
        if is_left { Stop::MinFrequency } else { Stop::NoPairs }
    }
}

/// Adds a place to a new pair, if that is kept.
fn add_place(births: &mut [Birth], birth: u32, place: u32) {
    if let Some(birth) = births.get_mut(birth as usize) {
        birth.places.push(place);
    }
}
