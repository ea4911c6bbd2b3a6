//! Decodes ids to bytes.
//!
//! Most tokens are shorter than 16 bytes, and copying exactly 16 bytes is one instruction where
//! copying a variable length is a call. So 16 bytes are copied for any short token, and the next
//! token overwrites the excess.

use crate::error::{Error, Result};
use crate::reserve::reserve;
use crate::watch::Watch;

/// Ids may be sparse, but the table, as long as the highest id, must stay in proportion to the
/// tokens.
const MAX_SPARSENESS: usize = 64;
const EXTRA_IDS: usize = 1 << 20;

/// The fixed copy size for short tokens. This many bytes can be read wherever a token starts.
const COPY_BYTES: usize = 16;

/// Number of ids decoded between two checks for an interrupt.
const WATCHED_IDS: usize = 1 << 20;

/// The bytes of every token, by id.
pub struct TokenTable {
    /// The start of each id's token in `bytes`; it ends where the next one starts. Unused ids are
    /// empty.
    starts: Vec<u32>,
    /// The spans of short tokens packed as start << 8 | length; 0 for all others.
    short_spans: Vec<u32>,
    /// All tokens, and [`COPY_BYTES`] bytes of padding.
    bytes: Vec<u8>,
    /// The id of the empty token, if there is one (rank files allow it).
    empty: Option<u32>,
}

impl TokenTable {
    /// Builds the table from (id, bytes) in any order.
    pub fn new<B: AsRef<[u8]>>(tokens: &[(u32, B)]) -> Result<Self> {
        let highest = tokens.iter().map(|(id, _)| *id as usize).max().unwrap_or(0);
        if highest > EXTRA_IDS && highest / MAX_SPARSENESS > tokens.len() {
            return Err(Error::Vocabulary(format!(
                "the highest id is {highest}, but there are only {} tokens; ids must be nearly dense",
                tokens.len()
            )));
        }
        let mut order: Vec<(u32, &[u8])> =
            tokens.iter().map(|(id, token)| (*id, token.as_ref())).collect();
        order.sort_unstable_by_key(|(id, _)| *id);
        let total: usize = order.iter().map(|(_, token)| token.len()).sum();
        if u32::try_from(total).is_err() {
            return Err(Error::Vocabulary(format!(
                "the tokens have {total} bytes in total; at most 2^32 - 1 are supported"
            )));
        }
        let mut starts = Vec::with_capacity(highest + 2);
        let mut bytes = Vec::with_capacity(total + COPY_BYTES);
        for pair in order.windows(2) {
            if pair[0].0 == pair[1].0 {
                return Err(Error::Vocabulary(format!("id {} is given twice", pair[0].0)));
            }
        }
        let mut empty = None;
        for (id, token) in order {
            starts.resize(id as usize + 1, bytes.len() as u32);
            if token.is_empty()
                && let Some(other) = empty.replace(id)
            {
                return Err(Error::Vocabulary(format!("tokens {other} and {id} are empty")));
            }
            bytes.extend_from_slice(token);
        }
        starts.push(bytes.len() as u32);
        bytes.resize(bytes.len() + COPY_BYTES, 0);
        let short_spans =
            starts.windows(2).map(|ends| short_span(ends[0], ends[1] - ends[0])).collect();
        Ok(Self { starts, short_spans, bytes, empty })
    }

    /// One more than the highest id.
    pub fn end(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// A token's bytes.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let (start, length) = self.span(id)?;
        Some(&self.bytes[start..start + length])
    }

    /// The number of bytes of a token; 0 for an unknown id.
    pub(crate) fn len_of(&self, id: u32) -> usize {
        self.span(id).map_or(0, |(_, length)| length)
    }

    /// The start of a token in `bytes`, and its length.
    #[inline(always)]
    fn span(&self, id: u32) -> Option<(usize, usize)> {
        let &[start, end] = self.starts.get(id as usize..)?.first_chunk::<2>()?;
        (end > start || self.empty == Some(id)).then_some((start as usize, (end - start) as usize))
    }

