//! The patterns of GPT-2's family by bits: where pre-tokens start in 64 bytes at once.
//!
//! Which patterns these are, `family.rs` says: every character is a letter, a number, white space or another.
//! So a pre-token starts where the class changes, and all else is about the few characters around a change,
//! which is a matter of shifts:
//!
//! - a space, or another character that may stand before a word, belongs to what follows it;
//! - of white space before something else, the last character is cut off; or what follows its last newline is;
//! - other characters may take the newlines behind them with them;
//! - words of two cases are also cut before capitals;
//! - numbers that are too long are cut behind every so many digits;
//! - contractions such as `'s` are looked at one by one.
//!
//! The shifts are in `rules.rs`, and in `ascii.rs` for chunks that are all ASCII; the masks come from `masks.rs`
//! (ASCII) and `wide.rs` (the rest).
//!
//! A chunk of text is looked at from a place where a pre-token starts, up to one that is certain whatever
//! follows. What is longer than a chunk the scanner takes. The scanner is right by construction and is what
//! this is tested against.

use super::classes::Classes;
use super::family::{Contractions, Family, Shape, Tail};
use super::masks::{BLOCK, BLOCKS, Row, Rows, Tier, Work};
use super::rules::Before;
use super::spec::Spec;
use super::wide::{Spill, Wide, WideMasks};

/// The bytes of a chunk.
pub(crate) const CHUNK: usize = BLOCKS * BLOCK;

/// So far ahead a contraction may look.
const MARGIN: usize = 8;

/// A pattern of the family, and the instructions that run it.
pub(super) struct Blocks {
    family: Family,
    wide: Wide,
    tier: Tier,
}

/// The starts of pre-tokens in a chunk: bit by bit, from its first byte on.
pub(super) struct Starts {
    pub(super) bits: [u64; BLOCKS],
    /// All before this place is certain, and a pre-token starts there, or the text ends.
    pub(super) end: usize,
}

/// Masks of a chunk, block by block.
pub(super) struct Chunk {
    pub(super) rows: Rows,
    /// Only where a chunk is not all ASCII.
    pub(super) wide: [WideMasks; BLOCKS],
    /// Only where it is: what is neither a letter, nor a number, nor white space.
    pub(super) other: Row,
    /// White space that follows a newline, if that matters.
    pub(super) after_last: [u64; BLOCKS],
    pub(super) starts: Starts,
    /// Starts that are there whatever follows the chunk.
    pub(super) certain: [u64; BLOCKS],
    /// Where pre-tokens end; a block's worth more than there can be.
    ends: [u16; CHUNK + BLOCK],
}

/// Fills a chunk with the start of a text and marks the starts of pre-tokens.
struct Mark<'m> {
    blocks: &'m Blocks,
    classes: &'m Classes,
    text: &'m [u8],
    chunk: &'m mut Chunk,
}

/// What a chunk was filled with.
struct Filled {
    length: usize,
    is_ascii: bool,
    /// Whether there are digits of several bytes.
    has_wide_number: bool,
}

struct Marked {
    /// How many bytes the chunk holds.
    length: usize,
    /// Whether the text ends there.
    is_end: bool,
}

impl Work for Mark<'_> {
    type Result = Marked;

    #[inline(always)]
    fn run(self) -> Marked {
        let Self { blocks, classes, text, chunk } = self;
        let Filled { length, is_ascii, has_wide_number } = blocks.fill(classes, text, chunk);
        match blocks.family.shape {
            // The same with what is known of the most usual patterns, so that the rest falls away.
            Shape::GPT2 => chunk.mark(Shape::GPT2, length, is_ascii),
            Shape::CL100K => chunk.mark(Shape::CL100K, length, is_ascii),
            Shape::O200K => chunk.mark(Shape::O200K, length, is_ascii),
            Shape::TEKKEN => chunk.mark(Shape::TEKKEN, length, is_ascii),
            shape => chunk.mark(shape, length, is_ascii),
        }
        blocks.cut_numbers(classes, &text[..length], has_wide_number, chunk);
        Marked { length, is_end: length == text.len() }
    }
}

