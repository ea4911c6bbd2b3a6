//! Text to ids.
//!
//! The way of a text: special tokens are found (`specials`), the rest is cut into pre-tokens (`pretoken`), a
//! pre-token that was met before is remembered (`lookup`, `words`), a new one that is a whole token is looked up
//! (`whole`), any other is merged from its bytes (`turns`, `merge`) or, if it is long, matched (`longest`), and the
//! tokens go into a [`Sink`]. Three rank semantics share all of this: they differ only in which pairs are in the table and
//! which tokens may be looked up whole. A vocabulary that changes text on the way (a normalizer, added tokens with
//! flags, a chain of steps) goes by `rewritten`.

mod agreement;
mod ambiguous;
mod apart;
mod arena;
mod batch;
mod cuts;
mod growing;
mod longest;
mod lookup;
mod merge;
mod pairs;
mod recover;
mod rewritten;
mod short;
mod sink;
mod stream;
mod trie;
mod turns;
mod unstable;
mod whole;
mod windows;
mod words;

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use crate::cut;
use crate::decode::TokenTable;
use crate::error::{Error, Result};
use crate::lazy::Lazy;
use crate::pretoken::{Budget, Pretokenizer};
use crate::reserve::reserve;
use crate::rewrite::{AddedFinder, AddedToken, AddedTokens, Limits, Normalizer, SplitChain};
use crate::specials::{Occurrence, Search, Specials};
use crate::watch::Watch;
use ambiguous::{Ambiguous, Covering};
use cuts::Cuts;
use longest::{Longest, WhenWorthIt};
use lookup::Lookup;
use merge::Scratch;
use pairs::{NONE, Pairs};
use rewritten::Rewrites;
use short::SHORT;
use sink::{give, give_one};
use trie::Trie;
use turns::{TURNS, Turns};
use whole::WholeTokens;
use windows::{WINDOW, is_run};

pub use agreement::Agreement;
pub use batch::Ragged;
pub use recover::recover_merges;
pub(crate) use recover::{all_are_made, merges_of_ranks};
pub use sink::{Counter, Sink, Total, WithEnds};
pub use stream::{EncodedBlock, StreamError, StreamOptions};

/// How merges are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// By place in the merge list; a pre-token is always merged from its bytes.
    Merges,
    /// By place in the merge list, but a pre-token that is a token is taken whole (`ignore_merges`).
    MergesAfterLookup,
    /// By the id of the result, as in rank files; any two tokens that make a token may merge, and a
    /// pre-token that is a token is taken whole.
    Ids,
}

/// A vocabulary, as the engine takes it. The bytes of its tokens may be somebody else's.
pub struct Vocabulary<B = Vec<u8>> {
    /// Ordinary tokens, as (id, bytes).
    pub tokens: Vec<(u32, B)>,
    /// Merges in rank order: left, right, new. Empty with [`Ranking::Ids`].
    pub merges: Vec<(u32, u32, u32)>,
    /// How merges are ranked.
    pub ranking: Ranking,
    /// Added tokens, special and other.
    pub added: Vec<AddedToken>,
    /// Bytes of the ids that only added tokens have, as (id, bytes).
    pub added_bytes: Vec<(u32, B)>,
    /// The pattern, or none.
    pub pattern: Option<String>,
    /// What cuts text where one pattern does not say it; `pattern` is then none.
    pub steps: SplitChain,
    /// What is done to text before it is cut.
    pub normalizer: Normalizer,
    /// What becomes of bytes without a token.
    pub gaps: Gaps,
    /// The id for what is not in the alphabet.
    pub unk: Option<u32>,
}

impl<B> Vocabulary<B> {
    /// A vocabulary of tokens and merges alone.
    pub fn new(tokens: Vec<(u32, B)>, merges: Vec<(u32, u32, u32)>, ranking: Ranking) -> Self {
        Self {
            tokens,
            merges,
            ranking,
            added: Vec::new(),
            added_bytes: Vec::new(),
            pattern: None,
            steps: SplitChain::default(),
            normalizer: Normalizer::default(),
            gaps: Gaps::Characters,
            unk: None,
        }
    }
}

/// What becomes of bytes without a token, in an alphabet that lacks some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// A character with such a byte is one unk, or an error if there is no unk.
    Characters,
    /// Each such byte is one unk, or is dropped if there is no unk.
    Bytes,
}

