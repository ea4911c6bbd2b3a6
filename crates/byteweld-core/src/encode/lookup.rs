//! Pre-tokens to ids, many at a time.
//!
//! Text repeats its words, so most are in the memory of words (`words.rs`). A place in it that is not in the
//! cache takes as long to come as ten words take otherwise. So first the keys of a batch of words are made and
//! their places asked for; then each is looked up. A word that is not remembered is a whole token (`whole.rs`)
//! or is merged from its bytes (`merge.rs`), and then it is.

use std::ops::{ControlFlow, Range};

use super::merge::Scratch;
use super::sink::give;
use super::turns::TURNS;
use super::words::{self, FEW, Key, Places, ShortKey};
use super::{Encoder, Sink};
use crate::error::Result;
use crate::prefetch::prefetch;
use crate::pretoken::{CHUNK, Pieces};

/// How many words are looked up at once: enough to wait together, and few enough for their places to stay in
/// the nearest cache until they are looked at.
const BATCH: usize = 128;

/// The ids that they have at most in the memory of words.
const ROOM: usize = BATCH * FEW;

/// Text from the start of a chunk on, so long that 16 bytes can be read from anywhere in the chunk.
pub(super) type Window = [u8; CHUNK + 16];

/// A word that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct Item {
    /// The key of a short word, [`words::LONG`] or [`words::LONG_SEGMENT`].
    key: ShortKey,
    /// Where it ends; it starts where the one before ends.
    end: usize,
    /// Its place in the memory of words.
    place: u32,
}

/// Words that wait, and the ids of those that were looked up.
pub(super) struct Waiting {
    items: [Item; BATCH],
    filled: usize,
    /// Where the first one starts.
    start: usize,
    /// So many ids are found.
    count: usize,
    found: [u32; ROOM + FEW],
    /// Those before this one were looked through for new words.
    looked_through: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            items: [Item::default(); BATCH],
            filled: 0,
            start: 0,
            count: 0,
            found: [0; ROOM + FEW],
            looked_through: 0,
        }
    }
}

impl Waiting {
    /// Adds short words that follow each other: the first starts at `start` of a window, and they end at
    /// `ends`. `base` is where the window is in the text. Gives how many there was room for, or before the
    /// first that is long.
    #[inline(always)]
    fn queue(
        &mut self,
        places: Places<'_>,
        window: &Window,
        base: usize,
        mut start: usize,
        ends: &[u16],
    ) -> usize {
        if self.filled == 0 {
            self.start = base + start;
        }
        let mut taken = 0;
        for (item, &end) in self.items[self.filled..].iter_mut().zip(ends) {
            let end = usize::from(end);
            // A word starts in the chunk, so the remainder changes nothing, and is known to be inside.
            let Some(bytes) = window[start % CHUNK..].first_chunk() else { break };
            let Some(key) = words::key_of(*bytes, end.wrapping_sub(start)) else { break };
            let place = places.place(key);
            prefetch(places.buckets, place as usize);
            *item = Item { key, end: base + end, place };
            start = end;
            taken += 1;
        }
        self.filled += taken;
        taken
    }

    /// Looks up words from one on, up to the first that is not in front at its place; gives which that is.
    #[inline(always)]
    fn find(&mut self, places: Places<'_>, from: usize) -> usize {
        let mut count = self.count;
        let mut at = from;
        for item in &self.items[from..self.filled] {
            let Some((few, length)) = places.front(item.place, item.key) else { break };
            // All four are written, however many there are: what comes next overwrites the rest.
            // There is room, so the remainder changes nothing.
            let Some(room) = self.found[count % ROOM..].first_chunk_mut() else { break };
            *room = *few;
            count += length;
            at += 1;
        }
        self.count = count;
        at
    }

    /// Adds a few ids.
    fn add(&mut self, ids: &[u32]) {
        let end = self.count + ids.len();
        self.found[self.count..end].copy_from_slice(ids);
        self.count = end;
    }

    fn range(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { self.start } else { self.items[at - 1].end };
        start..self.items[at].end
    }
}

/// Encodes the pre-tokens of one text into a sink.
pub(super) struct Lookup<'e, S> {
    encoder: &'e Encoder,
    text: &'e [u8],
    /// Where the passage starts whose pre-tokens come as [`Pieces`].
    pub(super) first: usize,
    sink: &'e mut S,
    scratch: &'e mut Scratch,
    failure: Result<()>,
}

