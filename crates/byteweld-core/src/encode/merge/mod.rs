//! Merging: turns the bytes of a pre-token into tokens.
//!
//! The pair of neighbors with the lowest rank merges, the leftmost among equals, until no pair has
//! a rank. That rule alone defines the result. How the next pair is found depends on the length:
//!
//! - A short sequence is scanned for the lowest rank at every step ([`short`]). Several sequences
//!   are interleaved, so that they wait for memory together ([`interleaved`]).
//! - A longer one keeps its pairs in a heap ([`heap`]): n log n.
//! - A very long one is merged in windows, which are joined exactly ([`windows`]). Most of these
//!   are not merged at all but matched (`encode/long`).
//!
//! Ranks come from a perfect hash of pairs ([`pairs`]). Whether two tokens stay as they are next to
//! each other is decided without merging ([`compatible`]), and so are the merges of a vocabulary
//! that has only ranks ([`recover`]).

mod compatible;
mod growing_pairs;
mod heap;
mod interleaved;
mod pairs;
mod recover;
mod short;
mod windows;

pub(crate) use compatible::are_compatible;
pub(crate) use heap::HeapScratch;
pub(crate) use interleaved::{Interleaved, LANES};
pub use pairs::PairLayout;
#[cfg(test)]
pub(crate) use pairs::Ranks;
pub(crate) use pairs::{NO_ID, NO_RANK, PairTable};
pub use recover::recover_merges;
pub(crate) use recover::{merges_are_proper, merges_of_ranks};
pub(crate) use short::{MAX_SHORT_IDS, merge_short};
pub(crate) use windows::{WINDOW_BYTES, is_run, merge_in_windows};

use crate::error::Result;
use crate::watch::Watch;

/// Merges `ids` in place, using only merges of a rank below `limit`.
pub(crate) fn merge(
    ids: &mut Vec<u32>,
    pairs: &PairTable,
    limit: u32,
    heap: &mut HeapScratch,
    watch: &mut Watch,
) -> Result<()> {
    if ids.len() <= MAX_SHORT_IDS {
        merge_short(ids, pairs, limit);
        return Ok(());
    }
    heap.merge(ids, pairs, limit, watch)
}
