//! Batches of pre-tokens to ids.
//!
//! Long pre-tokens of scripts without spaces are split at cut points first. Then a batch is looked up
//! in the cache; pre-tokens that are not there are merged, several at a time, and added to it. The
//! ids go to the sink once per batch.

use std::ops::{ControlFlow, Range};

use super::cache::{
    CacheTier, Found, MAX_BATCH, MAX_KEY_BYTES, PretokenKey, Pretokens, SEGMENT_END, ids_of,
    range_between,
};
use super::long::should_be_cut;
use super::merge::{LANES, MAX_SHORT_IDS};
use super::scratch::Scratch;
use super::sink::emit;
use super::split::Split;
use super::{Encoder, Sink};
use crate::cpu::{self, Work};
use crate::error::Result;
use crate::pretoken::Splitter;
use crate::reserve::check_step;

/// A longer pre-token or segment is not worth caching.
const MAX_BATCHED_BYTES: usize = 1 << 16;

/// Encodes the pre-tokens of one text into a sink.
pub(super) struct Lookup<'e, S> {
    encoder: &'e Encoder,
    text: &'e [u8],
    sink: &'e mut S,
    scratch: &'e mut Scratch,
    /// The sink has the ids of the text up to here.
    done: usize,
}

impl<'e, S: Sink> Lookup<'e, S> {
    pub(super) fn new(
        encoder: &'e Encoder,
        text: &'e [u8],
        sink: &'e mut S,
        scratch: &'e mut Scratch,
    ) -> Self {
        let _ = scratch.batch.take_ids(); // after an error, some may be left
        Self { encoder, text, sink, scratch, done: 0 }
    }