    /// Appends the bytes of all ids to `out`; appends nothing if one is unknown.
    pub fn decode_into(&self, ids: &[u32], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let length = self.decoded_length(ids, &mut Watch::default())?;
        reserve(out, length)?;
        out.resize(start + length, 0);
        let end = self.write(ids, &mut out[start..]).map(|(_, end)| end);
        debug_assert_eq!(end, Ok(out.len() - start), "the ids cannot change in between");
        Ok(())
    }

    /// Overwrites the start of `buffer` with the bytes of all ids, growing it as needed; returns
    /// their number. The fastest way if the buffer is reused.
    pub fn decode_over(&self, ids: &[u32], buffer: &mut Vec<u8>) -> Result<usize> {
        let (mut done, mut end) = (0, 0);
        loop {
            let (more, bytes) =
                self.write(&ids[done..], &mut buffer[end..]).map_err(Error::UnknownId)?;
            done += more;
            end += bytes;
            if done == ids.len() {
                return Ok(end);
            }
            // Enough for at least the next token.
            let next = self.len_of(ids[done]);
            let more = buffer.len() + next + 4 * ids.len() + COPY_BYTES;
            reserve(buffer, more)?;
            buffer.resize(buffer.len() + more, 0);
        }
    }

    /// The number of bytes that the ids decode to.
    pub fn decoded_length(&self, ids: &[u32], watch: &mut Watch) -> Result<usize> {
        let mut total = 0usize;
        for ids in ids.chunks(WATCHED_IDS) {
            watch.look()?;
            for &id in ids {
                let Some((_, length)) = self.span(id) else { return Err(Error::UnknownId(id)) };
                // A length that does not fit in memory fails on allocation.
                total = total.saturating_add(length);
            }
        }
        Ok(total)
    }

    /// Writes the bytes of all ids to `out` and returns whether they fill it exactly. (They do not
    /// if another thread changed the ids after they were measured.)
    pub fn decode_to(&self, ids: &[u32], out: &mut [u8], watch: &mut Watch) -> Result<bool> {
        let mut end = 0;
        for ids in ids.chunks(WATCHED_IDS) {
            watch.look()?;
            match self.write(ids, &mut out[end..]) {
                Ok((done, bytes)) if done == ids.len() => end += bytes,
                _ => return Ok(false),
            }
        }
        Ok(end == out.len())
    }

    /// Writes the bytes of ids as long as they fit; returns the number of ids and of bytes, or the
    /// first unknown id.
    fn write(&self, ids: &[u32], out: &mut [u8]) -> std::result::Result<(usize, usize), u32> {
        let (mut done, mut end) = (0, 0);
        loop {
            let (ids_done, bytes) = self.write_short(&ids[done..], &mut out[end..]);
            done += ids_done;
            end += bytes;
            let Some(&id) = ids.get(done) else { return Ok((done, end)) };
            let token = self.get(id).ok_or(id)?;
            let Some(to) = out.get_mut(end..end + token.len()) else { return Ok((done, end)) };
            to.copy_from_slice(token);
            done += 1;
            end += token.len();
        }
    }

    /// The same for short tokens, in groups of four; stops at a group with another token. (A
    /// separate function, so that everything stays in registers.)
    #[inline(never)]
    fn write_short(&self, ids: &[u32], out: &mut [u8]) -> (usize, usize) {
        let (short_spans, bytes) = (&self.short_spans[..], &self.bytes[..]);
        let packed = |id: u32| short_spans.get(id as usize).copied().unwrap_or(0);
        let (mut done, mut end) = (0, 0);
        for four in ids.as_chunks::<4>().0 {
            let four = four.map(packed);
            let Some(window) = out.get_mut(end..end + 4 * COPY_BYTES) else { break };
            if four.contains(&0) {
                break;
            }
            let mut at = 0;
            for packed in four {
                let start = (packed >> 8) as usize;
                window[at..at + COPY_BYTES].copy_from_slice(&bytes[start..start + COPY_BYTES]);
                at += (packed & 0xFF) as usize;
            }
            end += at;
            done += 4;
        }
        (done, end)
    }
}

/// The packed span of a short token; 0 if it is empty, long, or starts beyond 24 bits.
fn short_span(start: u32, length: u32) -> u32 {
    if length as usize <= COPY_BYTES && start < 1 << 24 && length > 0 {
        start << 8 | length
    } else {
        0
    }
}

#[cfg(test)]
mod tests;
