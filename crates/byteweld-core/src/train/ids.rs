//! Assigns ids to learned tokens, counting up from the first id; a token with reserved bytes takes
//! the reserved id.

use super::Options;
use crate::error::{Error, Result};

/// Assigns ids.
pub(super) struct Ids<'o> {
    first: u32,
    assigned: usize,
    /// Sorted by length, then bytes, so that a lookup only compares bytes of the right length.
    reserved: Vec<(&'o [u8], u32)>,
}

impl<'o> Ids<'o> {
    /// Fails if two different tokens would have the same id.
    pub(super) fn new(options: &'o Options) -> Result<Self> {
        let mut reserved: Vec<(&[u8], u32)> =
            options.reserved.iter().map(|(bytes, id)| (bytes.as_slice(), *id)).collect();
        reserved.sort_unstable_by_key(|&(bytes, id)| (bytes.len(), bytes, id));
        reserved.dedup();
        if let Some(twice) = reserved.windows(2).find(|both| both[0].0 == both[1].0) {
            return Err(Error::Train(format!(
                "the reserved token {} has the ids {} and {}; pass only one",
                repr(twice[0].0),
                twice[0].1,
                twice[1].1,
            )));
        }
        check_distinct(options, &reserved)?;
        Ok(Ids { first: options.first_id, assigned: 0, reserved })
    }

    /// The number of new ids assigned so far.
    pub(super) fn assigned(&self) -> usize {
        self.assigned
    }

    /// Returns the id of a newly learned token.
    pub(super) fn assign(&mut self, bytes: &[u8]) -> Result<u32> {
        let key = (bytes.len(), bytes);
        if let Ok(index) = self.reserved.binary_search_by_key(&key, |&(b, _)| (b.len(), b)) {
            return Ok(self.reserved[index].1);
        }
        let id = u32::try_from(self.assigned).ok().and_then(|given| self.first.checked_add(given));
        let id = id.ok_or_else(|| {
            Error::Train(format!(
                "learned token {}, counted from id {}, would have an id above {}; \
                 train a smaller vocabulary or start at a smaller id",
                self.assigned,
                self.first,
                u32::MAX,
            ))
        })?;
        self.assigned += 1;
        Ok(id)
    }
}

/// Checks that base, reserved, known and learned tokens share no id.
fn check_distinct(options: &Options, reserved: &[(&[u8], u32)]) -> Result<()> {
    let base =
        (0..=u8::MAX).zip(&options.base_ids).filter_map(|(byte, id)| id.map(|id| (id, vec![byte])));
    let mut taken: Vec<(u32, Vec<u8>)> =
        base.chain(reserved.iter().map(|&(bytes, id)| (id, bytes.to_vec()))).collect();
    taken.sort_unstable();
    taken.dedup(); // a reserved token may be a base token
    if let Some(twice) = taken.windows(2).find(|both| both[0].0 == both[1].0) {
        return Err(Error::Train(format!(
            "id {} belongs to both {} and {}; each token must have a unique id",
            twice[0].0,
            repr(&twice[0].1),
            repr(&twice[1].1),
        )));
    }
    let first = u64::from(options.first_id);
    let end = first.saturating_add(options.max_new_ids as u64);
    if let Some(merge) = options.known.iter().find(|m| (first..end).contains(&u64::from(m.new))) {
        return Err(Error::Train(format!(
            "id {} belongs to a known merge but is in the range of learned ids, {first} to {}; \
             start learned ids at a larger id",
            merge.new,
            end - 1,
        )));
    }
    if let Some((id, bytes)) = taken.iter().find(|(id, _)| (first..end).contains(&u64::from(*id))) {
        return Err(Error::Train(format!(
            "id {id} belongs to {} but is in the range of learned ids, {first} to {}; \
             start learned ids at a larger id",
            repr(bytes),
            end - 1,
        )));
    }
    Ok(())
}

/// Formats bytes as Python's `repr` does.
fn repr(bytes: &[u8]) -> String {
    format!("b'{}'", bytes.escape_ascii())
}
