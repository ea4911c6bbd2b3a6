//! Whether two tokens are compatible: next to each other, their bytes merge to just these two.
//!
//! This decides the last merge of a token (`recover.rs`) and encoding by longest matches
//! (`long/longest_match.rs`). The proof is in docs/design/algorithm.md, section 8.

use super::pairs::Ranks;

/// Whether the bytes of two tokens merge to just these two by the merges of a rank below `limit`.
/// The bytes of each token alone must merge to it.
///
/// `made_at` gives one more than the rank of the merge that makes a token, and 0 for a byte.
/// `parts` gives the two tokens of that merge, and is called once per step.
///
/// Two tokens are compatible unless a merge crosses the boundary between them. The tokens at the
/// boundary are traced back in time: whichever was made later is replaced by its part there. A pair
/// across the boundary merges if its rank comes before the merge that ended its existence.
#[inline(always)]
pub(crate) fn are_compatible(
    pairs: &impl Ranks,
    (mut left, mut right): (u32, u32),
    mut limit: u32,
    made_at: impl Fn(u32) -> u32,
    mut parts: impl FnMut(u32) -> (u32, u32),
) -> bool {
    loop {
        if pairs.rank(left, right) < limit {
            return false;
        }
        // Of equal ranks, the leftmost merges first.
        let (left_made_at, right_made_at) = (made_at(left), made_at(right));
        if left_made_at > right_made_at {
            limit = left_made_at - 1; // the merge on the left precedes an equal one
            left = parts(left).1;
        } else if right_made_at > 0 {
            limit = right_made_at; // an equal one precedes the merge on the right
            right = parts(right).0;
        } else {
            return true;
        }
    }
}
