//! A chain of splits, like Hugging Face's `Sequence` of pre-tokenizers.
//!
//! Each step processes the pieces of the previous step independently. Empty pieces are dropped.

use std::ops::{ControlFlow, Range};

use super::{Rewritten, Writer};
use crate::error::Result;
use crate::pretoken::Pretokenizer;

/// What a split does with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBehavior {
    /// It becomes a piece.
    Isolated,
    /// It is dropped.
    Removed,
    /// It joins the previous piece, unless that is a match too.
    MergedWithPrevious,
    /// It joins the next piece, unless that is a match too.
    MergedWithNext,
    /// Adjacent matches become one piece.
    Contiguous,
}

/// One step of a chain.
pub enum SplitStep {
    /// Splits at the matches of a pattern.
    Split {
        /// The pattern.
        pattern: Pretokenizer,
        /// What to do with a match.
        behavior: SplitBehavior,
        /// Swaps matches and the text between them.
        invert: bool,
    },
    /// Prepends a space to every piece that does not start with one.
    PrefixSpace,
    /// Later steps see each byte as its GPT-2 byte letter.
    ByteLetters,
}

/// A chain of steps.
#[derive(Default)]
pub struct SplitChain {
    steps: Vec<SplitStep>,
}

impl SplitChain {
    /// A chain of these steps.
    pub fn new(steps: Vec<SplitStep>) -> Self {
        Self { steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The patterns' engines, in order.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().filter_map(|step| match step {
            SplitStep::Split { pattern, .. } => Some(pattern.engine().name()),
            _ => None,
        })
    }

    /// Applies the chain; returns the rewritten text and its pieces in order.
    pub(crate) fn split<'t>(
        &self,
        text: &'t [u8],
        with_origins: bool,
    ) -> Result<(Rewritten<'t>, Vec<Range<usize>>)> {
        let mut rewritten = Rewritten::unchanged(text);
        #[allow(clippy::single_range_in_vec_init, reason = "one piece, the whole text")]
        let mut pieces = if text.is_empty() { Vec::new() } else { vec![0..text.len()] };
        let mut in_letters = false;
        for step in &self.steps {
            match step {
                SplitStep::Split { pattern, behavior, invert } => {
                    let mut next = Vec::with_capacity(pieces.len());
                    for piece in pieces {
                        let bytes = &rewritten.text[piece.clone()];
                        let spans = if in_letters {
                            letter_spans(pattern, bytes, piece.start)?
                        } else {
                            spans(pattern, bytes, piece.start)?
                        };
                        apply_behavior(spans, *behavior, *invert, &mut next);
                    }
                    pieces = next;
                }
                SplitStep::PrefixSpace => {
                    (rewritten, pieces) = prefix_space(rewritten, pieces, with_origins)
                }
                SplitStep::ByteLetters => in_letters = true,
            }
        }
        Ok((rewritten, pieces))
    }
}

/// A range, and whether it is a match.
type Span = (Range<usize>, bool);

/// The matches and the text between them, in order; they cover the piece, which starts at `start`.
fn spans(pattern: &Pretokenizer, piece: &[u8], start: usize) -> Result<Vec<Span>> {
    let mut list = Vec::new();
    let mut at = start;
    pattern.for_each_tile(piece, &mut |span, is_match| {
        list.push((at..at + span.len(), is_match));
        at += span.len();
        ControlFlow::Continue(())
    })?;
    Ok(list)
}

/// The same with the pattern matched against byte letters; each letter is one byte of the piece.
fn letter_spans(pattern: &Pretokenizer, piece: &[u8], start: usize) -> Result<Vec<Span>> {
    let letters: String = piece.iter().map(|&byte| byte_letter(byte)).collect();
    let mut list = Vec::new();
    let mut at = start;
    pattern.for_each_tile(letters.as_bytes(), &mut |span, is_match| {
        let bytes = span.iter().filter(|&&byte| !(0x80..0xC0).contains(&byte)).count();
        list.push((at..at + bytes, is_match));
        at += bytes;
        ControlFlow::Continue(())
    })?;
    Ok(list)
}

/// GPT-2's byte letter: the byte itself if it is printable in Latin-1, else the next character from
/// U+0100.
pub(crate) fn byte_letter(byte: u8) -> char {
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !is_printable(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Turns spans into pieces.
fn apply_behavior(
    spans: Vec<Span>,
    behavior: SplitBehavior,
    invert: bool,
    pieces: &mut Vec<Range<usize>>,
) {
    let first = pieces.len();
    let mut was_match = false;
    let spans = spans.into_iter().map(|(range, is_match)| (range, is_match != invert));
    match behavior {
        SplitBehavior::Isolated => pieces.extend(spans.map(|(range, _)| range)),
        SplitBehavior::Removed => {
            pieces.extend(spans.filter(|(_, is_match)| !is_match).map(|(range, _)| range));
        }
        SplitBehavior::Contiguous | SplitBehavior::MergedWithPrevious => {
            for (range, is_match) in spans {
                let joins = match behavior {
                    SplitBehavior::Contiguous => is_match == was_match,
                    _ => is_match && !was_match,
                };
                match pieces[first..].last_mut() {
                    Some(last) if joins => last.end = range.end,
                    _ => pieces.push(range),
                }
                was_match = is_match;
            }
        }
        SplitBehavior::MergedWithNext => {
            for (range, is_match) in spans.collect::<Vec<_>>().into_iter().rev() {
                match pieces[first..].last_mut() {
                    Some(next) if is_match && !was_match => next.start = range.start,
                    _ => pieces.push(range),
                }
                was_match = is_match;
            }
            pieces[first..].reverse();
        }
    }
}

fn prefix_space(
    rewritten: Rewritten<'_>,
    pieces: Vec<Range<usize>>,
    with_origins: bool,
) -> (Rewritten<'_>, Vec<Range<usize>>) {
    if pieces.iter().all(|piece| rewritten.text[piece.start] == b' ') {
        return (rewritten, pieces);
    }
    let mut writer = Writer::new(rewritten.text.len() + pieces.len(), with_origins);
    let mut moved = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let start = writer.text.len();
        let bytes = &rewritten.text[piece.clone()];
        if bytes.first() != Some(&b' ') {
            writer.put(b" ", piece.start);
        }
        writer.copy(bytes, piece.start);
        moved.push(start..writer.text.len());
    }
    let Writer { text, origins } = writer;
    (rewritten.then(text, origins), moved)
}
