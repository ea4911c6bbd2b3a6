//! Whether two tokens side by side stay two tokens: the one question behind the last merge of a token
//! (`recover.rs`) and behind encoding without merging (`longest.rs`).

use super::pairs::Ranks;

/// Whether the bytes of two tokens merge to just these two by the merges of a rank below `limit`, where the
/// bytes of each of the two, by themselves, merge to it.
///
/// `made` gives one more than the rank of the merge that makes a token, and 0 for a byte; `parts` gives the two
/// tokens which that merge joins, and is asked once for each step.
///
/// They stay apart unless something is joined across the border between them. What stands beside the border
/// changes when the token there is merged into a longer one, so, going back in time from the two tokens, it
/// is the parts of whichever was made later. A pair across the border is joined if its rank comes before the
/// merge that took one of the two away; of equal ranks, the leftmost goes first.
#[inline(always)]
pub(super) fn stay_apart(
    pairs: &impl Ranks,
    (mut left, mut right): (u32, u32),
    mut limit: u32,
    made: impl Fn(u32) -> u32,
    mut parts: impl FnMut(u32) -> (u32, u32),
) -> bool {
    loop {
        if pairs.rank(left, right) < limit {
            return false;
        }
        let (before, after) = (made(left), made(right));
        if before > after {
            limit = before - 1; // the merge on the left would go before an equal one
            left = parts(left).1;
        } else if after > 0 {
            limit = after; // an equal one would go before the merge on the right
            right = parts(right).0;
        } else {
            return true;
        }
    }
}