/// A vocabulary made ready to encode and decode. Immutable: threads share it.
pub struct Encoder {
    pretokenizer: Pretokenizer,
    tokens: TokenTable,
    /// The id of each byte's token, or [`NONE`].
    byte_ids: [u32; 256],
    /// Whether some byte has no token.
    has_gaps: bool,
    gaps: Gaps,
    unk: Option<u32>,
    pairs: Pairs,
    /// Tokens that a pre-token equal to them becomes; the others can only be reached by merging.
    whole: WholeTokens,
    /// All ordinary ids, and, once that was asked for, in order of their bytes.
    ordinary: Vec<u32>,
    by_bytes: Lazy<Vec<u32>>,
    /// All ordinary tokens, for longest matches that do not merge; made when that is asked for.
    trie: Lazy<Option<Trie>>,
    /// Special tokens, as (text, id), in order of their texts.
    specials: Vec<(String, u32)>,
    finder: Specials,
    /// Their ids, ascending.
    special_ids: Vec<u32>,
    /// Those of them that text may become, too.
    ambiguous: Option<Box<Ambiguous>>,
    /// How text is changed on the way; `None` for most vocabularies.
    rewrites: Option<Box<Rewrites>>,
    /// Made when a text first has use for them.
    cuts: Lazy<Cuts>,
    longest: WhenWorthIt,
    /// The working space of one call at a time: where calls do not overlap, all there is. What it remembers
    /// never changes an id.
    desk: Mutex<Option<Box<Scratch>>>,
    /// That of other calls that are over.
    pool: Mutex<Vec<Box<Scratch>>>,
}

/// At most so much working space is kept, each of 13 MB at most; more threads at once make their own.
const POOLED: usize = 64;

