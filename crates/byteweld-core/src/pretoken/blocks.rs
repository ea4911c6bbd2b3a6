//! The patterns of GPT-2's family by bits: where pre-tokens start in 64 bytes at once.
//!
//! Which patterns these are, `family.rs` says: every character is a letter, a number, white space or another.
//! So a pre-token starts where the class changes, and all else is about the few characters around a change,
//! which is a matter of shifts:
//!
//! - a space, or another character that may stand before a word, belongs to what follows it;
//! - of white space before something else, the last character is cut off; or what follows its last newline is;
//! - other characters may take the newlines behind them with them;
//! - words of two cases are also cut where a capital follows a small letter;
//! - numbers of more than three digits, and contractions such as `'s`, are looked at one by one.
//!
//! A chunk of text is looked at from a place where a pre-token starts, up to one that is certain whatever
//! follows. Where a pattern is of two cases, a chunk ends before the first character that is not ASCII, for
//! there classes overlap; the scanner goes over it. It is also the scanner that takes what is longer than
//! a chunk. The scanner is right by construction and is what this is tested against.

use super::classes::Classes;
use super::family::{Contractions, Family, Shape, Tail};
use super::masks::{BLOCK, Masks, Tier, Work};
use super::spec::Spec;

/// The blocks of a chunk.
const BLOCKS: usize = 32;
/// The bytes of a chunk.
pub(crate) const CHUNK: usize = BLOCKS * BLOCK;

/// So far ahead a contraction may look.
const MARGIN: usize = 8;

/// A pattern of the family, and the instructions that run it.
pub(super) struct Blocks {
    family: Family,
    tier: Tier,
}

/// The starts of pre-tokens in a chunk: bit by bit, from its first byte on.
pub(super) struct Starts {
    bits: [u64; BLOCKS],
    /// All before this place is certain, and a pre-token starts there, or the text ends.
    pub(super) end: usize,
}

/// Masks of a chunk, block by block: of ASCII, and of all characters.
pub(super) struct Chunk {
    masks: [Masks; BLOCKS],
    letter: [u64; BLOCKS],
    number: [u64; BLOCKS],
    white: [u64; BLOCKS],
    /// Bytes of characters other than ASCII, but their first.
    inner: [u64; BLOCKS],
    pub(super) starts: Starts,
    /// Starts that are there whatever follows the chunk.
    certain: [u64; BLOCKS],
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

struct Marked {
    /// How many bytes the chunk holds.
    length: usize,
    /// Whether the text ends there.
    is_end: bool,
    /// The last place where white space follows a newline.
    last_after: usize,
}

impl Work for Mark<'_> {
    type Result = Marked;

    #[inline(always)]
    fn run(self) -> Marked {
        let Self { blocks, classes, text, chunk } = self;
        let (length, is_ascii) = blocks.fill(classes, text, chunk);
        let last_after = match (blocks.family.shape, is_ascii) {
            // The same with what is known of the most usual patterns, so that the rest falls away.
            (Shape::GPT2, true) => chunk.mark(Shape::GPT2, length, true),
            (Shape::GPT2, false) => chunk.mark(Shape::GPT2, length, false),
            (Shape::CL100K, true) => chunk.mark(Shape::CL100K, length, true),
            (Shape::CL100K, false) => chunk.mark(Shape::CL100K, length, false),
            (Shape::O200K, true) => chunk.mark(Shape::O200K, length, true),
            (shape, _) => chunk.mark(shape, length, false),
        };
        Marked { length, is_end: length == text.len(), last_after }
    }
}

impl Blocks {
    /// The pattern of a spec, if it is one of the family.
    pub(super) fn new(spec: &Spec, classes: &Classes) -> Option<Self> {
        Some(Self { family: Family::new(spec, classes)?, tier: Tier::best() })
    }

    #[cfg(test)]
    pub(super) fn in_tier(self, tier: Tier) -> Self {
        Self { tier, ..self }
    }

    /// Whether a pre-token starts behind a character of some classes and before one of others, whose first byte
    /// is `first`, in any case: a word has ended, and nothing that may belong to it follows.
    pub(super) fn is_certain_start(&self, before: u32, after: u32, first: u8) -> bool {
        let is_letter = before & self.family.letter != 0 && before & self.family.other == 0;
        is_letter && after & (self.family.letter | self.family.number) == 0 && first != b'\''
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
        let is_wide = |byte: &u8| !byte.is_ascii();
        if self.family.shape.is_cased
            && let Some(place) = text[at..].iter().take(16).position(is_wide)
        {
            return Err(place + 1);
        }
        let Marked { length, is_end, last_after } =
            self.run(Mark { blocks: self, classes, text: &text[at..], chunk });
        if self.family.number_max.is_some() {
            self.cut_numbers(classes, &text[at..at + length], chunk);
        }
        self.apply_contractions(chunk, at, length.div_ceil(BLOCK), contraction_end);
        if is_end && self.family.is_end_whole {
            let is_white = |place| bit(&chunk.white, place);
            if last_after > 0 && (last_after..length).all(is_white) {
                chunk.starts.clear(last_after);
            }
        }
        if !is_end {
            chunk.starts.end = last_bit_before(&chunk.certain, length.saturating_sub(MARGIN));
        }
        if chunk.starts.end > 0 { Ok(()) } else { Err(length + 1) }
    }

