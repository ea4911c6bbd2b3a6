//! Encodes one pre-token that is not in the cache: as a whole token, by merging its bytes, or, if
//! it is long, by longest matches. The ids go to `scratch.ids`. Every byte must have a token
//! (`gaps.rs` is for other alphabets).

use super::Encoder;
use super::long::{MAX_MERGED_BYTES, Matcher, MergeTables};
use super::merge::{NO_RANK, WINDOW_BYTES, is_run, merge, merge_in_windows};
use super::scratch::Scratch;
use crate::error::Result;
use crate::pretoken::too_long;
use crate::reserve::reserve;

impl Encoder {
    /// Encodes a pre-token, or a segment of one that was split at cut points, which is never looked
    /// up as a whole token.
    pub(super) fn encode_one(
        &self,
        pretoken: &[u8],
        is_segment: bool,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if !is_segment && let Some(id) = self.whole.get(pretoken, &self.tokens) {
            scratch.ids.clear();
            scratch.ids.push(id);
            return Ok(());
        }
        self.merge_bytes(pretoken, scratch)
    }

    /// Merges bytes, in the way that is fastest for their number.
    pub(super) fn merge_bytes(&self, bytes: &[u8], scratch: &mut Scratch) -> Result<()> {
        if bytes.len() >= u32::MAX as usize {
            return Err(too_long());
        }
        if bytes.len() <= MAX_MERGED_BYTES {
            self.merge_below(NO_RANK, bytes, scratch)
        } else if is_run(bytes) || !self.match_longest(bytes, scratch)? {
            self.merge_in_windows(WINDOW_BYTES, bytes, scratch)
        } else {
            Ok(())
        }
    }

    /// Finds what long bytes merge to without merging them. Returns false if they have to be
    /// merged.
    fn match_longest(&self, bytes: &[u8], scratch: &mut Scratch) -> Result<bool> {
        let Self { byte_ids, pairs, tokens, .. } = self;
        let tables = MergeTables { byte_ids, pairs, tokens };
        let Scratch { ids, matching, watch, .. } = scratch;
        match self.matcher.get(bytes.len(), || Matcher::new(tables)) {
            Some(matcher) => matcher.encode(bytes, tables, ids, matching, watch),
            None => Ok(false),
        }
    }

    /// Merges long bytes window by window.
    pub(super) fn merge_in_windows(
        &self,
        window_bytes: usize,
        bytes: &[u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut watch = scratch.watch.clone();
        let merge_window = |window: &[u8]| {
            if window.len() <= MAX_MERGED_BYTES || !self.match_longest(window, scratch)? {
                self.merge_below(NO_RANK, window, scratch)?;
            }
            Ok(std::mem::take(&mut scratch.ids))
        };
        match merge_in_windows(bytes, window_bytes, &self.tokens, &mut watch, merge_window)? {
            Some(ids) => scratch.ids = ids,
            None => self.merge_below(NO_RANK, bytes, scratch)?,
        }
        Ok(())
    }

    /// Merges bytes by the merges of a rank below `limit`, with a heap if there are many.
    pub(super) fn merge_below(
        &self,
        limit: u32,
        bytes: &[u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { ids, heap, watch, .. } = scratch;
        ids.clear();
        reserve(ids, bytes.len())?;
        ids.extend(bytes.iter().map(|&byte| self.byte_ids[byte as usize]));
        merge(ids, &self.pairs, limit, heap, watch)
    }
}
