//! Merges very long pre-tokens window by window.
//!
//! A heap over megabytes misses the cache at every step; one over a few kilobytes does not. Windows
//! can be joined exactly: a sequence of tokens is what its bytes merge to if and only if every two
//! neighbors are compatible (docs/design/algorithm.md, section 8), and those in the result of a
//! window are. So windows overlap by a few tokens, and two of them join if the first token of the
//! second one is the token of the first one at that offset.

use crate::decode::TokenTable;
use crate::error::Result;
use crate::reserve::reserve;
use crate::watch::Watch;

/// Bytes per window: what merging it needs fits the L1 and L2 caches.
pub(crate) const WINDOW_BYTES: usize = 1 << 12;

/// Tokens by which windows overlap, at most half of them. The end of a window is not the end of the
/// text, but that rarely affects more than the last token or two.
const OVERLAP_TOKENS: usize = 16;

/// Whether bytes are one character, repeated.
pub(crate) fn is_run(bytes: &[u8]) -> bool {
    (1..=4.min(bytes.len() / 2)).any(|length| bytes.starts_with(&bytes[length..]))
}

/// The ids of bytes that are merged window by window with `merge`; `None` if two windows do not
/// join, and the bytes have to be merged as a whole. This is rare.
pub(crate) fn merge_in_windows(
    bytes: &[u8],
    window_bytes: usize,
    tokens: &TokenTable,
    watch: &mut Watch,
    mut merge: impl FnMut(&[u8]) -> Result<Vec<u32>>,
) -> Result<Option<Vec<u32>>> {
    let mut all = Vec::new();
    let mut start = 0;
    let mut expected = None; // the first token of a window that joins
    let (mut merged, mut ids) = (&[][..], Vec::new()); // the last window, and its tokens
    loop {
        let is_last = start + window_bytes >= bytes.len();
        let window = if is_last { &bytes[start..] } else { &bytes[start..start + window_bytes] };
        watch.worked(window.len())?;
        // In a run of one character, all windows are equal.
        if window != merged {
            (merged, ids) = (window, merge(window)?);
        }
        let overlap = if is_last { 0 } else { OVERLAP_TOKENS.min(ids.len() / 2) };
        let (kept, overlapping) = ids.split_at(ids.len() - overlap);
        if expected.is_some_and(|id| kept.first() != Some(&id)) {
            return Ok(None);
        }
        reserve(&mut all, kept.len())?;
        all.extend_from_slice(kept);
        if is_last {
            return Ok(Some(all));
        }
        let length: usize = kept.iter().map(|&id| tokens.len_of(id)).sum();
        // With tokens so long, windows would hardly advance.
        if overlapping.is_empty() || length < window_bytes / 4 {
            return Ok(None);
        }
        expected = overlapping.first().copied();
        start += length;
    }
}

#[cfg(test)]
mod tests;
