//! The trainer's input: pre-tokens and their counts.

use crate::counts::Counts;
use crate::error::Result;

/// Pre-tokens and their counts, in any order. The counts of a repeated pre-token add up; a
/// pre-token with count 0 is ignored.
pub trait PretokenCounts {
    /// Calls `each` with every pre-token and its count, up to the first error that it returns. The
    /// trainer calls this more than once and expects the same pre-tokens in the same order.
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()>;
}

impl PretokenCounts for Counts {
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(|(pretoken, count)| each(pretoken, count))
    }
}

impl PretokenCounts for &[(&[u8], u64)] {
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(|&(pretoken, count)| each(pretoken, count))
    }
}
