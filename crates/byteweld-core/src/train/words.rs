//! Where the trainer's text comes from.

use crate::counts::Counts;
use crate::error::Result;

/// Pretokens and how often each occurs, in any order. A pretoken that comes twice counts as often as both
/// say; one with count 0 is ignored.
pub trait Words {
    /// Calls `each` with every pretoken and its count, and ends with the first error that it returns. It is
    /// called more than once and must give the same pretokens every time, in the same order.
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()>;
}

impl Words for Counts {
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        for (pretoken, count) in self.iter() {
            each(pretoken, count)?;
        }
        Ok(())
    }
}

impl Words for &[(&[u8], u64)] {
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        for &(pretoken, count) in *self {
            each(pretoken, count)?;
        }
        Ok(())
    }
}
