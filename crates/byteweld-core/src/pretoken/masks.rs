//! 64 bytes at once: one bit for each byte, one mask for each class of ASCII characters.
//!
//! The same in three tiers, by what the processor has. All give the same masks.

/// The bytes of a block.
pub(super) const BLOCK: usize = 64;

/// The blocks of a chunk.
pub(super) const BLOCKS: usize = 32;

/// One mask of every block, and an empty one in front of them, so that each has one before it; and room for
/// one behind them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row([u64; 1 + BLOCKS + 1]);

impl Row {
    pub(super) const NONE: Self = Self([0; 1 + BLOCKS + 1]);

    /// The mask of the block before.
    #[inline(always)]
    pub(super) fn before(&self, i: usize) -> u64 {
        self.0[i]
    }

    /// The bytes of a block that stand behind one of the mask.
    #[inline(always)]
    pub(super) fn after(&self, i: usize) -> u64 {
        self[i] << 1 | self.before(i) >> (BLOCK - 1)
    }

    /// Whether a byte of the chunk is in it.
    #[inline(always)]
    pub(super) fn has(&self, place: usize) -> bool {
        self[place / BLOCK] >> (place % BLOCK) & 1 != 0
    }
}

impl std::ops::Index<usize> for Row {
    type Output = u64;

    #[inline(always)]
    fn index(&self, i: usize) -> &u64 {
        &self.0[i + 1]
    }
}

impl std::ops::IndexMut<usize> for Row {
    #[inline(always)]
    fn index_mut(&mut self, i: usize) -> &mut u64 {
        &mut self.0[i + 1]
    }
}

/// The masks of a chunk. First they are those of ASCII; `wide.rs` adds letters, numbers and white space.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) letter: Row,
    pub(super) bit_5: Row,
    pub(super) number: Row,
    pub(super) space: Row,
    pub(super) white: Row,
    pub(super) newline: Row,
    pub(super) apostrophe: Row,
    pub(super) slash: Row,
    pub(super) high: Row,
}

impl Rows {
    pub(super) const NONE: Self = Self {
        letter: Row::NONE,
        bit_5: Row::NONE,
        number: Row::NONE,
        space: Row::NONE,
        white: Row::NONE,
        newline: Row::NONE,
        apostrophe: Row::NONE,
        slash: Row::NONE,
        high: Row::NONE,
    };

    /// Writes the masks of a block; see [`Tier::fill`] for `ALL`.
    #[inline(always)]
    fn set<const ALL: bool>(&mut self, i: usize, masks: &Masks) {
        self.letter[i] = masks.letter;
        self.number[i] = masks.number;
        self.space[i] = masks.space;
        self.white[i] = masks.white;
        self.newline[i] = masks.newline;
        self.apostrophe[i] = masks.apostrophe;
        self.high[i] = masks.high;
        if ALL {
            self.bit_5[i] = masks.bit_5;
            self.slash[i] = masks.slash;
        }
    }
}

/// The masks of a block. Bit `i` of each is for byte `i`.
struct Masks {
    /// `A`-`Z` and `a`-`z`.
    letter: u64,
    /// Bit 5 of each byte: of the letters, it is set in the lower case.
    bit_5: u64,
    /// `0`-`9`.
    number: u64,
    space: u64,
    /// Space, tab, line feed, vertical tab, form feed, carriage return.
    white: u64,
    /// Line feed, carriage return.
    newline: u64,
    apostrophe: u64,
    slash: u64,
    /// Bytes of other characters than ASCII.
    high: u64,
}

impl Masks {
    const NONE: Self = Self {
        letter: 0,
        bit_5: 0,
        number: 0,
        space: 0,
        white: 0,
        newline: 0,
        apostrophe: 0,
        slash: 0,
        high: 0,
    };
}

/// Something to do with all instructions of a tier. Only what is made one with `run` has them, so it should be
/// `inline(always)`; that is why it is no closure.
pub(crate) trait Work {
    type Result;

    fn run(self) -> Self::Result;
}

/// Does work with all instructions of this processor that may be of use.
pub(crate) fn with_all_instructions<W: Work>(work: W) -> W::Result {
    Tier::best().run(work)
}

