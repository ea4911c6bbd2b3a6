//! The rules of GPT-2's family of patterns: where pre-tokens start in a block, as shifts and sums.
//!
//! Shifting a mask by one turns a class into "follows that class". Adding a bit to a run of ones
//! clears the run and sets the bit after it, so that a sum finds where runs end ([`reach`]). What
//! continues in the next block is carried there in [`Carry`]. The few cases that depend on text
//! beyond the next block are reported as uncertain, and left to the scanner.

use super::block::Block;
use super::family::{Contractions, Shape, Tail};
use super::tiers::BLOCK;

/// What the rules need to know of the characters before a block: bit 0 is the last one's.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    letter: u64,
    other: u64,
    white: u64,
    space: u64,
    newline: u64,
    /// An other character that may be the prefix of a word.
    alone: u64,
    /// A lowercase letter, or one of both cases after it.
    small: u64,
    /// A letter of both cases.
    both: u64,
    /// Others, marks among them and those in a tail included.
    all_other: u64,
    tail: u64,
    /// A run of others that takes marks with it.
    absorbing: u64,
    /// The numbers and the starts of numbers among the last 64 characters; bit 63 is the last one's.
    numbers: u64,
    number_starts: u64,
}

/// What the rules find, one bit per character.
pub(super) struct Found {
    /// Where pre-tokens start.
    pub(super) starts: u64,
    /// Whether one starts here depends on text beyond the next block.
    pub(super) uncertain: u64,
    /// Apostrophes that may start a contraction.
    pub(super) apostrophes: u64,
}

/// What comes after a block.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'b> {
    pub(super) next: &'b Block,
    /// Whether the text ends before the end of the next block.
    pub(super) is_end: bool,
    /// Whether white space up to the end of the text is one pre-token in any case.
    pub(super) is_end_whole: bool,
}

/// All of a run from the first bit that is set in it.
#[inline(always)]
fn reach(first: u64, run: u64) -> u64 {
    ((first & run).wrapping_add(run) ^ run | first) & run
}

/// The lowest `n` bits; `n` is less than 64.
#[inline(always)]
pub(super) fn low_bits(n: u32) -> u64 {
    (1 << n) - 1
}

/// The others of a block, and what they take with them.
struct Others {
    all: u64,
    /// Newlines and slashes after them, which then belong to no class.
    tail: u64,
    /// Marks among them, which are not letters here.
    marks: u64,
}

/// The block and its number of characters, which the compiler knows for ASCII.
#[derive(Clone, Copy)]
pub(super) struct Rules<'b> {
    pub(super) shape: Shape,
    pub(super) number_max: Option<u32>,
    pub(super) block: &'b Block,
    pub(super) count: u32,
    pub(super) ahead: Ahead<'b>,
}

