//! Tests eight ASCII bytes at once for a class of characters, in one `u64`.

/// A class whose ASCII characters are one range, perhaps in both cases. The default is empty.
#[derive(Clone, Copy, Default)]
pub(super) struct Lanes {
    /// Bit 5 of every byte if case is ignored.
    fold: u64,
    /// Added to a byte below 0x80, this sets its highest bit if the byte is in the range or above
    /// it.
    reach: u64,
    /// The same if the byte is above the range.
    pass: u64,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

impl Lanes {
    /// The class of the ASCII bytes whose entries have `bit`; `None` if they are not such a range.
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

    /// The number of bytes in the class before the first one that is not. Only ASCII bytes are.
    #[inline(always)]
    pub(super) fn run_len(self, bytes: [u8; 8]) -> usize {
        let bytes = u64::from_le_bytes(bytes);
        let low = (bytes | self.fold) & !HIGH;
        // No byte's sum reaches 0x100, so nothing carries into the next byte.
        let inside = (low + self.reach) & !(low + self.pass) & !bytes & HIGH;
        ((inside ^ HIGH).trailing_zeros() / 8) as usize
    }
}

#[cfg(test)]
mod tests;
