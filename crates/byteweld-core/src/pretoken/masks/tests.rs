//! Every SIMD tier computes the same masks.

use super::*;

#[test]
fn all_tiers_give_the_same_masks() {
    let blocks: Vec<[u8; BLOCK]> = (0..=255u8)
        .flat_map(|byte| [37, 1, 64].map(|step| std::array::from_fn(|i| (i * step) as u8 ^ byte)))
        .collect();
    let mut has_slashes = false;
    for blocks in blocks.chunks(BLOCKS - 3) {
        let mut expected = Rows::NONE;
        let high = Tier::Plain.fill(blocks, 3, true, &mut expected);
        has_slashes |= expected.slash != Row::NONE;
        for tier in Tier::all() {
            let mut rows = Rows::NONE;
            assert_eq!(tier.fill(blocks, 3, true, &mut rows), high, "{tier:?}");
            assert_eq!(rows, expected, "{tier:?}");
            // What is left out stays as it was.
            tier.fill(blocks, 3, false, &mut rows);
            assert_eq!(rows, expected, "{tier:?}");
        }
    }
    assert!(has_slashes);
}

#[test]
fn a_plane_is_one_bit_of_each_byte() {
    let block: [u8; BLOCK] = std::array::from_fn(|i| (i * i * 37 + 11) as u8);
    for tier in Tier::all() {
        for bit in 0..8 {
            let plane = tier.plane(&block, bit);
            for (i, byte) in block.iter().enumerate() {
                assert_eq!(plane >> i & 1, u64::from(byte >> bit & 1), "{tier:?}");
            }
        }
    }
}