impl Rules<'_> {
    /// The last character's bit, as bit 0.
    #[inline(always)]
    fn last(self, mask: u64) -> u64 {
        mask >> (self.count - 1) & 1
    }

    /// All characters of the block.
    #[inline(always)]
    fn all(self) -> u64 {
        !0 >> (BLOCK as u32 - self.count)
    }

    /// Finds the starts in the block.
    #[inline(always)]
    pub(super) fn apply(self, carry: &mut Carry) -> Found {
        let Self { shape, block, ahead, .. } = self;
        let (number, space) = (block.number, block.space);
        let after_space = space << 1 | carry.space;
        let others = self.others(after_space, carry);
        let (white, other) = (block.white & !others.tail, others.all & !others.tail);
        let newline = block.newline & white;
        let letter = block.letter & !others.marks;

        let after_letter = letter << 1 | carry.letter;
        let after_other = other << 1 | carry.other;
        let after_white = white << 1 | carry.white;
        let after_newline = newline << 1 | carry.newline;
        carry.letter = self.last(letter);
        carry.other = self.last(other);
        carry.white = self.last(white);
        carry.space = self.last(space);
        carry.newline = self.last(newline);

        // White space: where it starts, its last character, and what follows its last newline.
        let is_something_next = u64::from(ahead.next.white & 1 == 0) << (self.count - 1);
        let before_something = (letter | number | other) >> 1 | is_something_next;
        let mut starts = white & !after_white;
        let mut last = white & before_something;
        let mut uncertain = 0;
        if shape.has_to_last {
            last &= !newline;
            let candidates = white & !newline & after_newline;
            if candidates != 0 {
                let (after_last, open) = self.after_last_newline(candidates, white, newline);
                starts |= after_last;
                uncertain |= open;
            }
        }
        starts |= last;

        // Words. An other character that is alone belongs to the word after it.
        let letter_starts = letter & !after_letter;
        let other_starts = other & !after_other & !after_space;
        let mut joined = after_space;
        if shape.has_wide_prefix {
            let after_alone = other_starts << 1 | carry.alone;
            carry.alone = self.last(other_starts);
            joined |= after_white & !after_newline | after_alone;
        }
        starts |= letter_starts & !joined | other_starts;
        if shape.is_cased {
            let (found, open) = self.case_starts(letter, carry);
            starts |= found;
            uncertain |= open;
        }
        starts |= self.number_starts(number, after_space, carry);

        let apostrophes = match shape.contractions {
            Contractions::None => 0,
            Contractions::First => block.apostrophe & starts,
            Contractions::Suffix => block.apostrophe & after_letter,
        };
        Found { starts: starts & !uncertain, uncertain, apostrophes }
    }

    /// Of white space that follows a newline, what follows the *last* newline of its run; and what
    /// may do so, if the run continues beyond the next block.
    #[inline(always)]
    fn after_last_newline(self, candidates: u64, white: u64, newline: u64) -> (u64, u64) {
        let plain = white & !newline;
        let (sum, overflow) = plain.overflowing_add(candidates);
        let mut found = candidates;
        let mut more_newlines = sum & !plain & newline;
        while more_newlines != 0 {
            let end = more_newlines & more_newlines.wrapping_neg();
            let before = found & (end - 1);
            found ^= highest(before);
            more_newlines ^= end;
        }
        if overflow || sum & !self.all() != 0 {
            let Ahead { next, is_end, is_end_whole } = self.ahead;
            let run = next.plain_white().trailing_ones();
            let first = highest(candidates);
            if run >= next.count {
                // Beyond the end of the text, everything reads as white space.
                if !is_end {
                    return (found, first);
                }
                if is_end_whole {
                    found &= !first;
                }
            } else if next.newline >> run & 1 != 0 {
                found &= !first;
            }
        }
        (found, 0)
    }

    /// The characters that are neither letters, numbers nor white space.
    ///
    /// Where letters have cases, marks are both letters and others. A mark belongs to what precedes
    /// it. After a single other, the two are a word; after two others, or a space and one, it is an
    /// other too. Which slashes are others depends on tails, and tails depend on which marks are, so
    /// both are computed repeatedly until nothing changes: at once if there are no marks, and each
    /// time more of the block is right, from its start on.
    #[inline(always)]
    fn others(self, after_space: u64, carry: &mut Carry) -> Others {
        let Self { shape, block, .. } = self;
        let plain = !(block.letter | block.number | block.white) & self.all();
        let newline = block.newline;
        let (other_before, tail_before) = (carry.all_other, carry.tail);
        let tail_of = |all: u64| {
            let continues = match shape.tail {
                Tail::None => return 0,
                Tail::Newlines => newline,
                Tail::NewlinesAndSlashes => newline | block.slash,
            };
            let first = (all << 1 | other_before) & newline | tail_before & continues;
            reach(first, continues)
        };
        let mut others = Others { all: plain, tail: tail_of(plain), marks: 0 };
        let mut absorbing = 0;
        // Without marks here or in the next block, nothing is absorbed.
        if shape.is_cased && block.mark | self.ahead.next.mark != 0 {
            loop {
                let other = plain & !others.tail;
                let second = match shape.has_wide_prefix {
                    true => other & (other << 1 | carry.other | after_space),
                    false => other, // none can be the prefix of a word
                };
                let run = other | block.mark;
                absorbing = reach(second | carry.absorbing & run, run);
                let marks = block.mark & absorbing;
                if marks == others.marks {
                    break;
                }
                others = Others { all: plain | marks, tail: tail_of(plain | marks), marks };
            }
        }
        carry.all_other = self.last(others.all);
        carry.tail = self.last(others.tail);
        carry.absorbing = self.last(absorbing);
        others
    }

    /// Where words of two cases are split: before capitals that follow a lowercase letter, with
    /// letters of both cases in between or not; and before capitals that follow a letter of both
    /// cases and end the word. Those may also be cut off by the end of the block.
    #[inline(always)]
    fn case_starts(self, letter: u64, carry: &mut Carry) -> (u64, u64) {
        let Block { upper, lower, .. } = *self.block;
        let (capital, small) = (upper & letter, lower & letter);
        let both = letter & !small & !capital;
        let as_small = small | reach((small << 1 | carry.small) & both, both);
        let mut found = capital & (as_small << 1 | carry.small);
        let mut open = 0;
        let after_both = capital & (both << 1 | carry.both);
        if after_both != 0 {
            let (sum, _) = capital.overflowing_add(after_both);
            let mut ends = sum & !capital & !letter & self.all();
            while ends != 0 {
                let end = ends & ends.wrapping_neg();
                found |= highest(after_both & (end - 1));
                ends ^= end;
            }
            // The last run reaches the end of the block.
            let last_run = capital & !low_bits_below(highest(!capital & self.all()));
            open = after_both & last_run & !found;
        }
        carry.small = self.last(as_small);
        carry.both = self.last(both);
        (found, open)
    }

    /// Where numbers start, and every `number_max` digits of long ones.
    #[inline(always)]
    fn number_starts(self, number: u64, after_space: u64, carry: &mut Carry) -> u64 {
        let after_number = number << 1 | carry.numbers >> 63;
        let first = number & !after_number;
        let mut starts = first;
        match self.number_max {
            Some(1) => starts = number,
            Some(max) if number != 0 => {
                let after = |n: u32| number << n | carry.numbers >> (64 - n);
                // Digits with at least `max - 1` digits before them, and those with `max`.
                let inside = (1..max).fold(number, |inside, n| inside & after(n));
                let long = inside & after(max);
                if long != 0 {
                    starts |= carry.number_starts >> (64 - max) & long;
                    // One part, two parts, four parts further, as long as there are digits.
                    let (mut step, mut whole) = (max, inside);
                    while step < BLOCK as u32 {
                        starts |= starts << step & whole;
                        whole &= whole << step;
                        step *= 2;
                    }
                }
            }
            _ => {}
        }
        if self.count == BLOCK as u32 {
            (carry.numbers, carry.number_starts) = (number, starts);
        } else {
            let append =
                |before: u64, mask: u64| mask << (BLOCK as u32 - self.count) | before >> self.count;
            carry.numbers = append(carry.numbers, number);
            carry.number_starts = append(carry.number_starts, starts);
        }
        if self.shape.has_number_prefix { starts & !(first & after_space) } else { starts }
    }
}

/// The highest set bit alone, or 0.
#[inline(always)]
fn highest(mask: u64) -> u64 {
    match mask {
        0 => 0,
        mask => 1 << (63 - mask.leading_zeros()),
    }
}

/// All bits up to and including a single bit; none for 0.
#[inline(always)]
fn low_bits_below(bit: u64) -> u64 {
    bit | bit.wrapping_sub(u64::from(bit != 0))
}
