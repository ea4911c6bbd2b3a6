//! The pre-tokens removed by pruning, and how much their absence can matter.

/// Totals of removed pre-tokens.
///
/// Wherever a pair of tokens occurs, the last byte of the left token and the first byte of the
/// right token are adjacent. So removal lowers the count of any pair, at any step of a training, by
/// at most what it removes from one pair of bytes: [`Pruned::pair_error`] is the maximum of these.
pub struct Pruned {
    /// The number of distinct pre-tokens.
    pub distinct: u64,
    /// The sum of their counts.
    pub occurrences: u128,
    /// The number of bytes in these occurrences.
    pub bytes: u128,
    /// The number of occurrences of each pair of bytes.
    pairs: Vec<u128>,
}

impl Default for Pruned {
    fn default() -> Self {
        Self { distinct: 0, occurrences: 0, bytes: 0, pairs: vec![0; 1 << 16] }
    }
}

impl Pruned {
    /// Adds a removed pre-token.
    pub fn add(&mut self, pretoken: &[u8], count: u64) {
        self.distinct += 1;
        self.occurrences += u128::from(count);
        self.bytes += pretoken.len() as u128 * u128::from(count);
        for pair in pretoken.windows(2) {
            self.pairs[usize::from(pair[0]) << 8 | usize::from(pair[1])] += u128::from(count);
        }
    }

    /// An upper bound on how far the count of a pair can be too low.
    pub fn pair_error(&self) -> u128 {
        self.pairs.iter().copied().max().unwrap_or(0)
    }
}
