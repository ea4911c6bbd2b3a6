//! Pre-tokens to ids, many at a time.
//!
//! Text repeats its words, so most are in the memory of words (`words.rs`). A place in it that is not in the
//! cache takes as long to come as ten words take otherwise. So first the keys of a batch of words are made and
//! their places asked for; then each is looked up. A word that is not remembered is a whole token (`whole.rs`)
//! or is merged from its bytes (`merge.rs`), and then it is.

use std::ops::{ControlFlow, Range};

use super::merge::Scratch;
use super::words::{self, FEW};
use super::{Encoder, Sink};
use crate::error::Result;

/// How many words are looked up at once.
const BATCH: usize = 256;

/// A word that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct Item {
    /// The key of a short word, [`words::LONG`] or [`words::LONG_SEGMENT`].
    key: u128,
    start: usize,
    /// Shorter than 4 GiB: longer pre-tokens are refused.
    length: u32,
    /// Its place in the memory of words.
    place: u32,
}

/// Words that wait, and the ids of those that were looked up.
pub(super) struct Waiting {
    items: [Item; BATCH],
    filled: usize,
    ids: [u32; BATCH * FEW],
}

impl Default for Waiting {
    fn default() -> Self {
        Self { items: [Item::default(); BATCH], filled: 0, ids: [0; BATCH * FEW] }
    }
}

/// Encodes the pre-tokens of one text into a sink.
pub(super) struct Lookup<'e, S> {
    encoder: &'e Encoder,
    text: &'e [u8],
    sink: &'e mut S,
    scratch: &'e mut Scratch,
    failure: Result<()>,
}

impl<'e, S: Sink> Lookup<'e, S> {
    pub(super) fn new(
        encoder: &'e Encoder,
        text: &'e [u8],
        sink: &'e mut S,
        scratch: &'e mut Scratch,
    ) -> Self {
        scratch.waiting.filled = 0; // what waits is left there after a break
        scratch.words.prepare();
        Self { encoder, text, sink, scratch, failure: Ok(()) }
    }

    /// Encodes the pre-token that a range of the text is. The next range follows this one, unless what waits
    /// is looked up before. `Break` means that there is nothing more to do.
    #[inline(always)]
    pub(super) fn push(&mut self, start: usize, end: usize) -> ControlFlow<()> {
        match words::short_key(self.text, start, end) {
            Some(key) => self.wait(key, start, end),
            None => self.push_other(start, end),
        }
    }

    #[inline(always)]
    fn wait(&mut self, key: u128, start: usize, end: usize) -> ControlFlow<()> {
        let Scratch { words, waiting, .. } = &mut *self.scratch;
        let place = words.place(key);
        words.prefetch(place);
        let item = Item { key, start, length: (end - start) as u32, place };
        waiting.items[waiting.filled % BATCH] = item;
        waiting.filled += 1;
        if waiting.filled == BATCH { self.flush() } else { ControlFlow::Continue(()) }
    }

    /// A long pre-token is cut where no token can lie across, so that its parts are short and met again; or it
    /// waits whole. An empty one is nothing.
    #[inline(never)]
    fn push_other(&mut self, start: usize, end: usize) -> ControlFlow<()> {
        if start == end {
            return ControlFlow::Continue(());
        }
        if let Err(error) = self.encoder.check_length(end - start) {
            self.failure = Err(error);
            return ControlFlow::Break(());
        }
        let (encoder, text) = (self.encoder, self.text);
        let Some(cuts) = encoder.cuts_of(&text[start..end]) else {
            return self.wait(words::LONG, start, end);
        };
        let mut from = start;
        for cut in cuts.within(&text[start..end]) {
            self.wait_segment(from, start + cut)?;
            from = start + cut;
        }
        if from == start {
            return self.wait(words::LONG, start, end);
        }
        self.wait_segment(from, end)
    }

    fn wait_segment(&mut self, start: usize, end: usize) -> ControlFlow<()> {
        match words::short_key(self.text, start, end) {
            Some(key) => self.wait(key | words::SEGMENT, start, end),
            None => self.wait(words::LONG_SEGMENT, start, end),
        }
    }

    /// Looks up what waits.
    #[inline(never)]
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        let filled = std::mem::take(&mut self.scratch.waiting.filled);
        let mut count = 0;
        // Where the text of the ids starts that the sink has not got yet.
        let mut from = self.scratch.waiting.items[0].start;
        for at in 0..filled {
            let Scratch { words, waiting, .. } = &mut *self.scratch;
            let item = &waiting.items[at];
            if let Some((few, length)) = words.front(item.place, item.key) {
                // All four are written, however many there are: what comes next overwrites the rest.
                waiting.ids[count..count + FEW].copy_from_slice(&few);
                count += length;
                continue;
            }
            let item = *item;
            match self.look_further(&item, from, count) {
                Ok(ControlFlow::Continue(new_count)) => count = new_count,
                Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
                Err(error) => {
                    self.failure = Err(error);
                    return ControlFlow::Break(());
                }
            }
            if count == 0 {
                from = item.start + item.length as usize;
            }
        }
        if count == 0 {
            return ControlFlow::Continue(());
        }
        let last = &self.scratch.waiting.items[filled - 1];
        let end = last.start + last.length as usize;
        self.sink.push_all(&self.scratch.waiting.ids[..count], from..end, &self.encoder.tokens)
    }

    /// Looks up a word that is not in front at its place. So many ids wait, for the text from `from` on; gives
    /// how many there are then. None means that the sink has got them all.
    #[inline(never)]
    fn look_further(
        &mut self,
        item: &Item,
        from: usize,
        count: usize,
    ) -> Result<ControlFlow<(), usize>> {
        let range = item.start..item.start + item.length as usize;
        let (encoder, key) = (self.encoder, words::key(self.text, &range, item.key));
        let Scratch { words, ids, .. } = &mut *self.scratch;
        if !key.is_some_and(|key| words.recall(key, item.place, ids)) {
            if encoder.has_gaps {
                return self.encode_with_gaps(range, from, count);
            }
            let is_segment = words::is_segment(item.key);
            encoder.encode_word(&self.text[range.clone()], is_segment, self.scratch)?;
            let Scratch { words, ids, .. } = &mut *self.scratch;
            if let Some(key) = key {
                words.insert(key, item.place, ids);
            }
        }
        let Scratch { waiting, ids, .. } = &mut *self.scratch;
        if ids.len() <= FEW {
            // There is room for as many for each word of the batch.
            waiting.ids[count..count + ids.len()].copy_from_slice(ids);
            return Ok(ControlFlow::Continue(count + ids.len()));
        }
        let before = from..range.start;
        if self.sink.push_all(&waiting.ids[..count], before, &encoder.tokens).is_break()
            || self.sink.push_all(ids, range, &encoder.tokens).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(0))
    }

    /// A word of a vocabulary that lacks some bytes.
    fn encode_with_gaps(
        &mut self,
        range: Range<usize>,
        from: usize,
        count: usize,
    ) -> Result<ControlFlow<(), usize>> {
        let waiting = &self.scratch.waiting.ids[..count];
        if self.sink.push_all(waiting, from..range.start, &self.encoder.tokens).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let flow = self.encoder.encode_word_with_gaps(self.text, range, self.sink, self.scratch)?;
        Ok(flow.map_continue(|()| 0))
    }

    /// Looks up what waits, and says how all went.
    pub(super) fn finish(mut self) -> Result<ControlFlow<()>> {
        let flow = if self.failure.is_ok() { self.flush() } else { ControlFlow::Break(()) };
        self.failure.map(|()| flow)
    }
}