/// How masks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tier {
    /// Byte by byte.
    #[cfg(any(test, feature = "fuzzing", not(target_arch = "x86_64")))]
    Plain,
    /// 16 bytes at once, as every x86-64 can.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// 32 bytes at once, and quicker looks at bits. Only [`Tier::best`] makes it, where the processor can.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Tier {
    /// The fastest that runs here.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        return if x86::has_avx2() { Self::Avx2 } else { Self::Sse2 };
        #[cfg(not(target_arch = "x86_64"))]
        return Self::Plain;
    }

    /// All that run here.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        all.push(Self::Sse2);
        if !all.contains(&Self::best()) {
            all.push(Self::best());
        }
        all
    }

    /// Does work with all instructions of the tier.
    #[inline(always)]
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "instructions not all processors have")
    )]
    pub(super) fn run<W: Work>(self, work: W) -> W::Result {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this tier is made only where all of these were detected.
            Self::Avx2 => unsafe { x86::run(work) },
            _ => work.run(),
        }
    }

    /// Makes the masks of blocks, of which the first is the chunk's `from`th; gives all high bits. Bit 5 and
    /// slashes are left out where not `all` are asked for.
    #[inline]
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "instructions not all processors have")
    )]
    pub(super) fn fill(
        self,
        blocks: &[[u8; BLOCK]],
        from: usize,
        all: bool,
        rows: &mut Rows,
    ) -> u64 {
        match (self, all) {
            #[cfg(any(test, feature = "fuzzing", not(target_arch = "x86_64")))]
            (Self::Plain, _) => plain(blocks, from, rows),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: SSE2 is part of x86-64.
            (Self::Sse2, true) => unsafe { x86::sse2::fill::<true>(blocks, from, rows) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the same.
            (Self::Sse2, false) => unsafe { x86::sse2::fill::<false>(blocks, from, rows) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this tier is made only where AVX2 was detected.
            (Self::Avx2, true) => unsafe { x86::avx2::fill::<true>(blocks, from, rows) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the same.
            (Self::Avx2, false) => unsafe { x86::avx2::fill::<false>(blocks, from, rows) },
        }
    }

    /// One bit of each byte.
    #[inline(always)]
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "instructions not all processors have")
    )]
    pub(super) fn plane(self, block: &[u8; BLOCK], bit: u32) -> u64 {
        match self {
            #[cfg(any(test, feature = "fuzzing", not(target_arch = "x86_64")))]
            Self::Plain => plain_plane(block, bit),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: SSE2 is part of x86-64.
            Self::Sse2 => unsafe { x86::sse2::plane(block, bit) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this tier is made only where AVX2 was detected.
            Self::Avx2 => unsafe { x86::avx2::plane(block, bit) },
        }
    }
}

#[cfg(any(test, feature = "fuzzing", not(target_arch = "x86_64")))]
fn plain_plane(block: &[u8; BLOCK], bit: u32) -> u64 {
    block.iter().rev().fold(0, |plane, byte| plane << 1 | u64::from(byte >> bit & 1))
}