impl<S: Sink> Pieces for Lookup<'_, S> {
    #[inline(always)]
    fn piece(&mut self, start: usize, end: usize, _: bool) -> ControlFlow<()> {
        self.push(self.first + start, self.first + end)
    }

    #[inline(always)]
    fn pieces(&mut self, start: usize, ends: &[u16]) -> ControlFlow<()> {
        let base = self.first + start;
        let Some(rest) = self.text.get(base..) else { return ControlFlow::Continue(()) };
        if let Some(window) = rest.first_chunk() {
            return self.pieces_within(window, base, ends);
        }
        // At the end of the text, in room that is kept. What lies there behind the text is never looked at.
        let mut end = self.scratch.end.take().unwrap_or_else(|| Box::new([0; CHUNK + 16]));
        end[..rest.len()].copy_from_slice(rest);
        let flow = self.pieces_within(&end, base, ends);
        self.scratch.end = Some(end);
        flow
    }
}

impl<'e, S: Sink> Lookup<'e, S> {
    /// Takes pre-tokens that follow each other and start in a window of the text.
    #[inline(always)]
    fn pieces_within(&mut self, window: &Window, base: usize, ends: &[u16]) -> ControlFlow<()> {
        let (mut from, mut ends) = (0, ends);
        while let Some((&end, others)) = ends.split_first() {
            let Scratch { words, waiting, .. } = &mut *self.scratch;
            let taken = waiting.queue(words.places(), window, base, from, ends);
            let Some(&last) = taken.checked_sub(1).and_then(|last| ends.get(last)) else {
                // It is long.
                self.push_other(base + from, base + usize::from(end))?;
                (from, ends) = (usize::from(end), others);
                continue;
            };
            from = usize::from(last);
            ends = &ends[taken..];
            if waiting.filled == BATCH {
                self.flush()?;
            }
        }
        ControlFlow::Continue(())
    }

    pub(super) fn new(
        encoder: &'e Encoder,
        text: &'e [u8],
        sink: &'e mut S,
        scratch: &'e mut Scratch,
    ) -> Self {
        let Waiting { filled, count, looked_through, .. } = &mut scratch.waiting;
        (*filled, *count, *looked_through) = (0, 0, 0); // after a break some are left
        scratch.words.prepare(text.len());
        Self { encoder, text, first: 0, sink, scratch, failure: Ok(()) }
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
    fn wait(&mut self, key: ShortKey, start: usize, end: usize) -> ControlFlow<()> {
        let Scratch { words, waiting, .. } = &mut *self.scratch;
        let places = words.places();
        let place = places.place(key);
        prefetch(places.buckets, place as usize);
        if waiting.filled == 0 {
            waiting.start = start;
        }
        waiting.items[waiting.filled % BATCH] = Item { key, end, place };
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
            return self.wait_long(words::LONG, start, end);
        };
        let mut from = start;
        for cut in cuts.within(&text[start..end]) {
            self.wait_segment(from, start + cut)?;
            from = start + cut;
        }
        if from == start {
            return self.wait_long(words::LONG, start, end);
        }
        self.wait_segment(from, end)
    }

    fn wait_segment(&mut self, start: usize, end: usize) -> ControlFlow<()> {
        match words::short_key(self.text, start, end) {
            Some(key) => self.wait(words::as_segment(key), start, end),
            None => self.wait_long(words::LONG_SEGMENT, start, end),
        }
    }

    fn wait_long(&mut self, key: ShortKey, start: usize, end: usize) -> ControlFlow<()> {
        if let Some(key) = words::key(self.text, &(start..end), key) {
            self.scratch.words.ask(key);
        }
        self.wait(key, start, end)
    }

