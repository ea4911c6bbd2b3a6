//! What the block scanner needs of a processor: masks of 64 bytes, and bits to offsets.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(super) use portable::Squeeze;

/// The number of bytes in a block, and of bits in a mask.
pub(super) const BLOCK: usize = 64;

/// The ASCII characters of a block by class. Bit `i` of each mask stands for byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AsciiMasks {
    /// `A`-`Z` and `a`-`z`.
    pub(super) letter: u64,
    /// Bytes with bit 5 set: among letters, the lowercase ones.
    pub(super) bit_5: u64,
    /// `0`-`9`.
    pub(super) number: u64,
    pub(super) space: u64,
    /// Space, tab, line feed, vertical tab, form feed, carriage return.
    pub(super) white: u64,
    /// Line feed, carriage return.
    pub(super) newline: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Bytes that are not ASCII.
    pub(super) high: u64,
}

/// The operations that differ by tier. All tiers give the same results.
pub(super) trait Simd: Copy {
    /// Classifies the ASCII bytes of a block.
    fn ascii_masks(self, block: &[u8; BLOCK]) -> AsciiMasks;

    /// One bit of each byte.
    fn plane(self, block: &[u8; BLOCK], bit: u32) -> u64;

    /// Prepares to squeeze masks to the bits of `kept`.
    fn squeezer(self, kept: u64) -> Squeeze;

    /// The bits at the positions that are kept, moved together to the low end (`pext`).
    fn squeeze(self, squeeze: &Squeeze, bits: u64) -> u64;

    /// The reverse: moves the low bits to the positions that are kept (`pdep`).
    fn spread(self, squeeze: &Squeeze, bits: u64) -> u64;

    /// Writes `base` plus the position of each set bit, ascending; what follows them is undefined.
    /// Returns their number.
    fn write_offsets(self, bits: u64, base: u32, out: &mut [u32; BLOCK]) -> usize;
}

#[cfg(test)]
mod tests;
