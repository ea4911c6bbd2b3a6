//! Characters that are not ASCII, 64 bytes at once: what kind they are, on all of their bytes.
//!
//! A kind is a byte of flags, and one look in a table gives it for every character of two or three bytes. It is
//! written over four bytes from where the character starts; the next one writes over what is too much. So the
//! kinds stand below the text byte by byte, and their flags become masks as the text's own bits do.
//!
//! A block's continuation bytes tell at once whether they are where its first bytes want them. If they are not,
//! or bytes are no character for another reason, the block is gone over again one character at a time, as
//! `classes.rs` understands what is no text.

use super::classes::Classes;
use super::masks::{BLOCK, Masks, Tier};

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

/// A character has at most so many bytes behind its first.
const MORE: usize = 3;

/// A block and the rest of a character that starts in it.
type Window = [u8; BLOCK + MORE];

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
    /// By the bits that the bytes hold of the code point, so that overlong forms and surrogates have a place.
    two: Box<[u8; 1 << 11]>,
    three: Box<[u8; 1 << 16]>,
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
        let mut two = Box::new([INVALID; 1 << 11]);
        let mut three: Box<[u8; 1 << 16]> = vec![INVALID; 1 << 16].try_into().ok()?;
        for (range, bits) in all.wide_ranges() {
            let kind = classes.kind(bits)?;
            let part = |from: usize, to: usize| {
                let clamp = |code_point: u32| (code_point as usize).clamp(from, to);
                clamp(range.start)..clamp(range.end)
            };
            two[part(0x80, 0x800)].fill(kind);
            three[part(0x800, 0x1_0000)].fill(kind);
        }
        Some(Self { classes, two, three })
    }

    /// The masks of the block that starts at `first`, of which those of ASCII are known.
    #[inline(always)]
    pub(super) fn block(
        &self,
        tier: Tier,
        classes: &Classes,
        text: &[u8],
        first: usize,
        masks: &Masks,
        spill: &mut Spill,
    ) -> WideMasks {
        let mut padded = [0; BLOCK + MORE];
        let window: &Window = text[first..].first_chunk().unwrap_or_else(|| {
            padded[..text.len() - first].copy_from_slice(&text[first..]);
            &padded
        });
        let block = window.first_chunk().unwrap_or(&[0; BLOCK]);
        let high = masks.high;
        let lead = high & tier.plane(block, 6);
        let three = lead & masks.bit_5;
        let four = three & tier.plane(block, 4);
        let mut inner = lead << 1 | three << 2 | four << 3 | spill.inner;
        let mut beyond = lead >> 63 | three >> 62 | four >> 61;

        let mut kinds = [0; BLOCK + MORE + 1];
        kinds[..MORE].fill(spill.kind);
        let is_whole = high & !lead == inner && continues(window, beyond);
        if !(is_whole && self.fill(classes, text, first, window, lead, &mut kinds)) {
            let all = self.fill_one_by_one(classes, text, first, high & !spill.inner, &mut kinds);
            inner = all as u64 | spill.inner;
            beyond = (all >> BLOCK) as u64;
        }
        *spill = Spill { inner: beyond, kind: kinds[BLOCK] };

        let kinds = kinds.first_chunk().unwrap_or(&[0; BLOCK]);
        let mask = |flag: u8| tier.plane(kinds, flag.trailing_zeros()) & high;
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

    /// Writes the kinds of the characters that start at the bits of `lead`, each with all its continuation
    /// bytes. Gives whether they all are characters.
    #[inline(always)]
    fn fill(
        &self,
        classes: &Classes,
        text: &[u8],
        first: usize,
        window: &Window,
        mut lead: u64,
        kinds: &mut [u8; BLOCK + MORE + 1],
    ) -> bool {
        let mut seen = 0;
        while lead != 0 {
            let place = lead.trailing_zeros() as usize % BLOCK;
            lead &= lead - 1;
            let at = |i: usize| window[place + i] as usize & 0x3F;
            let byte = window[place];
            let kind = if byte < 0xE0 {
                self.two[(at(0) << 6 | at(1)) % (1 << 11)]
            } else if byte < 0xF0 {
                self.three[(at(0) << 12 | at(1) << 6 | at(2)) % (1 << 16)]
            } else {
                match classes.wide(text, first + place) {
                    (bits, 4) => self.kind(bits),
                    _ => INVALID,
                }
            };
            seen |= kind;
            kinds[place..place + 4].fill(kind);
        }
        seen & INVALID == 0
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
        kinds: &mut [u8; BLOCK + MORE + 1],
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