impl Blocks {
    /// The pattern of a spec, if it is one of the family.
    pub(super) fn new(spec: &Spec, classes: &Classes) -> Option<Self> {
        let family = Family::new(spec, classes)?;
        let wide = Wide::new(family.classes, classes)?;
        Some(Self { family, wide, tier: Tier::best() })
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn in_tier(self, tier: Tier) -> Self {
        Self { tier, ..self }
    }

    /// Whether a pre-token starts behind a character of some classes and before one of others, whose first byte
    /// is `first`, in any case: a word has ended, and nothing that may belong to it follows.
    pub(super) fn is_certain_start(&self, before: u32, after: u32, first: u8) -> bool {
        let classes = self.family.classes;
        let letter = classes.upper | classes.lower;
        let is_letter = before & letter != 0 && before & classes.other == 0;
        is_letter && after & (letter | classes.number) == 0 && first != b'\''
    }

    /// Does work with all instructions of the tier.
    #[inline(always)]
    pub(super) fn run<W: Work>(&self, work: W) -> W::Result {
        self.tier.run(work)
    }

    /// Where pre-tokens start in the chunk from `at` on, where one does. `contraction_end` gives the end of a
    /// contraction that starts at a place, or the place. If nothing is certain, the error is how many bytes
    /// were looked at.
    #[inline(never)]
    pub(super) fn starts(
        &self,
        classes: &Classes,
        text: &[u8],
        at: usize,
        chunk: &mut Chunk,
        contraction_end: &dyn Fn(usize) -> usize,
    ) -> Result<(), usize> {
        let Marked { length, is_end } =
            self.run(Mark { blocks: self, classes, text: &text[at..], chunk });
        self.apply_contractions(chunk, at, length.div_ceil(BLOCK), contraction_end);
        if is_end && self.family.is_end_whole && self.family.shape.has_to_last {
            let place = last_bit_before(&chunk.after_last, length);
            if place > 0 && (place..length).all(|place| chunk.rows.white.has(place)) {
                chunk.starts.clear(place);
            }
        }
        if !is_end {
            chunk.starts.end = last_bit_before(&chunk.certain, length.saturating_sub(MARGIN));
        }
        if chunk.starts.end > 0 { Ok(()) } else { Err(length + 1) }
    }

    /// Fills a chunk with the start of a text.
    #[inline(always)]
    fn fill(&self, classes: &Classes, text: &[u8], chunk: &mut Chunk) -> Filled {
        let length = text.len().min(CHUNK);
        let (blocks, rest) = text[..length].as_chunks();
        let shape = self.family.shape;
        let all = shape.is_cased || shape.tail == Tail::NewlinesAndSlashes;
        let mut high = self.tier.fill(blocks, 0, all, &mut chunk.rows);
        if !rest.is_empty() {
            let mut last = [[0; BLOCK]];
            last[0][..rest.len()].copy_from_slice(rest);
            high |= self.tier.fill(&last, blocks.len(), all, &mut chunk.rows);
        }
        let is_ascii = high == 0;
        let has_wide_number =
            !is_ascii && self.add_wide(classes, text, length.div_ceil(BLOCK), chunk);
        Filled { length, is_ascii, has_wide_number }
    }

    /// Adds the characters that are not ASCII; gives whether digits are among them.
    #[inline(always)]
    fn add_wide(&self, classes: &Classes, text: &[u8], used: usize, chunk: &mut Chunk) -> bool {
        let mut number = 0;
        let mut spill = Spill::default();
        for i in 0..used {
            let rows = &mut chunk.rows;
            let high = rows.high[i];
            if high == 0 {
                chunk.wide[i] = WideMasks::NONE;
                continue;
            }
            let wide = self.wide.block(self.tier, classes, text, i * BLOCK, high, &mut spill);
            rows.letter[i] |= wide.letter;
            rows.number[i] |= wide.number;
            rows.white[i] |= wide.white;
            chunk.wide[i] = wide;
            number |= wide.number;
        }
        number != 0
    }

    /// Cuts numbers that are too long.
    #[inline(always)]
    fn cut_numbers(&self, classes: &Classes, text: &[u8], has_wide: bool, chunk: &mut Chunk) {
        let used = text.len().div_ceil(BLOCK);
        match self.family.number_max {
            None => {}
            Some(max) if has_wide || max as usize >= BLOCK => {
                self.cut_numbers_one_by_one(max, classes, text, chunk);
            }
            // The same with what is known of the most usual patterns.
            Some(1) => chunk.cut_ascii_numbers(1, used),
            Some(3) => chunk.cut_ascii_numbers(3, used),
            Some(max) => chunk.cut_ascii_numbers(max, used),
        }
    }

    /// The same where digits may have several bytes.
    #[cold]
    fn cut_numbers_one_by_one(&self, max: u32, classes: &Classes, text: &[u8], chunk: &mut Chunk) {
        let mut place = 0;
        while place < text.len() {
            let rest = chunk.rows.number[place / BLOCK] >> (place % BLOCK);
            if rest == 0 {
                place = (place / BLOCK + 1) * BLOCK;
                continue;
            }
            place += rest.trailing_zeros() as usize;
            let mut digits = 0;
            while place < text.len() && chunk.rows.number.has(place) {
                if digits == max {
                    chunk.starts.set(place);
                    chunk.certain[place / BLOCK] |= 1 << (place % BLOCK);
                    digits = 0;
                }
                digits += 1;
                place += if text[place] < 0x80 { 1 } else { classes.wide(text, place).1 };
            }
        }
    }

    #[inline(always)]
    fn apply_contractions(
        &self,
        chunk: &mut Chunk,
        at: usize,
        used: usize,
        contraction_end: &dyn Fn(usize) -> usize,
    ) {
        if self.family.shape.contractions == Contractions::None {
            return;
        }
        let mut last_end = 0;
        for i in 0..used.min(BLOCKS) {
            let mut found = match self.family.shape.contractions {
                Contractions::Suffix => chunk.rows.apostrophe[i],
                _ => chunk.rows.apostrophe[i] & chunk.starts.bits[i],
            };
            while found != 0 {
                let place = i * BLOCK + found.trailing_zeros() as usize;
                found &= found - 1;
                let is_there = match self.family.shape.contractions {
                    Contractions::Suffix => {
                        place > last_end && place > 0 && chunk.rows.letter.has(place - 1)
                    }
                    _ => chunk.starts.has(place),
                };
                if !is_there || place >= chunk.starts.end {
                    continue;
                }
                let end = contraction_end(at + place) - at;
                if end == place {
                    continue;
                }
                let from = if self.family.shape.contractions == Contractions::Suffix {
                    place
                } else {
                    place + 1
                };
                for inside in from..end.min(CHUNK) {
                    chunk.starts.clear(inside);
                }
                if end < chunk.starts.end {
                    chunk.starts.set(end);
                    if self.family.shape.is_cased {
                        chunk.clear_behind_contraction(end);
                    }
                }
                last_end = end;
            }
        }
    }
}

impl Starts {
    pub(super) fn set(&mut self, place: usize) {
        self.bits[place / BLOCK] |= 1 << (place % BLOCK);
    }

