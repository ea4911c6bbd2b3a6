//! Encoding a source against encoding its documents one by one.

use std::collections::VecDeque;

use super::*;
use crate::documents::ReadStatus;
use crate::encode::{Ranking, Vocabulary};
use crate::rewrite::{AddedToken, Form, Normalizer, NormalizerStep};
use crate::testing::{Random, examples};

const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const END: u32 = 900;

fn vocabulary(pattern: Option<&str>) -> Vocabulary {
    let mut tokens: Vec<(u32, Vec<u8>)> = (0..=255u8).map(|b| (u32::from(b), vec![b])).collect();
    let merges = [("t", "h"), ("th", "e"), (" ", "the"), ("a", "a"), ("aa", "aa"), ("<", "|")];
    let mut list = Vec::new();
    for (left, right) in merges {
        let find = |text: &str| tokens.iter().find(|(_, t)| t == text.as_bytes()).unwrap().0;
        let new = tokens.len() as u32;
        list.push((find(left), find(right), new));
        tokens.push((new, format!("{left}{right}").into_bytes()));
    }
    let mut vocabulary = Vocabulary::new(tokens, list, Ranking::Merges);
    vocabulary.pattern = pattern.map(str::to_owned);
    for (text, id) in [("<|end|>", END), ("<|end|>>", END + 1)] {
        vocabulary.added.push(AddedToken::special(text, id));
        vocabulary.added_bytes.push((id, text.as_bytes().to_vec()));
    }
    vocabulary
}

/// Documents in pieces of random length.
struct Pieces {
    documents: VecDeque<Vec<u8>>,
    given: usize,
    finished: u64,
    random: Random,
    fails_at: Option<u64>,
}

impl Pieces {
    fn new(documents: &[Vec<u8>], seed: u64) -> Self {
        let documents = documents.iter().cloned().collect();
        Self { documents, given: 0, finished: 0, random: Random(seed), fails_at: None }
    }
}

impl DocumentSource for Pieces {
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        max_bytes: usize,
    ) -> std::result::Result<ReadStatus, Box<dyn std::error::Error + Send + Sync>> {
        if self.fails_at == Some(self.finished) {
            return Err("broken".into());
        }
        let Some(document) = self.documents.front() else { return Ok(ReadStatus::CorpusEnd) };
        let rest = &document[self.given..];
        let take = rest.len().min(1 + self.random.below(max_bytes));
        buffer.extend_from_slice(&rest[..take]);
        self.given += take;
        if self.given < document.len() || self.random.below(4) == 0 && take > 0 {
            return Ok(ReadStatus::More);
        }
        self.documents.pop_front();
        self.given = 0;
        self.finished += 1;
        Ok(ReadStatus::DocumentEnd)
    }

    fn location(&self) -> (Option<String>, Option<u64>) {
        (None, None)
    }

    fn position(&self) -> Position {
        Position { documents: self.finished, ..Position::default() }
    }
}

/// Texts of many lengths, some longer than a block, some without a place to cut.
fn documents(random: &mut Random) -> Vec<Vec<u8>> {
    let parts: &[&str] =
        &["the ", "aaaa", " the", "<|end|>", "<|end|>>", "<|en", "\n\n", "  ", "é", "1234", "x"];
    (0..random.below(40))
        .map(|_| {
            let length = match random.below(12) {
                0 => 0,
                1 => 2_600_000,
                2 => 300_000,
                _ => random.below(200),
            };
            if random.below(10) == 0 {
                return vec![b'a'; length]; // one pre-token
            }
            let mut text = Vec::new();
            while text.len() < length {
                text.extend_from_slice(random.pick(parts).as_bytes());
            }
            text
        })
        .collect()
}

fn options<'a>(allowed: Allowed<'a>, marks_empty: bool) -> StreamOptions<'a> {
    StreamOptions { allowed, refuses: false, prefix: &[7, 8], suffix: &[END], marks_empty }
}

/// The ids of all documents, their ends, and the last block.
type All = (Vec<u32>, Vec<u64>, u64, BTreeMap<usize, u64>);

fn encode_all(
    encoder: &Encoder,
    mut source: Pieces,
    options: &StreamOptions<'_>,
    threads: usize,
) -> std::result::Result<All, StreamError> {
    let (mut ids, mut ends, mut bytes, mut specials) = (Vec::new(), Vec::new(), 0, BTreeMap::new());
    let mut receive = |block: EncodedBlock| {
        let before = ids.len() as u64;
        ids.extend_from_slice(&block.ids);
        ends.extend(block.ends.iter().map(|end| before + end));
        bytes += block.text_bytes;
        for (index, count) in block.specials {
            *specials.entry(index).or_default() += count;
        }
        if let Some(position) = block.position {
            assert_eq!(position.documents, ends.len() as u64);
        }
        assert!(block.is_open || block.position.is_some());
        assert_eq!(block.is_open, *ends.last().unwrap_or(&0) < ids.len() as u64);
        Ok(())
    };
    encoder.encode_source(
        &mut source,
        options,
        NonZeroUsize::new(threads).unwrap(),
        &mut receive,
        &mut || ControlFlow::Continue(()),
    )?;
    Ok((ids, ends, bytes, specials))
}

