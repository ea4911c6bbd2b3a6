//! The encoder against the algorithm written plainly: the pair of the lowest rank merges first. One
//! execution: one text, one vocabulary, one choice of special tokens, encoded into every sink.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::rc::Rc;

use byteweld_core::cpu::Tier;
use byteweld_core::encode::{
    Allowed, Counter, Encoder, Gaps, Ranking, Total, Vocabulary, WithEnds,
};
use byteweld_core::rewrite::AddedToken;
use byteweld_core::watch::Watch;

use self::reference::{Permitted, Reference};
use crate::input::Input;
use crate::prepared::Prepared;
use crate::random::Random;
use crate::{magnitude, patterns, signature, text};

mod reference;

/// The longest text.
const MAX_BYTES: usize = 1 << 17;

/// The same with a pattern: on some texts, the regex engine takes quadratic time.
const MAX_BYTES_BY_PATTERN: usize = 1 << 13;

/// Texts of special tokens: some contain others, overlap others, or are ordinary text.
const SPECIALS: [&str; 10] =
    ["<|end|>", "<|end|>>", "<|e", "end|><|end", "ab", "aab", "日", " ", "'s", "\n\n"];

struct Case {
    encoder: Encoder,
    reference: Reference,
    /// Texts to build inputs from: tokens and special tokens.
    pieces: Vec<Vec<u8>>,
    letters: Vec<u8>,
    /// Whether a special token has the id of an ordinary one.
    is_shared: bool,
}

pub fn run(input: &[u8]) -> u64 {
    // Every tier gets its share of inputs.
    let tiers = Tier::available();
    let chosen = input.get(2).map_or(0, |&byte| usize::from(byte) % tiers.len());
    tiers[chosen].force(|| run_on_tier(input))
}

fn run_on_tier(input: &[u8]) -> u64 {
    thread_local!(static CASES: RefCell<Prepared<Case>> = RefCell::default());
    let mut input = Input::new(input);
    let number = input.number();
    let flags = input.byte();
    let case: Rc<Case> = CASES.with_borrow_mut(|cases| {
        if flags == 0 {
            cases.forget(number); // a vocabulary that remembers nothing yet
        }
        cases.get(number, Case::new)
    });
    let choice = input.byte();
    let place = input.number();
    let text = case.text(&mut input);
    match choice % 4 {
        0 => case.check(&text, &Allowed::None, &Permitted::None, flags, place),
        1 => case.check(&text, &Allowed::All, &Permitted::All, flags, place),
        2 => {
            let chosen: Vec<&str> = case
                .reference
                .specials
                .iter()
                .zip(2..)
                .filter(|(_, bit)| choice >> bit & 1 == 1)
                .map(|((text, _), _)| text.as_str())
                .collect();
            let made = case.encoder.choose(&chosen).unwrap();
            case.check(&text, &Allowed::Some(&made), &Permitted::Some(&chosen), flags, place)
        }
        _ if case.is_shared => signature(&[9]),
        _ => {
            // Every other part between a few places is trusted.
            let mut places: Vec<usize> =
                [place, place / 3, place.rotate_left(5), u16::from(choice)]
                    .map(|place| usize::from(place) % (text.len() + 1))
                    .to_vec();
            places.sort_unstable();
            let ranges = [places[0]..places[1], places[2]..places[3]];
            case.check(&text, &Allowed::Within(&ranges), &Permitted::Within(&ranges), flags, place)
        }
    }
}

