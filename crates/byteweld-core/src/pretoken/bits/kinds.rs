//! Characters other than ASCII, a block at a time: which bytes start one, and of what kind it is.
//!
//! A kind is a byte of flags that a table gives for every character of two or three bytes. It is
//! written where the character starts, so that the flags of a block become masks like the bits of
//! its text. Whether all continuation bytes are where the lead bytes require them takes a few
//! shifts; a block with bytes that are not UTF-8 is read again, one character at a time.

use super::tiers::{BLOCK, Simd};
use crate::pretoken::characters::Classes;

/// Part of a word, marks included.
const LETTER: u8 = 1;
const NUMBER: u8 = 1 << 1;
const WHITE: u8 = 1 << 2;
/// Part of a word or of a run of other characters, depending on what precedes it.
const MARK: u8 = 1 << 3;
/// Letters that are in only one of a word's two cases.
const UPPER: u8 = 1 << 4;
const LOWER: u8 = 1 << 5;
/// No character has these bytes; only the tables say so.
const INVALID: u8 = 1 << 7;

/// The number of code points that fit in two and in three bytes.
const TWO: usize = 1 << 11;
const THREE: usize = 1 << 16;

/// The most continuation bytes of a character.
const MAX_CONTINUATION: usize = 3;

/// A block, and the rest of a character that starts in it.
pub(super) type Window = [u8; BLOCK + MAX_CONTINUATION];

/// The class bits (`classes.rs`) of a pattern. A word without cases has the same bit for both.
#[derive(Clone, Copy)]
pub(super) struct ClassBits {
    pub(super) upper: u32,
    pub(super) lower: u32,
    pub(super) number: u32,
    pub(super) white: u32,
    pub(super) other: u32,
    /// What may precede a word; 0 if only a space may.
    pub(super) prefix: u32,
}

impl ClassBits {
    /// The kind of a character other than ASCII; `None` if no rule covers it.
    fn kind(self, bits: u32) -> Option<u8> {
        let is = |class: u32| bits & class != 0;
        let (is_upper, is_lower) = (is(self.upper), is(self.lower));
        if is_upper && is_lower {
            // Whether it may also precede a word makes no difference: it is a part of that word.
            let is_disjoint = !is(self.number | self.white | self.other);
            let is_mark = self.upper != self.lower && is(self.other);
            return match (is_disjoint, is_mark && !is(self.number | self.white)) {
                (true, _) => Some(LETTER),
                (_, true) => Some(LETTER | MARK),
                _ => None,
            };
        }
        let may_precede = is(self.prefix);
        let (kind, must_precede) =
            match (is_upper, is_lower, is(self.number), is(self.white), is(self.other)) {
                (true, false, false, false, false) => (LETTER | UPPER, false),
                (false, true, false, false, false) => (LETTER | LOWER, false),
                (false, false, true, false, false) => (NUMBER, false),
                (false, false, false, true, false) => (WHITE, self.prefix != 0),
                (false, false, false, false, true) => (0, self.prefix != 0),
                _ => return None,
            };
        (may_precede == must_precede).then_some(kind)
    }
}

/// The kinds of characters in one pattern.
pub(super) struct Kinds {
    classes: ClassBits,
    /// By [`sum`] of the bytes: the code point plus the marker bits of the bytes, which are always
    /// the same. Overlong forms and surrogates have entries too.
    two: Box<[u8; TWO]>,
    three: Box<[u8; THREE]>,
}

/// The bytes of a character added up, each shifted to where its bits belong in the code point.
#[inline(always)]
fn sum<const N: usize>(bytes: [u8; N]) -> usize {
    bytes.iter().fold(0, |sum, &byte| (sum << 6) + usize::from(byte))
}

/// The characters of a block other than ASCII, by class; bits are set where they start.
#[derive(Clone, Copy, Default)]
pub(super) struct WideMasks {
    pub(super) letter: u64,
    pub(super) number: u64,
    pub(super) white: u64,
    pub(super) mark: u64,
    pub(super) upper: u64,
    pub(super) lower: u64,
    /// Bytes that continue a character.
    pub(super) continuation: u64,
    /// Bytes of the next block that continue the last character.
    pub(super) spill: u64,
}