    /// Encodes the pre-tokens of a part of the text that starts at `start`.
    #[inline]
    pub(super) fn encode_all(
        &mut self,
        start: usize,
        mut part: Splitter<'_>,
    ) -> Result<ControlFlow<()>> {
        while let Some((base, bounds)) = part.next_batch()? {
            if self.encode(start + base, bounds)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Encodes pre-tokens that lie between bounds relative to `base`. `Break` means that the sink
    /// wants no more.
    pub(super) fn encode(&mut self, base: usize, bounds: &[u32]) -> Result<ControlFlow<()>> {
        cpu::run(Batches { lookup: self, base, bounds })
    }

    #[inline(always)]
    fn encode_on(
        &mut self,
        tier: impl CacheTier,
        base: usize,
        bounds: &[u32],
    ) -> Result<ControlFlow<()>> {
        self.done = base + bounds[0] as usize;
        let mut first = 0;
        while first + 1 < bounds.len() {
            let last = (first + MAX_BATCH).min(bounds.len() - 1);
            let batch = &bounds[first..=last];
            let bytes = (bounds[last] - bounds[first]) as usize;
            self.scratch.watch.worked(bytes)?;
            let flow = if self.encoder.has_gaps {
                self.encode_with_gaps(base, batch)?
            } else if has_long(batch) {
                self.encode_with_long(base, batch)?
            } else {
                self.encode_batch::<false>(tier, base, batch, &[])?
            };
            if flow.is_break() {
                return Ok(flow);
            }
            first = last;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Encodes pre-tokens of an alphabet that lacks some bytes, which the cache is not for.
    fn encode_with_gaps(&mut self, base: usize, bounds: &[u32]) -> Result<ControlFlow<()>> {
        for at in 0..bounds.len() - 1 {
            let Range { start, end } = range_between(bounds, at);
            let range = base + start..base + end;
            let Self { encoder, text, sink, scratch, .. } = self;
            if encoder.encode_with_gaps(text, range, *sink, scratch)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Encodes pre-tokens, some of which are long; splits those where that is worth it.
    #[inline(never)]
    fn encode_with_long(&mut self, base: usize, bounds: &[u32]) -> Result<ControlFlow<()>> {
        let mut long = [0; MAX_BATCH];
        let long = find_long(bounds, &mut long);
        let text = &self.text[base..];
        let is_kept = |at: &u16| {
            let pretoken = &text[range_between(bounds, usize::from(*at))];
            pretoken.len() <= MAX_BATCHED_BYTES && !should_be_cut(pretoken)
        };
        if long.iter().all(is_kept) {
            return cpu::run(LongBatch { lookup: self, base, bounds, long });
        }
        let mut split = self.scratch.split.take().unwrap_or_default();
        let flow = self.split_and_encode(&mut split, base, bounds, long);
        self.scratch.split = Some(split);
        flow
    }

    fn split_and_encode(
        &mut self,
        split: &mut Split,
        base: usize,
        bounds: &[u32],
        long: &[u16],
    ) -> Result<ControlFlow<()>> {
        let text = &self.text[base..];
        let mut cut_points = None; // made on first use
        split.restart(bounds[0]);
        let mut first = 0;
        for at in long.iter().map(|&at| usize::from(at)) {
            if self.add_short(split, base, &bounds[first + 1..=at])?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            first = at + 1;
            let (start, end) = (bounds[at], bounds[at + 1]);
            if split.is_full() && self.encode_split(base, split)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let range = start as usize..end as usize;
            let mut flag = 0;
            if should_be_cut(&text[range.clone()]) {
                if cut_points.is_none() {
                    check_step()?;
                }
                let cut_points = cut_points.get_or_insert_with(|| self.encoder.cut_points());
                let mut next = range.start;
                while next < range.end {
                    if split.is_full() && self.encode_split(base, split)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    next = split.push_segments(cut_points, text, next..range.end);
                }
                let is_whole = split.end() & !SEGMENT_END == start;
                flag = if is_whole { 0 } else { SEGMENT_END };
                if split.is_full() && self.encode_split(base, split)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let last = (split.end() & !SEGMENT_END) as usize..range.end;
            if last.len() <= MAX_BATCHED_BYTES {
                split.push(end | flag);
                continue;
            }
            if self.encode_split(base, split)?.is_break()
                || self.encode_alone(base + last.start..base + last.end, flag != 0)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            split.restart(end);
        }
        if self.add_short(split, base, &bounds[first + 1..])?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.encode_split(base, split)
    }

    /// Adds pre-tokens that are not long.
    #[inline]
    fn add_short(
        &mut self,
        split: &mut Split,
        base: usize,
        mut ends: &[u32],
    ) -> Result<ControlFlow<()>> {
        loop {
            ends = split.push_short(ends);
            if ends.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            if self.encode_split(base, split)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn encode_split(&mut self, base: usize, split: &mut Split) -> Result<ControlFlow<()>> {
        if split.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let (bounds, long) = split.parts();
        let flow = cpu::run(LongBatch { lookup: self, base, bounds, long })?;
        split.restart(split.end());
        Ok(flow)
    }

    /// Encodes at most [`MAX_BATCH`] pre-tokens; those at the indexes `long` are longer than a key.
    #[inline(always)]
    fn encode_batch<const HAS_SEGMENTS: bool>(
        &mut self,
        tier: impl CacheTier,
        base: usize,
        bounds: &[u32],
        long: &[u16],
    ) -> Result<ControlFlow<()>> {
        let pretokens = Pretokens { text: &self.text[base..], bounds, long };
        let Scratch { batch, cache, .. } = &mut *self.scratch;
        cache.prepare();
        batch.make_keys::<HAS_SEGMENTS>(tier, cache, pretokens);
        let spans = Spans { base, bounds };
        let count = bounds.len() - 1;
        let (mut at, mut merged) = (0, 0);
        loop {
            let Scratch { batch, cache, .. } = &mut *self.scratch;
            at = batch.look_up(tier, cache, pretokens, at);
            if at == count {
                break;
            }
            let flow;
            (at, flow) = self.look_further(spans, at, &mut merged)?;
            if flow.is_break() {
                return Ok(flow);
            }
            // Entries have moved.
            let Scratch { batch, cache, .. } = &mut *self.scratch;
            batch.check_long_keys(cache, pretokens, at);
        }
        self.hand_over(base + range_between(bounds, count - 1).end)
    }

    /// Looks up a pre-token that its key alone does not find; returns which one to go on with. Those
    /// before `merged` are in the cache, as far as they fit.
    #[inline(never)]
    fn look_further(
        &mut self,
        spans: Spans<'_>,
        at: usize,
        merged: &mut usize,
    ) -> Result<(usize, ControlFlow<()>)> {
        let range = spans.range(at);
        let key = PretokenKey::new(&self.text[range.clone()], spans.is_segment(at));
        let more = spans.bounds.len() - 1 - at;
        for is_last in [false, true] {
            let Scratch { batch, cache, ids: own_ids, .. } = &mut *self.scratch;
            match cache.find(key) {
                Some(Found::Inline(slot)) => {
                    batch.set_slot(at, key, slot);
                    return Ok((at, ControlFlow::Continue(())));
                }
                Some(Found::Many(ids)) if batch.try_push(ids_of(ids), more) => {
                    return Ok((at + 1, ControlFlow::Continue(())));
                }
                Some(Found::Many(ids)) => {
                    own_ids.clear();
                    own_ids.extend(ids_of(ids));
                    return Ok((at + 1, self.give_ids(range)?));
                }
                None if is_last || *merged > at => break,
                None => *merged = self.merge_missing(spans, at),
            }
        }
        // It is too long to be merged with others, or was replaced in the cache at once.
        let (encoder, is_segment) = (self.encoder, key.is_segment());
        encoder.encode_one(key.pretoken, is_segment, self.scratch)?;
        let Scratch { batch, cache, ids, .. } = &mut *self.scratch;
        cache.insert(key, ids);
        if batch.try_push(ids.iter().copied(), more) {
            return Ok((at + 1, ControlFlow::Continue(())));
        }
        Ok((at + 1, self.give_ids(range)?))
    }

    /// Merges pre-tokens that are not in the cache, several interleaved, from one on; adds them to
    /// the cache. Returns the end of those that were considered.
    fn merge_missing(&mut self, spans: Spans<'_>, from: usize) -> usize {
        let text = self.text;
        let Scratch { cache, batch, interleaved, ids, .. } = &mut *self.scratch;
        let Encoder { whole, pairs, tokens, byte_ids, .. } = self.encoder;
        let count = spans.bounds.len() - 1;
        let (mut missing, mut found) = ([None; LANES], 0);
        let (mut first, mut bits, mut end) = (from, 0, count);
        loop {
            while bits == 0 && first < count {
                bits = batch.find_missing(cache, first, count);
                first += u64::BITS as usize;
            }
            if bits == 0 {
                break;
            }
            let at = first - u64::BITS as usize + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let pretoken = &text[spans.range(at)];
            if pretoken.len() > MAX_SHORT_IDS {
                continue;
            }
            let key = batch.key_of(at, pretoken, spans.is_segment(at));
            if cache.contains(key) || is_among(&missing[..found], key) {
                continue;
            }
            let probe = (!key.is_segment()).then(|| whole.start(pretoken));
            missing[found] = Some((key, probe));
            found += 1;
            if found == LANES {
                end = at + 1;
                break;
            }
        }
        // Whole tokens are added at once, the others when they are merged.
        let mut merging = [None; LANES];
        for (key, probe) in missing.into_iter().flatten() {
            if let Some(id) = probe.and_then(|probe| whole.finish(probe, key.pretoken, tokens)) {
                cache.insert(key, &[id]);
            } else if let Some(lane) =
                interleaved.add(key.pretoken.iter().map(|&byte| byte_ids[usize::from(byte)]))
            {
                merging[lane] = Some(key);
            }
        }
        interleaved.merge(pairs, |lane, merged| {
            merged.write_ids(ids);
            if let Some(key) = merging[lane] {
                cache.insert(key, ids);
            }
        });
        end
    }

    /// Encodes a pre-token that is too long for a batch.
    fn encode_alone(&mut self, range: Range<usize>, is_segment: bool) -> Result<ControlFlow<()>> {
        let pretoken = &self.text[range.clone()];
        self.encoder.encode_one(pretoken, is_segment, self.scratch)?;
        self.give_ids(range)
    }

    /// Gives the sink the ids found so far, and then `scratch.ids`, those of a range.
    fn give_ids(&mut self, range: Range<usize>) -> Result<ControlFlow<()>> {
        if self.hand_over(range.start)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.done = range.end;
        emit(self.sink, &self.scratch.ids, range, &self.encoder.tokens)
    }

    /// Gives the sink the ids found so far, those of the text up to `end`.
    fn hand_over(&mut self, end: usize) -> Result<ControlFlow<()>> {
        let range = std::mem::replace(&mut self.done, end)..end;
        emit(self.sink, self.scratch.batch.take_ids(), range, &self.encoder.tokens)
    }
}

/// Batches of pre-tokens. All that is done to each of their pre-tokens is compiled for a tier.
struct Batches<'l, 'e, S> {
    lookup: &'l mut Lookup<'e, S>,
    base: usize,
    bounds: &'l [u32],
}

impl<T: CacheTier, S: Sink> Work<T> for Batches<'_, '_, S> {
    type Output = Result<ControlFlow<()>>;

    #[inline(always)]
    fn run(self, tier: T) -> Self::Output {
        self.lookup.encode_on(tier, self.base, self.bounds)
    }
}

/// The same for a batch in which some are long, or segments.
struct LongBatch<'l, 'e, S> {
    lookup: &'l mut Lookup<'e, S>,
    base: usize,
    bounds: &'l [u32],
    long: &'l [u16],
}

impl<T: CacheTier, S: Sink> Work<T> for LongBatch<'_, '_, S> {
    type Output = Result<ControlFlow<()>>;

    #[inline(always)]
    fn run(self, tier: T) -> Self::Output {
        let Self { lookup, base, bounds, long } = self;
        lookup.encode_batch::<true>(tier, base, bounds, long)
    }
}

/// The pre-tokens of a batch; bounds are relative to `base`.
#[derive(Clone, Copy)]
struct Spans<'b> {
    base: usize,
    bounds: &'b [u32],
}

impl Spans<'_> {
    fn range(self, at: usize) -> Range<usize> {
        let Range { start, end } = range_between(self.bounds, at);
        self.base + start..self.base + end
    }

    fn is_segment(self, at: usize) -> bool {
        self.bounds[at + 1] & SEGMENT_END != 0
    }
}

/// Whether a pre-token is one of those that are missing.
#[inline(always)]
fn is_among<T>(missing: &[Option<(PretokenKey<'_>, T)>], key: PretokenKey<'_>) -> bool {
    missing.iter().flatten().any(|(other, _)| *other == key)
}

/// The indexes of pre-tokens that are longer than a key.
fn find_long<'l>(bounds: &[u32], out: &'l mut [u16; MAX_BATCH]) -> &'l [u16] {
    let mut count = 0;
    for (at, bounds) in (0..).zip(bounds.windows(2)) {
        // No branch depends on whether it is: it would be mispredicted.
        out[count % MAX_BATCH] = at;
        count += usize::from(bounds[1] - bounds[0] > MAX_KEY_BYTES as u32);
    }
    &out[..count]
}

/// Whether a pre-token is longer than a key.
#[inline(always)]
fn has_long(bounds: &[u32]) -> bool {
    // All are looked at, so that the loop is vectorized.
    bounds
        .windows(2)
        .fold(false, |any, bounds| any | (bounds[1] - bounds[0] > MAX_KEY_BYTES as u32))
}
