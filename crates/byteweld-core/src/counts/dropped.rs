//! What pruning left out, and how much it can matter.

/// Pre-tokens that were left out.
///
/// Where a pair of tokens stands, the last byte of the left one and the first byte of the right one stand
/// side by side. So what was left out takes from the count of any pair, at any step of a training, at most
/// what it takes from one pair of bytes: [`Dropped::pair_error`] is the largest of these.
pub struct Dropped {
    /// How many distinct pre-tokens.
    pub distinct: u64,
    /// How often they occurred, all together.
    pub occurrences: u128,
    /// How many bytes that is.
    pub bytes: u128,
    /// By pair of bytes: how often it stood in them.
    pairs: Vec<u128>,
}

impl Default for Dropped {
    fn default() -> Self {
        Self { distinct: 0, occurrences: 0, bytes: 0, pairs: vec![0; 1 << 16] }
    }
}

impl Dropped {
    /// Adds a pre-token that is left out.
    pub fn add(&mut self, pretoken: &[u8], count: u64) {
        self.distinct += 1;
        self.occurrences += u128::from(count);
        self.bytes += pretoken.len() as u128 * u128::from(count);
        for pair in pretoken.windows(2) {
            self.pairs[usize::from(pair[0]) << 8 | usize::from(pair[1])] += u128::from(count);
        }
    }

    /// By how much the count of a pair may be too small, at most.
    pub fn pair_error(&self) -> u128 {
        self.pairs.iter().copied().max().unwrap_or(0)
    }
}