    pub(super) fn clear(&mut self, place: usize) {
        self.bits[place / BLOCK] &= !(1 << (place % BLOCK));
    }

    fn has(&self, place: usize) -> bool {
        bit(&self.bits, place)
    }
}

impl Chunk {
    pub(super) const EMPTY: Self = Self {
        rows: Rows::NONE,
        wide: [WideMasks::NONE; BLOCKS],
        other: Row::NONE,
        after_last: [0; BLOCKS],
        starts: Starts { bits: [0; BLOCKS], end: 0 },
        certain: [0; BLOCKS],
        ends: [0; CHUNK + BLOCK],
    };

    /// Where the pre-tokens end that were marked, from the chunk's first byte on.
    #[inline(always)]
    pub(super) fn ends(&mut self) -> &[u16] {
        let Self { starts: Starts { bits, end }, ends, .. } = self;
        let used = end.div_ceil(BLOCK);
        bits[0] &= !1;
        if *end % BLOCK != 0 {
            bits[used - 1] &= low_bits(*end % BLOCK);
        }
        let mut count = 0;
        for (i, &word) in bits[..used].iter().enumerate() {
            let (first, mut bits) = (i * BLOCK, word);
            let Some((room, _)) = ends[count..].split_first_chunk_mut::<BLOCK>() else { break };
            let found = bits.count_ones() as usize;
            let mut write = |range: std::ops::Range<usize>| {
                for place in &mut room[range] {
                    *place = (first + bits.trailing_zeros() as usize) as u16;
                    bits &= bits.wrapping_sub(1);
                }
            };
            // Eight at once, some in vain: a jump after each would be guessed wrong once in a block.
            write(0..8);
            if found > 8 {
                write(8..16);
            }
            if found > 16 {
                write(16..found);
            }
            count += found;
        }
        ends[count] = *end as u16;
        &ends[..=count]
    }

    /// Marks the starts of the chunk's first bytes, so many.
    #[inline(always)]
    fn mark(&mut self, shape: Shape, length: usize, is_ascii: bool) {
        let used = length.div_ceil(BLOCK);
        self.starts.end = length;
        let is_full = length.is_multiple_of(BLOCK);
        let valid_of_last = if is_full { !0 } else { low_bits(length % BLOCK) };
        if is_ascii {
            self.mark_ascii(shape, used, valid_of_last);
        } else {
            self.mark_mixed(shape, used, valid_of_last);
        }
        self.starts.bits[0] |= 1;
    }