impl Case {
    fn new(number: u16) -> Self {
        let random = &mut Random(u64::from(number) ^ 0x5EED);
        let letters: &[u8] = random.pick(&[
            &b"ab"[..],
            b"abc ",
            b" aehlo'sdtWr",
            "日本語中文".as_bytes(),
            b"\x00\x01\xfe\xff",
            b" \n\t.!/1a",
        ]);
        let has_gaps = random.one_in(8);
        let mut bytes: Vec<u8> = (0..=255).collect();
        if has_gaps {
            bytes.retain(|byte| letters.contains(byte) || random.one_in(3));
        }
        random.shuffle(&mut bytes);
        let mut texts: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
        let ranking = [Ranking::Merges, Ranking::MergesAfterLookup, Ranking::Ids][random.below(3)];
        let joins = join_texts(random, letters, &mut texts, ranking);
        let mut ids = distinct_ids(random, texts.len(), ranking);
        let id_of = |index: usize| ids[index];
        let merges: Vec<(u32, u32, u32)> =
            joins.iter().map(|&(a, b, c)| (id_of(a), id_of(b), id_of(c))).collect();
        let tokens: Vec<(u32, Vec<u8>)> = ids.iter().copied().zip(texts.iter().cloned()).collect();

        let mut vocabulary = Vocabulary::new(tokens.clone(), merges.clone(), ranking);
        if ranking == Ranking::Ids {
            vocabulary.merges.clear();
        }
        let pattern =
            (!random.one_in(3)).then(|| patterns::numbered_of_family(random.below(11) as u16));
        vocabulary.pattern = pattern.clone();
        ids.sort_unstable();
        let mut next = ids.last().unwrap() + 1;
        let mut specials: Vec<(String, u32)> = Vec::new();
        let mut is_shared = false;
        for text in SPECIALS {
            if !random.one_in(4) || specials.len() == 6 {
                continue;
            }
            let id = if random.one_in(12) {
                is_shared = true;
                ids[random.below(ids.len())]
            } else {
                next += 1 + random.below(3) as u32;
                vocabulary.added_bytes.push((next, text.as_bytes().to_vec()));
                next
            };
            if specials.iter().all(|(_, other)| *other != id) {
                vocabulary.added.push(AddedToken::special(text, id));
                specials.push((text.to_owned(), id));
            }
        }
        if has_gaps {
            vocabulary.gaps = if random.one_in(2) { Gaps::Bytes } else { Gaps::Characters };
            vocabulary.unk = random.one_in(2).then(|| ids[random.below(ids.len())]);
        }
        let (gaps, unk) = (vocabulary.gaps, vocabulary.unk);
        let mut pieces = texts;
        pieces.reverse(); // the joined ones first
        pieces.truncate(120);
        pieces.extend(specials.iter().map(|(text, _)| text.as_bytes().to_vec()));
        let encoder = Encoder::new(vocabulary).unwrap();
        let reference = Reference::new(
            &tokens,
            &merges,
            ranking,
            pattern.as_deref(),
            specials,
            has_gaps.then_some(gaps),
            unk,
        );
        Self { encoder, reference, pieces, letters: letters.to_vec(), is_shared }
    }

    /// Decodes the rest of an input: tokens and letters of the vocabulary, or any text.
    fn text(&self, input: &mut Input) -> Vec<u8> {
        let max_bytes = if self.reference.has_pattern() { MAX_BYTES_BY_PATTERN } else { MAX_BYTES };
        if input.byte() < 64 {
            return text::text(input, max_bytes);
        }
        let mut text = Vec::new();
        let mut last = 0;
        while !input.is_empty() && text.len() < max_bytes / 64 {
            let start = text.len();
            match input.byte() {
                op @ 0..150 => {
                    text.extend_from_slice(&self.pieces[usize::from(op) % self.pieces.len()])
                }
                op @ 150..230 => text.push(self.letters[usize::from(op) % self.letters.len()]),
                op @ 230..254 => {
                    let times = [1, 2, 3, 7, 20][usize::from(op) % 5];
                    (0..times).for_each(|_| text.extend_from_within(last..start));
                    continue;
                }
                254.. => {
                    let times = [1, 1, 1, 1, 1, 2, 3, 10, 60][input.below(9)];
                    (0..times).for_each(|_| text.extend_from_within(..start));
                    continue;
                }
            }
            last = start;
        }
        text
    }

