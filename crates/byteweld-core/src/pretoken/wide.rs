//! Characters that are not ASCII, 64 bytes at once: what kind they are, on all of their bytes.
//!
//! A kind is a byte of flags, and one look in a table gives it for every character of two or three bytes. It is
//! written below each byte of the character, and so the flags become masks as the text's own bits do.
//!
//! A block's continuation bytes tell at once whether they are where its first bytes want them. If they are not,
//! or bytes are no character for another reason, the block is gone over again one character at a time, as
//! `classes.rs` understands what is no text.

use super::classes::Classes;
use super::masks::{BLOCK, Tier};

/// Part of a word, marks included.
const LETTER: u8 = 1;
const NUMBER: u8 = 1 << 1;
const WHITE: u8 = 1 << 2;
/// Part of a word or of what is no word, by what stands before it.
const MARK: u8 = 1 << 3;
/// Letters that are in one of a word's two cases only.
const UPPER: u8 = 1 << 4;
const LOWER: u8 = 1 << 5;
/// No character has these bytes; only the tables say it.
const INVALID: u8 = 1 << 7;

/// How many code points two and three bytes have bits for.
const TWO: usize = 1 << 11;
const THREE: usize = 1 << 16;

/// A character has at most so many bytes behind its first.
const MORE: usize = 3;

/// A block and the rest of a character that starts in it.
type Window = [u8; BLOCK + MORE];

/// Kinds by byte. Behind the block there is room for what is written in vain.
type Kinds = [u8; BLOCK + MORE + 1];

/// Bits of a pattern's classes (`classes.rs`). Words without cases have the same class for both.
#[derive(Clone, Copy)]
pub(super) struct ClassBits {
    pub(super) upper: u32,
    pub(super) lower: u32,
    pub(super) number: u32,
    pub(super) white: u32,
    pub(super) other: u32,
    /// What may stand before a word; none if only a space may.
    pub(super) prefix: u32,
}

impl ClassBits {
    /// The kind of a character that is not ASCII; `None` if no rule is for such a one.
    fn kind(self, bits: u32) -> Option<u8> {
        let is = |class: u32| bits & class != 0;
        let (is_upper, is_lower) = (is(self.upper), is(self.lower));
        if is_upper && is_lower {
            // Whether it may also stand before a word makes no difference: it is a part of that word.
            let is_disjoint = !is(self.number | self.white | self.other);
            let is_mark = self.upper != self.lower && is(self.other);
            return match (is_disjoint, is_mark && !is(self.number | self.white)) {
                (true, _) => Some(LETTER),
                (_, true) => Some(LETTER | MARK),
                _ => None,
            };
        }
        let may_stand_before = is(self.prefix);
        let (kind, is_before) =
            match (is_upper, is_lower, is(self.number), is(self.white), is(self.other)) {
                (true, false, false, false, false) => (LETTER | UPPER, false),
                (false, true, false, false, false) => (LETTER | LOWER, false),
                (false, false, true, false, false) => (NUMBER, false),
                (false, false, false, true, false) => (WHITE, self.prefix != 0),
                (false, false, false, false, true) => (0, self.prefix != 0),
                _ => return None,
            };
        (may_stand_before == is_before).then_some(kind)
    }
}

/// The kinds of characters in one pattern.
pub(super) struct Wide {
    classes: ClassBits,
    /// By [`sum`] of the bytes: that is the code point, but for the marks that bytes have, which are always the
    /// same. Overlong forms and surrogates have a place too.
    two: Box<[u8; TWO]>,
    three: Box<[u8; THREE]>,
}

/// The bytes of a character added up, each moved to where its bits belong in the code point.
#[inline(always)]
fn sum<const N: usize>(bytes: [u8; N]) -> usize {
    bytes.iter().fold(0, |sum, &byte| (sum << 6) + byte as usize)
}

/// Masks of a block: bytes of characters other than ASCII.
#[derive(Clone, Copy)]
pub(super) struct WideMasks {
    pub(super) letter: u64,
    pub(super) number: u64,
    pub(super) white: u64,
    pub(super) mark: u64,
    pub(super) upper: u64,
    pub(super) lower: u64,
    /// All bytes of a character but its first.
    pub(super) inner: u64,
}

impl WideMasks {
    pub(super) const NONE: Self =
        Self { letter: 0, number: 0, white: 0, mark: 0, upper: 0, lower: 0, inner: 0 };
}

/// What the last character of a block has in the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Spill {
    inner: u64,
    kind: u8,
}

