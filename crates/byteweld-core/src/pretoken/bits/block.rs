//! One block of text as masks with one bit per *character*.
//!
//! The rules (`rules.rs`) are about neighboring characters. Squeezing the continuation bytes out of
//! all masks makes neighbors adjacent whatever their lengths, so the rules know nothing about UTF-8.

use super::family::Shape;
use super::kinds::{Kinds, Window};
use super::tiers::{AsciiMasks, BLOCK, Simd};
use crate::pretoken::characters::Classes;

/// The masks of a block; bit `i` stands for its `i`th character.
#[derive(Clone, Copy, Default)]
pub(super) struct Block {
    /// The number of characters that start in the block.
    pub(super) count: u32,
    pub(super) letter: u64,
    pub(super) number: u64,
    pub(super) white: u64,
    pub(super) space: u64,
    pub(super) newline: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Letters that are in only one of a word's two cases.
    pub(super) upper: u64,
    pub(super) lower: u64,
    /// Marks, where they are letters or others depending on what precedes them.
    pub(super) mark: u64,
    /// The bytes that start a character.
    characters: u64,
    /// Bytes of the next block that continue the last character of this one.
    pub(super) spill: u64,
}

impl Block {
    /// Classifies the block at `offset`, whose first bytes `spill` continue a character of the block
    /// before. What lies beyond the end of the text reads as spaces.
    #[inline(always)]
    pub(super) fn new(
        tier: impl Simd,
        shape: Shape,
        (kinds, classes): (&Kinds, &Classes),
        text: &[u8],
        offset: usize,
        spill: u64,
    ) -> Self {
        let padded;
        let rest = text.get(offset..).unwrap_or_default();
        let window: &Window = match rest.first_chunk() {
            Some(window) => window,
            None => {
                padded = pad(rest);
                &padded
            }
        };
        let ascii = tier.ascii_masks(window.first_chunk().unwrap_or(&[0; BLOCK]));
        if ascii.high == 0 {
            return Self::of_ascii(shape, &ascii);
        }
        let wide = kinds.masks(
            tier,
            shape.is_cased,
            (classes, text),
            (offset, window),
            (ascii.high, spill),
        );
        let characters = !wide.continuation;
        let squeezer = tier.squeezer(characters);
        let squeeze = |bits: u64| tier.squeeze(&squeezer, bits);
        // What the shape does not use need not be computed.
        let if_cased = |bits: u64| if shape.is_cased { squeeze(bits) } else { 0 };
        Self {
            count: characters.count_ones(),
            letter: squeeze(ascii.letter | wide.letter),
            number: squeeze(ascii.number | wide.number),
            white: squeeze(ascii.white | wide.white),
            space: squeeze(ascii.space),
            newline: squeeze(ascii.newline),
            apostrophe: squeeze(ascii.apostrophe),
            slash: if shape.has_slashes() { squeeze(ascii.slash) } else { 0 },
            upper: if_cased(ascii.letter & !ascii.bit_5 | wide.upper),
            lower: if_cased(ascii.letter & ascii.bit_5 | wide.lower),
            mark: if_cased(wide.mark),
            characters,
            spill: wide.spill,
        }
    }

    #[inline(always)]
    fn of_ascii(shape: Shape, ascii: &AsciiMasks) -> Self {
        let if_cased = |bits: u64| if shape.is_cased { bits } else { 0 };
        Self {
            count: BLOCK as u32,
            letter: ascii.letter,
            number: ascii.number,
            white: ascii.white,
            space: ascii.space,
            newline: ascii.newline,
            apostrophe: ascii.apostrophe,
            slash: if shape.has_slashes() { ascii.slash } else { 0 },
            upper: if_cased(ascii.letter & !ascii.bit_5),
            lower: if_cased(ascii.letter & ascii.bit_5),
            mark: 0,
            characters: !0,
            spill: 0,
        }
    }

    /// Whether every character is one byte.
    #[inline(always)]
    pub(super) fn is_ascii(&self) -> bool {
        self.count == BLOCK as u32
    }

    /// White space other than newlines.
    #[inline(always)]
    pub(super) fn plain_white(&self) -> u64 {
        self.white & !self.newline
    }

    /// The bytes at which characters start.
    #[inline(always)]
    pub(super) fn bytes_of(&self, tier: impl Simd, characters: u64) -> u64 {
        if self.is_ascii() || characters == 0 {
            characters
        } else {
            tier.spread(&tier.squeezer(self.characters), characters)
        }
    }
}

/// The rest of a text, with spaces after it.
#[cold]
#[inline(never)]
fn pad(rest: &[u8]) -> Window {
    let mut padded = [b' '; size_of::<Window>()];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}