    fn check(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        permitted: &Permitted<'_>,
        flags: u8,
        place: u16,
    ) -> u64 {
        let Self { encoder, reference, .. } = self;
        let expected = reference.encode(text, permitted);
        let mut found = WithEnds::default();
        let outcome = encoder.encode(text, allowed, &mut found);
        let shown = || format!("{} {permitted:?} {text:?}", reference.description);
        let Some(expected) = expected else {
            assert!(outcome.is_err(), "{}", shown());
            return signature(&[1, magnitude(text.len())]);
        };
        outcome.unwrap();
        let ids: Vec<u32> = expected.iter().map(|(id, _)| *id).collect();
        assert_eq!(found.ids, ids, "{}", shown());
        if !reference.drops_bytes() {
            assert!(found.ends.iter().eq(expected.iter().map(|(_, end)| end)), "{}", shown());
        }
        // Once more, when the words are known.
        let mut again = Vec::new();
        encoder.encode(text, allowed, &mut again).unwrap();
        assert_eq!(again, ids, "warm: {}", shown());
        let mut total = Total::default();
        encoder.encode(text, allowed, &mut total).unwrap();
        assert_eq!(total.tokens, ids.len(), "total: {}", shown());
        if !reference.has_gaps() {
            let limit = usize::from(place) % (ids.len() + 2);
            let mut counter = Counter::new(limit);
            encoder.encode(text, allowed, &mut counter).unwrap();
            let counted = (counter.tokens, counter.passed);
            assert_eq!(counted, (limit.min(ids.len()), limit < ids.len()), "counter: {}", shown());
            let covered = counter.tokens.checked_sub(1).map_or(0, |last| expected[last].1);
            assert_eq!(counter.bytes, covered, "counter: {}", shown());
            if !self.is_shared {
                let mut decoded = Vec::new();
                encoder.tokens().decode_into(&ids, &mut decoded).unwrap();
                assert_eq!(decoded, text, "decoded: {}", shown());
            }
        }
        let is_within = matches!(permitted, Permitted::Within(_));
        if !is_within && flags % 4 == 1 {
            let seen = usize::from(place) % (text.len() + 1);
            let certain = encoder.certain_end(&text[..seen], allowed, None);
            let mut parts = Vec::new();
            encoder.encode(&text[..certain], allowed, &mut parts).unwrap();
            encoder.encode(&text[certain..], allowed, &mut parts).unwrap();
            assert_eq!(parts, ids, "certain up to {certain} of {seen}: {}", shown());
        }
        if !is_within && (flags % 16 == 2 || text.len() > 64 << 10) {
            let threads = NonZeroUsize::new(3).unwrap();
            let ragged = encoder
                .encode_batch(&[text, b"", text], allowed, threads, &Watch::default())
                .unwrap();
            let all: Vec<&[u32]> = ragged.iter().collect();
            assert_eq!(all, [&ids[..], &[], &ids], "batch: {}", shown());
        }
        let refused = encoder.refuse(text, None, &Watch::default()).is_err();
        assert_eq!(refused, reference.find(text, 0, &Permitted::All).is_some(), "{}", shown());
        let specials = expected.iter().filter(|(id, _)| reference.is_special(*id)).count();
        let size = |number: usize| magnitude(number).min(9); // few long texts are kept: they take long
        let shape = [size(text.len()), size(ids.len()), size(specials)];
        signature(&[
            shape[0],
            shape[1],
            shape[2],
            usize::from(refused),
            usize::from(reference.has_gaps()),
        ])
    }
}

/// Joins texts at random; gives the indices of the joined and of the result. With ranks by id, some texts
/// are there that no two others make, and so with whole pre-tokens looked up.
fn join_texts(
    random: &mut Random,
    letters: &[u8],
    texts: &mut Vec<Vec<u8>>,
    ranking: Ranking,
) -> Vec<(usize, usize, usize)> {
    let mut joins: Vec<(usize, usize, usize)> = Vec::new();
    let bytes = texts.len();
    let most = [0, 3, 10, 40, 120][random.below(5)];
    let longest = [3, 8, 24, 70][random.below(4)];
    let draw = |random: &mut Random, texts: &[Vec<u8>]| {
        if texts.len() > bytes && !random.one_in(3) {
            return bytes + random.below(texts.len() - bytes);
        }
        let letter = letters[random.below(letters.len())];
        texts.iter().position(|text| *text == [letter]).unwrap_or(0)
    };
    for _ in 0..most {
        let (left, right) = (draw(random, texts), draw(random, texts));
        let joined = [&texts[left][..], &texts[right]].concat();
        if joined.len() > longest || joins.iter().any(|&(a, b, _)| (a, b) == (left, right)) {
            continue;
        }
        let known = texts.iter().position(|text| *text == joined);
        let new = known.unwrap_or(texts.len());
        if known.is_none() {
            texts.push(joined);
        }
        joins.push((left, right, new));
        if ranking != Ranking::Merges && random.one_in(6) {
            let length = 2 + random.below(5);
            let odd: Vec<u8> = (0..length).map(|_| letters[random.below(letters.len())]).collect();
            if !texts.contains(&odd) {
                texts.push(odd);
            }
        }
    }
    if random.one_in(4) {
        random.shuffle(&mut joins); // a merge may come before those that make its parts
    }
    joins
}

/// Different ids, ascending or in any order, dense or with holes.
fn distinct_ids(random: &mut Random, count: usize, ranking: Ranking) -> Vec<u32> {
    let gap = 1 + random.below(3);
    let mut next = random.below(5) as u32;
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(next);
        next += 1 + random.below(gap) as u32;
    }
    if ranking != Ranking::Ids || random.one_in(3) {
        random.shuffle(&mut ids);
    }
    ids
}

/// Ranges, for messages.
type Ranges<'a> = &'a [Range<usize>];
