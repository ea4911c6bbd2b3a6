//! Checks and replaces invalid UTF-8 in a stream.

use crate::error::Result;
use crate::memory::append;

const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// Appends `bytes` to `out` with every ill-formed sequence replaced. Returns the number of bytes at
/// the end that were not appended because they may start a character; 0 if `last`.
pub fn append_replaced(bytes: &[u8], last: bool, out: &mut Vec<u8>) -> Result<usize> {
    let mut done = 0;
    for chunk in bytes.utf8_chunks() {
        append(out, chunk.valid().as_bytes())?;
        done += chunk.valid().len();
        if chunk.invalid().is_empty() {
            continue;
        }
        if !last && done + chunk.invalid().len() == bytes.len() && may_continue(chunk.invalid()) {
            return Ok(chunk.invalid().len());
        }
        done += chunk.invalid().len();
        append(out, REPLACEMENT)?;
    }
    Ok(0)
}

/// The length of `bytes` after replacement.
pub(crate) fn replaced_length(bytes: &[u8]) -> usize {
    let length = |chunk: std::str::Utf8Chunk<'_>| {
        chunk.valid().len() + if chunk.invalid().is_empty() { 0 } else { REPLACEMENT.len() }
    };
    bytes.utf8_chunks().map(length).sum()
}

/// Whether invalid bytes may be the start of a character.
fn may_continue(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.error_len().is_none())
}

/// Where text that arrives in pieces is not UTF-8. The pieces are not kept.
#[derive(Default)]
pub(crate) struct Checker {
    /// The number of bytes before the first invalid or pending one.
    valid: u64,
    is_invalid: bool,
    /// The start of a character, for the next piece.
    pending: [u8; 4],
    length: usize,
}

impl Checker {
    /// Checks the next piece.
    pub(crate) fn add(&mut self, mut piece: &[u8]) {
        while self.length > 0 && !self.is_invalid {
            let Some((&byte, rest)) = piece.split_first() else { return };
            self.pending[self.length] = byte;
            self.length += 1;
            piece = rest;
            match std::str::from_utf8(&self.pending[..self.length]) {
                Ok(_) => {
                    self.valid += self.length as u64;
                    self.length = 0;
                }
                Err(error) => self.is_invalid = error.error_len().is_some(),
            }
        }
        if self.is_invalid {
            return;
        }
        match std::str::from_utf8(piece) {
            Ok(_) => self.valid += piece.len() as u64,
            Err(error) => {
                let rest = &piece[error.valid_up_to()..];
                self.valid += error.valid_up_to() as u64;
                self.is_invalid = error.error_len().is_some();
                if !self.is_invalid {
                    self.pending[..rest.len()].copy_from_slice(rest);
                    self.length = rest.len();
                }
            }
        }
    }

    /// The number of bytes before the first invalid one, if there was one.
    pub(crate) fn invalid_at(&self) -> Option<u64> {
        self.is_invalid.then_some(self.valid)
    }

    /// Ends the text: the number of bytes before the first one that is invalid, or that starts an
    /// incomplete character.
    pub(crate) fn finish(&mut self) -> Option<u64> {
        let ended = std::mem::take(self);
        (ended.is_invalid || ended.length > 0).then_some(ended.valid)
    }
}

#[cfg(test)]
mod tests;
