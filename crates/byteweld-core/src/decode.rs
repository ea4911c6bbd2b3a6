//! Ids to bytes.
//!
//! A token is mostly shorter than 16 bytes, and a copy of 16 bytes is one instruction where one of any length is
//! a call: so 16 bytes are copied whatever the token's length, and the next token covers what was too much.

use crate::error::{Error, Result};

/// Ids may be sparse, but a table as long as the highest id must stay in proportion to the tokens.
const MAX_SPARSENESS: usize = 64;
const FREE_IDS: usize = 1 << 20;

/// What is copied for a token that is not longer. So many bytes can be read wherever a token starts.
const COPIED: usize = 16;

/// Every token's bytes by id.
pub struct Tokens {
    /// Where token `id` starts in `bytes`; it ends where the next one starts. Unused ids are empty.
    starts: Vec<u32>,
    /// The same for tokens that are copied at once, in one number: start << 8 | length. 0 for all others.
    at_once: Vec<u32>,
    /// All tokens, and [`COPIED`] bytes of nothing behind the last.
    bytes: Vec<u8>,
    /// The one token that is empty too (a rank file may hold such a one).
    empty: Option<u32>,
}

impl Tokens {
    /// Lays out tokens given as (id, bytes) in any order.
    pub fn new<B: AsRef<[u8]>>(tokens: &[(u32, B)]) -> Result<Self> {
        let highest = tokens.iter().map(|(id, _)| *id as usize).max().unwrap_or(0);
        if highest > FREE_IDS && highest / MAX_SPARSENESS > tokens.len() {
            return Err(Error::Vocabulary(format!(
                "the highest id is {highest}, but there are only {} tokens; ids are expected to be nearly dense",
                tokens.len()
            )));
        }
        let mut order: Vec<(u32, &[u8])> =
            tokens.iter().map(|(id, token)| (*id, token.as_ref())).collect();
        order.sort_unstable_by_key(|(id, _)| *id);
        let total: usize = order.iter().map(|(_, token)| token.len()).sum();
        if u32::try_from(total).is_err() {
            return Err(Error::Vocabulary(format!(
                "the tokens have {total} bytes; all together may have at most 2^32 - 1"
            )));
        }
        let mut starts = Vec::with_capacity(highest + 2);
        let mut bytes = Vec::with_capacity(total + COPIED);
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
        bytes.resize(bytes.len() + COPIED, 0);
        let at_once = starts.windows(2).map(|ends| at_once(ends[0], ends[1] - ends[0])).collect();
        Ok(Self { starts, at_once, bytes, empty })
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

    /// Where a token is in `bytes`, and its length.
    #[inline(always)]
    fn span(&self, id: u32) -> Option<(usize, usize)> {
        let &[start, end] = self.starts.get(id as usize..)?.first_chunk::<2>()?;
        (end > start || self.empty == Some(id)).then_some((start as usize, (end - start) as usize))
    }

    /// Appends the bytes of all ids to `out`. Nothing is appended if one is unknown.
    pub fn decode_into(&self, ids: &[u32], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + self.decoded_length(ids)?, 0);
        let end = self.write(ids, &mut out[start..]).map(|(_, end)| end);
        debug_assert_eq!(end, Ok(out.len() - start), "nobody changes the ids meanwhile");
        Ok(())
    }

    /// Writes the bytes of all ids to the start of `room`, whatever was there, and makes it larger where that is
    /// needed; returns how many they are. This is quickest, if there is room to be had again and again.
    pub fn decode_over(&self, ids: &[u32], room: &mut Vec<u8>) -> Result<usize> {
        let (mut done, mut end) = (0, 0);
        loop {
            let (more, bytes) =
                self.write(&ids[done..], &mut room[end..]).map_err(Error::UnknownId)?;
            done += more;
            end += bytes;
            if done == ids.len() {
                return Ok(end);
            }
            // At least the next token fits then.
            let next = self.get(ids[done]).map_or(0, <[u8]>::len);
            room.resize(2 * room.len() + next + 4 * ids.len() + COPIED, 0);
        }
    }

    /// How many bytes the ids have together.
    pub fn decoded_length(&self, ids: &[u32]) -> Result<usize> {
        let mut total = 0usize;
        for &id in ids {
            let Some((_, length)) = self.span(id) else { return Err(Error::UnknownId(id)) };
            // What does not fit in memory fails where room for it is asked for.
            total = total.saturating_add(length);
        }
        Ok(total)
    }

    /// Writes the bytes of all ids to `out`, which has room for exactly these; says whether it has, and all of
    /// it was written. (It has not if another thread changes the ids after they were measured.)
    #[must_use]
    pub fn decode_to(&self, ids: &[u32], out: &mut [u8]) -> bool {
        self.write(ids, out) == Ok((ids.len(), out.len()))
    }

