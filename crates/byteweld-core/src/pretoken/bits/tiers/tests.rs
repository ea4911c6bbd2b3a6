//! Every tier does the same as the plainest code.

use super::{AsciiMasks, BLOCK, Simd};
use crate::cpu::{self, Tier, Work};

/// All operations on one block, with one mask of kept bits.
struct Everything<'b>(&'b [u8; BLOCK], u64, u64);

type Results = (AsciiMasks, [u64; 8], u64, u64, Vec<u32>);

impl<T: Simd> Work<T> for Everything<'_> {
    type Output = Results;

    fn run(self, tier: T) -> Results {
        let Self(block, kept, bits) = self;
        let squeeze = tier.squeezer(kept);
        let mut out = [u32::MAX; BLOCK];
        let count = tier.write_offsets(bits, 1000, &mut out);
        (
            tier.ascii_masks(block),
            std::array::from_fn(|bit| tier.plane(block, bit as u32)),
            tier.squeeze(&squeeze, bits),
            tier.spread(&squeeze, bits),
            out[..count].to_vec(),
        )
    }
}

fn plainly(block: &[u8; BLOCK], kept: u64, bits: u64) -> Results {
    let mask = |is_in: &dyn Fn(u8) -> bool| {
        (0..BLOCK).fold(0, |mask, at| mask | u64::from(is_in(block[at])) << at)
    };
    let ascii = AsciiMasks {
        letter: mask(&|b| b.is_ascii_alphabetic()),
        bit_5: mask(&|b| b & 0x20 != 0),
        number: mask(&|b| b.is_ascii_digit()),
        space: mask(&|b| b == b' '),
        white: mask(&|b| matches!(b, b'\t'..=b'\r' | b' ')),
        newline: mask(&|b| matches!(b, b'\n' | b'\r')),
        apostrophe: mask(&|b| b == b'\''),
        slash: mask(&|b| b == b'/'),
        high: mask(&|b| b >= 0x80),
    };
    let positions: Vec<usize> = (0..BLOCK).filter(|at| kept >> at & 1 != 0).collect();
    let squeezed =
        positions.iter().enumerate().fold(0, |out, (to, from)| out | (bits >> from & 1) << to);
    let spread =
        positions.iter().enumerate().fold(0, |out, (from, to)| out | (bits >> from & 1) << to);
    let offsets = (0..64).filter(|at| bits >> at & 1 != 0).map(|at| 1000 + at).collect();
    (ascii, std::array::from_fn(|bit| mask(&|b| b >> bit & 1 != 0)), squeezed, spread, offsets)
}

#[test]
fn every_tier_gives_the_same() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..2000 {
        let block = std::array::from_fn(|at| match round {
            0..4 => (64 * round + at) as u8, // every byte
            _ => random() as u8,
        });
        let thin = |mask: u64, other: u64| if round % 3 == 0 { mask & other } else { mask };
        let kept = match round % 7 {
            0 => !0,
            1 => 0,
            _ => thin(random(), random()),
        };
        let bits = if round == 5 { !0 } else { thin(random(), random()) };
        let expected = plainly(&block, kept, bits);
        for tier in Tier::available() {
            let found = tier.force(|| cpu::run(Everything(&block, kept, bits)));
            assert_eq!(found, expected, "{tier:?}");
        }
    }
}

#[test]
fn squeezing_needs_no_pext() {
    // What AVX2 does on processors whose pext is slow.
    let bits = 0x0123_4567_89AB_CDEF;
    for kept in [0, 1, !0, 0xF0F0_F0F0_F0F0_F0F0, 0x8000_0000_0000_0001, 0x1234_5678_9ABC_DEF0] {
        let (.., squeezed, spread, _) = plainly(&[0; BLOCK], kept, bits);
        let squeeze = super::Squeeze::with_steps(kept);
        assert_eq!((squeeze.squeeze(bits), squeeze.spread(bits)), (squeezed, spread));
    }
}