impl Kinds {
    /// `None` if some character is not covered by any rule.
    pub(super) fn new(classes: ClassBits, all: &Classes) -> Option<Self> {
        let mut two = Box::new([INVALID; TWO]);
        let mut three: Box<[u8; THREE]> = vec![INVALID; THREE].try_into().ok()?;
        for (range, bits) in all.wide_ranges() {
            let kind = classes.kind(bits)?;
            let part = |from: usize, to: usize| {
                let clamp = |code_point: u32| (code_point as usize).clamp(from, to);
                clamp(range.start)..clamp(range.end)
            };
            two[part(0x80, 0x800)].fill(kind);
            three[part(0x800, 0x1_0000)].fill(kind);
        }
        // Where the marker bits alone add up to.
        two.rotate_right(sum([0xC0, 0x80]) % TWO);
        three.rotate_right(sum([0xE0, 0x80, 0x80]) % THREE);
        Some(Self { classes, two, three })
    }

    /// The masks of the block at `offset`, whose first bytes `spill` continue the character before.
    #[inline(always)]
    pub(super) fn masks(
        &self,
        tier: impl Simd,
        is_cased: bool,
        (classes, text): (&Classes, &[u8]),
        (offset, window): (usize, &Window),
        (high, spill): (u64, u64),
    ) -> WideMasks {
        let bytes = window.first_chunk().unwrap_or(&[0; BLOCK]);
        let lead = high & tier.plane(bytes, 6);
        let three = lead & tier.plane(bytes, 5);
        let four = three & tier.plane(bytes, 4);
        let mut continuation = lead << 1 | three << 2 | four << 3 | spill;
        let mut next_spill = lead >> 63 | three >> 62 | four >> 61;

        let mut kinds = [0; BLOCK + 1];
        let is_whole = high & !lead == continuation && continues(window, next_spill);
        if is_whole {
            by_fours(three & !four, |at| {
                let bytes = [window[at], window[at + 1], window[at + 2]];
                kinds[at] = self.three[sum(bytes) % THREE];
            });
            by_fours(lead & !three, |at| {
                kinds[at] = self.two[sum([window[at], window[at + 1]]) % TWO];
            });
            let mut four = four;
            while four != 0 {
                let at = four.trailing_zeros() as usize;
                four &= four - 1;
                kinds[at] = match classes.wide(text, offset + at) {
                    (bits, 4) => self.kind(bits),
                    _ => INVALID,
                };
            }
        }
        // The entry after the block receives what `by_fours` writes in vain.
        let Some(kinds) = kinds.first_chunk_mut() else { return WideMasks::default() };
        if !is_whole || tier.plane(kinds, INVALID.trailing_zeros()) & lead != 0 {
            let all = self.read_characters(classes, text, offset, high & !spill, kinds);
            continuation = all as u64 | spill;
            next_spill = (all >> BLOCK) as u64;
        }
        let mask = |flag: u8| tier.plane(kinds, flag.trailing_zeros());
        let mask_if_cased = |flag: u8| if is_cased { mask(flag) } else { 0 };
        WideMasks {
            letter: mask(LETTER),
            number: mask(NUMBER),
            white: mask(WHITE),
            mark: mask_if_cased(MARK),
            upper: mask_if_cased(UPPER),
            lower: mask_if_cased(LOWER),
            continuation,
            spill: next_spill,
        }
    }

    /// Writes the kinds of the characters at `left`, whether the bytes are UTF-8 or not. Returns the
    /// continuation bytes, those in the next block included.
    #[cold]
    #[inline(never)]
    fn read_characters(
        &self,
        classes: &Classes,
        text: &[u8],
        offset: usize,
        mut left: u64,
        kinds: &mut [u8; BLOCK],
    ) -> u128 {
        let mut continuation = 0;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            let (bits, length) = classes.wide(text, offset + at);
            kinds[at] = self.kind(bits);
            let all = ((1u128 << length) - 1) << at;
            left &= !(all as u64);
            continuation |= all & !(1 << at);
        }
        continuation
    }

    fn kind(&self, bits: u32) -> u8 {
        self.classes.kind(bits).unwrap_or(0) // every character has one, or `new` had failed
    }
}

/// Whether the bytes after the block that must continue its last character do.
#[inline(always)]
fn continues(window: &Window, spill: u64) -> bool {
    let is_right = |at: usize| spill >> at & 1 == 0 || window[BLOCK + at] & 0xC0 == 0x80;
    spill == 0 || (0..MAX_CONTINUATION).all(is_right)
}

/// Calls `work` with the position of every set bit, and up to three times in vain with [`BLOCK`]: a
/// branch after each would be mispredicted once per block.
#[inline(always)]
fn by_fours(mut bits: u64, mut work: impl FnMut(usize)) {
    while bits != 0 {
        for _ in 0..4 {
            work(bits.trailing_zeros() as usize);
            bits &= bits.wrapping_sub(1);
        }
    }
}