/// Which special tokens a call recognises.
pub enum Allowed<'a> {
    /// None: text is text.
    None,
    /// All of the vocabulary's.
    All,
    /// These, prepared by [`Encoder::choose`].
    Some(&'a Choice),
    /// All, but only inside one of these ranges of the text; they are in order and do not overlap.
    Within(&'a [Range<usize>]),
}

/// A choice of special tokens, to be recognised or to be refused.
pub struct Choice {
    finder: Specials,
    /// Text and id; [`NONE`] for a text that is none of the vocabulary's, which can only be refused.
    specials: Vec<(String, u32)>,
    /// The ids, ascending.
    ids: Vec<u32>,
    /// Finds those that appear only in normalized text.
    rewritten: Option<AddedFinder>,
}

impl Encoder {
    /// Prepares a vocabulary.
    pub fn new(vocabulary: Vocabulary<impl AsRef<[u8]>>) -> Result<Self> {
        let Vocabulary { tokens, merges, ranking, added, added_bytes, pattern, .. } = vocabulary;
        let pretokenizer = Pretokenizer::new(pattern.as_deref())?;
        let num_ordinary = tokens.len();
        let mut every = tokens;
        every.extend(added_bytes);
        let table = TokenTable::new(&every)?;
        let tokens = &every[..num_ordinary];
        let mut byte_ids = [NONE; 256];
        for (id, token) in tokens {
            if let [byte] = token.as_ref() {
                byte_ids[*byte as usize] = *id;
            }
        }
        let ordinary: Vec<u32> = tokens.iter().map(|(id, _)| *id).collect();
        let pairs = match ranking {
            Ranking::Ids => Pairs::of_ranks(tokens),
            Ranking::Merges | Ranking::MergesAfterLookup => Pairs::of_merges(&merges)?,
        };
        let whole = WholeTokens::new(&ordinary, &table);
        let mut specials: Vec<(String, u32)> = added
            .iter()
            .filter(|token| token.special)
            .map(|token| (token.text.clone(), token.id))
            .collect();
        specials.sort_unstable();
        let mut special_ids: Vec<u32> = specials.iter().map(|(_, id)| *id).collect();
        special_ids.sort_unstable();
        let finder = Specials::new(&specials.iter().map(|(text, _)| text).collect::<Vec<_>>())?;
        let has_gaps = byte_ids.contains(&NONE);
        let is_plain = AddedTokens::are_plain(&added)
            && vocabulary.steps.is_empty()
            && vocabulary.normalizer.is_empty()
            && !(has_gaps && vocabulary.gaps == Gaps::Bytes);
        let mut encoder = Self {
            pretokenizer,
            tokens: table,
            has_gaps,
            gaps: vocabulary.gaps,
            byte_ids,
            unk: vocabulary.unk,
            pairs,
            whole,
            ordinary,
            by_bytes: Lazy::new(),
            trie: Lazy::new(),
            specials,
            finder,
            special_ids,
            ambiguous: None,
            rewrites: None,
            cuts: Lazy::new(),
            longest: WhenWorthIt::default(),
            desk: Mutex::default(),
            pool: Mutex::default(),
        };
        if ranking == Ranking::Merges {
            encoder.forget_unreachable()?;
        }
        encoder.ambiguous = encoder.find_ambiguous(&added, &merges, ranking)?;
        if !is_plain {
            let rewrites = Rewrites::new(added, vocabulary.normalizer, vocabulary.steps)?;
            encoder.rewrites = Some(Box::new(rewrites));
        }
        Ok(encoder)
    }

    /// Looks up only tokens that merging their own bytes gives.
    fn forget_unreachable(&mut self) -> Result<()> {
        let (mut turns, mut scratch) = (Turns::default(), Scratch::default());
        let mut reachable = Vec::with_capacity(self.ordinary.len());
        for ids in self.ordinary.chunks(TURNS) {
            let mut merging = [NONE; TURNS];
            for &id in ids {
                let token = self.tokens.get(id).unwrap_or_default();
                let mut bytes = token.iter().map(|&byte| self.byte_ids[byte as usize]);
                if bytes.clone().any(|id| id == NONE) {
                    continue;
                }
                if token.len() > SHORT {
                    self.merge_below(NONE, token, &mut scratch)?;
                    reachable.extend((scratch.ids == [id]).then_some(id));
                } else if let Some(number) = turns.add(&mut bytes) {
                    merging[number] = id;
                }
            }
            turns.merge(&self.pairs, |number, merged| {
                reachable.extend(merged.is(merging[number]).then_some(merging[number]));
            });
        }
        if reachable.len() < self.ordinary.len() {
            self.whole = WholeTokens::new(&reachable, &self.tokens);
        }
        Ok(())
    }

    // -------------------------------------------------------------------------------- encoding

    /// Encodes a text into a sink.
    pub fn encode(&self, text: &[u8], allowed: &Allowed<'_>, sink: &mut impl Sink) -> Result<()> {
        self.encode_watched(text, allowed, sink, &Watch::default())
    }

    /// The same, and stops when the watch says so.
    pub fn encode_watched(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        sink: &mut impl Sink,
        watch: &Watch,
    ) -> Result<()> {
        self.with_scratch(|scratch| {
            scratch.watch = watch.clone();
            self.encode_with(text, allowed, sink, scratch)
        })
    }

    /// Lends the space of an earlier call, with the words that it remembers.
    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        // Never waits: in a forked process, a lock may be held by a thread that is not there. The first is held
        // for as long as the work takes: to lock twice would take as long as to encode a word.
        if let Ok(mut desk) = self.desk.try_lock() {
            let scratch = desk.get_or_insert_default();
            let result = work(scratch);
            scratch.shrink();
            return result;
        }
        let pooled = self.pool.try_lock().ok().and_then(|mut pool| pool.pop());
        let mut scratch = pooled.unwrap_or_default();
        let result = work(&mut scratch);
        scratch.shrink();
        if let Ok(mut pool) = self.pool.try_lock()
            && pool.len() < POOLED
        {
            pool.push(scratch);
        }
        result
    }

    fn encode_with(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<()> {
        scratch.limits = Limits::new(text.len(), scratch.watch.clone());
        if let Some(rewrites) = &self.rewrites {
            return self.encode_rewritten(rewrites, text, allowed, sink, scratch);
        }
        let ambiguous = self.ambiguous_for(allowed);
        let mut specials = self.recognize(text, allowed);
        let mut position = 0;
        loop {
            let special = specials.next(position);
            let end = special.map_or(text.len(), |(s, _)| s.start);
            if self.encode_text(text, position..end, ambiguous, sink, scratch)?.is_break() {
                return Ok(());
            }
            let Some((special, id)) = special else { return Ok(()) };
            scratch.watch.worked(special.end - end)?;
            if give_one(sink, id, special.start..special.end)?.is_break() {
                return Ok(());
            }
            position = special.end;
        }
    }

    /// Encodes a range of a text, without special tokens, and without shared ids if they are given.
    fn encode_text(
        &self,
        text: &[u8],
        range: Range<usize>,
        ambiguous: Option<&Ambiguous>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let Some(ambiguous) = ambiguous else {
            return self.encode_plain(text, range, sink, scratch);
        };
        let mut found = Covering::default();
        let _ = self.encode_plain(text, range, &mut found, scratch)?; // it never breaks
        self.split_ambiguous(ambiguous, text, found, sink)
    }

    /// Encodes a range of a text, without special tokens.
    fn encode_plain(
        &self,
        text: &[u8],
        range: Range<usize>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut budget = std::mem::take(&mut scratch.limits.budget);
        let mut lookup = Lookup::new(self, text, sink, scratch);
        lookup.first = range.start;
        let found = self.pretokenizer.for_each_piece(&text[range], &mut budget, &mut lookup);
        let flow = lookup.finish();
        scratch.limits.budget = budget;
        found.and(flow)
    }

    /// Encodes the pre-token that a range of a text is.
    fn encode_pretoken(
        &self,
        text: &[u8],
        range: Range<usize>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut lookup = Lookup::new(self, text, sink, scratch);
        let _ = lookup.push(range.start, range.end); // finish knows, too
        lookup.finish()
    }

    /// Puts into `scratch.ids` what a pre-token, or a part of one that was cut, becomes. Every byte must have
    /// a token.
    fn encode_word(&self, word: &[u8], is_segment: bool, scratch: &mut Scratch) -> Result<()> {
        if !is_segment && let Some(id) = self.whole.get(word, &self.tokens) {
            scratch.ids.clear();
            scratch.ids.push(id);
            return Ok(());
        }
        self.merge_bytes(word, scratch)
    }

    /// Encodes a pre-token of an alphabet that lacks some bytes.
    fn encode_word_with_gaps(
        &self,
        text: &[u8],
        range: Range<usize>,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        match self.whole.get(&text[range.clone()], &self.tokens) {
            Some(id) => give_one(sink, id, range),
            None => self.merge_pretoken(&text[range.clone()], range.start, sink, scratch),
        }
    }

    /// The cut points for a long pre-token, if it is of a kind that should be cut.
    fn cuts_of(&self, pretoken: &[u8]) -> Option<Arc<Cuts>> {
        if self.has_gaps || !cuts::is_worth_it(pretoken) {
            return None;
        }
        Some(self.cuts.get_or_make(|| Cuts::new(&self.tokens)))
    }

    fn merge_pretoken(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        if self.has_gaps {
            return match self.gaps {
                Gaps::Characters => self.merge_with_gaps(pretoken, offset, sink, scratch),
                Gaps::Bytes => self.merge_without_gaps(pretoken, offset, sink, scratch),
            };
        }
        self.merge_run(pretoken, offset, sink, scratch)
    }

    fn merge_run(
        &self,
        run: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        self.merge_bytes(run, scratch)?;
        give(sink, &scratch.ids, offset..offset + run.len(), &self.tokens)
    }

    /// A pre-token of an alphabet that lacks some bytes: a character outside is one unk.
    fn merge_with_gaps(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let mut at = 0;
        while at < pretoken.len() {
            let is_known = |byte: &u8| self.byte_ids[*byte as usize] != NONE;
            let known = pretoken[at..].iter().take_while(|byte| is_known(byte)).count();
            if known > 0 {
                let run = &pretoken[at..at + known];
                if self.merge_run(run, offset + at, sink, scratch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                at += known;
                continue;
            }
            let length = character_length(&pretoken[at..]);
            let Some(unk) = self.unk else {
                let character = match std::str::from_utf8(&pretoken[at..at + length]) {
                    Ok(character) => character.to_owned(),
                    Err(_) => format!("\\x{:02x}", pretoken[at]),
                };
                return Err(Error::OutsideAlphabet { character, offset: offset + at });
            };
            scratch.watch.worked(length)?;
            if give_one(sink, unk, offset + at..offset + at + length)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            at += length;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The same where bytes are missing one by one: each is an unk, or is not there at all, so that its
    /// neighbours meet.
    fn merge_without_gaps(
        &self,
        pretoken: &[u8],
        offset: usize,
        sink: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> Result<ControlFlow<()>> {
        let is_known = |byte: &u8| self.byte_ids[*byte as usize] != NONE;
        if let Some(unk) = self.unk {
            let mut start = offset;
            for run in pretoken.chunk_by(|a, b| is_known(a) && is_known(b)) {
                let flow = if is_known(&run[0]) {
                    self.merge_run(run, start, sink, scratch)?
                } else {
                    give_one(sink, unk, start..start + 1)?
                };
                if flow.is_break() {
                    return Ok(flow);
                }
                start += run.len();
            }
            return Ok(ControlFlow::Continue(()));
        }
        let (mut places, mut kept) = (Vec::new(), Vec::new());
        reserve(&mut places, pretoken.len() + 1)?;
        reserve(&mut kept, pretoken.len())?;
        places.extend((0..pretoken.len()).filter(|&place| is_known(&pretoken[place])));
        kept.extend(places.iter().map(|&place| pretoken[place]));
        places.push(pretoken.len());
        self.merge_bytes(&kept, scratch)?;
        let (mut at, mut covered) = (0, 0);
        for &id in &scratch.ids {
            at += self.tokens.get(id).map_or(0, <[u8]>::len);
            let end = places.get(at).copied().unwrap_or(pretoken.len());
            if give_one(sink, id, offset + covered..offset + end)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            covered = end;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Puts into `scratch.ids` what `bytes` merge to. Every byte must have a token.
    fn merge_bytes(&self, bytes: &[u8], scratch: &mut Scratch) -> Result<()> {
        self.check_length(bytes.len())?;
        if bytes.len() <= longest::LONG {
            self.merge_below(NONE, bytes, scratch)
        } else if is_run(bytes) || !self.match_longest(bytes, scratch)? {
            self.merge_in_windows(WINDOW, bytes, scratch)
        } else {
            Ok(())
        }
    }

    /// The same for a long pre-token, if that can be done without merging; says whether it was.
    fn match_longest(&self, bytes: &[u8], scratch: &mut Scratch) -> Result<bool> {
        let facts = (&self.byte_ids, &self.pairs, &self.tokens);
        let longest = self.longest.get(bytes.len(), || Longest::new(facts));
        let Scratch { ids, trail, watch, .. } = scratch;
        match longest {
            Some(longest) => longest.encode(bytes, facts, ids, trail, watch),
            None => Ok(false),
        }
    }

    /// The same with merges of a rank below `limit` only.
    fn merge_below(&self, limit: u32, bytes: &[u8], scratch: &mut Scratch) -> Result<()> {
        scratch.ids.clear();
        reserve(&mut scratch.ids, bytes.len())?;
        scratch.ids.extend(bytes.iter().map(|&byte| self.byte_ids[byte as usize]));
        scratch.merge(&self.pairs, limit)
    }

    fn check_length(&self, pretoken: usize) -> Result<()> {
        if pretoken < NONE as usize {
            return Ok(());
        }
        Err(Error::Pattern(format!(
            "a pre-token of {pretoken} bytes is too long; at most 2^32 - 2 can be merged"
        )))
    }

    // -------------------------------------------------------------------------------- specials

    /// Starts a search for the special tokens of a text that a call recognizes.
    fn recognize<'a>(&'a self, text: &'a [u8], allowed: &Allowed<'a>) -> Recognized<'a> {
        let (search, specials, ranges) = match allowed {
            Allowed::None => (None, &[][..], &[][..]),
            Allowed::All => (Some(self.finder.search(text)), &self.specials[..], &[][..]),
            Allowed::Some(choice) => {
                (Some(choice.finder.search(text)), &choice.specials[..], &[][..])
            }
            Allowed::Within(ranges) => (None, &self.specials[..], *ranges),
        };
        Recognized { text, finder: &self.finder, search, start: 0, specials, ranges }
    }

    /// The ids that a text must not become, except where a special token is recognized.
    fn ambiguous_for(&self, allowed: &Allowed<'_>) -> Option<&Ambiguous> {
        match allowed {
            Allowed::Within(_) => self.ambiguous.as_deref(),
            Allowed::None | Allowed::All | Allowed::Some(_) => None,
        }
    }

    /// Prepares a choice of special tokens.
    pub fn choose<T: AsRef<str>>(&self, texts: &[T]) -> Result<Choice> {
        let id_of = |text: &str| {
            let found = self.specials.binary_search_by(|(special, _)| special.as_str().cmp(text));
            found.map_or(NONE, |at| self.specials[at].1)
        };
        let specials: Vec<(String, u32)> =
            texts.iter().map(|text| (text.as_ref().to_owned(), id_of(text.as_ref()))).collect();
        let finder = Specials::new(&specials.iter().map(|(text, _)| text).collect::<Vec<_>>())?;
        let mut ids: Vec<u32> =
            specials.iter().map(|(_, id)| *id).filter(|&id| id != NONE).collect();
        ids.sort_unstable();
        let rewritten = self.rewrites.as_ref().map(|rewrites| rewrites.choose(&ids)).transpose()?;
        Ok(Choice { finder, specials, ids, rewritten })
    }

    /// Refuses a text that holds any special token of the choice, or of the vocabulary.
    pub fn refuse(&self, text: &[u8], choice: Option<&Choice>, watch: &Watch) -> Result<()> {
        let (finder, specials) = match choice {
            Some(choice) => (&choice.finder, &choice.specials),
            None => (&self.finder, &self.specials),
        };
        if let Some(found) = finder.first(text) {
            let token = specials[found.index].0.clone();
            return Err(Error::SpecialToken { token, offset: found.start });
        }
        match &self.rewrites {
            Some(rewrites) => {
                let refused = choice.and_then(|choice| choice.rewritten.as_ref());
                rewrites.refuse(text, refused, watch)
            }
            None => Ok(()),
        }
    }

    // -------------------------------------------------------------------------------- the rest

    /// Gives the pre-tokens of a text without special tokens, as they are encoded.
    pub fn pretokenize(
        &self,
        text: &[u8],
        watch: &Watch,
        each: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        match &self.rewrites {
            None => {
                let mut budget = Budget::new(watch.clone());
                self.pretokenizer.for_each_tile_within(text, &mut budget, &mut |tile, _| each(tile))
            }
            Some(rewrites) => rewrites.pretokenize(&self.pretokenizer, text, watch, each),
        }
    }

    /// The names of the engines that run the patterns, in order.
    pub fn engines(&self) -> Vec<&'static str> {
        match &self.rewrites {
            Some(rewrites) if !rewrites.steps.is_empty() => rewrites.steps.engines().collect(),
            _ => vec![self.pretokenizer.engine().name()],
        }
    }

    /// All tokens by id, special ones included.
    pub fn tokens(&self) -> &TokenTable {
        &self.tokens
    }

    /// Up to where the ids of a text that goes on are certain, whatever follows; 0 if nothing is, or it
    /// cannot be told. No text that is to be refused is torn.
    pub fn certain_end(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        refused: Option<&Choice>,
    ) -> usize {
        if self.rewrites.is_some() {
            return 0; // normalisers and flags look beyond the pattern
        }
        let mut sets = vec![&self.finder];
        sets.extend(refused.map(|choice| &choice.finder));
        // The quick way: a place between two bytes that are always a boundary.
        if let Some(cut) = cut::last_cut(&self.pretokenizer, &sets, text) {
            return cut;
        }
        let certain_of = |set: &Specials| cut::certain_length(set, text).unwrap_or(0);
        let certain = sets.iter().map(|set| certain_of(set)).min().unwrap_or(0);
        let mut start = 0; // of the text behind the last special token that is recognised
        let mut specials = self.recognize(text, allowed);
        while let Some((special, _)) =
            specials.next(start).filter(|(special, _)| special.start < certain)
        {
            start = special.end;
        }
        // A refused text may lie across the special token's end, or be about to.
        let tears = |choice: &Choice| {
            start > certain_of(&choice.finder) || choice.finder.lies_across(text, start)
        };
        if start > 0 && refused.is_some_and(tears) {
            return 0;
        }
        cut::certain_end(&self.pretokenizer, &sets, text, start)
    }
}

/// The special tokens of a text that a call recognizes, from left to right.
struct Recognized<'a> {
    text: &'a [u8],
    finder: &'a Specials,
    /// What is searched now, and from where on; `None` before the first range.
    search: Option<Search<'a>>,
    start: usize,
    specials: &'a [(String, u32)],
    /// Ranges of the text that are to be searched one by one.
    ranges: &'a [Range<usize>],
}

impl Recognized<'_> {
    /// The first one at or after `from`, which never falls, with its id.
    fn next(&mut self, from: usize) -> Option<(Occurrence, u32)> {
        loop {
            let start = self.start.max(from);
            if let Some(found) = self.search.as_mut().and_then(|search| search.next(start)) {
                let id = self.specials[found.index].1;
                return Some((found, id)).filter(|_| id != NONE);
            }
            // One that crosses the end of a range must not hide a shorter one inside.
            let (range, rest) = self.ranges.split_first()?;
            self.ranges = rest;
            self.start = range.start;
            self.search = (from < range.end).then(|| self.finder.search(&self.text[..range.end]));
        }
    }
}

/// The length of the first character, or 1 if it is none.
fn character_length(bytes: &[u8]) -> usize {
    let window = &bytes[..bytes.len().min(4)];
    match window.utf8_chunks().next() {
        Some(chunk) => chunk.valid().chars().next().map_or(1, char::len_utf8),
        None => 1,
    }
}

#[cfg(test)]
mod tests;