impl Wide {
    /// `None` if there is a character that no rule is for.
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
        // The sums of the marks alone.
        two.rotate_right(sum([0xC0, 0x80]) % TWO);
        three.rotate_right(sum([0xE0, 0x80, 0x80]) % THREE);
        Some(Self { classes, two, three })
    }

    /// The masks of the block that starts at `first`, of which the bytes that are not ASCII are known.
    #[inline(always)]
    pub(super) fn block(
        &self,
        tier: Tier,
        classes: &Classes,
        text: &[u8],
        first: usize,
        high: u64,
        spill: &mut Spill,
    ) -> WideMasks {
        let mut padded = [0; BLOCK + MORE];
        let window: &Window = text[first..].first_chunk().unwrap_or_else(|| {
            padded[..text.len() - first].copy_from_slice(&text[first..]);
            &padded
        });
        let lead = high & tier.plane(block(window), 6);
        let three = lead & tier.plane(block(window), 5);
        let four = three & tier.plane(block(window), 4);
        let mut inner = lead << 1 | three << 2 | four << 3 | spill.inner;
        let mut beyond = lead >> 63 | three >> 62 | four >> 61;

        let mut kinds = [0; BLOCK + MORE + 1];
        kinds[..MORE].fill(spill.kind);
        let is_whole = high & !lead == inner && continues(window, beyond);
        if is_whole {
            self.fill_short(window, lead & !three, three & !four, &mut kinds);
            self.fill_long(classes, text, first, four, &mut kinds);
        }
        if !is_whole || tier.plane(block(&kinds), INVALID.trailing_zeros()) & lead != 0 {
            let all = self.fill_one_by_one(classes, text, first, high & !spill.inner, &mut kinds);
            inner = all as u64 | spill.inner;
            beyond = (all >> BLOCK) as u64;
        }
        *spill = Spill { inner: beyond, kind: kinds[BLOCK - 1] };

        let mask = |flag: u8| tier.plane(block(&kinds), flag.trailing_zeros()) & high;
        let is_cased = self.classes.upper != self.classes.lower;
        let mask_if_cased = |flag: u8| if is_cased { mask(flag) } else { 0 };
        WideMasks {
            letter: mask(LETTER),
            number: mask(NUMBER),
            white: mask(WHITE),
            mark: mask_if_cased(MARK),
            upper: mask_if_cased(UPPER),
            lower: mask_if_cased(LOWER),
            inner,
        }
    }

    /// Writes the kinds of the characters of two and of three bytes that start at these bits. The longer ones
    /// come first: four bytes are written at once, and what is too much is written over.
    #[inline(always)]
    fn fill_short(&self, window: &Window, two: u64, three: u64, kinds: &mut Kinds) {
        by_fours(three, |place| {
            let kind =
                self.three[sum([window[place], window[place + 1], window[place + 2]]) % THREE];
            kinds[place..place + 4].fill(kind);
        });
        by_fours(two, |place| {
            let kind = self.two[sum([window[place], window[place + 1]]) % TWO];
            kinds[place..place + 2].fill(kind);
        });
    }

    /// The same for those of four bytes.
    #[inline(always)]
    fn fill_long(
        &self,
        classes: &Classes,
        text: &[u8],
        first: usize,
        mut four: u64,
        kinds: &mut Kinds,
    ) {
        while four != 0 {
            let place = four.trailing_zeros() as usize;
            four &= four - 1;
            let kind = match classes.wide(text, first + place) {
                (bits, 4) => self.kind(bits),
                _ => INVALID,
            };
            kinds[place..place + 4].fill(kind);
        }
    }

    /// The same for all that is left of a block, be it text or not. Gives the bytes behind first ones, those in
    /// the next block included.
    #[cold]
    #[inline(never)]
    fn fill_one_by_one(
        &self,
        classes: &Classes,
        text: &[u8],
        first: usize,
        mut left: u64,
        kinds: &mut Kinds,
    ) -> u128 {
        let mut inner = 0;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            let (bits, length) = classes.wide(text, first + place);
            kinds[place..place + length].fill(self.kind(bits));
            let all = ((1u128 << length) - 1) << place;
            left &= !(all as u64);
            inner |= all & !(1 << place);
        }
        inner
    }

    fn kind(&self, bits: u32) -> u8 {
        self.classes.kind(bits).unwrap_or(0) // there is one, or the pattern were not of the family
    }
}

/// Whether the bytes behind the block that are asked for, from the first on, continue a character.
#[inline(always)]
fn continues(window: &Window, beyond: u64) -> bool {
    let is_right = |i: usize| beyond >> i & 1 == 0 || window[BLOCK + i] & 0xC0 == 0x80;
    beyond == 0 || (0..MORE).all(is_right)
}

/// Does something at every bit that is set, and up to three times behind the block, in vain: a jump after each
/// would be guessed wrong once in a block.
#[inline(always)]
fn by_fours(mut bits: u64, mut at: impl FnMut(usize)) {
    while bits != 0 {
        for _ in 0..4 {
            at(bits.trailing_zeros() as usize);
            bits &= bits.wrapping_sub(1);
        }
    }
}

/// The first bytes of something longer.
#[inline(always)]
fn block<const N: usize>(bytes: &[u8; N]) -> &[u8; BLOCK] {
    bytes.first_chunk().unwrap_or(&[0; BLOCK])
}
