//! The rules of GPT-2's family of patterns: where pre-tokens start in a block, as shifts and sums of masks.
//!
//! A mask has one bit for each byte, and all bytes of a character are in its class. Shifted by one, a mask is
//! what stands behind a class. A bit that is added to a run of ones clears it and moves on behind it, so that
//! a sum tells how far a run goes ([`reach`]). What goes on in the next block is carried there in [`Before`].

use super::blocks::{Chunk, low_bits};
use super::family::{Contractions, Shape, Tail};
use super::masks::BLOCK;
use super::wide::WideMasks;

/// The last byte of the block before, class by class: bit 0.
#[derive(Default)]
pub(super) struct Before {
    letter: u64,
    number: u64,
    other: u64,
    white: u64,
    space: u64,
    newline: u64,
    alone: u64,
    /// Small letters, and what is of both cases behind one.
    small: u64,
    both: u64,
    /// Others, those in a tail included.
    all_other: u64,
    tail: u64,
    /// Others go on, and take marks with them.
    absorbing: u64,
    /// White space after a newline goes on.
    plain_run: u64,
    /// Where capitals start of which it is not known what follows them; 0 if there are none.
    pub(super) open_capitals: usize,
}

/// All of a run that comes after a bit that is set in it, and the bit.
#[inline(always)]
pub(super) fn reach(first: u64, run: u64) -> u64 {
    ((first & run).wrapping_add(run) ^ run | first) & run
}

/// Others, and what they take with them.
#[derive(Clone, Copy)]
struct Others {
    all: u64,
    /// Newlines and slashes behind them, of no class from now on.
    tail: u64,
    /// Marks among them, which are no letters here.
    marks: u64,
    /// All behind a place from which marks are taken.
    absorbing: u64,
}

impl Chunk {
    /// The starts of one block. `valid` are its bytes, `next` is whether something other than white space
    /// stands behind them.
    #[inline(always)]
    pub(super) fn block(
        &mut self,
        shape: Shape,
        i: usize,
        valid: u64,
        next: u64,
        before: &mut Before,
    ) {
        let wide = self.wide[i];
        let number = self.rows.number[i] & valid;
        let all_white = self.rows.white[i] & valid;
        let space = self.rows.space[i] & valid;
        let after_space = space << 1 | before.space;

        let others = self.others(shape, i, valid, &wide, before);
        let (white, other) = (all_white & !others.tail, others.all & !others.tail);
        let newline = self.rows.newline[i] & white;
        let letter = self.rows.letter[i] & valid & !others.marks;
        if shape.is_cased {
            self.rows.letter[i] = letter;
        }

        let after_letter = letter << 1 | before.letter;
        let after_number = number << 1 | before.number;
        let after_other = other << 1 | before.other;
        let after_white = white << 1 | before.white;
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
            let (sum, goes_on) = plain.overflowing_add(after_last | before.plain_run);
            before.plain_run = u64::from(goes_on);
            more_newlines = sum & !plain & newline;
            self.after_last[i] = after_last;
        }
        let mut found = white_starts | after_last | last & !wide.inner;
        let mut wide_last = last & wide.inner;
        while wide_last != 0 {
            let place = self.first_byte(i * BLOCK + wide_last.trailing_zeros() as usize);
            wide_last &= wide_last - 1;
            if place / BLOCK == i {
                found |= 1 << (place % BLOCK);
            } else {
                self.starts.set(place);
            }
        }

        // Words. What starts as another character and is alone belongs to the word behind it.
        let letter_starts = letter & !after_letter;
        let other_starts = other & !after_other & !after_space;
        let mut joined = letter_starts & after_space;
        if shape.has_wide_prefix {
            let alone =
                other_starts | reach((other_starts << 1 | before.alone) & wide.inner, wide.inner);
            let after_alone = alone << 1 | before.alone;
            before.alone = alone >> 63;
            joined |= letter_starts & (after_white & !after_newline | after_alone);
        }
        found |= letter_starts & !joined;
        if shape.is_cased {
            found |= self.case_starts(i, letter, &wide, before);
        }

        // Numbers and others.
        let number_starts = number & !after_number;
        found |= if shape.has_number_prefix { number_starts & !after_space } else { number_starts };
        found |= other_starts;