    /// Fills a chunk; gives its length, and whether it is all ASCII.
    #[inline(always)]
    fn fill(&self, classes: &Classes, text: &[u8], chunk: &mut Chunk) -> (usize, bool) {
        let mut length = text.len().min(CHUNK);
        if self.family.shape.is_cased && !text[..length.min(BLOCK)].is_ascii() {
            length = length.min(BLOCK); // more would be made in vain
        }
        let (blocks, rest) = text[..length].as_chunks();
        self.tier.fill(blocks, &mut chunk.masks);
        if !rest.is_empty() {
            let mut last = [[0; BLOCK]];
            last[0][..rest.len()].copy_from_slice(rest);
            self.tier.fill(&last, &mut chunk.masks[blocks.len()..]);
        }
        let mut wide = Wide::default();
        let mut high = 0;
        for i in 0..length.div_ceil(BLOCK) {
            let masks = chunk.masks[i];
            high |= masks.high;
            if masks.high != 0 {
                if self.family.shape.is_cased {
                    length = length.min(i * BLOCK + masks.high.trailing_zeros() as usize);
                } else {
                    self.add_wide(classes, text, i * BLOCK, masks.high, &mut wide);
                }
            }
            chunk.letter[i] = masks.letter | wide.letter as u64;
            chunk.number[i] = masks.digit | wide.number as u64;
            chunk.white[i] = masks.space | masks.control_space | wide.white as u64;
            chunk.inner[i] = wide.inner as u64;
            wide = wide.next();
        }
        (length, high == 0)
    }

