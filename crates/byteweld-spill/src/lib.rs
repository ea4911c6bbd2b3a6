//! Counts on disk: sorted runs go into a spool, are merged, and the result is walked, never held in memory.
//!
//! A [`Spool`] is a file that has no name, so that it is gone when the process is, however that ends. A
//! [`Section`] is pre-tokens with their counts in order of the bytes, somewhere in a spool. A *run* is one
//! section for each of sixteen parts, and so is [`Sorted`], the sum of many runs. Which part a pre-token
//! belongs to is a fact of the saved format as well: see [`part_of`].

#![forbid(unsafe_code)]

mod error;
mod merge;
mod runs;
mod section;
mod sorted;
mod spool;
#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use merge::{Cursor, MergeOptions, Source, merge};
pub use runs::Runs;
pub use section::{Reader, Section, Writer};
pub use sorted::{Sorted, sections};
pub use spool::Spool;

/// How many parts counts are divided into.
pub const PARTS: usize = 16;

/// The part that a pre-token belongs to: XXH3 (64 bits, seed 0) of its bytes, modulo 16.
#[inline]
pub fn part_of(pretoken: &[u8]) -> usize {
    (twox_hash::XxHash3_64::oneshot(pretoken) % PARTS as u64) as usize
}