    /// Looks up what waits.
    #[inline(never)]
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        let (mut at, mut from) = (0, self.scratch.waiting.start);
        loop {
            at = self.scratch.waiting.find(self.scratch.words.places(), at);
            if at == self.scratch.waiting.filled {
                break;
            }
            match self.look_further(at, &mut from) {
                Ok(ControlFlow::Continue(())) => at += 1,
                Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
                Err(error) => {
                    self.failure = Err(error);
                    return ControlFlow::Break(());
                }
            }
        }
        let waiting = &mut self.scratch.waiting;
        let filled = std::mem::take(&mut waiting.filled);
        waiting.looked_through = 0;
        let end = filled.checked_sub(1).map_or(from, |last| waiting.items[last].end);
        let bytes = end.wrapping_sub(waiting.start);
        let outcome = self.scratch.watch.worked(bytes).and_then(|()| self.hand_over(from..end));
        outcome.unwrap_or_else(|error| {
            self.failure = Err(error);
            ControlFlow::Break(())
        })
    }

    /// Gives the ids that are found, those of a range of the text, to the sink.
    fn hand_over(&mut self, range: Range<usize>) -> Result<ControlFlow<()>> {
        if self.scratch.waiting.count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let waiting = &mut self.scratch.waiting;
        let count = std::mem::take(&mut waiting.count);
        give(self.sink, &waiting.found[..count], range, &self.encoder.tokens)
    }

    /// Looks up a word that is not in front at its place. `from` is where the text starts whose ids the sink has
    /// not got yet.
    #[inline(never)]
    fn look_further(&mut self, at: usize, from: &mut usize) -> Result<ControlFlow<()>> {
        let Item { key: short, .. } = self.scratch.waiting.items[at];
        let range = self.scratch.waiting.range(at);
        let (encoder, key) = (self.encoder, words::key(self.text, &range, short));
        if !self.recall(at, key) {
            if encoder.has_gaps {
                if self.hand_over(*from..range.start)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                *from = range.end;
                return encoder.encode_word_with_gaps(self.text, range, self.sink, self.scratch);
            }
            encoder.encode_word(
                &self.text[range.clone()],
                words::is_segment(short),
                self.scratch,
            )?;
            let Scratch { words, ids, .. } = &mut *self.scratch;
            if let Some(key) = key {
                words.insert(key, ids);
            }
        }
        let Scratch { waiting, ids, .. } = &mut *self.scratch;
        if ids.len() <= FEW {
            waiting.add(ids);
            return Ok(ControlFlow::Continue(()));
        }
        if self.hand_over(*from..range.start)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        *from = range.end;
        give(self.sink, &self.scratch.ids, range, &encoder.tokens)
    }

    /// Recalls a word into `scratch.ids`; if it is new, it is merged together with new words behind it.
    fn recall(&mut self, at: usize, key: Option<Key>) -> bool {
        let Some(key) = key else { return false };
        let Scratch { words, ids, waiting, .. } = &mut *self.scratch;
        if words.recall(key, ids) {
            return true;
        }
        if self.encoder.has_gaps || at < waiting.looked_through {
            return false;
        }
        self.merge_new(at);
        let Scratch { words, ids, .. } = &mut *self.scratch;
        words.recall(key, ids)
    }

    /// Puts new words into the memory of words, some at once so that they wait for memory together: from one that
    /// waits on. (Any of them may be forgotten at once for another one; it is then merged alone.)
    fn merge_new(&mut self, from: usize) {
        let text = self.text;
        let Scratch { words, waiting, turns, ids, .. } = &mut *self.scratch;
        let Encoder { whole, pairs, tokens, byte_ids, .. } = self.encoder;
        let places = words.places();
        let (mut new, mut count) = ([None; TURNS], 0);
        waiting.looked_through = waiting.filled;
        for at in from..waiting.filled {
            let Item { key, place, .. } = waiting.items[at];
            if places.front(place, key).is_some() {
                continue;
            }
            let range = waiting.range(at);
            let word = &text[range.clone()];
            let Some(key) = words::key(text, &range, key) else { continue };
            if words.has(key) || new[..count].contains(&Some((key, word))) {
                continue;
            }
            if !key.is_segment() {
                whole.ask_for(word);
            }
            new[count] = Some((key, word));
            count += 1;
            if count == TURNS {
                waiting.looked_through = at + 1;
                break;
            }
        }
        // Whole tokens are remembered at once, the others when they are merged.
        let mut merging = [None; TURNS];
        for (key, word) in new.into_iter().flatten() {
            if !key.is_segment()
                && let Some(id) = whole.get(word, tokens)
            {
                words.insert(key, &[id]);
            } else if let Some(number) = turns.add(word.iter().map(|&byte| byte_ids[byte as usize]))
            {
                merging[number] = Some(key);
            }
        }
        turns.merge(pairs, |number, word| {
            word.ids(ids);
            if let Some(key) = merging[number] {
                words.insert(key, ids);
            }
        });
    }

    /// Looks up what waits, and says how all went.
    pub(super) fn finish(mut self) -> Result<ControlFlow<()>> {
        let flow = if self.failure.is_ok() { self.flush() } else { ControlFlow::Break(()) };
        self.failure.map(|()| flow)
    }
}