#[cfg(any(test, feature = "fuzzing", not(target_arch = "x86_64")))]
fn plain(blocks: &[[u8; BLOCK]], from: usize, rows: &mut Rows) -> u64 {
    let mut high = 0;
    for (i, block) in (from..BLOCKS).zip(blocks) {
        let mut masks = Masks::NONE;
        for (i, byte) in block.iter().enumerate() {
            let bit = |is_in: bool| u64::from(is_in) << i;
            masks.letter |= bit(byte.is_ascii_alphabetic());
            masks.bit_5 |= bit(byte & 0x20 != 0);
            masks.number |= bit(byte.is_ascii_digit());
            masks.space |= bit(*byte == b' ');
            masks.white |= bit(matches!(byte, b'\t'..=b'\r' | b' '));
            masks.newline |= bit(matches!(byte, b'\n' | b'\r'));
            masks.apostrophe |= bit(*byte == b'\'');
            masks.slash |= bit(*byte == b'/');
            masks.high |= bit(*byte >= 0x80);
        }
        rows.set::<true>(i, &masks);
        high |= masks.high;
    }
    high
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BLOCK, BLOCKS, Masks, Rows, Work};

    /// Whether the processor has all that the tier of AVX2 uses.
    pub(super) fn has_avx2() -> bool {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt")
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run<W: Work>(work: W) -> W::Result {
        work.run()
    }

    /// One tier: the same steps on vectors of so many bytes.
    macro_rules! tier {
        ($name:ident, $feature:literal, $vector:ty, $bits:ty, $bytes:literal, $load:expr, $splat:ident,
         $add:ident, $equal:ident, $greater:ident, $or:ident, $shift:ident, $mask:ident) => {
            pub(super) mod $name {
                use super::*;

                #[target_feature(enable = $feature)]
                pub(in super::super) fn fill<const ALL: bool>(
                    blocks: &[[u8; BLOCK]],
                    from: usize,
                    rows: &mut Rows,
                ) -> u64 {
                    let bits = |x: $vector| u64::from($mask(x) as $bits);
                    let is = |x: $vector, byte: u8| $equal(x, $splat(byte as i8));
                    // Moved up so that the last byte of the range becomes the greatest signed one.
                    let in_range = |x: $vector, first: u8, last: u8| {
                        let moved = $add(x, $splat((0x7F - last) as i8));
                        $greater(moved, $splat((0x7E - (last - first)) as i8))
                    };
                    let mut high = 0;
                    for (i, block) in (from..BLOCKS).zip(blocks) {
                        let mut masks = Masks::NONE;
                        let (vectors, _) = block.as_chunks::<$bytes>();
                        for (j, bytes) in vectors.iter().enumerate() {
                            let x: $vector = $load(bytes);
                            let shift = j * $bytes;
                            let space = is(x, b' ');
                            let folded = $or(x, $splat(0x20));
                            masks.letter |= bits(in_range(folded, b'a', b'z')) << shift;
                            masks.bit_5 |= bits($shift(x, _mm_cvtsi32_si128(2))) << shift;
                            masks.number |= bits(in_range(x, b'0', b'9')) << shift;
                            masks.space |= bits(space) << shift;
                            masks.white |= bits($or(in_range(x, b'\t', b'\r'), space)) << shift;
                            masks.newline |= bits($or(is(x, b'\n'), is(x, b'\r'))) << shift;
                            masks.apostrophe |= bits(is(x, b'\'')) << shift;
                            masks.slash |= bits(is(x, b'/')) << shift;
                            masks.high |= bits(x) << shift;
                        }
                        rows.set::<ALL>(i, &masks);
                        high |= masks.high;
                    }
                    high
                }

                #[inline]
                #[target_feature(enable = $feature)]
                pub(in super::super) fn plane(block: &[u8; BLOCK], bit: u32) -> u64 {
                    let up = _mm_cvtsi32_si128(7 - bit as i32);
                    let (vectors, _) = block.as_chunks::<$bytes>();
                    vectors.iter().rev().fold(0, |plane, bytes| {
                        let x: $vector = $load(bytes);
                        plane << $bytes | u64::from($mask($shift(x, up)) as $bits)
                    })
                }
            }
        };
    }

    /// The `i`th eight bytes.
    fn eight(bytes: &[u8], i: usize) -> i64 {
        let (eights, _) = bytes.as_chunks();
        eights.get(i).map_or(0, |eight| i64::from_le_bytes(*eight))
    }

    tier!(
        sse2,
        "sse2",
        __m128i,
        u16,
        16,
        |b: &[u8; 16]| _mm_set_epi64x(eight(b, 1), eight(b, 0)),
        _mm_set1_epi8,
        _mm_add_epi8,
        _mm_cmpeq_epi8,
        _mm_cmpgt_epi8,
        _mm_or_si128,
        _mm_sll_epi16,
        _mm_movemask_epi8
    );
    tier!(
        avx2,
        "avx2",
        __m256i,
        u32,
        32,
        |b: &[u8; 32]| _mm256_set_epi64x(eight(b, 3), eight(b, 2), eight(b, 1), eight(b, 0)),
        _mm256_set1_epi8,
        _mm256_add_epi8,
        _mm256_cmpeq_epi8,
        _mm256_cmpgt_epi8,
        _mm256_or_si256,
        _mm256_sll_epi16,
        _mm256_movemask_epi8
    );
}

#[cfg(test)]
mod tests;