    /// Adds the characters of a block, which starts at `first`, that are not ASCII.
    #[inline(always)]
    fn add_wide(&self, classes: &Classes, text: &[u8], first: usize, high: u64, wide: &mut Wide) {
        let mut left = high & !(wide.inner as u64);
        let Family { letter, number, white, .. } = self.family;
        let (mut letters, mut numbers, mut whites, mut inner) = (0, 0, 0, 0);
        let (mut last, mut last_bits) = (0, 0);
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            let (bits, length) = classes.wide(text, first + place);
            let span = low_bits(length) << place;
            // All ones or none, so that there is no jump for each class.
            let all_if = |class: u32| u64::from(bits & class != 0).wrapping_neg();
            letters |= span & all_if(letter);
            numbers |= span & all_if(number);
            whites |= span & all_if(white);
            inner |= span & !(1 << place);
            left &= !span;
            (last, last_bits) = (place + length, bits);
        }
        // What the last one has in the next block.
        let rest = u128::from(low_bits(last.saturating_sub(BLOCK))) << BLOCK;
        let rest_if = |class: u32| if last_bits & class != 0 { rest } else { 0 };
        wide.letter |= u128::from(letters) | rest_if(letter);
        wide.number |= u128::from(numbers) | rest_if(number);
        wide.white |= u128::from(whites) | rest_if(white);
        wide.inner |= u128::from(inner) | rest;
    }

    /// Cuts numbers that are too long.
    #[inline(always)]
    fn cut_numbers(&self, classes: &Classes, text: &[u8], chunk: &mut Chunk) {
        let Some(max) = self.family.number_max else { return };
        let mut before = 0; // numbers at the end of the block before
        for i in 0..text.len().div_ceil(BLOCK) {
            let number = chunk.number[i];
            if number == 0 {
                before = 0;
                continue;
            }
            let next = chunk.number.get(i + 1).copied().unwrap_or(0);
            let mut long = number & !(number << 1 | before);
            before = number >> 63;
            // As many bytes as that, and one more, are of a number.
            for n in 1..=max.min(3) {
                long &= number >> n | next << (BLOCK as u32 - n);
            }
            while long != 0 {
                let mut place = i * BLOCK + long.trailing_zeros() as usize;
                long &= long - 1;
                let mut digits = 0;
                while place < text.len() && bit(&chunk.number, place) {
                    if digits == max {
                        chunk.starts.set(place);
                        digits = 0;
                    }
                    digits += 1;
                    place += if text[place] < 0x80 { 1 } else { classes.wide(text, place).1 };
                }
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
        for i in 0..used {
            let mut found = match self.family.shape.contractions {
                Contractions::Suffix => chunk.masks[i].apostrophe,
                _ => chunk.masks[i].apostrophe & chunk.starts.bits[i],
            };
            while found != 0 {
                let place = i * BLOCK + found.trailing_zeros() as usize;
                found &= found - 1;
                let is_there = match self.family.shape.contractions {
                    Contractions::Suffix => {
                        place > last_end && place > 0 && bit(&chunk.letter, place - 1)
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
                }
                last_end = end;
            }
        }
    }
}

/// The last byte of the block before, class by class: bit 0.
#[derive(Default)]
struct Before {
    letter: u64,
    number: u64,
    other: u64,
    white: u64,
    space: u64,
    newline: u64,
    small: u64,
    inner: u64,
    alone: u64,
    /// All of the block before.
    alone_bits: u64,
    /// Others, those in a tail included.
    all_other: u64,
    tail: u64,
    /// White space after a newline goes on.
    plain_run: u64,
    /// The last place in the chunk where white space follows a newline.
    last_after: usize,
}

impl Before {
    /// What others take with them: a newline right behind one, and what follows of the class `goes_on`.
    #[inline(always)]
    fn tail_of(&mut self, other: u64, newline: u64, goes_on: u64) -> u64 {
        let first = (other << 1 | self.all_other) & newline | self.tail & goes_on;
        // A bit added to a run of ones clears it and moves on behind it.
        let tail = (first.wrapping_add(goes_on) ^ goes_on) & goes_on | first;
        self.all_other = other >> 63;
        self.tail = tail >> 63;
        tail
    }
}

impl Starts {
    fn set(&mut self, place: usize) {
        self.bits[place / BLOCK] |= 1 << (place % BLOCK);
    }

    fn clear(&mut self, place: usize) {
        self.bits[place / BLOCK] &= !(1 << (place % BLOCK));
    }

    fn has(&self, place: usize) -> bool {
        bit(&self.bits, place)
    }
}

/// Characters that are not ASCII, in one block and up to three bytes of the next.
#[derive(Clone, Copy, Default)]
struct Wide {
    letter: u128,
    number: u128,
    white: u128,
    /// All their bytes but the first.
    inner: u128,
}

impl Wide {
    fn next(self) -> Self {
        Self {
            letter: self.letter >> BLOCK,
            number: self.number >> BLOCK,
            white: self.white >> BLOCK,
            inner: self.inner >> BLOCK,
        }
    }
}

impl Chunk {
    pub(super) const EMPTY: Self = Self {
        masks: [Masks::NONE; BLOCKS],
        letter: [0; BLOCKS],
        number: [0; BLOCKS],
        white: [0; BLOCKS],
        inner: [0; BLOCKS],
        starts: Starts { bits: [0; BLOCKS], end: 0 },
        certain: [0; BLOCKS],
        ends: [0; CHUNK + BLOCK],
    };

    /// Where the pre-tokens end that were marked, from the chunk's first byte on.
    #[inline(always)]
    pub(super) fn ends(&mut self) -> &[u16] {
        let Self { starts: Starts { bits, end }, ends, .. } = self;
        let mut count = 0;
        for (i, &word) in bits[..end.div_ceil(BLOCK)].iter().enumerate() {
            let first = i * BLOCK;
            let mut bits = if i == 0 { word & !1 } else { word };
            if *end - first < BLOCK {
                bits &= low_bits(*end - first);
            }
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

    /// Marks the starts of the chunk's first bytes, so many, and gives the last place where white space follows
    /// a newline.
    #[inline(always)]
    fn mark(&mut self, shape: Shape, length: usize, is_ascii: bool) -> usize {
        let used = length.div_ceil(BLOCK);
        self.starts.end = length;
        self.starts.bits[..used].fill(0);
        let mut before = Before::default();
        for i in 0..used {
            let next = match self.white.get(i + 1) {
                Some(white) if (i + 1) * BLOCK < length => !white & 1,
                _ => 0, // behind the end stands nothing
            };
            let valid = if length - i * BLOCK >= BLOCK { !0 } else { low_bits(length % BLOCK) };
            self.block(shape, i, valid, next, is_ascii, &mut before);
        }
        self.starts.bits[0] |= 1;
        before.last_after
    }

    /// The starts of one block. `valid` are its bytes, `next` is whether something other than white space
    /// stands behind them.
    #[inline(always)]
    fn block(
        &mut self,
        shape: Shape,
        i: usize,
        valid: u64,
        next: u64,
        is_ascii: bool,
        before: &mut Before,
    ) {
        let letter = self.letter[i] & valid;
        let number = self.number[i] & valid;
        let all_white = self.white[i] & valid;
        let newline = self.masks[i].newline & valid;
        let all_other = valid & !(letter | number | all_white);

        // What other characters take with them is of no class.
        let tail = match shape.tail {
            Tail::None => 0,
            Tail::Newlines => before.tail_of(all_other, newline, newline),
            Tail::NewlinesAndSlashes => {
                before.tail_of(all_other, newline, newline | self.masks[i].slash & valid)
            }
        };
        let (white, other) = (all_white & !tail, all_other & !tail);
        let newline = newline & white;
        let space = self.masks[i].space & valid;

        let after_letter = letter << 1 | before.letter;
        let after_number = number << 1 | before.number;
        let after_other = other << 1 | before.other;
        let after_white = white << 1 | before.white;
        let after_space = space << 1 | before.space;
        let after_newline = newline << 1 | before.newline;
        before.letter = letter >> 63;
        before.number = number >> 63;
        before.other = other >> 63;
        before.white = white >> 63;
        before.space = space >> 63;
        before.newline = newline >> 63;

        // White space: where it starts, its last character, and what follows its last newline.
        let before_something = (letter | number | other) >> 1 | next << 63;
        let white_starts = white & !after_white;
        let mut last = white & before_something;
        let (mut after_last, mut more_newlines) = (0, 0);
        if shape.has_to_last {
            last &= !newline;
            let plain = white & !newline;
            after_last = plain & after_newline;
            // A bit added to a run of ones moves on behind it, into the next block if need be.
            let (sum, goes_on) = plain.overflowing_add(after_last | before.plain_run);
            before.plain_run = u64::from(goes_on);
            more_newlines = sum & !plain & newline;
            if after_last != 0 {
                before.last_after = (i + 1) * BLOCK - 1 - after_last.leading_zeros() as usize;
            }
        }
        let inner = if is_ascii { 0 } else { self.inner[i] };
        let mut found = white_starts | after_last;
        if last & inner == 0 {
            found |= last;
        } else {
            found |= last & !inner;
            let mut wide = last & inner;
            while wide != 0 {
                let place = self.first_byte(i * BLOCK + wide.trailing_zeros() as usize);
                wide &= wide - 1;
                if place / BLOCK == i {
                    found |= 1 << (place % BLOCK);
                } else {
                    self.starts.set(place);
                }
            }
        }

        // Words.
        let letter_starts = letter & !after_letter;
        let alone = other & !after_other & !after_space; // others that would start a pre-token
        let after_alone = alone << 1 | before.alone;
        before.alone = alone >> 63;
        let mut joined = letter_starts & after_space;
        if shape.has_wide_prefix {
            joined |= letter_starts & (after_white & !after_newline | after_alone);
            let mut wide = letter_starts & after_other & (inner << 1 | before.inner);
            while wide != 0 {
                let bit = wide & wide.wrapping_neg();
                let place = self.first_byte(i * BLOCK + wide.trailing_zeros() as usize - 1);
                wide ^= bit;
                let is_alone = if place / BLOCK == i {
                    alone >> (place % BLOCK) & 1 != 0
                } else {
                    before.alone_bits >> (place % BLOCK) & 1 != 0
                };
                joined |= if is_alone { bit } else { 0 };
            }
        }
        before.inner = inner >> 63;
        before.alone_bits = alone;
        found |= letter_starts & !joined;
        if shape.is_cased {
            let small = letter & self.masks[i].bit_5;
            found |= letter & !small & (small << 1 | before.small);
            before.small = small >> 63;
        }

        // Numbers and others.
        let number_starts = number & !after_number;
        found |= if shape.has_number_prefix { number_starts & !after_space } else { number_starts };
        found |= other & !after_other & !after_space;

        self.starts.bits[i] |= found;
        while more_newlines != 0 {
            self.clear_run_start(i * BLOCK + more_newlines.trailing_zeros() as usize);
            more_newlines &= more_newlines - 1;
        }
        // A contraction may become a part of the word before it.
        let uncertain =
            if shape.contractions == Contractions::Suffix { self.masks[i].apostrophe } else { 0 };
        self.certain[i] = white_starts
            | other & !after_other & !uncertain & (after_letter | after_number)
            | number & after_letter
            | letter & after_number;
    }

    /// Takes back the start after a newline of a run of white space that ends at another newline.
    #[cold]
    fn clear_run_start(&mut self, end: usize) {
        let mut place = end;
        while place > 0 && bit(&self.white, place - 1) && !self.is_newline(place - 1) {
            place -= 1;
        }
        if place > 0 {
            self.starts.clear(place);
        }
    }

    fn is_newline(&self, place: usize) -> bool {
        self.masks[place / BLOCK].newline >> (place % BLOCK) & 1 != 0
    }

    /// Where the character that has a byte at `place` starts.
    fn first_byte(&self, mut place: usize) -> usize {
        while place > 0 && bit(&self.inner, place) {
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
fn low_bits(n: usize) -> u64 {
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
