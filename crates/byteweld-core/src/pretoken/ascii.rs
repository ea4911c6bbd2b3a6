//! The rules of `rules.rs` for a chunk that is all ASCII: every character is one byte, so hardly anything is
//! carried from block to block.
//!
//! What a block needs of the one before it is in that block's masks. So the loops over blocks have no order, and
//! the compiler makes each of them run on as many blocks at once as a vector holds. Only runs of newlines and of
//! white space behind them may go on and on: they are settled first, one block after the other.

use super::blocks::Chunk;
use super::family::{Contractions, Shape, Tail};
use super::masks::{BLOCK, BLOCKS};
use super::rules::reach;

impl Chunk {
    /// Marks the starts in the first blocks, so many; of the last one, these bytes are there.
    #[inline(always)]
    pub(super) fn mark_ascii(&mut self, shape: Shape, used: usize, valid: u64) {
        let used = used.min(BLOCKS);
        self.find_others(used, valid);
        if shape.has_to_last || shape.tail != Tail::None {
            self.settle_newlines(shape, used);
        }
        self.find_ascii_starts(shape, used);
    }

    #[inline(always)]
    fn find_others(&mut self, used: usize, valid: u64) {
        let rows = &mut self.rows;
        for i in 0..used {
            self.other[i] = !(rows.letter[i] | rows.number[i] | rows.white[i]);
        }
        if let Some(last) = used.checked_sub(1) {
            self.other[last] &= valid;
        }
        // Behind the end stands nothing.
        (rows.letter[used], rows.number[used], self.other[used]) = (0, 0, 0);
    }

    /// Takes newlines that others take with them, and slashes behind these, out of all classes; finds white space
    /// behind the last newline of its run.
    #[inline(always)]
    fn settle_newlines(&mut self, shape: Shape, used: usize) {
        // The last byte of the block before, bit 0, and whether white space goes on from there.
        let (mut other_before, mut tail_before) = (0, 0);
        let (mut newline_before, mut plain_run) = (0, 0);
        for i in 0..used {
            let rows = &mut self.rows;
            let newline = rows.newline[i];
            let after_other = self.other[i] << 1 | other_before;
            other_before = self.other[i] >> (BLOCK - 1);
            self.after_last[i] = 0;
            if newline | newline_before | tail_before | plain_run == 0 {
                continue;
            }
            if shape.tail != Tail::None {
                let has_slashes = shape.tail == Tail::NewlinesAndSlashes;
                let goes_on = newline | if has_slashes { rows.slash[i] } else { 0 };
                let first = after_other & newline | tail_before & goes_on;
                let tail = reach(first, goes_on);
                tail_before = tail >> (BLOCK - 1);
                rows.newline[i] &= !tail;
                rows.white[i] &= !tail;
                self.other[i] &= !tail;
            }
            if shape.has_to_last {
                let newline = rows.newline[i];
                let plain = rows.white[i] & !newline;
                let after_last = plain & (newline << 1 | newline_before);
                newline_before = newline >> (BLOCK - 1);
                let (sum, goes_on) = plain.overflowing_add(after_last | plain_run);
                plain_run = u64::from(goes_on);
                self.after_last[i] = after_last;
                let mut more_newlines = sum & !plain & newline;
                while more_newlines != 0 {
                    let end = i * BLOCK + more_newlines.trailing_zeros() as usize;
                    let start = self.plain_white_start(end);
                    self.after_last[start / BLOCK] &= !(1 << (start % BLOCK));
                    more_newlines &= more_newlines - 1;
                }
            }
        }
    }

    #[inline(always)]
    fn find_ascii_starts(&mut self, shape: Shape, used: usize) {
        let rows = &self.rows;
        for i in 0..used {
            let (letter, number, other) = (rows.letter[i], rows.number[i], self.other[i]);
            let (white, newline) = (rows.white[i], rows.newline[i]);
            let (after_letter, after_number) = (rows.letter.after(i), rows.number.after(i));
            let (after_other, after_space) = (self.other.after(i), rows.space.after(i));
            let (after_white, after_newline) = (rows.white.after(i), rows.newline.after(i));

            // White space: where it starts, its last character, and what follows its last newline.
            let next = rows.letter[i + 1] | rows.number[i + 1] | self.other[i + 1];
            let before_something = (letter | number | other) >> 1 | next << (BLOCK - 1);
            let white_starts = white & !after_white;
            let last = white & before_something;
            let mut found = white_starts;
            found |= if shape.has_to_last { last & !newline | self.after_last[i] } else { last };

            // Words. What starts as another character and is alone belongs to the word behind it.
            let letter_starts = letter & !after_letter;
            let other_starts = other & !after_other & !after_space;
            let mut before_word = after_space;
            if shape.has_wide_prefix {
                let (other, space) = (self.other.before(i), rows.space.before(i));
                let is_last_alone = other & !(other << 1 | space << 1);
                let after_alone = other_starts << 1 | is_last_alone >> (BLOCK - 1);
                before_word |= after_white & !after_newline | after_alone;
            }
            found |= letter_starts & !before_word;
            if shape.is_cased {
                let after_small = letter << 1 & rows.bit_5[i] << 1
                    | (rows.letter.before(i) & rows.bit_5.before(i)) >> (BLOCK - 1);
                found |= letter & !rows.bit_5[i] & after_small;
            }

            // Numbers and others.
            let number_starts = number & !after_number;
            found |=
                if shape.has_number_prefix { number_starts & !after_space } else { number_starts };
            self.starts.bits[i] = found | other_starts;

            // A contraction may become a part of the word before it.
            let is_suffix = shape.contractions == Contractions::Suffix;
            let uncertain = if is_suffix { rows.apostrophe[i] } else { 0 };
            self.certain[i] = white_starts
                | other & !after_other & !uncertain & (after_letter | after_number)
                | number & after_letter
                | letter & after_number;
        }
    }
}
