//! A class of characters tested on eight ASCII bytes at once, in one machine word.

/// A class whose ASCII characters are one range, perhaps in both cases; by default none.
#[derive(Clone, Copy, Default)]
pub(super) struct Lanes {
    /// Bit 5 of every byte if case does not matter.
    fold: u64,
    /// Added to a byte below 0x80, this sets its highest bit if it is in the range or above it,
    reach: u64,
    /// and this if it is above.
    pass: u64,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

impl Lanes {
    /// The class of the ASCII bytes whose entry has `bit`; `None` if it is no such range.
    pub(super) fn new(table: &[u32; 256], bit: u32) -> Option<Self> {
        let is_in = |byte: u8| table[byte as usize] & bit != 0;
        let first = (0..128u8).find(|&b| is_in(b))?;
        let last = (0..128u8).rev().find(|&b| is_in(b))?;
        let lanes = |fold: u8, first: u8| Self {
            fold: fold as u64 * ONES,
            reach: (0x80 - first as u64) * ONES,
            pass: (0x7F - last as u64) * ONES,
        };
        let exact = |lanes: &Self| (0..128u8).all(|b| (lanes.run_len([b; 8]) == 8) == is_in(b));
        [lanes(0, first), lanes(0x20, first | 0x20)].into_iter().find(exact)
    }

    /// How many of the bytes, from the first on, are in the class. Bytes that are not ASCII are not.
    #[inline(always)]
    pub(super) fn run_len(self, bytes: [u8; 8]) -> usize {
        let bytes = u64::from_le_bytes(bytes);
        let low = (bytes | self.fold) & !HIGH;
        // Sums stay below 0x100 in every byte, so none carries into the next.
        let inside = (low + self.reach) & !(low + self.pass) & !bytes & HIGH;
        ((inside ^ HIGH).trailing_zeros() / 8) as usize
    }
}

#[cfg(test)]
mod tests;