        self.starts.bits[i] |= found;
        while more_newlines != 0 {
            let end = i * BLOCK + more_newlines.trailing_zeros() as usize;
            self.starts.clear(self.plain_white_start(end));
            more_newlines &= more_newlines - 1;
        }
        // A contraction may become a part of the word before it.
        let uncertain =
            if shape.contractions == Contractions::Suffix { self.rows.apostrophe[i] } else { 0 };
        self.certain[i] = white_starts
            | other & !after_other & !uncertain & (after_letter | after_number)
            | number & after_letter
            | letter & after_number;
    }

    /// The other characters of a block.
    ///
    /// Where letters have cases, marks are letters and others. A mark goes with what stands before it; but behind
    /// a single other it is a word with that before it, and only behind two of them, or a space and one, are
    /// marks taken. Which slashes are others depends on tails, and tails depend on which marks are, so
    /// the two are found in turn until nothing changes: with no mark taken, that is at once, and each time
    /// more of the block is right, from its start on.
    #[inline(always)]
    fn others(
        &self,
        shape: Shape,
        i: usize,
        valid: u64,
        wide: &WideMasks,
        before: &mut Before,
    ) -> Others {
        let rows = &self.rows;
        let plain = valid & !(rows.letter[i] | rows.number[i] | rows.white[i]);
        let newline = rows.newline[i] & valid;
        let tail_of = |all: u64| match shape.tail {
            Tail::None => 0,
            Tail::Newlines => {
                reach((all << 1 | before.all_other) & newline | before.tail & newline, newline)
            }
            Tail::NewlinesAndSlashes => {
                let goes_on = newline | rows.slash[i] & valid;
                reach((all << 1 | before.all_other) & newline | before.tail & goes_on, goes_on)
            }
        };
        let mut others = Others { all: plain, tail: tail_of(plain), marks: 0, absorbing: 0 };
        if shape.is_cased {
            let mark = wide.mark & valid;
            let after_space = rows.space[i] << 1 | before.space;
            loop {
                let other = plain & !others.tail;
                let second = other & !wide.inner & (other << 1 | before.other | after_space);
                others.absorbing = reach(second | before.absorbing & (other | mark), other | mark);
                let marks = mark & others.absorbing;
                if marks == others.marks {
                    break;
                }
                others.marks = marks;
                others.all = plain | marks;
                others.tail = tail_of(others.all);
            }
        }
        before.all_other = others.all >> 63;
        before.tail = others.tail >> 63;
        before.absorbing = others.absorbing >> 63;
        others
    }

    /// Where words of two cases are cut: always before capitals. Those behind a small letter are, be there
    /// letters of both cases in between; and those behind a letter of both cases that end a word.
    #[inline(always)]
    fn case_starts(&mut self, i: usize, letter: u64, wide: &WideMasks, before: &mut Before) -> u64 {
        let (ascii, bit_5) = (letter & !self.rows.high[i], self.rows.bit_5[i]);
        let small = ascii & bit_5 | wide.lower & letter;
        let capital = ascii & !bit_5 | wide.upper & letter;
        let both = letter & !small & !capital;
        let as_small = small | reach((small << 1 | before.small) & both, both);
        let mut found = capital & (as_small << 1 | before.small);

        if before.open_capitals != 0 {
            let end = (!capital).trailing_zeros();
            if end < BLOCK as u32 {
                if letter >> end & 1 == 0 {
                    self.starts.set(before.open_capitals);
                }
                before.open_capitals = 0;
            }
        }
        let after_both = capital & (both << 1 | before.both);
        if after_both != 0 {
            let (sum, goes_on) = capital.overflowing_add(after_both);
            let mut ends = sum & !capital & !letter;
            while ends != 0 {
                let before_end = low_bits(ends.trailing_zeros() as usize);
                found |= 1 << (BLOCK as u32 - (!capital & before_end).leading_zeros());
                ends &= ends - 1;
            }
            if goes_on {
                before.open_capitals = (i + 1) * BLOCK - capital.leading_ones() as usize;
            }
        }
        before.small = as_small >> 63;
        before.both = both >> 63;
        found
    }

    /// Where the white space that ends at a newline starts, behind the newline before it.
    #[cold]
    pub(super) fn plain_white_start(&self, end: usize) -> usize {
        let mut place = end;
        while place > 0 && self.is_plain_white(place - 1) {
            place -= 1;
        }
        place
    }
}