    #[inline(always)]
    fn mark_mixed(&mut self, shape: Shape, used: usize, valid_of_last: u64) {
        self.starts.bits[..used].fill(0);
        let mut before = Before::default();
        for i in 0..used {
            let is_last = i + 1 == used; // and behind the end stands nothing
            let next = if is_last { 0 } else { !self.rows.white[i + 1] & 1 };
            let valid = if is_last { valid_of_last } else { !0 };
            self.block(shape, i, valid, next, &mut before);
        }
        if before.open_capitals != 0 {
            self.starts.set(before.open_capitals);
        }
    }

    /// Cuts numbers of one-byte digits behind every `max` of them, fewer than a block's. Where that is does
    /// not depend on what follows.
    #[inline(always)]
    fn cut_ascii_numbers(&mut self, max: u32, used: usize) {
        // The last `max` bytes of the block before: digits, and where numbers and their parts start.
        let (mut before, mut starts_before) = (0, 0);
        for i in 0..used.min(BLOCKS) {
            let number = self.rows.number[i];
            if number == 0 {
                (before, starts_before) = (0, 0);
                continue;
            }
            let after = |n: u32| number << n | before >> (max - n);
            let first = number & !after(1);
            // Digits that have so many, less one, before them; the long ones have one more.
            let inside = (1..max).fold(number, |inside, n| inside & after(n));
            let long = inside & after(max);
            let mut starts = first;
            if long != 0 {
                starts |= starts_before & long;
                // One part, two parts, four parts on, as long as they are there.
                let (mut step, mut whole) = (max, inside);
                while step < BLOCK as u32 {
                    starts |= starts << step & whole;
                    whole &= whole << step;
                    step *= 2;
                }
                self.starts.bits[i] |= starts;
                self.certain[i] |= starts & !first;
            }
            let last = BLOCK as u32 - max;
            (before, starts_before) = (number >> last, starts >> last);
        }
    }

    /// Behind a contraction a word starts anew. If it starts with letters of both cases, capitals behind them are
    /// not cut off for what stands before it; only if they end the word.
    fn clear_behind_contraction(&mut self, at: usize) {
        let while_it = |chunk: &Self, mut place: usize, is_it: fn(&Self, usize) -> bool| {
            while place < chunk.starts.end && is_it(chunk, place) {
                place += 1;
            }
            place
        };
        let capitals = while_it(self, at, |chunk, place| {
            chunk.rows.letter.has(place) && !chunk.is_capital(place) && !chunk.is_small(place)
        });
        let end = while_it(self, capitals, Self::is_capital);
        if at < capitals && capitals < end && end < self.starts.end && self.rows.letter.has(end) {
            self.starts.clear(capitals);
        }
    }

    fn is_capital(&self, place: usize) -> bool {
        self.is_of_case(place, false)
    }

    fn is_small(&self, place: usize) -> bool {
        self.is_of_case(place, true)
    }

    fn is_of_case(&self, place: usize, is_small: bool) -> bool {
        if self.rows.high.has(place) {
            let wide = &self.wide[place / BLOCK];
            let mask = if is_small { wide.lower } else { wide.upper };
            mask >> (place % BLOCK) & 1 != 0
        } else {
            self.rows.letter.has(place) && self.rows.bit_5.has(place) == is_small
        }
    }

    /// White space that is no newline.
    pub(super) fn is_plain_white(&self, place: usize) -> bool {
        self.rows.white.has(place) && !self.rows.newline.has(place)
    }

    /// Where the character that has a byte at `place` starts.
    pub(super) fn first_byte(&self, mut place: usize) -> usize {
        while place > 0 && self.wide[place / BLOCK].inner >> (place % BLOCK) & 1 != 0 {
            place -= 1;
        }
        place
    }
}

fn bit(bits: &[u64; BLOCKS], place: usize) -> bool {
    bits[place / BLOCK % BLOCKS] >> (place % BLOCK) & 1 != 0
}

/// The lowest `n` bits, fewer than all.
#[inline(always)]
pub(super) fn low_bits(n: usize) -> u64 {
    (1 << n) - 1
}

/// The last bit that is set before a place, or 0.
fn last_bit_before(bits: &[u64; BLOCKS], place: usize) -> usize {
    for i in (0..=place / BLOCK).rev() {
        let mut word = bits.get(i).copied().unwrap_or(0);
        if i == place / BLOCK {
            word &= low_bits(place % BLOCK);
        }
        if word != 0 {
            return i * BLOCK + BLOCK - 1 - word.leading_zeros() as usize;
        }
    }
    0
}
