//! The buffers of a call, which the next call reuses (`pool.rs`).

use super::cache::{Batch, Cache};
use super::long::MatchScratch;
use super::merge::{HeapScratch, Interleaved};
use super::split::Split;
use crate::pretoken::Bounds;
use crate::rewrite::Limits;
use crate::watch::Watch;

#[derive(Default)]
pub(super) struct Scratch {
    /// The sequence that is being merged: ids of bytes in, ids of tokens out.
    pub(super) ids: Vec<u32>,
    pub(super) heap: HeapScratch,
    pub(super) matching: MatchScratch,
    /// Pre-tokens encoded before.
    pub(super) cache: Cache,
    /// Pre-tokens that are being merged.
    pub(super) interleaved: Interleaved,
    /// The bounds of pre-tokens, and the same after long ones are split at cut points. Taken while
    /// in use.
    pub(super) bounds: Option<Box<Bounds>>,
    pub(super) split: Option<Box<Split>>,
    /// Pre-tokens that are being looked up.
    pub(super) batch: Batch,
    /// What is left of the limits on work for the text.
    pub(super) limits: Limits,
    /// Whether to stop.
    pub(super) watch: Watch,
}

/// The capacity of buffers that are kept for the next call, at most.
const MAX_KEPT: usize = 1 << 16;

impl Scratch {
    /// Frees what one huge pre-token needed, before the buffers are kept for other calls.
    pub(super) fn shrink(&mut self) {
        if self.ids.capacity() > MAX_KEPT || self.matching.capacity() > MAX_KEPT {
            *self = Self { cache: std::mem::take(&mut self.cache), ..Self::default() };
        }
    }
}
