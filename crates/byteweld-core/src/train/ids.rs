//! The ids that learned tokens get: counted up from the first, except that a token whose bytes have
//! an id already takes that one.

use super::Options;
use crate::error::{Error, Result};

/// Gives out ids.
pub(super) struct Ids<'o> {
    first: u32,
    given: usize,
    /// Ascending by length, then bytes: a look-up then compares bytes only at the right length.
    reserved: Vec<(&'o [u8], u32)>,
}

impl<'o> Ids<'o> {
    /// Refuses options under which two different tokens would have the same id.
    pub(super) fn new(options: &'o Options) -> Result<Self> {
        let mut reserved: Vec<(&[u8], u32)> =
            options.reserved.iter().map(|(bytes, id)| (bytes.as_slice(), *id)).collect();
        reserved.sort_unstable_by_key(|&(bytes, id)| (bytes.len(), bytes, id));
        reserved.dedup();
        if let Some(twice) = reserved.windows(2).find(|both| both[0].0 == both[1].0) {
            return Err(Error::Train(format!(
                "the reserved token {} has the ids {} and {}; give it one",
                repr(twice[0].0),
                twice[0].1,
                twice[1].1,
            )));
        }
        check_distinct(options, &reserved)?;
        Ok(Ids { first: options.first_id, given: 0, reserved })
    }

    /// How many new ids were given out.
    pub(super) fn given(&self) -> usize {
        self.given
    }

    /// The id of a token that has just been learned.
    pub(super) fn give(&mut self, bytes: &[u8]) -> Result<u32> {
        let key = (bytes.len(), bytes);
        if let Ok(index) = self.reserved.binary_search_by_key(&key, |&(b, _)| (b.len(), b)) {
            return Ok(self.reserved[index].1);
        }
        let id = u32::try_from(self.given).ok().and_then(|given| self.first.checked_add(given));
        let id = id.ok_or_else(|| {
            Error::Train(format!(
                "token {} after the first id {} would have an id above {}; ask for a smaller \
                 vocabulary or start at a smaller id",
                self.given,
                self.first,
                u32::MAX,
            ))
        })?;
        self.given += 1;
        Ok(id)
    }
}

/// Checks that base tokens, reserved tokens and tokens to be learned share no id.
fn check_distinct(options: &Options, reserved: &[(&[u8], u32)]) -> Result<()> {
    let base =
        (0..=u8::MAX).zip(&options.base_ids).filter_map(|(byte, id)| id.map(|id| (id, vec![byte])));
    let mut taken: Vec<(u32, Vec<u8>)> =
        base.chain(reserved.iter().map(|&(bytes, id)| (id, bytes.to_vec()))).collect();
    taken.sort_unstable();
    taken.dedup(); // a reserved token may be a base token
    if let Some(twice) = taken.windows(2).find(|both| both[0].0 == both[1].0) {
        return Err(Error::Train(format!(
            "id {} belongs to both {} and {}; each token needs an id of its own",
            twice[0].0,
            repr(&twice[0].1),
            repr(&twice[1].1),
        )));
    }
    let first = u64::from(options.first_id);
    let end = first.saturating_add(options.max_new_ids as u64);
    if let Some(merge) = options.known.iter().find(|m| (first..end).contains(&u64::from(m.new))) {
        return Err(Error::Train(format!(
            "id {} is that of a known merge but lies among the ids of learned tokens, {first} to {}; \
             let those start at a larger id",
            merge.new,
            end - 1,
        )));
    }
    if let Some((id, bytes)) = taken.iter().find(|(id, _)| (first..end).contains(&u64::from(*id))) {
        return Err(Error::Train(format!(
            "id {id} belongs to {} but lies among the ids of learned tokens, {first} to {}; \
             let those start at a larger id",
            repr(bytes),
            end - 1,
        )));
    }
    Ok(())
}

/// Bytes as Python shows them.
fn repr(bytes: &[u8]) -> String {
    format!("b'{}'", bytes.escape_ascii())
}
