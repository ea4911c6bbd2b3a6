//! A batch in which long pre-tokens are split at cut points.

use std::ops::Range;

use super::cache::{MAX_BATCH, MAX_KEY_BYTES, SEGMENT_END};
use super::long::CutPoints;

/// The bounds of a batch of pre-tokens and segments, and which of them are longer than a key.
pub(super) struct Split {
    bounds: [u32; MAX_BATCH + 1],
    /// The number of pre-tokens and segments.
    count: usize,
    long: [u16; MAX_BATCH],
    num_long: usize,
}

impl Default for Split {
    fn default() -> Self {
        let bounds = [0; MAX_BATCH + 1];
        Self { bounds, count: 0, long: [0; MAX_BATCH], num_long: 0 }
    }
}

impl Split {
    /// Empties it; the next pre-token starts at `start`.
    pub(super) fn restart(&mut self, start: u32) {
        self.bounds[0] = start & !SEGMENT_END;
        (self.count, self.num_long) = (0, 0);
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.count == MAX_BATCH
    }

    /// The last bound.
    pub(super) fn end(&self) -> u32 {
        self.bounds[self.count]
    }

    /// The bounds, and the indexes of what is longer than a key.
    pub(super) fn parts(&self) -> (&[u32], &[u16]) {
        (&self.bounds[..=self.count], &self.long[..self.num_long])
    }

    /// Adds pre-tokens that are not longer than a key, as many as there is space for; returns the
    /// ends of the others.
    #[inline(always)]
    pub(super) fn push_short<'e>(&mut self, ends: &'e [u32]) -> &'e [u32] {
        let (now, later) = ends.split_at(ends.len().min(MAX_BATCH - self.count));
        self.bounds[self.count + 1..][..now.len()].copy_from_slice(now);
        self.count += now.len();
        later
    }

    /// Adds a pre-token, or with [`SEGMENT_END`] a segment, that ends at `end`; it must not be full.
    #[inline(always)]
    pub(super) fn push(&mut self, end: u32) {
        let length = (end & !SEGMENT_END) - (self.end() & !SEGMENT_END);
        self.long[self.num_long] = self.count as u16;
        self.num_long += usize::from(length > MAX_KEY_BYTES as u32);
        self.count += 1;
        self.bounds[self.count] = end;
    }

    /// Adds the segments of a pre-token up to its last cut point, as many as there is space for; it
    /// must not be full. Returns from where to go on: from the end of the pre-token if all are added.
    pub(super) fn push_segments(
        &mut self,
        cut_points: &CutPoints,
        text: &[u8],
        pretoken: Range<usize>,
    ) -> usize {
        let mut start = self.end() & !SEGMENT_END;
        cut_points.visit(text, pretoken, |end, is_cut| {
            // No branch depends on whether this is a cut point: it would be mispredicted.
            let end = end as u32;
            let is_long = end - start > MAX_KEY_BYTES as u32;
            self.long[self.num_long] = self.count as u16;
            self.num_long += usize::from(is_cut & is_long);
            self.bounds[self.count + 1] = end | SEGMENT_END;
            self.count += usize::from(is_cut);
            start = if is_cut { end } else { start };
            !self.is_full()
        })
    }
}