    /// Writes the bytes of ids for as long as there is room; returns how many ids, and how many bytes. Else the
    /// id that is unknown.
    fn write(&self, ids: &[u32], out: &mut [u8]) -> std::result::Result<(usize, usize), u32> {
        let (mut done, mut end) = (0, 0);
        loop {
            let (ids_done, bytes) = self.write_at_once(&ids[done..], &mut out[end..]);
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

    /// The same up to four ids of which one is not copied at once. (By itself, all that it needs is in registers.)
    #[inline(never)]
    fn write_at_once(&self, ids: &[u32], out: &mut [u8]) -> (usize, usize) {
        let (at_once, bytes) = (&self.at_once[..], &self.bytes[..]);
        let packed = |id: u32| at_once.get(id as usize).copied().unwrap_or(0);
        let (mut done, mut end) = (0, 0);
        for four in ids.as_chunks::<4>().0 {
            let four = four.map(packed);
            let Some(room) = out.get_mut(end..end + 4 * COPIED) else { break };
            if four.contains(&0) {
                break;
            }
            let mut at = 0;
            for packed in four {
                let start = (packed >> 8) as usize;
                room[at..at + COPIED].copy_from_slice(&bytes[start..start + COPIED]);
                at += (packed & 0xFF) as usize;
            }
            end += at;
            done += 4;
        }
        (done, end)
    }
}

/// The number of a token that is copied at once; 0 for one that is empty, long, or too far away.
fn at_once(start: u32, length: u32) -> u32 {
    if length as usize <= COPIED && start < 1 << 24 && length > 0 { start << 8 | length } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(of: &[&[u8]]) -> Tokens {
        let tokens: Vec<_> = (0..).zip(of).map(|(id, token)| (2 * id, token.to_vec())).collect();
        Tokens::new(&tokens).unwrap()
    }

    fn decode(tokens: &Tokens, ids: &[u32]) -> Result<Vec<u8>> {
        let mut out = b"before".to_vec();
        tokens.decode_into(ids, &mut out)?;
        assert!(out.starts_with(b"before"));
        Ok(out.split_off(6))
    }

    fn decode_over(tokens: &Tokens, ids: &[u32], mut room: Vec<u8>) -> Result<Vec<u8>> {
        let length = tokens.decode_over(ids, &mut room)?;
        room.truncate(length);
        Ok(room)
    }

    /// What `decode_to` writes into room for `length` bytes, if it says that it did.
    fn decode_to(tokens: &Tokens, ids: &[u32], length: usize) -> Option<Vec<u8>> {
        let mut out = vec![0xAA; length];
        tokens.decode_to(ids, &mut out).then_some(out)
    }

    #[test]
    fn ids_between_tokens_are_unknown_and_one_token_may_be_empty() {
        let tokens = tokens(&[b"a", b"", b"bc"]);
        assert_eq!(tokens.end(), 5);
        assert_eq!(decode(&tokens, &[0, 2, 4, 0]).unwrap(), b"abca");
        for unknown in [1, 3, 5, u32::MAX] {
            assert!(tokens.get(unknown).is_none());
            assert!(
                matches!(decode(&tokens, &[0, unknown]), Err(Error::UnknownId(id)) if id == unknown)
            );
            assert!(!tokens.decode_to(&[unknown], &mut []));
            assert!(decode_over(&tokens, &[0, unknown], Vec::new()).is_err());
        }
    }

    #[test]
    fn room_that_is_too_small_or_too_large_is_noticed() {
        let tokens = tokens(&[b"abc", &[b'x'; 40]]);
        for ids in [&[0u32, 0][..], &[0, 2], &[2, 0], &[2]] {
            let expected = decode(&tokens, ids).unwrap();
            for length in 0..expected.len() + 40 {
                let written = decode_to(&tokens, ids, length);
                assert_eq!(written, (length == expected.len()).then(|| expected.clone()));
            }
        }
    }

    proptest! {
        #[test]
        fn copies_of_16_bytes_give_what_plain_ones_give(
            of in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..20),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
        ) {
            let tokens = tokens(&of.iter().map(|token| &token[..]).collect::<Vec<_>>());
            let picks: Vec<usize> = picks.iter().map(|pick| pick.index(of.len())).collect();
            let ids: Vec<u32> = picks.iter().map(|&pick| 2 * pick as u32).collect();
            let expected: Vec<u8> = picks.iter().flat_map(|&pick| of[pick].clone()).collect();
            prop_assert_eq!(tokens.decoded_length(&ids).unwrap(), expected.len());
            prop_assert_eq!(&decode(&tokens, &ids).unwrap(), &expected);
            for room in [0, 1, 20, 5000] {
                prop_assert_eq!(&decode_over(&tokens, &ids, vec![0xAA; room]).unwrap(), &expected);
            }
            prop_assert_eq!(decode_to(&tokens, &ids, expected.len()), Some(expected));
        }
    }
}
