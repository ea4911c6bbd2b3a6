//! Alphabets that lack some bytes: merging a pre-token that may contain such bytes.

use std::ops::{ControlFlow, Range};

use super::Encoder;
use super::merge::NO_ID;
use super::scratch::Scratch;
use super::sink::{Sink, emit, emit_one};
use super::vocabulary::Gaps;
use crate::error::{Error, Result};
use crate::reserve::reserve;

impl Encoder {
    /// Encodes a pre-token, a range of a text. Any byte may lack a token.
    pub(super) fn encode_with_gaps(
        &self,
        text: &[u8],
        range: Range<usize>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        match self.whole.get(&text[range.clone()], &self.tokens) {
            Some(id) => emit_one(sink, id, range),
            None => self.merge_pretoken(&text[range.clone()], range.start, sink, scratch),
        }
    }

    /// Merges a pre-token at an offset of the text. Any byte may lack a token.
    pub(super) fn merge_pretoken(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        match self.gaps {
            _ if !self.has_gaps => self.merge_known(pretoken, offset, sink, scratch),
            Gaps::Characters => self.merge_with_characters(pretoken, offset, sink, scratch),
            Gaps::Bytes => self.merge_with_bytes(pretoken, offset, sink, scratch),
        }
    }

    /// Merges bytes that all have a token.
    fn merge_known(
        &self,
        bytes: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        self.merge_bytes(bytes, scratch)?;
        emit(sink, &scratch.ids, offset..offset + bytes.len(), &self.tokens)
    }

    pub(super) fn is_known(&self, byte: u8) -> bool {
        self.byte_ids[usize::from(byte)] != NO_ID
    }

    /// With [`Gaps::Characters`]: a character with an unknown byte is one unk token.
    fn merge_with_characters(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut at = 0;
        while at < pretoken.len() {
            let rest = &pretoken[at..];
            let start = offset + at;
            let known = rest.iter().take_while(|&&byte| self.is_known(byte)).count();
            let flow = if known > 0 {
                at += known;
                self.merge_known(&rest[..known], start, sink, scratch)?
            } else {
                let length = character_length(rest);
                let Some(unk) = self.unk else {
                    let character = match std::str::from_utf8(&rest[..length]) {
                        Ok(character) => character.to_owned(),
                        Err(_) => format!("\\x{:02x}", rest[0]),
                    };
                    return Err(Error::OutsideAlphabet { character, offset: start });
                };
                scratch.watch.worked(length)?;
                at += length;
                emit_one(sink, unk, start..start + length)?
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// With [`Gaps::Bytes`]: each unknown byte is one unk token. If there is none, it is dropped,
    /// and the bytes around it are neighbors.
    fn merge_with_bytes(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let Some(unk) = self.unk else {
            return self.merge_dropping_bytes(pretoken, offset, sink, scratch);
        };
        let mut start = offset;
        for run in pretoken.chunk_by(|&a, &b| self.is_known(a) && self.is_known(b)) {
            let flow = if self.is_known(run[0]) {
                self.merge_known(run, start, sink, scratch)?
            } else {
                emit_one(sink, unk, start..start + 1)?
            };
            if flow.is_break() {
                return Ok(flow);
            }
            start += run.len();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn merge_dropping_bytes(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        // The offsets of the known bytes, and these bytes.
        let (mut offsets, mut known) = (Vec::new(), Vec::new());
        reserve(&mut offsets, pretoken.len() + 1)?;
        reserve(&mut known, pretoken.len())?;
        offsets.extend((0..pretoken.len()).filter(|&at| self.is_known(pretoken[at])));
        known.extend(offsets.iter().map(|&at| pretoken[at]));
        offsets.push(pretoken.len());
        self.merge_bytes(&known, scratch)?;
        // A token covers the dropped bytes after it, and the first one those before it.
        let (mut at, mut start) = (0, 0);
        for &id in &scratch.ids {
            at += self.tokens.len_of(id);
            let end = offsets.get(at).copied().unwrap_or(pretoken.len());
            if emit_one(sink, id, offset + start..offset + end)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            start = end;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The length of the first character, or 1 if it is not valid UTF-8.
pub(super) fn character_length(bytes: &[u8]) -> usize {
    let window = &bytes[..bytes.len().min(4)];
    match window.utf8_chunks().next() {
        Some(chunk) => chunk.valid().chars().next().map_or(1, char::len_utf8),
        None => 1,
    }
}
