//! Merges from a rank file.
//!
//! Merging a token's own bytes with all lower-ranked merges must leave exactly two parts: the pair that made
//! it. If that holds for every token, the list of those pairs in rank order is the same tokenizer: while a
//! text is merged, the parts inside the span of a token evolve as they do alone as long as nothing crosses
//! the span's ends, and alone there is one state of two parts; so no other pair can ever make the token.
//! (docs/algorithm.md has the argument in full.)

use super::merge::Scratch;
use super::pairs::NONE;
use super::{Encoder, Ranking, Vocabulary};
use crate::error::Result;

/// The merges of a vocabulary ranked by id, as (left, right, new) in rank order; `None` if some token is not
/// made of exactly two parts.
pub fn recover_merges(tokens: Vec<(u32, Vec<u8>)>) -> Result<Option<Vec<(u32, u32, u32)>>> {
    let mut order: Vec<u32> =
        tokens.iter().filter(|(_, token)| token.len() > 1).map(|(id, _)| *id).collect();
    order.sort_unstable();
    let encoder = Encoder::new(Vocabulary::new(tokens, Vec::new(), Ranking::Ids))?;
    let mut scratch = Scratch::default();
    let mut merges = Vec::with_capacity(order.len());
    for id in order {
        let token = encoder.tokens.get(id).unwrap_or_default();
        if token.iter().any(|&byte| encoder.byte_ids[byte as usize] == NONE) {
            return Ok(None);
        }
        encoder.merge_bytes(token, id, &mut scratch)?;
        match scratch.ids[..] {
            [left, right] => merges.push((left, right, id)),
            _ => return Ok(None),
        }
    }
    Ok(Some(merges))
}
