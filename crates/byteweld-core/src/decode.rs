//! Ids to bytes.

use crate::error::{Error, Result};

/// Ids may be sparse, but a table as long as the highest id must stay in proportion to the tokens.
const MAX_SPARSENESS: usize = 64;
const FREE_IDS: usize = 1 << 20;

/// Every token's bytes by id.
pub struct Tokens {
    /// Where token `id` starts in `bytes`; it ends where the next one starts. Unused ids are empty.
    starts: Vec<usize>,
    bytes: Vec<u8>,
    /// The one token that is empty too (a rank file may hold such a one).
    empty: Option<u32>,
}

impl Tokens {
    /// Lays out tokens given as (id, bytes) in any order.
    pub fn new(tokens: &[(u32, Vec<u8>)]) -> Result<Self> {
        let highest = tokens.iter().map(|(id, _)| *id as usize).max().unwrap_or(0);
        if highest > FREE_IDS && highest / MAX_SPARSENESS > tokens.len() {
            return Err(Error::Vocabulary(format!(
                "the highest id is {highest}, but there are only {} tokens; ids are expected to be nearly dense",
                tokens.len()
            )));
        }
        let mut order: Vec<&(u32, Vec<u8>)> = tokens.iter().collect();
        order.sort_unstable_by_key(|(id, _)| *id);
        let mut starts = Vec::with_capacity(highest + 2);
        let mut bytes = Vec::with_capacity(tokens.iter().map(|(_, token)| token.len()).sum());
        for pair in order.windows(2) {
            if pair[0].0 == pair[1].0 {
                return Err(Error::Vocabulary(format!("id {} is given twice", pair[0].0)));
            }
        }
        let mut empty = None;
        for (id, token) in order {
            starts.resize(*id as usize + 1, bytes.len());
            if token.is_empty()
                && let Some(other) = empty.replace(*id)
            {
                return Err(Error::Vocabulary(format!("tokens {other} and {id} are empty")));
            }
            bytes.extend_from_slice(token);
        }
        starts.push(bytes.len());
        Ok(Self { starts, bytes, empty })
    }

    /// One more than the highest id.
    pub fn end(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// A token's bytes.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let start = *self.starts.get(id as usize)?;
        let end = *self.starts.get(id as usize + 1)?;
        (end > start || self.empty == Some(id)).then(|| &self.bytes[start..end])
    }

    /// Appends the bytes of all ids to `out`. Nothing is appended if one is unknown.
    pub fn decode_into(&self, ids: &[u32], out: &mut Vec<u8>) -> Result<()> {
        let length = out.len();
        for &id in ids {
            match self.get(id) {
                Some(token) => out.extend_from_slice(token),
                None => {
                    out.truncate(length);
                    return Err(Error::UnknownId(id));
                }
            }
        }
        Ok(())
    }
}