fn expected(encoder: &Encoder, documents: &[Vec<u8>], options: &StreamOptions<'_>) -> All {
    let (mut ids, mut ends, mut bytes, mut specials) = (Vec::new(), Vec::new(), 0, BTreeMap::new());
    for document in documents {
        let mut of_text = Vec::new();
        encoder.encode(document, &options.allowed, &mut of_text).unwrap();
        if !of_text.is_empty() || options.marks_empty {
            ids.extend_from_slice(options.prefix);
            ids.extend_from_slice(&of_text);
            ids.extend_from_slice(options.suffix);
        }
        ends.push(ids.len() as u64);
        bytes += document.len() as u64;
        let mut search = encoder.specials.finder.search(document);
        let mut from = 0;
        while let Some(found) = search.next(from) {
            *specials.entry(found.index).or_default() += 1;
            from = found.end;
        }
    }
    (ids, ends, bytes, specials)
}

#[test]
fn blocks_add_up_to_the_documents() {
    for (case, pattern) in (0..examples(4)).flat_map(|case| [(case, Some(GPT2)), (case, None)]) {
        let encoder = Encoder::new(vocabulary(pattern)).unwrap();
        let documents = documents(&mut Random(u64::from(case)));
        for (number, marks_empty) in [true, false].into_iter().enumerate() {
            let allowed = if number == 0 { Allowed::None } else { Allowed::All };
            let options = options(allowed, marks_empty);
            let expected = expected(&encoder, &documents, &options);
            for threads in [1, 3] {
                let source = Pieces::new(&documents, u64::from(case));
                let found = encode_all(&encoder, source, &options, threads).unwrap();
                assert!(found == expected, "case {case}, {pattern:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn documents_of_a_vocabulary_that_changes_text_are_not_cut() {
    let mut vocabulary = vocabulary(Some(GPT2));
    vocabulary.normalizer = Normalizer::new(vec![NormalizerStep::Form(Form::Nfc)]);
    let encoder = Encoder::new(vocabulary).unwrap();
    let documents = vec!["e\u{301} the ".repeat(300_000).into_bytes(), b"the".to_vec()];
    let options = options(Allowed::None, true);
    let found = encode_all(&encoder, Pieces::new(&documents, 1), &options, 2).unwrap();
    assert!(found == expected(&encoder, &documents, &options));
}

#[test]
fn blocks_before_an_error_are_received() {
    let encoder = Encoder::new(vocabulary(Some(GPT2))).unwrap();
    let documents = vec![b"the the ".repeat(40_000); 20];
    let mut source = Pieces::new(&documents, 1);
    source.fails_at = Some(15);
    let mut received = 0;
    let found = encoder.encode_source(
        &mut source,
        &options(Allowed::None, true),
        NonZeroUsize::new(2).unwrap(),
        &mut |block| {
            received += block.ends.len();
            Ok(())
        },
        &mut || ControlFlow::Continue(()),
    );
    let error = found.unwrap_err();
    assert!(matches!(error.error, Error::Source(_)) && error.document.is_none());
    assert!((12..=15).contains(&received), "{received}");
}

#[test]
fn a_rejected_special_token_names_its_document() {
    let encoder = Encoder::new(vocabulary(Some(GPT2))).unwrap();
    let mut documents = vec![b"the ".repeat(90_000); 9];
    documents[7].extend_from_slice(b"<|end|>");
    let options = StreamOptions { refuses: true, ..options(Allowed::None, true) };
    for threads in [1, 3] {
        let found = encode_all(&encoder, Pieces::new(&documents, 1), &options, threads);
        let error = found.unwrap_err();
        assert!(matches!(error.error, Error::SpecialToken { .. }));
        assert_eq!(error.document, Some(7));
    }
}

#[test]
fn the_caller_can_stop() {
    let encoder = Encoder::new(vocabulary(Some(GPT2))).unwrap();
    let documents = vec![b"the the ".repeat(400_000); 8];
    let stop_at = |limit: usize, fails: bool| {
        let mut received = 0;
        let calls = std::cell::Cell::new(0);
        let found = encoder.encode_source(
            &mut Pieces::new(&documents, 1),
            &options(Allowed::None, true),
            NonZeroUsize::new(2).unwrap(),
            &mut |_| {
                received += 1;
                if fails && received == limit { Err(Error::Interrupted) } else { Ok(()) }
            },
            &mut || {
                calls.set(calls.get() + 1);
                if fails || calls.get() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            },
        );
        assert!(matches!(found.unwrap_err().error, Error::Interrupted));
        received
    };
    assert_eq!(stop_at(3, true), 3);
    assert!(stop_at(2, false) < 24);
}
