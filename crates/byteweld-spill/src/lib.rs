//! Counts on disk: sorted runs are written to a spool, merged, and the result is read sequentially,
//! never held in memory.
//!
//! A [`Spool`] is an unnamed temporary file, which disappears when the process ends for any reason.
//! A [`Section`] is a sorted sequence of pre-tokens and counts in a spool. A *run* has one section
//! for each of sixteen parts, and so has [`SortedCounts`], the sum of many runs. The part of a
//! pre-token is also defined by the format of saved counts: see [`part_of`].

#![forbid(unsafe_code)]

mod error;
mod merge;
mod runs;
mod section;
mod sorted_counts;
mod spool;
#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use merge::{MergeCursor, MergeOptions, Source, merge};
pub use runs::Runs;
pub use section::{Reader, Section, Writer};
pub use sorted_counts::{SortedCounts, write_run};
pub use spool::Spool;

/// The number of parts that counts are divided into.
pub const PARTS: usize = 16;

/// The part of a pre-token: XXH3 (64 bits, seed 0) of its bytes, modulo [`PARTS`].
#[inline]
pub fn part_of(pretoken: &[u8]) -> usize {
    (twox_hash::XxHash3_64::oneshot(pretoken) % PARTS as u64) as usize
}
