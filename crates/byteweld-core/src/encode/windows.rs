//! Long pre-tokens that have to be merged, a window at a time.
//!
//! A heap over megabytes waits for memory at every step; one over a few kilobytes does not. And windows can be
//! joined exactly. Whatever the merges are, a row of tokens is what its bytes merge to if every two neighbours,
//! by themselves, merge to just these two (docs/design/algorithm.md, section 8). That is so inside of what a window
//! merges to. So the last tokens of a window are taken back, the next window starts where they start, and if
//! its first token is the first that was taken back, then the two at the joint are neighbours in the window
//! before. If it is another one, which hardly happens, all is merged in one piece.
//!
//! A run of one character is window after window of the same bytes, of which only the first is merged.

use super::Encoder;
use super::longest::LONG;
use super::merge::Scratch;
use super::pairs::NONE;
use crate::error::Result;
use crate::reserve::reserve;

/// The bytes of a window: what is needed to merge it fits the nearer caches.
pub(super) const WINDOW: usize = 1 << 12;

/// So many tokens of a window are taken back, if it has twice as many: the end of the window is no end of the
/// text, but that is seldom felt further than a token or two.
const TAKEN_BACK: usize = 16;

/// Whether bytes are one character, again and again.
pub(super) fn is_run(bytes: &[u8]) -> bool {
    (1..=4.min(bytes.len() / 2)).any(|length| bytes.starts_with(&bytes[length..]))
}

impl Encoder {
    /// Puts into `scratch.ids` what bytes merge to. Every byte must have a token.
    pub(super) fn merge_in_windows(
        &self,
        window: usize,
        bytes: &[u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut row = Vec::new();
        let mut at = 0;
        let mut joint = None; // the token that must come first
        let mut merged = &[][..]; // what `scratch.ids` are of
        while at + window < bytes.len() {
            let here = &bytes[at..at + window];
            scratch.watch.worked(window)?;
            if here != merged {
                self.merge_window(here, scratch)?;
                merged = here;
            }
            let taken_back = TAKEN_BACK.min(scratch.ids.len() / 2);
            let (kept, others) = scratch.ids.split_at(scratch.ids.len() - taken_back);
            let length_of = |id: &u32| self.tokens.get(*id).map_or(0, <[u8]>::len);
            let length: usize = kept.iter().map(length_of).sum();
            let is_joined = joint.is_none_or(|id| kept.first() == Some(&id));
            // Where tokens are as long as that, windows would not come forward.
            if !is_joined || others.is_empty() || length < window / 4 {
                return self.merge_below(NONE, bytes, scratch);
            }
            reserve(&mut row, kept.len())?;
            row.extend_from_slice(kept);
            joint = others.first().copied();
            at += length;
        }
        self.merge_window(&bytes[at..], scratch)?;
        if joint.is_some_and(|id| scratch.ids.first() != Some(&id)) {
            return self.merge_below(NONE, bytes, scratch);
        }
        reserve(&mut row, scratch.ids.len())?;
        row.append(&mut scratch.ids);
        scratch.ids = row;
        Ok(())
    }

    fn merge_window(&self, bytes: &[u8], scratch: &mut Scratch) -> Result<()> {
        if bytes.len() <= LONG || !self.match_longest(bytes, scratch)? {
            self.merge_below(NONE, bytes, scratch)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
